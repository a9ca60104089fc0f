"""No module imports another in a circle or against its layer, imports for types alone included."""

from __future__ import annotations

from configparser import ConfigParser
from pathlib import Path

import grimp
import pytest


@pytest.mark.parametrize(
    "package",
    ["evalbudget", "evalbudget_inspect", "evalbudget_lm_eval", "evalbudget_pairwise", "evalbudget_labelling"],
)
def test_imports_go_in_no_circle(package: str) -> None:
    graph = grimp.build_graph(package, exclude_type_checking_imports=False, cache_dir=None)
    needs = {name: graph.find_modules_directly_imported_by(name) & graph.modules for name in graph.modules}
    # what imports nothing that is left can be in no circle
    while free := [name for name, needed in needs.items() if not needed & needs.keys()]:
        for name in free:
            del needs[name]
    assert not needs, f"a circle goes through some of these: {sorted(needs)}"


@pytest.mark.parametrize("plugin", ["inspect", "lm_eval", "pairwise", "labelling"])
def test_a_plugins_rooms_import_no_types_from_above(plugin: str) -> None:
    contracts = ConfigParser()
    contracts.read(Path(__file__).parents[2] / ".importlinter")
    contract = contracts[f"importlinter:contract:{plugin}"]
    layers = [grimp.Layer(*line.split(" | ")) for line in contract["layers"].split("\n") if line]
    graph = grimp.build_graph(contract["containers"], exclude_type_checking_imports=False, cache_dir=None)
    against = graph.find_illegal_dependencies_for_layers(layers=layers, containers={contract["containers"]})
    assert not against
