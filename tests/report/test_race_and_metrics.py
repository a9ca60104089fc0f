"""Scores without a mean of their own: those of a race, whose verdict is said again, and of metrics."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.cli.commands import typed
from tests.comparisons.test_compare import recorded

from evalbudget import Allocation
from evalbudget.backtest import Declared, HowBought, RecordedScores
from evalbudget.comparisons import compare
from evalbudget.doctor import diagnose
from evalbudget.errors import InvalidInferenceError, InvalidInputError
from evalbudget.frames import Scores
from evalbudget.hooks._plugins import plugins
from evalbudget.recorded._direction import with_lower_better
from evalbudget.recorded._race_record import RaceRecord, RaceRow
from evalbudget.report import report
from evalbudget.report._metrics import Metrics

CASES = Path(__file__).parent.parent / "cases"


def raced() -> RecordedScores:
    table = np.array([[1.0, 1, 0, 1], [0, np.nan, np.nan, 1]])[:, :, None, None]
    recorded = RecordedScores(table, ("a", "b"), ("q0", "q1", "q2", "q3"), ("acc",))
    rows = (RaceRow("a", "best", 0.75, 0.6, 0.8, 4), RaceRow("b", "behind", None, 0.1, 0.7, 2))
    record = RaceRecord("a is best, with 95% confidence.", "by paired e-values", "anytime", "", rows, 4)
    return replace(recorded, purchases=(HowBought(Allocation.ADAPTIVE),) * 2, race=record)


def test_a_race_is_reported_by_its_own_verdict() -> None:
    found = report(raced())
    assert found.sections[0].name == "race"
    told = found.to_dict()["race"]
    assert told["sentence"] == "a is best, with 95% confidence."
    assert [row["status"] for row in told["rows"]] == ["best", "behind"]
    shown = str(found.table())
    assert "a is best, with 95% confidence." in shown
    assert "4 of 4" in shown
    assert "By paired e-values. Anytime." in shown


def test_a_races_verdict_is_not_told_of_another_score() -> None:
    found = raced()
    raters = ("acc", "loss")
    table = np.concatenate([found.scores, 1.0 - found.scores], axis=2)
    both = RecordedScores(
        *(table, found.models, found.items, raters), one_measure=False, purchases=found.purchases
    )
    assert found.race is not None
    both = replace(both, race=replace(found.race, score="acc"))
    assert report(both, rater="acc").sections[0].name == "race"
    with pytest.raises(InvalidInputError, match=r"race by acc, .* nothing of loss; .* give --rater acc"):
        report(both, rater="loss")


@pytest.mark.parametrize("complete", [(), ("a", "b", "c")])
def test_a_race_with_a_lost_model_is_not_compared_again(complete: tuple[str, ...]) -> None:
    """Items that the race did not ask of a model are no missing answers of it."""
    found = raced()
    table = np.concatenate([found.scores, np.full((1, 4, 1, 1), np.nan)])
    failed = np.zeros((3, 4, 1), dtype=np.int64)
    failed[2, :2] = 2
    declared = Declared.of(("a", "b", "c"), found.items, ("acc",), complete=complete)
    bought = (HowBought(Allocation.ADAPTIVE),) * 3
    lost = RecordedScores(
        *(table, ("a", "b", "c"), found.items, ("acc",)), failed=failed, declared=declared, purchases=bought
    )
    with pytest.raises(InvalidInputError, match="its own verdict: a is best, with 95% confidence"):
        Scores(replace(lost, race=found.race)).compare()


def test_a_race_for_the_highest_is_not_turned_by_another_metric_that_is_declared_lower() -> None:
    found = raced()
    table = np.concatenate([found.scores, 1.0 - found.scores], axis=2)
    raters = ("acc", "loss")
    declared = Declared.of(found.models, found.items, raters, lower_is_better={"loss": True})
    both = RecordedScores(
        *(table, found.models, found.items, raters),
        one_measure=False,
        purchases=found.purchases,
        race=found.race,
        declared=declared,
    )
    with pytest.raises(InvalidInputError, match="of a race that took higher for better"):
        with_lower_better(both)
    assert found.race is not None
    lowest = replace(both, race=replace(found.race, lower_is_better=True))
    told = with_lower_better(lowest).declared
    assert told is not None
    assert told.lower_is_better == (True, True)


def test_a_gate_is_reported_by_its_own_verdict() -> None:
    """Rows of clusters or repeats have no interval, which would take items and answers for independent."""
    standing = {"status": "possible", "all_lower": 0.2, "all_upper": 0.6, "readings": 40}
    standings = [standing | {"name": name, "estimate": 0.5} for name in ("baseline old", "new")]
    board = {"standings": standings, "interval": "anytime", "target": "these items", "lower_is_better": False}
    told = {
        "verdict": "worse",
        "candidate": "new",
        "items": 40,
        "items_available": 100,
        "spent": "40 bought.",
        "notes": ["x"],
    }
    told |= {
        "difference": -0.2,
        "lower": -0.3,
        "upper": -0.1,
        "sentence": "Worse.",
        "claim": "Random: items.",
    }
    alone = RaceRecord.of(board, {"new": "m"}, told | {"cluster": None, "repeats": 1})
    assert [(row.model, row.status, row.read) for row in alone.rows] == [
        ("baseline old", "baseline", 40),
        ("m", "worse", 40),
    ]
    assert (alone.rows[1].lower, alone.rows[1].upper, alone.claim) == (0.2, 0.6, "anytime")
    assert alone.notes == ("Random: items.", "40 bought.", "x")
    repeated = RaceRecord.of(board, {}, told | {"cluster": None, "repeats": 4, "difference": None})
    assert (repeated.rows[1].read, repeated.claim, repeated.proof) == (10, "", "")
    found = report(replace(raced(), race=repeated))
    assert found.to_dict()["race"]["rows"][1]["lower"] is None
    assert "the scores of a gate" not in str(found.table())
    with pytest.raises(InvalidInputError, match="the scores of a gate were bought"):
        Scores(replace(raced(), race=repeated)).compare()


def test_frames_and_doctor_repeat_it() -> None:
    scores = Scores(raced())
    assert scores.race is not None
    table = scores.models(frame="pandas")
    assert table["all_upper"].tolist() == [0.8, 0.7]
    assert table["estimate"].isna().tolist() == [False, True]
    with pytest.raises(InvalidInferenceError):
        scores.estimate()
    with pytest.raises(InvalidInputError, match="its own verdict: a is best, with 95% confidence"):
        scores.compare()
    with pytest.raises(InvalidInferenceError, match="every reading of model 'a' was bought because"):
        Scores(replace(raced(), race=None)).compare()
    findings = diagnose(raced(), list(plugins().checks.values())).findings
    assert any("a is best" in finding.text for finding in findings)


def test_metrics_have_a_row_each() -> None:
    found = json.loads(typed("report")(CASES / "metrics_flag.csv", "--json", "-").stdout)
    boards = found["metrics"]["boards"]
    assert {metric: [row["model"] for row in rows] for metric, rows in boards.items()} == {
        "faithfulness": ["a", "b"],
        "context_recall": ["b", "a"],
    }
    alone = json.loads(
        typed("report")(CASES / "metrics_flag.csv", "--rater", "context_recall", "--json", "-").stdout
    )
    assert boards["context_recall"] == alone["leaderboard"]["rows"]


def test_metrics_of_clustered_items_say_so() -> None:
    scores = np.random.default_rng(0).random((1, 12, 2, 1))
    two = RecordedScores(scores, ("m",), tuple(map(str, range(12))), ("a", "b"), one_measure=False)
    labels = {item: str(int(item) // 3) for item in two.items}
    declared = Declared.of(two.models, two.items, two.raters, clusters=labels, cluster="document")
    sections = report(replace(two, declared=declared)).sections
    (metrics,) = (section for section in sections if isinstance(section, Metrics))
    assert "clusters of items (document; sampled, independent)" in metrics.tables()[0].note


def test_what_is_random_is_said_of_the_metric_whose_items_are_clustered() -> None:
    found = recorded(np.random.default_rng(4).integers(2, size=(2, 12, 2, 1)), one_measure=False)
    labels = {item: str(i // 3) for i, item in enumerate(found.items)}
    about = Declared.of(
        *(found.models, found.items, found.raters), clusters=labels, cluster="doc", unclustered=["r0"]
    )
    found = replace(found, declared=about)
    told = str(report(found)["metrics"])
    assert "r0: Random: items (sampled, independent)" in " ".join(told.split())
    assert "r1: Random: clusters of items (doc; sampled, independent)" in " ".join(told.split())
    both = compare(found)
    assert "Random: clusters of items (doc), of r0 items, (sampled, independent) and repeats" in both.label
    assert "in 4 clusters" in str(both.table())
    one = compare(found, scores=["r0"])
    assert "Random: items (sampled" in one.label
    assert one.cluster is None


def test_metrics_say_what_is_missing_and_which_way_is_better(tmp_path: Path) -> None:
    rows = [f"q{i},{m},acc,{i % 2},higher\n" for i in range(10) for m in "ab"]
    rows += [
        f"q{i},{m},errors,{'' if m + str(i) == 'b0' else i % 3 % 2},lower\n" for i in range(10) for m in "ab"
    ]
    (path := tmp_path / "t.csv").write_text("item,model,metric,score,better\n" + "".join(rows))
    notes = json.loads(typed("report")(path, "--json", "-").stdout)["metrics"]["notes"]
    assert notes[0] == "errors: lower is better."
    assert notes[1].startswith("errors: 1 of b's answers is missing: ")
    assert len(notes) == 2
    shown = " ".join(typed("report")(path).stdout.split())
    assert all(note in shown for note in notes)


def test_notes_of_sources_stand_in_every_result(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "item,model,score,page\n" + "".join(f"q{i},{m},{i % 2},x\n" for i in range(4) for m in "ab")
    )
    note = "Columns that were not read: page."
    assert json.loads(typed("report")(path, "--json", "-").stdout)["sources"]["notes"] == [note]
    assert json.loads(typed("compare")(path, "--json", "-").stdout)["notes"] == [note]
    assert note in typed("compare")(path).stdout.replace("\n", " ")
    assert note in " ".join(typed("doctor")(path).stdout.split())
    assert note in typed("plan")(path, "--half-width", "0.3", "--model", "a").stderr
    assert note in " ".join(typed("backtest", "races")(path, "--seeds", "1").stderr.split())


def test_a_metric_without_any_score_leaves_the_others(tmp_path: Path) -> None:
    """Whether all of its values were nan, or too large to be scores."""
    rows = [f"q{i},m,acc,{i % 2},1\nq{i},m,loss,,1\n" for i in range(40)]
    path = tmp_path / "t.csv"
    path.write_text("item,model,metric,score,complete\n" + "".join(rows))
    told = json.loads(typed("report")(path, "--json", "-").stdout)["metrics"]["boards"]
    assert {name: [row["estimate"] for row in board] for name, board in told.items()} == {"acc": [0.5]}
    found = typed("doctor")(path)
    assert found.exit_code == 0, found.output
    assert "(acc)" not in found.output
    asked = ["--baseline", path, "--candidate", path, "--margin", "0.1", "--score"]
    assert typed("gate")(*asked, "loss").exit_code == 3
    assert "40 of m (baseline)'s and 40 of m (candidate)'s answers are missing" in " ".join(
        typed("gate")(*asked, "loss").output.split()
    )
