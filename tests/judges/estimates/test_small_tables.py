"""Small tables are numpy's and large ones scipy's: whatever a panel has of each, all say the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.judges.estimates.test_thin_claims import alone, few, kept, lost

from evalbudget.judges.estimates import JudgeScores, _mixed, judge_biases, panel_mean, variance_components

NONE, ALL = 0, 10**9


@pytest.mark.parametrize(
    ("draw", "one_generation"),
    [
        pytest.param(few(5, 60, 72), False, id="rotated"),
        pytest.param(few(123, 60, 160), False, id="many-judges"),
        pytest.param(lost(0.3, 1), False, id="failures-once"),
        pytest.param(lost(0.5, 3), False, id="failures"),
        pytest.param(alone, False, id="alone"),
        pytest.param(kept(4, 3, turns=True), True, id="kept-turns"),
    ],
)
@pytest.mark.parametrize("some", [NONE, 250, 1000])
def test_estimates_and_errors_do_not_depend_on_the_kind_of_table(
    draw: Callable[[np.random.Generator], JudgeScores],
    one_generation: bool,
    some: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = []
    for entries in (some, ALL):
        monkeypatch.setattr(_mixed, "SMALL", entries)
        scores = draw(np.random.default_rng(44))  # the fit of the same scores would be kept
        mean, biases = panel_mean(scores), judge_biases(scores)
        components = variance_components(scores, one_generation=one_generation).components
        own = [c.value for c in components] + [mean.value, mean.standard_error]
        found.append([*own, *biases.value, *biases.standard_error])
    assert found[0] == pytest.approx(found[1], rel=1e-9, abs=1e-12, nan_ok=True)


def test_tables_of_a_small_panel_are_numpys() -> None:
    at = np.arange(3)
    assert isinstance(_mixed.counted(np.ones(3), at, at, (3, 3)), np.ndarray)
    assert not isinstance(_mixed.counted(np.ones(3), at, at, (_mixed.SMALL, 3)), np.ndarray)
