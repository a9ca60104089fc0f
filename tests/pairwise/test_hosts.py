"""Where a host is installed and our plugin of it is not."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest


@pytest.mark.parametrize("host", ["inspect", "lm-eval"])
def test_what_to_install_is_named(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = host.replace("-", "_")
    of_host = import_module(f"evalbudget_pairwise.{name}")
    monkeypatch.delitem(vars(of_host), "pairwise", raising=False)  # it stays there once it was imported
    monkeypatch.setitem(sys.modules, f"evalbudget_{name}", None)
    with pytest.raises(ModuleNotFoundError, match=rf"pip install 'evalbudget\[{host}\]'") as caught:
        _ = of_host.pairwise
    assert caught.value.name == f"evalbudget_{name}"
    assert not hasattr(of_host, "nothing_of_this_name")


def test_the_task_of_inspect_names_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = import_module("evalbudget_pairwise.inspect._registry")
    monkeypatch.setitem(sys.modules, "evalbudget_inspect", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'evalbudget\[inspect\]'"):
        registry.pairwise_entry(logs="a.eval", budget=4)
