"""Small tables are numpy's and large ones scipy's: both say the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.judges.estimates.test_thin_claims import alone, few, kept, lost

from evalbudget.judges.estimates import (
    JudgeScores,
    _mixed,
    _pairs,
    judge_biases,
    panel_mean,
    variance_components,
)


@pytest.mark.parametrize(
    ("draw", "one_generation"),
    [
        pytest.param(few(5, 60, 72), False, id="rotated"),
        pytest.param(few(123, 60, 160), False, id="many-judges"),
        pytest.param(lost(0.3, 1), False, id="failures-once"),
        pytest.param(lost(0.5, 3), False, id="failures"),
        pytest.param(alone, False, id="alone"),
        pytest.param(kept(4, 3, turns=True), True, id="kept-turns"),
        pytest.param(kept(2, 4, turns=True), True, id="kept-turns-twice"),
    ],
)
def test_estimates_and_errors_do_not_depend_on_the_kind_of_table(
    draw: Callable[[np.random.Generator], JudgeScores], one_generation: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = draw(np.random.default_rng(44))
    found = []
    for entries in (0, 10**9):
        for module in (_mixed, _pairs):
            monkeypatch.setattr(module, "DENSE", entries)
        mean, biases = panel_mean(scores), judge_biases(scores)
        components = variance_components(scores, one_generation=one_generation).components
        own = [c.value for c in components] + [mean.value, mean.standard_error]
        found.append([*own, *biases.value, *biases.standard_error])
    assert found[0] == pytest.approx(found[1], rel=1e-9, abs=1e-12, nan_ok=True)
