"""What all workers that share something have in common; others are refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evalbudget.errors import StoreError, differences
from evalbudget.store._address import Address
from evalbudget.untrusted import parsed_json


@dataclass(frozen=True, slots=True)
class Terms:
    """Of a purchase or a race that several workers share.

    Attributes:
        version: of evalbudget.
        design: fingerprint of what can be asked.
        settings: whatever else must be the same; JSON values.
    """

    version: str
    design: str
    settings: Mapping[str, Any]

    def as_json(self) -> str:
        """To keep in the store."""
        kept = {"version": self.version, "design": self.design, "settings": dict(self.settings)}
        return json.dumps(kept, default=_plain)

    def check(self, kept: str, where: Address) -> None:
        """Refuse to join others on other terms.

        Args:
            kept: theirs, as JSON.
            where: the store, for messages.

        Raises:
            StoreError: says what differs, or that they cannot be read.
        """
        here = json.loads(self.as_json())
        try:
            found = parsed_json(kept)
            there = {name: found[name] for name in here}
            there["settings"] = dict(there["settings"])
        except (LookupError, TypeError, ValueError) as ex:
            raise StoreError(
                f"{where} is damaged: its terms cannot be read ({ex}); begin a new store"
            ) from ex
        if there["version"] != here["version"]:
            raise StoreError(
                f"{where} was begun by evalbudget {there['version']}, and this is {here['version']}: workers "
                "of two versions might decide differently. Install the version that began it, or begin a new "
                "store"
            )
        if shown := differences(there["settings"], here["settings"]):
            raise StoreError(
                f"{where} was begun with other settings ({shown}); use those, or begin a new one"
            )
        if there["design"] != here["design"]:
            raise StoreError(
                f"{where} belongs to another design (other models, items or judges); use the same task and "
                "data, or begin a new one"
            )


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple | set | frozenset) else value.item()
