"""Of a score that is named after an error lower is better where nothing else says which way is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import evalbudget
from evalbudget.comparisons import compare
from evalbudget.recorded._declared import Declared
from evalbudget.recorded._names_of_errors import names_an_error


@pytest.mark.parametrize(
    "name",
    [
        "error",
        "error_rate",
        "wordErrorRate",
        "judge.wer",
        "eval_loss",
        "Brier score",
        "RMSE,none",
        "error_count",
    ],
)
def test_errors(name: str) -> None:
    assert names_an_error(name)


@pytest.mark.parametrize(
    "name",
    [
        "acc",
        "rater",
        "error_free",
        "loss_improvement",
        "correct_error_detection",
        "power",
        "",
        "error.acc",
        "rate",
    ],
)
def test_whatever_else(name: str) -> None:
    assert not names_an_error(name)


def test_what_a_source_says_counts_more_than_a_name() -> None:
    found = Declared.of(["m"], ["q"], ["error", "loss", "acc"], lower_is_better={"error": False})
    assert found.lower_is_better == (False, True, None)
    assert found.notes == ("Lower loss is taken for better, by its name: nothing else says which way is.",)


def test_a_table_of_errors_is_compared_the_right_way(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    rows = [
        f"q{i},{m},error_rate,{x + random.random() / 5}"
        for i in range(20)
        for m, x in (("good", 0.1), ("bad", 0.5))
    ]
    file = tmp_path / "t.csv"
    file.write_text("item,model,metric,score\n" + "\n".join(rows))
    found = compare(evalbudget.read(file).recorded)
    assert "good is better" in str(found)
    assert "Lower error_rate is taken for better, by its name" in " ".join(found.notes)
