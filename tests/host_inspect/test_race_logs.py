"""Logs of a finished race are data: what it proved is read back from them, in its own words."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from inspect_ai.log import headline_metric, read_eval_log
from inspect_ai.scorer import mean
from tests.host_inspect.log_worlds import read
from tests.host_inspect.race_tasks import board, model, quiz, run, three
from tests.host_inspect.worlds import scoring

from evalbudget.cli.main import cli
from evalbudget.errors import InvalidInputError
from evalbudget.hooks import plugins
from evalbudget.repeats import describe_mean
from evalbudget.repeats.estimates import ItemReadings
from evalbudget.sampler import Allocation
from evalbudget_inspect import race
from evalbudget_inspect.reading.open_logs import open_scores


def test_a_race_of_models_says_what_it_proved(tmp_path: Path) -> None:
    told = board(run(race(quiz(20), budget=50), three(), tmp_path))
    found = read(tmp_path)
    assert found.race is not None
    assert (found.race.sentence, found.race.proof) == (told.sentence, told.proof)
    assert (found.race.claim, found.race.target) == (told.interval, told.target)
    assert found.race.items == 20
    for row, standing in zip(found.race.rows, told.standings, strict=True):
        assert row.model in found.models
        assert (row.model, row.status) == (standing.name, standing.status.value)
        assert (row.estimate, row.lower, row.upper) == (
            standing.estimate,
            standing.all_lower,
            standing.all_upper,
        )
        assert row.read == standing.readings == int(found.counts[found.models.index(row.model)].sum())
    assert {purchase.allocation for purchase in found.purchases} == {Allocation.ADAPTIVE}


def test_settings_that_raced_each_other_are_models_of_one_task(tmp_path: Path) -> None:
    made = race({"short": quiz(12), "long": quiz(12)}, budget=20)
    run(made, model("a", 0.5), tmp_path / "one", max_tasks=2)
    found = read(tmp_path / "one")
    assert set(found.models) == {row.model for row in found.race.rows} == {"short", "long"}
    assert found.task.name == "quiz"
    assert open_scores(tmp_path / "one", task="quiz-short").models == ("short",)


@pytest.mark.parametrize(("items", "chance", "options"), [(20, 0.2, {"until": "±0.001"}), (30, 0.7, {})])
def test_the_interval_of_one_model_is_that_of_repeats_of_the_same_scores(
    tmp_path: Path, items: int, chance: float, options: dict[str, Any]
) -> None:
    models = [model("a", chance)] if options else three()
    logs = run(race(quiz(items), **(options or {"budget": 60})), models, tmp_path)
    found, leader = read(tmp_path), board(logs).leader
    (scores,) = (found.scores[m, :, 0] for m, name in enumerate(found.models) if name == leader.name)
    item, epoch = np.nonzero(~np.isnan(scores))
    assert item.size == leader.readings
    readings = ItemReadings.of(item, epoch, scores[item, epoch], n_items=items)
    rows = describe_mean(readings, allocation=Allocation.FIXED, fixed_repeats=1, bounds=(0.0, 1.0)).rows
    assert (leader.estimate, leader.lower, leader.upper) == pytest.approx(
        (rows["estimate"], rows["lower"], rows["upper"])
    )
    (log,) = (log for log in logs if log.eval.model == leader.name)
    assert log.results is not None
    metrics = [(name, metric) for score in log.results.scores for name, metric in score.metrics.items()]
    told = {name.removeprefix("eb/"): metric.value for name, metric in metrics}
    assert (told["lower"], told["upper"]) == (leader.lower, leader.upper)


def test_two_races_have_two_verdicts(tmp_path: Path) -> None:
    for _ in range(2):
        run(race(quiz(8), budget=10), three()[:2], tmp_path)
    found = read(tmp_path)
    assert found.race is None
    assert any("logs of 2 races" in note for note in found.declared.notes)


def test_a_model_that_a_race_lost_is_among_the_models(tmp_path: Path) -> None:
    run(race(quiz(8), budget=20), [model("a", 0.5), model("broken", 0.5, fail=1.0)], tmp_path)
    found = read(tmp_path)
    assert set(found.models) == {"simulated/a", "simulated/broken"}
    (lost,) = (row for row in found.race.rows if row.model == "simulated/broken")
    assert (lost.status, lost.estimate, lost.read) == ("lost", None, 0)
    assert found.failed[found.models.index("simulated/broken")].sum() > 0
    (alone,) = (f for f in tmp_path.glob("*.eval") if read_eval_log(str(f)).eval.model == lost.model)
    by_itself = read(alone)
    assert (by_itself.models, by_itself.counts.sum()) == (("simulated/broken",), 0)
    assert by_itself.failed.sum() > 0
    with pytest.raises(InvalidInputError, match=r"holds no score: all .* answers of simulated/broken are"):
        plugins().open_scores(alone)


@pytest.mark.parametrize("metrics", [{"x": [mean()], "y": [mean()]}, [mean()]], ids=["by key", "plain"])
def test_the_host_finds_the_headline_of_a_race(
    tmp_path: Path, metrics: Any, caplog: pytest.LogCaptureFixture
) -> None:
    both = scoring("both", lambda s: {"x": float("C" in s.output.completion), "y": 1.0}, metrics)
    with caplog.at_level(logging.WARNING):
        logs = run(race(quiz(10, scorer=both()), budget=16, score="both.x"), three()[:2], tmp_path)
        for log in logs:
            found = headline_metric(read_eval_log(log.location, header_only=True))
            assert found is not None
            assert found.name.removeprefix("eb/") == "estimate"
            assert found.metric.value == board(logs).of(log.eval.model).estimate
    assert "not found in eval results" not in caplog.text


def test_the_host_finds_it_where_nothing_was_scored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    unscored = scoring("picky", lambda s: float("nan") if str(s.model).endswith("a") else 1.0, [mean()])
    with caplog.at_level(logging.WARNING):
        logs = run(race(quiz(6, scorer=unscored()), budget=10), three()[:2], tmp_path)
        for log in logs:
            headline_metric(read_eval_log(log.location, header_only=True))
    assert "not found in eval results" not in caplog.text


def test_a_race_for_the_lowest_score_is_read_as_one(tmp_path: Path) -> None:
    logs = run(race(quiz(30), until_proved=True, lower_is_better=True), three(), tmp_path / "low")
    told, found = board(logs), read(tmp_path / "low")
    assert told.sentence.startswith("simulated/a is best")
    assert told.sentence.endswith("Lower is better.")
    assert found.declared.lower_is_better == (True,)
    for standing in told.standings:
        scores = found.scores[found.models.index(standing.name)]
        if standing.readings == 30:
            assert standing.estimate == pytest.approx(np.nanmean(scores))
        assert standing.all_lower <= standing.estimate <= standing.all_upper
    assert told.leader.estimate == min(standing.estimate for standing in told.standings)
    assert [standing.rank for standing in told.standings] == [1, 2, 3]
    own = CliRunner().invoke(cli, ["report", str(tmp_path / "low")], env={"COLUMNS": "200"}).output
    for arguments in (["report"], ["compare"], ["report", "--lower-is-better"]):
        result = CliRunner().invoke(cli, [*arguments, str(tmp_path / "low")], env={"COLUMNS": "200"})
        assert told.sentence in " ".join(result.output.split())
        assert result.output == own


@pytest.mark.parametrize("command", ["report", "compare", "doctor"])
def test_a_race_for_the_highest_score_is_no_race_for_the_lowest(command: str, tmp_path: Path) -> None:
    run(race(quiz(8), budget=10), three()[:2], tmp_path)
    result = CliRunner().invoke(cli, [command, str(tmp_path), "--lower-is-better"])
    assert result.exit_code == 2
    assert "of a race that took higher for better" in " ".join(result.output.split())
