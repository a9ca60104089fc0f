"""Missing answers in compare and gate: worth the worst for what is claimed, counted, and said of whom."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from tests.claims import binomial_claim, pinned, replications, variant
from tests.comparisons.test_compare import recorded
from tests.races.estimates.drawn import draw

import evalbudget
from evalbudget.backtest import HowBought, RecordedScores
from evalbudget.cli.main import cli
from evalbudget.comparisons import (
    Baseline,
    GateConfig,
    Outcome,
    Verdict,
    as_csv,
    compare,
    gate,
    read_baseline,
)
from evalbudget.errors import InvalidInferenceError, InvalidInputError, UnknownNameError
from evalbudget.missing import Missing
from evalbudget.races.estimates import possible_winners
from evalbudget.recorded._declared import Declared
from evalbudget.report import report
from evalbudget.report._study import Study
from evalbudget.statistics._bounds import FloatArray

TABLES = Path(__file__).parent / "tables"


def run(*args: str) -> Any:
    return CliRunner().invoke(cli, list(args))


def alternating(n: int) -> FloatArray:
    return np.tile([1.0, 0.0], n // 2)


def failing(scores: FloatArray, share: float, rng: np.random.Generator) -> FloatArray:
    """The same, of which a share of the wrong answers crashed."""
    lost = (scores == 0.0) & (rng.random(scores.size) < share)
    return np.where(lost, np.nan, scores)


@pytest.mark.parametrize("models", ["ab", "abc"])
def test_a_model_all_of_whose_answers_are_missing_leaves_it_undecided(tmp_path: Path, models: str) -> None:
    rows = [f"{i},{model},{'' if model == 'b' else i % 2}" for i in range(40) for model in models]
    table = tmp_path / "scores.csv"
    table.write_text("\n".join(["item,model,score", *rows]))
    found = run("compare", str(table), "--json", "-")
    assert found.exit_code == 3
    verdicts = {(row["first"], row["second"]): row["verdict"] for row in json.loads(found.output)["rows"]}
    assert verdicts["a", "b"] == "undecided: 40 of b's answers are missing"
    assert run("compare", str(table), "--model", "a", "--model", "b", "--missing", "zero").exit_code == 0


def table(path: Path, model: str, scores: Sequence[float | None]) -> str:
    rows = (f"q{i},{'' if score is None else score},{model}\n" for i, score in enumerate(scores))
    path.write_text("item,score,model\n" + "".join(rows))
    return str(path)


@pytest.mark.parametrize("lost", ["candidate", "baseline", "both"])
@pytest.mark.parametrize("options", [(), ("--these-items",)])
def test_a_file_without_any_score_is_undecided(tmp_path: Path, lost: str, options: tuple[str, ...]) -> None:
    old, new = (
        table(
            tmp_path / f"{who}.csv",
            who,
            [None] * 40 if lost in (role, "both") else [i % 2 for i in range(40)],
        )
        for who, role in (("old", "baseline"), ("new", "candidate"))
    )
    asked = ("gate", "--baseline", old, "--candidate", new, "--margin", "0.1", *options)
    found = run(*asked)
    assert found.exit_code == 3
    whose = {"candidate": "40 of new's", "baseline": "40 of old's", "both": "40 of old's and 40 of new's"}
    assert found.output.startswith(f"Undecided: {whose[lost]} answers are missing; with them the difference")
    assert "Evaluate what is missing" in found.output
    assert json.loads(run(*asked, "--json", "-").output)["undecided_by_missing"]
    both = run("compare", old, new)
    assert both.exit_code == 3
    assert f"Undecided: {whose[lost]} answers are missing" in " ".join(both.output.split())
    shown = run("report", old, new)
    assert shown.exit_code == (2 if lost == "both" else 0)
    told = "all 80 answers of old, new" if lost == "both" else "has no score: all 40 of its answers"
    assert f"{told} are missing" in " ".join(shown.output.split())


def test_a_file_without_any_score_is_named_where_one_is_needed(tmp_path: Path) -> None:
    empty = table(tmp_path / "empty.csv", "m", [None] * 3)
    for asked in (
        ("report", empty),
        ("doctor", empty),
        ("plan", empty, "--half-width", "0.1"),
        ("backtest", "repeats", empty),
        ("gate", "--baseline", empty, "--save-baseline", str(tmp_path / "kept.csv")),
    ):
        found = run(*asked)
        assert found.exit_code == 2
        assert "all 3 answers of m are missing" in found.output
    assert not (tmp_path / "kept.csv").exists()
    with pytest.raises(InvalidInputError, match="all 3 answers of m are missing"):
        evalbudget.read(empty).plan(half_width=0.1)


def test_zero_is_the_same_score_for_compare_and_gate(tmp_path: Path) -> None:
    """The worst of the range, and not the worst that happens to be there."""
    old = table(tmp_path / "old.csv", "old", [0.5, 0.75] * 20)
    new = table(tmp_path / "new.csv", "new", [0.5, None] * 20)
    (row,) = json.loads(run("compare", new, old, "--missing", "zero", "--json", "-").output)["rows"]
    gated = json.loads(
        run(
            "gate",
            "--baseline",
            old,
            "--candidate",
            new,
            "--margin",
            ".1",
            "--missing",
            "zero",
            "--json",
            "-",
        ).output
    )
    assert row["difference"] == gated["difference"] == pytest.approx(-0.375)
    worse = run("compare", new, old, "--missing", "zero", "--lower-is-better", "--json", "-")
    assert json.loads(worse.output)["rows"][0]["difference"] == pytest.approx(0.125)


def test_zero_of_an_unknown_range_is_asked_for(tmp_path: Path) -> None:
    old = table(tmp_path / "old.csv", "old", [5, 7] * 20)
    new = table(tmp_path / "new.csv", "new", [5, None] * 20)
    found = run("compare", new, old, "--missing", "zero")
    assert found.exit_code == 2
    assert "nothing says which that is of scores from 5 to 7; give the range" in found.output
    ranged = run("compare", new, old, "--missing", "zero", "--score-range", "1..10", "--json", "-")
    assert json.loads(ranged.output)["rows"][0]["difference"] == pytest.approx(-3.0)


def test_a_candidate_whose_wrong_answers_crash_is_not_called_good() -> None:
    base, crashed = str(TABLES / "base.csv"), str(TABLES / "crashed.csv")
    asked = ("gate", "--baseline", base, "--candidate", crashed, "--margin", "0.1")
    found = run(*asked)
    assert found.exit_code == 3
    assert found.output.startswith(
        "Undecided: 300 of new's answers are missing; with them the difference is anything from -0.35 to "
    )
    told = json.loads(run(*asked, "--json", "-").output)
    assert (told["missing"], told["undecided_by_missing"]) == ({"baseline": 0, "candidate": 300}, True)
    assert run(*asked, "--missing", "zero").exit_code == 1
    dropped = run(*asked, "--missing", "drop")
    assert dropped.exit_code == 0
    assert "300 of new's answers are missing, and left out" in dropped.output
    assert "Did you mean 'worst'?" in run(*asked, "--missing", "wurst").output


def test_rows_that_a_candidate_lacks_count_as_what_is_said(tmp_path: Path) -> None:
    """No row, and not only one without a score, where nothing says that the item was not asked."""
    base, short = tmp_path / "base.csv", tmp_path / "short.csv"
    base.write_text("item,score,model\n" + "".join(f"q{i},1,old\n" for i in range(200)))
    short.write_text("item,score,model\n" + "".join(f"q{i},1,new\n" for i in range(150)))
    asked = ("gate", "--baseline", str(base), "--candidate", str(short), "--margin", "0.1")
    zero, dropped = run(*asked, "--missing", "zero"), run(*asked, "--missing", "drop")
    assert (zero.exit_code, dropped.exit_code) == (1, 0)
    assert "Difference -0.25 " in zero.output
    assert "on 200 items. 50 of new's answers are missing, and counted as the worst score." in zero.output
    assert "on 150 items. 50 of new's answers are missing, and left out." in dropped.output
    assert "that counts" not in zero.output + dropped.output
    lower = run(*asked, "--missing", "zero", "--lower-is-better")
    assert "Difference +0.00 " in lower.output
    short.write_text("item,score,model,complete\n" + "".join(f"q{i},1,new,1\n" for i in range(150)))
    whole = run(*asked, "--missing", "zero")
    assert whole.exit_code == 0
    assert "50 items of the baseline have no score of the candidate that counts." in whole.output


def test_a_model_without_a_score_on_the_hard_items_is_not_better() -> None:
    found = run("compare", str(TABLES / "crash.csv"))
    assert found.exit_code == 3
    assert "undecided: 20 of a's answers" in " ".join(found.output.split())
    assert "whatever they would have been, from 0 to 1." in " ".join(found.output.split())
    (row,) = json.loads(run("compare", str(TABLES / "crash.csv"), "--json", "-").output)["rows"]
    assert (row["missing"], row["if_dropped"]) == ({"first": 20, "second": 0}, "first is better")
    assert row["low"] < 0.0 < row["difference"] < row["high"]
    zero = run("compare", str(TABLES / "crash.csv"), "--missing", "zero")
    assert zero.exit_code == 0
    assert "counted as 0 (--missing zero)" in " ".join(zero.output.split())
    assert run("compare", str(TABLES / "crash.csv"), "--missing", "drop").exit_code == 0


def test_where_all_that_is_there_is_right_what_is_missing_may_be_wrong() -> None:
    """Of logs whose metric says no range: that all are 1 is no reason to take missing ones for 1, too."""
    scores = np.ones((2, 200))
    scores[1, 100:] = np.nan
    fixed = (HowBought(), HowBought())
    found = compare(replace(recorded(scores[:, :, None, None]), purchases=fixed), margin=0.1)
    assert found.rows[0].outcome is Outcome.UNDECIDED
    assert found.rows[0].high > 0.5
    assert "whatever they would have been, from 0 to 1." in " ".join(found.notes)


def test_a_model_without_any_score_is_named() -> None:
    nobody = recorded(np.array([[1.0, 1.0, 0.0], [np.nan, np.nan, np.nan]])[:, :, None, None])
    assert compare(nobody).sentence.startswith("Undecided: 3 of b's answers are missing: no item has a score")
    with pytest.raises(InvalidInferenceError, match="model 'b' has no score"):
        compare(nobody, missing="drop")


def test_what_holds_at_the_worst_is_decided() -> None:
    first, second = np.ones(300), np.zeros(300)
    first[:30], second[30:40] = np.nan, np.nan
    (row,) = compare(recorded([first, second])).rows
    assert (row.outcome, row.missing) == (Outcome.FIRST, (30, 10))
    assert row.low < 0.87 < row.high == 1.0
    assert "(30 of a's and 10 of b's answers are missing)" in compare(recorded([first, second])).sentence


def test_ends_are_those_of_the_two_extreme_cases() -> None:
    first, second = alternating(100), np.ones(100)
    gaps = first.copy()
    gaps[:10] = np.nan
    low, high = (np.where(np.isnan(gaps), end, gaps) for end in (0.0, 1.0))
    (row,) = compare(recorded([gaps, second])).rows
    (worst,), (best,) = (compare(recorded([case, second])).rows for case in (low, high))
    assert (row.low, row.high) == (worst.low, best.high)
    (dropped,) = compare(recorded([gaps, second]), missing=Missing.DROP).rows
    assert (dropped.items, dropped.missing) == (90, (0, 0))
    assert row.low < dropped.low < dropped.high < row.high
    (zero,) = compare(recorded([gaps, second]), missing=Missing.ZERO).rows
    assert (zero.difference, zero.low, zero.high) == (worst.difference, worst.low, worst.high)


@pytest.mark.parametrize("missing", list(Missing))
def test_a_word_in_python_means_what_it_means_at_the_prompt(missing: Missing) -> None:
    word, both = missing.value, recorded([[1.0, 1.0, np.nan, 0.0], [0.0, 1.0, 1.0, 1.0]])
    first, second = both.select("a"), both.select("b")
    drawn = [draw(scores, np.full(4, 0.5), 4, order=np.arange(4)) for scores in both.scores[:, :, 0, 0]]

    def said(missing: str) -> list[object]:
        base = Baseline.of(first, name="a")
        return [
            compare(both, missing=missing).to_json(),
            report(both, missing=missing).to_json(),
            gate(base, second, margin=0.1, missing=missing).to_json(),
            possible_winners(drawn, n_items=4, missing=missing),
        ]

    assert said(str(word)) == said(missing)
    for ask in (compare, report):
        with pytest.raises(UnknownNameError, match="value of --missing 'dropp'"):
            ask(both, missing="dropp")


def test_one_of_several_answers_that_failed_counts_in_its_share() -> None:
    scores = np.ones((2, 40, 1, 2))
    scores[0, :, 0, 1] = np.nan
    failed = np.zeros((2, 40, 1), dtype=np.int64)
    failed[0] = 1
    (row,) = compare(recorded(scores, failed=failed)).rows
    assert row.missing == (40, 0)
    assert (row.difference, row.low <= -0.5) == (0.0, True)


def test_what_was_not_to_be_asked_is_not_missing() -> None:
    scores = recorded([np.ones(40), np.where(np.arange(40) < 20, np.nan, 0.0)])
    assert compare(scores).rows[0].missing == (0, 20)
    declared = Declared.of(scores.models, scores.items, scores.raters, complete=scores.models)
    whole = RecordedScores(scores.scores, scores.models, scores.items, scores.raters, declared=declared)
    (row,) = compare(whole).rows
    assert (row.missing, row.outcome) == ((0, 0), Outcome.FIRST)


def test_an_item_that_neither_of_a_pair_has_is_not_of_the_pair() -> None:
    third = np.ones(60)
    pair = np.where(np.arange(60) < 30, np.nan, 1.0)
    rows = compare(recorded([pair, 1.0 - pair, third], "abc")).rows
    missing = {(row.first, row.second): row.missing for row in rows}
    assert missing == {("a", "b"): (0, 0), ("a", "c"): (30, 0), ("b", "c"): (30, 0)}


def test_pairs_without_a_common_item_take_no_share_of_the_error() -> None:
    rng = np.random.default_rng(5)
    first, second = rng.random(50), rng.random(50)
    half = np.full(50, np.nan)
    together = np.concatenate([[np.concatenate([x, half])] for x in (first, second)])
    apart = np.concatenate([[np.concatenate([half, rng.random(50)])]])
    three = recorded(np.concatenate([together, apart]), "abc")
    found = compare(three, missing=Missing.DROP)
    (alone,) = compare(recorded([first, second])).rows
    rows = {(row.first, row.second): row for row in found.rows}
    assert (rows["a", "b"].low, rows["a", "b"].high) == pytest.approx((alone.low, alone.high))
    assert (rows["a", "c"].items, math.isnan(rows["a", "c"].low)) == (0, True)


def test_lower_is_better_where_it_says_so_and_crashes_are_high() -> None:
    good, bad = np.zeros(200), np.where(np.arange(200) < 80, 1.0, 0.0)
    scores = recorded([good, bad])
    declared = Declared.of(("a", "b"), scores.items, scores.raters, lower_is_better={"r0": True})
    lower = RecordedScores(scores.scores, scores.models, scores.items, scores.raters, declared=declared)
    found = compare(lower)
    assert found.rows[0].outcome is Outcome.FIRST
    assert found.sentence.startswith("a is better: a less b is -0.4")
    assert "Lower is better." in str(found.table())
    gaps = scores.scores.copy()
    gaps[0, :60] = np.nan
    crashed = RecordedScores(gaps, scores.models, scores.items, scores.raters, declared=declared)
    zero = compare(crashed, missing=Missing.ZERO).rows[0]
    assert zero.difference == pytest.approx(0.3 - 0.4)


def gated(old: FloatArray, new: FloatArray, **asked: Any) -> Verdict | None:
    base = Baseline.of(recorded([old], "o", raters=("r",)), name="o")
    return gate(base, recorded([new], "n", raters=("r",)), **asked).verdict


def test_a_gate_knows_which_way_is_better() -> None:
    items = tuple(map(str, range(200)))

    def of(scores: FloatArray, name: str, lower: bool | None) -> RecordedScores:
        told = {} if lower is None else {"wer": lower}
        declared = Declared.of((name,), items, ("wer",), lower_is_better=told)
        return RecordedScores(scores[None, :, None, None], (name,), items, ("wer",), declared=declared)

    good, bad = np.where(np.arange(200) < 20, 1.0, 0.0), np.where(np.arange(200) < 90, 1.0, 0.0)
    base = Baseline.of(of(good, "good", True), name="good")
    found = gate(base, of(bad, "bad", None), margin=0.05)
    assert found.verdict is Verdict.WORSE
    assert found.difference == pytest.approx(0.35)
    assert found.interval[0] < 0.35 < found.interval[1]
    assert "Lower is better." in str(found)
    assert (
        gate(Baseline.of(of(bad, "bad", True), name="bad"), of(good, "good", True), margin=0.05).exit_code
        == 0
    )
    with pytest.raises(InvalidInputError, match="lower is better by the log of good, and higher by that of"):
        gate(base, of(bad, "bad", False), margin=0.05)


def test_a_baseline_that_is_kept_says_what_its_error_is(tmp_path: Path) -> None:
    base = Baseline.of(recorded([np.ones(50)], "o"), name="o")
    found = gate(base, recorded([np.ones(50)], "n"), margin=0.2)
    assert "The 5% is over draws of the baseline, too" in str(found)
    assert "over draws of the baseline" in found.to_dict()["kept_baseline"]
    assert not gate(base, recorded([np.ones(50)], "n"), margin=0.2, these_items=True).reuse
    (tmp_path / "one.csv").write_text("item,model,score\nq1,old,1\n")
    for more in (("--save-baseline", str(tmp_path / "kept.csv")), ("--candidate", str(TABLES / "base.csv"))):
        told = run("gate", "--baseline", str(tmp_path / "one.csv"), "--margin", ".1", *more)
        assert told.exit_code == 2
        assert "has one item, 'q1', which proves nothing of others" in told.output


def test_a_kept_baseline_keeps_what_was_missing(tmp_path: Path) -> None:
    kept = tmp_path / "kept.csv"
    saved = run("gate", "--baseline", str(TABLES / "crashed.csv"), "--save-baseline", str(kept))
    assert saved.exit_code == 0
    rows = len(kept.read_text().splitlines()) - 1
    assert f": {rows:,} items of new, 300 of them without a score." in saved.output
    found = run("gate", "--baseline", str(kept), "--candidate", str(TABLES / "base.csv"), "--margin", ".1")
    assert found.exit_code == 3
    assert "300 of new's answers are missing" in found.output


def test_a_kept_baseline_keeps_what_no_score_applies_to(tmp_path: Path) -> None:
    scores = np.where(np.arange(65) < 40, 1.0, np.nan)
    outside = np.isnan(scores)[None, :, None]
    old = replace(recorded([scores], "o", raters=("r",)), outside=outside)
    new = recorded([np.where(np.arange(65) < 20, 1.0, np.arange(65) >= 40)[:60]], "n", raters=("r",))
    log = Baseline.of(old, name="o")
    (tmp_path / "kept.csv").write_text(as_csv(log))
    table = read_baseline(tmp_path / "kept.csv")
    assert table == log
    assert table.outside == set(map(str, range(40, 65)))
    for kept in (log, table):
        found = gate(kept, new, margin=0.1)
        assert (found.verdict, found.missing, found.n_items) == (None, (20, 0), 60)


def test_a_gate_counts_the_clusters_that_its_baseline_declares(tmp_path: Path) -> None:
    items = tuple(map(str, range(300)))
    labels = {item: str(int(item) // 10) for item in items}
    declared = Declared.of(("o",), items, ("r",), clusters=labels, cluster="document")
    old = RecordedScores(np.ones((1, 300, 1, 1)), ("o",), items, ("r",), declared=declared)
    kept = Baseline.of(old, name="o")
    found = gate(kept, recorded([np.ones(300)], "n", raters=("r",)), margin=0.2)
    assert "on 300 items in 30 clusters (document)" in str(found)
    (tmp_path / "kept.csv").write_text(as_csv(kept))
    again = read_baseline(tmp_path / "kept.csv")
    assert "in 30 clusters (cluster)" in str(
        gate(again, recorded([np.ones(300)], "n", raters=("r",)), margin=0.2)
    )


@pytest.mark.claim
@pytest.mark.parametrize(("share", "expected"), [variant(0.2, 1), (0.6, 1), variant(1.0, 1)])
def test_answers_that_crash_when_wrong_decide_nothing_wrong(share: float, expected: int) -> None:
    """Two models as good as each other on 300 items; wrong answers of the first crash."""
    trials = replications(70, 2000)
    wrong, rng = 0, np.random.default_rng(12)
    for _ in range(trials):
        chance = rng.uniform(0.4, 0.9, 300)
        first, second = (rng.random((2, 300)) < chance).astype(float)
        (row,) = compare(recorded([failing(first, share, rng), second])).rows
        wrong += row.outcome is not Outcome.UNDECIDED
    binomial_claim(wrong, trials, at_most=0.05)
    pinned(wrong, expected)


@pytest.mark.claim
@pytest.mark.parametrize(("share", "expected"), [variant(0.2, 1), variant(0.6, 1), (1.0, 1)])
def test_a_gate_passes_no_candidate_that_crashes_when_wrong(share: float, expected: int) -> None:
    """The candidate is worse by the margin, and what it has wrong crashes."""
    trials, wrong, rng = replications(60, 2000), 0, np.random.default_rng(12)
    for _ in range(trials):
        chance = rng.uniform(0.5, 0.9, 400)
        old, new = (rng.random(400) < chance) * 1.0, (rng.random(400) < chance - 0.1) * 1.0
        wrong += gated(old, failing(new, share, rng), margin=0.1) is Verdict.NOT_WORSE
    binomial_claim(wrong, trials, at_most=0.05)
    pinned(wrong, expected)


@pytest.mark.claim
def test_a_few_answers_missing_by_chance_cost_little_power() -> None:
    """2% of both: as many verdicts as without, or nine in ten of them."""
    trials, rng = replications(12, 1000), np.random.default_rng(13)
    whole = gaps = passed = passed_with_gaps = 0
    for _ in range(trials):
        chance = rng.uniform(0.3, 0.9, 600)
        first, second = (rng.random(600) < chance) * 1.0, (rng.random(600) < chance - 0.15) * 1.0
        lost = np.where(rng.random((2, 600)) < 0.02, np.nan, 0.0)
        whole += compare(recorded([first, second])).rows[0].outcome is Outcome.FIRST
        gaps += compare(recorded([first + lost[0], second + lost[1]])).rows[0].outcome is Outcome.FIRST
        same = (rng.random(600) < chance) * 1.0
        passed += gated(first, same, margin=0.2) is Verdict.NOT_WORSE
        passed_with_gaps += gated(first + lost[0], same + lost[1], margin=0.2) is Verdict.NOT_WORSE
    assert gaps >= 0.9 * whole > 0.8 * trials
    assert passed_with_gaps >= 0.9 * passed > 0.8 * trials


def test_a_wrong_answer_is_worth_the_lowest_possible_score_also_where_none_is_so_low() -> None:
    scores = np.where(np.arange(300) < 200, 0.6, 0.9)
    answered = np.where(np.arange(300) < 100, np.nan, scores)
    old, new = (
        RecordedScores(
            of[None, :, None, None],
            (name,),
            tuple(map(str, range(300))),
            ("r",),
            failed=np.isnan(of).astype(np.int64)[None, :, None],
        )
        for of, name in ((scores, "old"), (answered, "new"))
    )
    for given, other, wrong in ((old, new, -0.2), (new, old, 0.2)):
        baseline = Baseline.of(given, name="it")
        found = gate(baseline, other, margin=0.1, missing="zero")
        assert found.evidence.difference == pytest.approx(wrong)


def of_error(rates: FloatArray, name: str, lower: bool | None, failed: FloatArray) -> RecordedScores:
    """Error rates of two answers each; of ``failed`` items the second one failed, or both where it is 2."""
    items, told = tuple(map(str, range(rates.size))), {} if lower is None else {"wer": lower}
    scores = np.repeat(rates[:, None], 2, axis=1)
    scores[np.arange(2) >= 2 - failed[:, None]] = np.nan
    declared = Declared.of((name,), items, ("wer",), lower_is_better=told)
    lost = failed.astype(np.int64)[None, :, None]
    return RecordedScores(scores[None, :, None], (name,), items, ("wer",), failed=lost, declared=declared)


@pytest.mark.parametrize("says", [(True, True), (True, None), (None, True)])
def test_a_crash_is_the_worst_score_whichever_side_says_which_that_is(says: tuple[bool, bool]) -> None:
    rates, none = np.tile([0.0, 0.2], 150), np.zeros(300)
    failed = np.repeat([0.0, 1.0, 2.0], 100)
    counted = np.where(failed == 2.0, 1.0, np.where(failed == 1.0, (rates + 1.0) / 2.0, rates))
    for of_old, of_new in ((none, failed), (failed, none)):
        old, new = of_error(rates, "old", says[0], of_old), of_error(rates, "new", says[1], of_new)
        found = gate(Baseline.of(old, name="old"), new, margin=0.05, missing="zero")
        crashes = 1.0 if of_new is failed else -1.0
        assert found.difference == pytest.approx(crashes * (counted - rates).mean())
        assert found.verdict is (Verdict.WORSE if of_new is failed else Verdict.NOT_WORSE)


def test_a_gate_that_buys_counts_what_its_baseline_failed_on_as_the_worst(tmp_path: Path) -> None:
    table = tmp_path / "old.csv"
    table.write_text("item,model,score\na,old,0.2\nb,old,0.2\nb,old,\nc,old,\nd,old,0.4\n")
    for lower, expected in ((True, [0.2, 0.6, 1.0, 0.4]), (None, [0.2, 0.1, 0.0, 0.4])):
        asked = {"baseline": str(table), "margin": 0.1, "missing": "zero", "lower_is_better": lower}
        scores = GateConfig.of(**asked).read_baseline().scores
        assert [scores[item] for item in "abcd"] == pytest.approx(expected)


@pytest.mark.parametrize("missing", list(Missing))
def test_judges_of_different_scales_are_no_panel_whatever_missing_answers_count_as(
    tmp_path: Path, missing: Missing
) -> None:
    for model in "ab":
        rows = (f"{i},{model},j1,{i % 10 / 10}\n{i},{model},j2,{i % 10 + 1}" for i in range(60))
        (tmp_path / f"{model}.csv").write_text("\n".join(["item,model,judge,score", *rows]))
    logs = ("--baseline", str(tmp_path / "a.csv"), "--candidate", str(tmp_path / "b.csv"))
    found = run("gate", *logs, "--margin", "1", "--score-range", "0..10", "--missing", missing)
    assert (found.exit_code, "different scales" in found.output) == (2, True)


def test_an_item_that_failed_once_and_did_not_apply_once_is_one_that_failed(tmp_path: Path) -> None:
    failed, outside = np.zeros((1, 60, 1), dtype=np.int64), np.zeros((1, 60, 1), dtype=bool)
    failed[0, 40:], outside[0, 40:] = 1, True
    scores = recorded([np.where(np.arange(60) < 40, 1.0, np.nan)], "o", raters=("r",))
    log = Baseline.of(replace(scores, failed=failed, outside=outside), name="o")
    (tmp_path / "kept.csv").write_text(as_csv(log))
    table = read_baseline(tmp_path / "kept.csv")
    assert table == log
    for kept in (log, table):
        found = gate(kept, recorded([np.ones(60)], "n", raters=("r",)), margin=0.1)
        assert (found.n_items, found.missing) == (60, (20, 0))


def test_the_interval_is_the_hull_of_the_worst_cases() -> None:
    """Not of what is there alone: that is an interval of something else."""
    right = np.tile([1.0, 1, 1, 1, 0], 12)
    answered = np.arange(60) < 26
    (found,), (lowest,), (highest,) = (
        compare(recorded([np.where(answered, 1.0, value), right])).rows for value in (np.nan, 0.0, 1.0)
    )
    assert (found.low, found.high) == pytest.approx((lowest.low, highest.high))
    (alone,) = compare(recorded([np.ones(26), right[:26]])).rows
    assert alone.high > found.high
    bounds = Study.of(recorded([np.where(answered, 1.0, np.nan), right])).pair_bounds
    assert (bounds.low[0, 1], bounds.high[0, 1]) == pytest.approx((lowest.low, highest.high))


def test_what_is_seen_stands_within_the_interval_whatever_is_missing() -> None:
    scores = np.zeros((2, 100, 1, 1))
    scores[1, :50] = 1.0  # the first is worse by 1 on the half that it has, and may be better on the other
    scores[0, 50:] = np.nan
    recorded = RecordedScores(scores, ("a", "b"), tuple(map(str, range(100))), ("s",), failed=_lost(scores))
    (row,) = compare(recorded).rows
    assert row.low <= row.difference == -1.0 <= row.high
    assert row.high > 0.0


def _lost(scores: np.ndarray) -> np.ndarray:
    return np.isnan(scores).sum(axis=3)


def test_a_baseline_without_a_score_is_not_beaten_by_zeros(tmp_path: Path) -> None:
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    old.write_text("item,score\n" + "".join(f"q{i},\n" for i in range(20)))
    new.write_text("item,score\n" + "".join(f"q{i},{i % 2}\n" for i in range(20)))
    asked = ("gate", "--baseline", str(old), "--candidate", str(new), "--margin", "0.05")
    refused = run(*asked, "--missing", "zero")
    assert refused.exit_code == 2
    assert "no candidate is worse than zeros" in " ".join(refused.output.split())
    assert run(*asked).exit_code == 3
