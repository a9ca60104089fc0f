"""Audits in a file and, where there is a server, in PostgreSQL: one server for all tests of a worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from tests.postgresql import Server, server, why_not

from evalbudget.store import Address

_NUMBERS = count()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """A server that runs; whoever stops it starts it again."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with server() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Address]:
    """Where stores of this test are, by their names."""
    if request.param == "sqlite":
        return lambda name: Address(tmp_path / f"{name}.audit")
    url, number = request.getfixturevalue("postgresql").url, next(_NUMBERS)
    return lambda name: Address.parse(f"{url}#t{number}_{name}")
