"""Models, items and judges in frames are what the commands print, and what the core's estimates are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.commands import typed
from tests.frames.libraries import rows
from tests.frames.worlds import WORLDS, bought, panel, plain, ragged

import evalbudget
from evalbudget import Allocation
from evalbudget.errors import InvalidInferenceError, InvalidInputError, UnknownNameError
from evalbudget.frames import Scores
from evalbudget.repeats.estimates import ItemReadings, eb_wilson, mean_over_fixed_items
from evalbudget.report._scored import Scored

for library in ("narwhals", "pandas"):
    pytest.importorskip(library, reason=f"{library} is not installed")


def told(*arguments: object) -> dict[str, Any]:
    command, *rest = map(str, arguments)
    result = typed(command)(*rest, "--json", "-")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize("world", ["plain", "panel", "bought"])
def test_models_are_those_of_the_report(world: str, tmp_path: Path) -> None:
    recorded = WORLDS[world]()
    path = tmp_path / "scores.npz"
    recorded.save(path)
    report = told("report", path, "--level", 0.9)
    frame = {row["model"]: row for row in rows(evalbudget.read(path).models(level=0.9))}
    names = {
        "estimate": "estimate", "stderr": "standard_error", "lower": "low", "upper": "high",
        "all_lower": "all_low", "all_upper": "all_high", "items": "items", "readings": "readings",
        "cost": "cost", "usd": "usd", "allocation": "allocation",
    }  # fmt: skip
    assert len(frame) == len(report["leaderboard"]["rows"])
    for row in report["leaderboard"]["rows"]:
        assert {ours: frame[row["model"]][ours] for ours in names} == {
            ours: row[theirs] for ours, theirs in names.items()
        }
    board = evalbudget.read(path).estimate(level=0.9)
    assert board.to_dict()["rows"] == report["leaderboard"]["rows"]


def test_scores_of_a_model_are_put_together_once(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded, made, stock = WORLDS["plain"](), list[int](), Scored._scores
    monkeypatch.setattr(Scored, "_scores", lambda self, model: made.append(model) or stock(self, model))
    Scores(recorded).models()
    assert made == list(range(len(recorded.models)))


def test_repeats_are_those_of_the_items_given() -> None:
    recorded = WORLDS["repeated"]()
    item, epoch = np.nonzero(~np.isnan(recorded.scores[0, :, 0]))
    readings = ItemReadings.of(item, epoch, recorded.scores[0, item, 0, epoch])
    again = mean_over_fixed_items(readings, allocation=Allocation.FIXED, bounds=(0, 1))
    row = rows(Scores(recorded).models())[0]
    interval = again.confidence_interval(0.95)
    assert row["repeats_stderr"] == again.standard_error
    assert (row["repeats_lower"], row["repeats_upper"]) == pytest.approx((interval.low, interval.high))


def test_judges_are_those_of_the_report(tmp_path: Path) -> None:
    path = tmp_path / "scores.npz"
    panel().save(path)
    report = {row["judge"]: row for row in told("report", path)["judges"]["rows"]}
    frame = rows(evalbudget.read(path).judges())
    assert [row["rater"] for row in frame] == ["strict", "fair", "lenient"]
    for row in frame:
        theirs = report[row["rater"]]
        assert (row["mean"], row["readings"]) == (pytest.approx(theirs["mean"]), theirs["scores"])
        assert (row["bias"], row["stderr"]) == (theirs["bias"], theirs["standard_error"])
        assert (row["lower"], row["upper"]) == (theirs["low"], theirs["high"])
        assert (row["all_lower"], row["all_upper"]) == (theirs["all_low"], theirs["all_high"])
    assert max(frame, key=lambda row: row["bias"])["rater"] == "lenient"


def test_metrics_have_means_and_no_biases() -> None:
    scores = Scores(ragged())
    judges = rows(scores.judges())
    assert [row["bias"] for row in judges] == [None] * 3
    assert [row["readings"] > 0 for row in judges] == [True, False, True]
    assert judges[1]["mean"] is None
    models = rows(scores.models())
    assert [(row["model"], row["rater"]) for row in models] == [
        (f"model {m}", f"rater {r}") for r in (0, 2) for m in range(3)
    ]
    for row in models:
        alone = scores.estimate(rater=row["rater"], models=[row["model"]]).rows[0]
        assert (row["estimate"], row["stderr"]) == (alone.estimate, alone.standard_error)
    with pytest.raises(InvalidInputError, match="these scores are 3 metrics"):
        scores.estimate()


def test_a_model_without_a_score_of_a_metric_has_an_empty_row() -> None:
    recorded = ragged()
    recorded.scores[0, :, 2] = np.nan
    (row,) = [
        r for r in rows(Scores(recorded).models()) if (r["model"], r["rater"]) == ("model 0", "rater 2")
    ]
    assert (row["readings"], row["items"], row["estimate"], row["lower"]) == (0, 0, None, None)


def test_what_was_bought_because_of_scores_does_not_count() -> None:
    recorded = bought()
    items = {(row["model"], row["item"]): row for row in rows(Scores(recorded).items())}
    for i, item in enumerate(recorded.items):
        first = recorded.scores[1, i, 0, :2]
        assert items["a", item]["mean"] == pytest.approx(first.mean())
        assert items["a", item]["readings"] == np.isfinite(recorded.scores[1, i]).sum()
        assert (items["a", item]["allocation"], items["a", item]["fixed_repeats"]) == ("adaptive", 2)
    again = evalbudget.from_frame(Scores(recorded).readings())
    assert rows(again.models()) == rows(Scores(recorded).models())
    assert rows(again.items()) == rows(Scores(recorded).items())


def test_items_against_numpy() -> None:
    recorded = WORLDS["repeated"]()
    item, epoch = np.nonzero(~np.isnan(recorded.scores[1, :, 0]))
    bounds = eb_wilson(
        ItemReadings.of(item, epoch, recorded.scores[1, item, 0, epoch]), bounds=(0.0, 1.0)
    ).confidence_intervals(0.9)
    found = [row for row in rows(Scores(recorded).items(level=0.9)) if row["model"] == "model 1"]
    assert [row["lower"] for row in found] == bounds.low.tolist()
    assert [row["upper"] for row in found] == bounds.high.tolist()
    for row, own in zip(found, recorded.scores[1, :, 0], strict=True):
        assert (row["readings"], row["cost"], row["category"]) == (6, None, None)
        assert (row["mean"], row["sd"]) == pytest.approx((own.mean(), own.std(ddof=1)))


def test_items_of_a_panel_have_the_spread_within_judges() -> None:
    recorded = panel()
    found = [row for row in rows(Scores(recorded).items()) if row["model"] == "a"]
    own = recorded.scores[0, 7]
    assert found[7]["sd"] == pytest.approx(np.sqrt(own.var(axis=1, ddof=1).mean()))
    assert (found[7]["rater"], found[7]["lower"]) == ("panel", None)


def test_judges_on_different_scales_are_refused_as_by_the_report() -> None:
    recorded = panel()
    recorded.scores[:, :, 2] *= 100
    for ask in (Scores(recorded).models, Scores(recorded).judges, Scores(recorded).estimate):
        with pytest.raises(InvalidInferenceError, match="--rescale"):
            ask()
    assert len(rows(Scores(recorded).models(rescale=True))) == 2
    assert len(rows(Scores(recorded).judges(rescale=True))) == 3


def test_comparisons_are_those_of_the_command(tmp_path: Path) -> None:
    recorded = plain(3, 60)
    path = tmp_path / "scores.csv"
    Scores(recorded).readings(frame="pandas").to_csv(path, index=False)
    command = told("compare", path, "--against", "model 1", "--margin", 0.1)
    frame = Scores(recorded).readings()
    assert evalbudget.from_frame(frame).compare(against="model 1", margin=0.1).to_dict() == command


def test_what_is_missing_and_which_way_is_better_are_said_as_by_the_command(tmp_path: Path) -> None:
    recorded = plain(2, 60)
    recorded.scores[0, :4] = np.nan
    path = tmp_path / "scores.csv"
    Scores(recorded).readings(frame="pandas").to_csv(path, index=False)
    for missing in ("worst", "zero", "drop"):
        options = ["--missing", missing, "--lower-is-better"]
        scores = evalbudget.read(path, lower_is_better=True)
        found = scores.compare(missing=missing, score_range=(-9.0, 9.0)).to_dict()
        assert found == told("compare", path, *options, "--score-range", "-9..9")
        ranks = {row.model: [row.best_rank, row.worst_rank] for row in scores.estimate(missing=missing).rows}
        rows = told("report", path, *options)["leaderboard"]["rows"]
        assert ranks == {row["model"]: [row["best_rank"], row["worst_rank"]] for row in rows}
    with pytest.raises(UnknownNameError, match="--missing"):
        scores.compare(missing="skip")


def test_clusters_are_those_of_the_command(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    table = Scores(ragged()).readings(frame="pandas").rename(columns={"category": "document"})
    table.to_csv(path, index=False)
    command = told("compare", path, "--cluster", "document", "--score", "rater 0")
    scores = evalbudget.from_frame(table, category="document")
    assert scores.compare(cluster="document", scores=["rater 0"]).to_dict() == command
    assert evalbudget.read(path, category="document").compare(cluster="document", scores=["rater 0"]).rows
    with pytest.raises(InvalidInputError, match=r"cluster 'topic': .*again with category='topic'"):
        scores.compare(cluster="topic")


def test_files_side_by_side_are_compared_as_by_the_command(tmp_path: Path) -> None:
    paths = [tmp_path / "before.npz", tmp_path / "after.npz"]
    for path in paths:
        plain(1, 30).save(path)
    scores = evalbudget.read(*paths)
    assert scores.recorded.models == ("model 0 (before)", "model 0 (after)")
    assert scores.compare().to_dict() == told("compare", *paths)


@pytest.mark.parametrize(
    ("options", "typed_options"),
    [
        ({"half_width": 0.3}, ["--half-width", 0.3]),
        (
            {"usd": 5.0, "judge_prices": {"strict": 0.01, "fair": 0.02, "lenient": 0.01}},
            ["--usd", 5, "--judge-prices", "strict=0.01,fair=0.02,lenient=0.01"],
        ),
    ],
)
def test_plans_are_those_of_the_command(
    options: dict[str, Any], typed_options: list[object], tmp_path: Path
) -> None:
    path = tmp_path / "pilot.npz"
    panel().save(path)
    found = evalbudget.read(path).plan(model="b", **options)
    assert json.loads(found.to_json()) == told("plan", path, "--model", "b", *typed_options)
    assert "rotation" in repr(found)


def test_plans_of_races_and_repeats_are_those_of_the_command(tmp_path: Path) -> None:
    path = tmp_path / "pilot.npz"
    plain(2, 20, 1, 4).save(path)
    scores = evalbudget.read(path)
    assert scores.plan(item_half_width=0.4, model="model 0").to_dict() == told(
        "plan", path, "--item-half-width", 0.4, "--model", "model 0"
    )
    assert scores.plan(race=True).to_dict() == told("plan", path, "--race")
    with pytest.raises(InvalidInputError, match="give one of --half-width"):
        scores.plan()
