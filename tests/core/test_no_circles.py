"""No module imports another in a circle, imports for types alone included."""

from __future__ import annotations

import grimp
import pytest


@pytest.mark.parametrize("package", ["evalbudget", "evalbudget_inspect", "evalbudget_lm_eval"])
def test_imports_go_in_no_circle(package: str) -> None:
    graph = grimp.build_graph(package, exclude_type_checking_imports=False, cache_dir=None)
    needs = {name: graph.find_modules_directly_imported_by(name) & graph.modules for name in graph.modules}
    # what imports nothing that is left can be in no circle
    while free := [name for name, needed in needs.items() if not needed & needs.keys()]:
        for name in free:
            del needs[name]
    assert not needs, f"a circle goes through some of these: {sorted(needs)}"
