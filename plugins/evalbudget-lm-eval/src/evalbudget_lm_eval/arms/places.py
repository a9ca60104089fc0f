"""How many arms are asked at once, and on which devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evalbudget.errors import InvalidInputError
from evalbudget_lm_eval.arms.arm import Arm, asks_server, is_api_arm

_EXAMPLE = "--devices cuda:0,cuda:1"
AT_ONCE = 8
"""Arms that are asked side by side at most, where there are no more devices."""


class Place(NamedTuple):
    """Room for models that are asked one after another.

    Attributes:
        device: as the host names it; None to leave that to the host.
        number: of the place, from 0, among those on the same device.
    """

    device: str | None = None
    number: int = 0


@dataclass(frozen=True)
class Places:
    """How many arms are asked at once, and where those that compute here may be.

    Attributes:
        at_once: arms.
        free_to_use: places of arms that name no device; empty if the user named none.
    """

    at_once: int = 1
    free_to_use: tuple[Place, ...] = ()

    @classmethod
    def of(cls, devices: str | Sequence[str] | None, arms: Sequence[Arm], device: object = None) -> Places:
        """Those that ask servers all at once, and of the others one for each device.

        Args:
            devices: names, separated by commas or in a list; the same one twice for two models on it.
            arms: who is asked.
            device: of the host, for all arms.

        Raises:
            InvalidInputError: a device has no name, or nobody needs it.
        """
        if isinstance(devices, str):
            devices = devices.split(",")
        names = [name.strip() for name in devices or ()]
        if not all(names) or (devices is not None and not names):
            raise InvalidInputError(f"--devices has an entry without a name; for example {_EXAMPLE}")
        if names and device is not None:
            raise InvalidInputError(
                f"--device {device} is for all arms, and --devices for one arm each; drop one of them"
            )
        if names and all(is_api_arm(arm) or "device" in arm.args for arm in arms):
            why = (
                "no arm is; drop it"
                if all(map(is_api_arm, arms))
                else "each of them names its own; keep one of both"
            )
            raise InvalidInputError(f"--devices is for models that are loaded here, and {why}")
        servers = sum(map(asks_server, arms))
        here = min(len(arms) - servers, max(1, len(names)))
        places = tuple(Place(name, names[:i].count(name)) for i, name in enumerate(names))
        return cls(min(servers + here, max(AT_ONCE, len(names))), places)

    def of_arm(self, arm: Arm) -> tuple[Place, ...]:
        """Where an arm may be; beside all others if that is empty."""
        if asks_server(arm):
            return ()
        if arm.is_live or not self.free_to_use:
            return (Place(),)
        return (Place(str(arm.args["device"])),) if "device" in arm.args else self.free_to_use
