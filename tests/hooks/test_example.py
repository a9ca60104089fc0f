"""The example distribution is found by its entry point; it proves that the hooks suffice."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import pytest

from evalbudget.hooks._plugins import plugins

try:
    VERSION = version("evalbudget-example")
except PackageNotFoundError:
    pytest.skip("evalbudget-example is not installed", allow_module_level=True)


def test_it_is_discovered() -> None:
    (info,) = [info for info in plugins().found if info.distribution == "evalbudget-example"]
    assert (info.name, info.version, info.error) == ("example", VERSION, None)
    assert info.provides == {
        "samplers": ("widest-range",),
        "samplers of audits": ("fixed-share",),
        "estimators": ("median",),
        "scorers": ("last_number",),
    }
    assert plugins().sampler("widest-range").__module__ == "evalbudget_example.widest_range"


@pytest.mark.usefixtures("no_collection")
def test_it_uses_public_names_only() -> None:
    import ast
    import inspect

    import evalbudget
    import evalbudget.audits.policies
    import evalbudget.errors
    import evalbudget.estimate
    import evalbudget.repeats.estimates
    import evalbudget.repeats.samplers
    import evalbudget_example.fixed_share
    import evalbudget_example.last_number
    import evalbudget_example.median
    import evalbudget_example.widest_range

    public = {
        "evalbudget": evalbudget.__all__,
        "evalbudget.audits.policies": evalbudget.audits.policies.__all__,
        "evalbudget.errors": ["InvalidInputError"],
        "evalbudget.estimate": [name for name in vars(evalbudget.estimate) if not name.startswith("_")],
        "evalbudget.repeats.estimates": evalbudget.repeats.estimates.__all__,
        "evalbudget.repeats.samplers": evalbudget.repeats.samplers.__all__,
        "evalbudget.scorer": ["Scorer"],
        "evalbudget_example.fixed_share": ["FixedShare"],
        "evalbudget_example.last_number": ["LastNumber"],
        "evalbudget_example.median": ["Median"],
        "evalbudget_example.widest_range": ["WidestRange"],
    }
    modules = ("fixed_share", "last_number", "median", "widest_range")
    for module in (evalbudget_example, *(getattr(evalbudget_example, name) for name in modules)):
        tree = ast.parse(inspect.getsource(module))
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        ours = [node for node in imports if (node.module or "").startswith("evalbudget")]
        assert ours
        for node in ours:
            assert {alias.name for alias in node.names} <= set(public[node.module or ""])
