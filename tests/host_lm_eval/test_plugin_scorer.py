"""``--scorer``: a plugin's scorer in place of a task's metrics."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.host_lm_eval.judged_worlds import evaluate
from tests.host_lm_eval.worlds import choice, write_task

from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget_lm_eval import budgeted

NAME = "last_number"


def test_it_scores_in_place_of_the_tasks_metrics(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "tasks", n=8, doc_to_target="number {{text}}")  # nothing matches exactly
    model = {"model": "evalbudget-test-coin", "apply_chat_template": False}
    stock = evaluate(folder, "", "numbers", **model)
    assert stock["results"]["numbers"]["exact_match,none"] == 0.0
    with budgeted(budget="5x", scorer=NAME, journal="none"):
        found = evaluate(folder, "", "numbers", **model)
    rows = found["results"]["numbers"]
    assert 0.0 < rows[f"{NAME},none"] < 1.0
    assert 0.0 <= rows[f"{NAME}_lower,none"] <= rows[f"{NAME}_upper,none"] <= 1.0
    assert not any("exact_match" in row for row in rows)
    assert found["evalbudget"]["score_range"] == [0.0, 1.0]
    for sample in found["samples"]["numbers"]:
        assert sample[NAME] == (sample["resps"][0][0] == str(sample["doc_id"]))
    again = evaluate(folder, "", "numbers", **model)
    assert "exact_match,none" in again["results"]["numbers"]


def test_the_target_of_choices_is_the_right_one(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "tasks", n=4, doc_to_choice=["10", "0"], doc_to_target=1)
    model = {"model": "evalbudget-test-coin", "model_args": "noise=False", "apply_chat_template": False}
    model_args = model.pop("model_args")
    with budgeted(budget="1x", sampler="uniform", scorer=NAME, journal="none"):
        found = evaluate(folder, str(model_args), "numbers", **model)
    for sample in found["samples"]["numbers"]:
        assert sample[NAME] == (sample["resps"][0][0] == "0")


def test_what_it_cannot_score_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="last_number"), budgeted(budget="5x", scorer="last_nubmer"):
        pass
    with (
        pytest.raises(InvalidInputError, match="drop one"),
        budgeted(budget="5x", scorer=NAME, judges="dummy:model=a,dummy:model=b"),
    ):
        pass
    folder = write_task(tmp_path / "tasks", **choice("1", "2"))
    with (
        pytest.raises(InvalidInputError, match="no answer that --scorer"),
        budgeted(budget="1x", scorer=NAME),
    ):
        evaluate(folder, "", "numbers", model="evalbudget-test-coin", apply_chat_template=False)
