"""Output of the host in frames: the numbers are those of its own table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.frames.libraries import rows
from tests.host_lm_eval.judged_worlds import evaluate
from tests.host_lm_eval.worlds import averaged, write_task

import evalbudget
from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget_lm_eval import budgeted

for library in ("narwhals", "pandas"):
    pytest.importorskip(library, reason=f"{library} is not installed")


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One model on two tasks, under a budget on the first."""
    here = tmp_path_factory.mktemp("runs")
    write_task(here, "one", n=30, metric_list=averaged("exact_match"))
    write_task(here, "two", n=4)
    options: dict[str, Any] = {"model": "evalbudget-test-coin", "apply_chat_template": False}
    with budgeted(sampler="eb-bernstein", budget=150, journal="none", seed=3):
        found = evaluate(here, "model=coin,seed=3", "one", output=here / "out", **options)
    evaluate(here, "model=coin,seed=1", "two", output=here / "out", **options)
    (here / "told.json").write_text(json.dumps(found["results"]["one"]))
    return here / "out"


def test_models_are_the_hosts_own_numbers(out: Path) -> None:
    told: dict[str, Any] = json.loads((out.parent / "told.json").read_text())
    scores = evalbudget.read(out, task="one")
    (row,) = rows(scores.models())
    names = {key.partition(",")[0]: value for key, value in told.items()}
    assert row["rater"] == "exact_match"
    assert row["estimate"] == pytest.approx(names["exact_match"])
    assert row["stderr"] == pytest.approx(names["exact_match_stderr"])
    assert (row["lower"], row["upper"]) == pytest.approx(
        (names["exact_match_lower"], names["exact_match_upper"])
    )
    again = evalbudget.from_frame(scores.readings())
    assert rows(again.models()) == [row]
    assert rows(again.items()) == rows(scores.items())


def test_tasks_of_a_folder_are_read_one_by_one(out: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"holds 2 tasks \(one, two\)"):
        evalbudget.read(out)
    assert len(rows(evalbudget.read(out, task="two").items())) == 4
    with pytest.raises(UnknownNameError, match="task in"):
        evalbudget.read(out, task="tow")


def test_a_half_written_file_is_named(out: Path, tmp_path: Path) -> None:
    (whole,) = out.rglob("samples_two_*.jsonl")
    half = tmp_path / whole.name
    half.write_text(whole.read_text()[:-20])
    with pytest.raises(InvalidInputError, match=half.name):
        evalbudget.read(tmp_path)
