"""How many arms are asked at once, and on which devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evalbudget.errors import InvalidInputError
from evalbudget_lm_eval.arms.arm import Arm, is_api_arm

_EXAMPLE = "--devices cuda:0,cuda:1"


class Place(NamedTuple):
    """Room for models that are asked one after another.

    Attributes:
        device: as the host names it.
        number: of the place, from 0, among those on the same device.
    """

    device: str
    number: int = 0


@dataclass(frozen=True)
class Places:
    """How many arms are asked at once, and where those that are loaded by this command may be.

    Attributes:
        at_once: arms.
        free_to_use: places of arms that name no device; empty to leave that to the host.
    """

    at_once: int = 1
    free_to_use: tuple[Place, ...] = ()

    @classmethod
    def of(
        cls,
        arms_at_once: int | None,
        devices: str | Sequence[str] | None,
        arms: Sequence[Arm],
        device: object = None,
    ) -> Places:
        """From what the user asked for.

        Args:
            arms_at_once: None for as many as there are devices, or one.
            devices: names, separated by commas or in a list; the same one twice for two models on it.
            arms: who is asked.
            device: of the host, for all arms.

        Raises:
            InvalidInputError: there are fewer devices than arms at once, or one of the numbers is no good.
        """
        if isinstance(devices, str):
            devices = devices.split(",")
        names = [name.strip() for name in devices or ()]
        at_once = arms_at_once if arms_at_once is not None else max(1, len(names))
        _check(at_once)
        if not all(names) or (devices is not None and not names):
            raise InvalidInputError(f"--devices has an entry without a name; for example {_EXAMPLE}")
        if names and device is not None:
            raise InvalidInputError(
                f"--device {device} is for all arms, and --devices for one arm each; drop one of them"
            )
        here = [arm.name for arm in arms if not is_api_arm(arm) and "device" not in arm.args]
        if names and not here:
            raise InvalidInputError("--devices is for models that are loaded here, and no arm is; drop it")
        needed = min(at_once, len(here))
        if needed > max(1, len(names)):
            raise InvalidInputError(
                f"--arms_at_once is {at_once}, and {', '.join(here)} are loaded here, on "
                f"{len(names) or 'no'} named device{'s' * (len(names) != 1)}; name {needed}, for example "
                f"--devices {','.join(f'cuda:{number}' for number in range(needed))} (the same one twice for "
                "two models on it), or ask fewer at once"
            )
        places = tuple(Place(name, names[:i].count(name)) for i, name in enumerate(names))
        return cls(at_once, places)

    def of_arm(self, arm: Arm) -> tuple[Place, ...]:
        """Where an arm may be; nowhere in particular if that is empty."""
        if is_api_arm(arm):
            return ()
        return (Place(str(arm.args["device"])),) if "device" in arm.args else self.free_to_use


def _check(at_once: int) -> None:
    if at_once < 1:
        raise InvalidInputError(f"--arms_at_once is {at_once}; at least 1 arm is asked at a time")
