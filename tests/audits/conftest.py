"""Audits in a file and, where there is a server, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from evalbudget.store import Address

_NUMBERS = count()


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Address]:
    """Where stores of this test are, by their names."""
    if request.param == "sqlite":
        return lambda name: Address(tmp_path / f"{name}.audit")
    url, number = request.getfixturevalue("postgresql").url, next(_NUMBERS)
    return lambda name: Address.parse(f"{url}#t{number}_{name}")
