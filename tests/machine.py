"""What this machine lacks."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def lacks(what: str) -> NoReturn:
    """Skip a test that needs it. Not in CI, which installs all of it: there the test fails."""
    if os.environ.get("CI"):
        pytest.fail(f"{what}; in CI nothing may be skipped for that, see .ci/run")
    pytest.skip(what)
