"""What the record of a run calls a phase."""

from __future__ import annotations

from typing import Any

import pytest

from evalbudget.errors import InvalidInputError
from evalbudget.repeats.samplers import checked_phase


@pytest.mark.parametrize("phase", [-1, 10_000, 2**63, 10**400, 1.0, "1", True, [1]])
def test_what_is_none(phase: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"^phase .{1,30} is not a whole number from 0 to 9999$"):
        checked_phase(phase)


def test_what_is_one() -> None:
    assert [checked_phase(phase) for phase in (0, 9999)] == [0, 9999]
