"""The example distribution is found by its entry point; it proves that the hooks suffice."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import pytest

from evalbudget.hooks.plugins import plugins

try:
    VERSION = version("evalbudget-example")
except PackageNotFoundError:
    pytest.skip("evalbudget-example is not installed", allow_module_level=True)


def test_it_is_discovered() -> None:
    (info,) = [info for info in plugins().found if info.distribution == "evalbudget-example"]
    assert (info.name, info.version, info.error) == ("example", VERSION, None)
    assert info.provides == {"samplers": ("widest-range",)}
    assert plugins().sampler("widest-range").__module__ == "evalbudget_example"


def test_it_uses_public_names_only() -> None:
    import ast
    import inspect

    import evalbudget
    import evalbudget.repeats.samplers
    import evalbudget_example

    public = {
        "evalbudget": evalbudget.__all__,
        "evalbudget.repeats.samplers": evalbudget.repeats.samplers.__all__,
    }
    tree = ast.parse(inspect.getsource(evalbudget_example))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module != "math"]
    assert imports
    for node in imports:
        assert {alias.name for alias in node.names} <= set(public[node.module or ""])
