"""The page on which both hosts stand side by side is that of the code, and no difference lacks a reason."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from evalbudget.flags import Flag

pytest.importorskip("evalbudget_inspect")
pytest.importorskip("evalbudget_lm_eval")


def _module() -> Any:
    path = Path(__file__).parents[2] / "docs" / "write_hosts.py"
    spec = importlib.util.spec_from_file_location("write_hosts", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_that_of_the_code() -> None:
    written = _module()
    assert written.PAGE.read_text(encoding="utf-8") == written.page(), "run python docs/write_hosts.py"


def test_an_option_on_one_host_only_needs_a_reason() -> None:
    written = _module()
    written.QUESTIONS["Repeats"] = ((Flag("novel", "Something new."),), ())
    with pytest.raises(KeyError, match="novel"):
        written.page()
