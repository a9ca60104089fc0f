"""The verdict on finished scores: baselines, files, sentences, exit codes, what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner

from evalbudget.backtest import RecordedScores, TaskName
from evalbudget.cli.main import cli
from evalbudget.comparisons import (
    Baseline,
    Gate,
    GateConfig,
    GateEvidence,
    Verdict,
    as_csv,
    as_junit,
    as_markdown,
    gate,
    read_baseline,
)
from evalbudget.comparisons._evidence import Differences
from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.hooks._plugins import plugins
from evalbudget.recorded._declared import Declared


def recorded(scores: Any, model: str = "new", **more: Any) -> RecordedScores:
    table = np.asarray(scores, dtype=float)
    table = table[None, :, None, None] if table.ndim == 1 else table
    n = table.shape[1]
    raters = more.pop("raters", ("match",))
    return RecordedScores(table, (model,), tuple(f"q{i}" for i in range(n)), raters, **more)


def baseline(scores: Any, **more: Any) -> Baseline:
    return Baseline.of(recorded(scores, "old", **more), name="old")


ONES, ZEROS = np.ones(300), np.zeros(300)


@pytest.mark.parametrize(
    ("new", "verdict", "code", "begins"),
    [
        (
            ONES,
            Verdict.NOT_WORSE,
            0,
            "Not worse: new is not worse than old by 0.1 or more, with 95%",
        ),
        (ZEROS, Verdict.WORSE, 1, "Worse: new is worse than old, with 95% confidence."),
        (ONES[:10], None, 3, "Undecided: whether new is worse than old by 0.1 or more is not proved"),
    ],
)
def test_verdicts(new: Any, verdict: Verdict | None, code: int, begins: str) -> None:
    found = gate(baseline(ONES), recorded(new), margin=0.1)
    assert (found.verdict, found.exit_code) == (verdict, code)
    assert str(found).startswith(begins)
    told = json.loads(found.to_json())
    assert (told["exit_code"], told["items"]) == (code, new.size)
    assert told["lower"] <= told["difference"] <= told["upper"]
    assert told["anytime"] is False
    assert "Fixed-n: holds for logs as they are" in str(found)
    (case,) = ElementTree.fromstring(as_junit(found)).iter("testcase")
    assert (case.find("failure") is not None) == (verdict is Verdict.WORSE)
    assert (case.find("skipped") is not None) == (verdict is None)
    assert as_markdown(found).startswith(f"### {'✅❌❔'[[0, 1, 3].index(code)]} {begins[:9]}")


def test_settings_that_differ_are_named_and_not_refused(tmp_path: Path) -> None:
    def with_settings(model: str, **settings: str) -> RecordedScores:
        items = [f"q{i}" for i in range(ONES.size)]
        return recorded(
            ONES, model, declared=Declared.of([model], items, ["match"], settings={model: settings})
        )

    def told(one: RecordedScores, other: RecordedScores) -> str:
        found = gate(Baseline.of(one, name=one.models[0]), other, margin=0.1)
        assert found.verdict is Verdict.NOT_WORSE
        return " ".join(found.notes)

    zero, five = with_settings("m", shots="0", effort="low"), with_settings("m", shots="5", effort="low")
    assert told(zero, five) == "Settings differ: shots=0 (baseline); shots=5 (candidate)."
    given = with_settings("n", effort="low", shots="0", temperature="1")
    assert told(zero, given) == "Settings differ: temperature=default (baseline); temperature=1 (candidate)."
    assert told(zero, zero) == told(zero, with_settings("m")) == ""
    kept = tmp_path / "kept.csv"
    prompted = with_settings("m", shots="0", system='Say "yes",\nor =no')
    kept.write_text(as_csv(Baseline.of(prompted, name="m")))
    assert kept.read_text().count("shots") == 1
    again = read_baseline(kept)
    assert again.settings == prompted.declared.settings[0]
    note = " ".join(gate(again, five, margin=0.1).notes)
    assert note.startswith("Settings differ: shots=0, system=Say ")
    assert note.endswith("(baseline); shots=5, system=default, effort=low (candidate).")


def test_names_are_shown_in_markdown_and_not_obeyed() -> None:
    found = gate(baseline(ONES), recorded(ONES, "a|b*<img>"), margin=0.1)
    assert "a\\|b\\*\\<img\\> is not worse" in as_markdown(found)


def test_an_undecided_gate_says_what_would_decide_it() -> None:
    new = np.random.default_rng(0).integers(0, 2, 100).astype(float)
    found = gate(baseline(ONES[:100] * 0.5), recorded(new), margin=0.02)
    assert "items would prove it not worse, and there are 100: take a larger --margin" in str(found)
    assert "--these-items" in str(found)


def test_these_items_are_decided_by_their_mean() -> None:
    new = ONES[:50].copy()
    new[:2] = 0.0
    found = gate(baseline(ONES[:50]), recorded(new), margin=0.05, these_items=True)
    assert (
        found.sentence
        == "Not worse: new is not worse than old by 0.05 or more on these 50 items as scored once."
    )
    assert "Exact for these items as scored once each: the same items asked again may differ." in str(found)
    assert found.evidence.difference == pytest.approx(-0.04)


def test_margins_are_in_the_units_of_the_scores() -> None:
    rng = np.random.default_rng(1)
    old, new = rng.integers(0, 2, 300), rng.integers(0, 2, 300)
    one = gate(baseline(old), recorded(new), margin=0.1)
    ten = gate(baseline(1 + 9 * old), recorded(1 + 9 * new), margin=0.9, score_range=(1.0, 10.0))
    assert ten.verdict is one.verdict
    assert ten.evidence.interval == pytest.approx(tuple(9 * end for end in one.evidence.interval))


def test_repeats_count_by_their_mean() -> None:
    table = np.zeros((1, 3, 1, 2))
    table[0, :, 0] = [[0.0, 1.0], [1.0, np.nan], [np.nan, np.nan]]
    assert baseline(table).scores == {"q0": 0.5, "q1": 1.0}


def test_a_verdict_on_logs_does_not_depend_on_their_order() -> None:
    rng = np.random.default_rng(3)
    old, new = rng.integers(0, 2, 200).astype(float), rng.integers(0, 2, 200).astype(float)
    found = gate(baseline(old), recorded(new), margin=0.1)
    low, high = found.evidence.interval
    turned = gate(baseline(old[::-1]), recorded(new[::-1]), margin=0.1)
    assert turned.evidence.difference == pytest.approx(found.evidence.difference)
    assert turned.evidence.interval == pytest.approx((low, high), abs=0.02)


def test_every_gate_has_an_order_of_its_own_unless_a_seed_is_chosen(tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("item,score\na,1\n")
    config = GateConfig.of(baseline=str(tmp_path / "old.csv"), margin=0.1)
    assert config.in_order_of("x").seed == config.in_order_of("x").seed != config.in_order_of("y").seed
    chosen = GateConfig.of(baseline=str(tmp_path / "old.csv"), margin=0.1, seed=0)
    assert chosen.in_order_of("x").seed == 0


def test_clusters_come_from_the_baseline() -> None:
    labels = tuple(str(i // 3) for i in range(300))
    found = gate(baseline(ONES, categories=labels), recorded(ONES), margin=0.1, cluster="document")
    assert found.evidence.clusters == 100
    assert "300 items in 100 clusters (document)" in str(found)
    with pytest.raises(InvalidInputError, match="not which cluster it belongs to"):
        gate(baseline(ONES), recorded(ONES), margin=0.1, cluster="document")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            baseline(ONES, task=TaskName("a", "1")),
            recorded(ONES, task=TaskName("a", "2")),
            r"a \(version 1\) and",
        ),
        (baseline(ONES[:1]), recorded(ONES), "have 1 item in common"),
        (
            Baseline("old", "match", {"x": 1.0, "y": 0.0}),
            recorded(ONES),
            "have 0 items in common",
        ),
        (baseline(ONES * 3), recorded(ONES), "old has the score 3, outside of 0 to 1"),
        (baseline(ONES), recorded(ONES * 3), "new has the score 3, outside of 0 to 1"),
    ],
)
def test_what_cannot_be_gated_is_refused(old: Baseline, new: RecordedScores, told: str) -> None:
    with pytest.raises(InvalidInputError, match=told):
        gate(old, new, margin=0.1)


def test_a_baseline_is_one_model_on_one_metric() -> None:
    several = np.zeros((1, 4, 2, 1))
    with pytest.raises(InvalidInputError, match="--score f1"):
        baseline(several, raters=("f1", "exact"), one_measure=False)
    chosen = recorded(several, raters=("f1", "exact"), one_measure=False)
    assert Baseline.of(chosen, name="old", score="exact").score == "exact"
    with pytest.raises(UnknownNameError, match="exakt"):
        Baseline.of(chosen, name="old", score="exakt")
    assert baseline(several, raters=("ann", "bob")).score == "panel"
    two = RecordedScores(np.zeros((2, 3, 1, 1)), ("a", "b"), ("x", "y", "z"), ("r",))
    with pytest.raises(InvalidInputError, match="holds 2 models"):
        Baseline.of(two, name="logs")


def test_a_baseline_that_is_kept_as_a_table_says_the_same(tmp_path: Path) -> None:
    labels = tuple(str(i // 3) for i in range(12))
    scores = np.random.default_rng(2).random(12)
    kept = baseline(scores, task=TaskName("quiz", "3"), categories=labels)
    path = tmp_path / "baseline.csv"
    path.write_text(as_csv(kept))
    again = read_baseline(path)
    assert (again.name, again.score, again.task) == ("old", "match", kept.task)
    assert (dict(again.scores), dict(again.clusters)) == (dict(kept.scores), dict(kept.clusters))
    rows = path.read_text().splitlines()
    assert rows[0] == "item,score,model,rater,task,version,category"
    assert [row.split(",")[0] for row in rows[1:]] == [f"q{i}" for i in range(12)]  # q2 before q10
    plain = baseline(scores)
    path.write_text(as_csv(plain))
    assert read_baseline(path) == plain


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, scores in (("old", ONES), ("same", ONES), ("bad", ZEROS)):
        (tmp_path / f"{name}.csv").write_text(as_csv(Baseline.of(recorded(scores, name), name=name)))
    return tmp_path


def run(*args: str) -> Any:
    return CliRunner().invoke(cli, ["gate", *args])


def test_the_command_ends_with_the_verdict_and_writes_files(logs: Path) -> None:
    outputs = ("--json", "v.json", "--markdown", "v.md", "--junit", "v.xml")
    good = run("--baseline", "old.csv", "--candidate", "same.csv", "--margin", ".1", *outputs)
    assert good.exit_code == 0, good.output
    assert good.output.startswith("Not worse: same is not worse than old")
    assert json.loads((logs / "v.json").read_text())["verdict"] == "not worse"
    assert (logs / "v.md").read_text().startswith("### ✅")
    assert ElementTree.parse(logs / "v.xml").getroot().get("failures") == "0"
    assert run("--baseline", "old.csv", "--candidate", "bad.csv", "--margin", ".1").exit_code == 1
    told = run("--baseline", "old.csv", "--candidate", "bad.csv", "--margin", ".1", "--json", "-")
    assert json.loads(told.output)["exit_code"] == 1


def test_the_command_saves_a_baseline(logs: Path) -> None:
    assert run("--baseline", "old.csv", "--save-baseline", "kept.csv").exit_code == 0
    assert read_baseline(logs / "kept.csv") == read_baseline(logs / "old.csv")


MARGIN = ("--margin", ".1")
BOTH = ("--baseline", "old.csv", "--candidate", "same.csv", *MARGIN)


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ([], "--baseline is missing"),
        (["--baseline", "none.csv", "--candidate", "same.csv"], "--baseline none.csv does not exist"),
        (["--baseline", "old.csv"], "--candidate is missing"),
        (["--baseline", "old.csv", "--candidate", "same.csv"], "a gate needs --margin"),
        (["--baseline", "old.csv", "--candidate", "same.csv", "--margin", "0"], "--margin 0: give what"),
        ([*BOTH, "--sampler-seed", "5"], "--sampler-seed is for"),
        (
            [*BOTH, "--budget", "5"],
            "--budget is for",
        ),
        (
            [*BOTH, "--epochs", "5"],
            "--epochs is for",
        ),
        (["--baseline", "old.csv", "--candidate", "gpt", *MARGIN], "there is no --task"),
        (
            [*BOTH, "--cluster", "document"],
            "has no column document",
        ),
        (
            [*BOTH, "--level", "2"],
            "level 2 must lie",
        ),
    ],
)
def test_bad_input_ends_with_2_and_the_remedy(logs: Path, args: list[str], told: str) -> None:
    found = run(*args)
    assert found.exit_code == 2, found.output
    assert told in found.output


def test_these_items_have_no_clusters(logs: Path) -> None:
    with pytest.raises(InvalidInputError, match="give one of them"):
        GateConfig.of(baseline="old.csv", margin=0.1, cluster="document", these_items=True)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("item,score,category\na,1,x\na,0,y\n", "item 'a' is in 'x' and in 'y'"),
    ],
)
def test_items_of_two_categories_are_refused(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(text)
    with pytest.raises(InvalidInputError, match=told):
        plugins().open_scores(path)


def test_tables_that_name_no_task_are_of_none(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("item,score,task\na,1,\nb,0,\n")
    assert plugins().open_scores(path).task is None


def test_failures_count_against_the_candidate_and_never_for_it() -> None:
    new = ONES.copy()
    new[:90] = np.nan  # as good as the baseline where it answers at all
    rng = np.random.default_rng(4)
    cluster = np.arange(300)
    order = rng.permutation(300)
    asked: dict[str, Any] = {"margin": 0.1, "alpha": 0.05, "largest": 1, "span": 1.0}
    found = GateEvidence.of(Differences.of(new[order], ONES), cluster, pool=None, **asked)
    assert (found.verdict, found.if_dropped) == (None, Verdict.NOT_WORSE)
    assert (found.failed, found.items, found.difference) == (90, 210, 0.0)
    assert found.ends == (pytest.approx(-0.3), 0.0)
    assert found.interval[0] < -0.2
    assert found.interval[1] < 0.1
    pool = GateEvidence.of(Differences.of(new[order], ONES), cluster, pool=300, **asked)
    assert (pool.verdict, pool.interval) == (None, (pytest.approx(-0.3), 0.0))
    few = GateEvidence.of(
        Differences.of(np.where(cluster < 3, np.nan, 1.0), ONES), cluster, pool=300, **asked
    )
    assert few.verdict is Verdict.NOT_WORSE
    none = GateEvidence.of(Differences.of(np.full(300, np.nan), ONES), cluster, pool=300, **asked)
    assert (none.verdict, none.items_needed()) == (None, None)


@pytest.mark.parametrize(("n", "drop", "margin"), [(10, 0.1, 0.1), (3, 0.1, 0.1), (30, 0.3, 0.3)])
def test_exactly_the_margin_is_worse_whatever_rounding_says(n: int, drop: float, margin: float) -> None:
    old = np.full(n, 0.9)
    found = gate(baseline(old), recorded(old - drop), margin=margin, these_items=True)
    assert found.verdict is Verdict.WORSE


def test_two_runs_of_one_model_are_told_apart() -> None:
    declared = Declared.of(["old"], [f"q{i}" for i in range(300)], ["match"], notes=["3 of old were cached."])
    found = gate(baseline(ONES), recorded(ZEROS, model="old", declared=declared), margin=0.1)
    assert found.sentence == "Worse: old (candidate) is worse than old (baseline), with 95% confidence."
    assert found.notes == ("Candidate: 3 of old were cached.",)


def test_scores_of_another_kind_are_refused() -> None:
    wrong = "the scores of the candidate are 'f1', and 'match' is to be compared"
    with pytest.raises(InvalidInputError, match=wrong):
        gate(baseline(ONES), recorded(ONES, raters=("f1",)), margin=0.1)
    with pytest.raises(InvalidInputError, match="'zzz' is to be compared"):
        gate(baseline(ONES), recorded(ONES), margin=0.1, score="zzz")
    assert gate(baseline(ONES, raters=("rater",)), recorded(ONES), margin=0.1).exit_code == 0  # unnamed


def test_means_of_judges_in_turn_may_leave_the_range() -> None:
    table = np.full((1, 40, 2, 1), np.nan)
    table[0, ::2, 0, 0], table[0, 1::2, 1, 0] = 1.0, 0.0
    found = baseline(table, raters=("ann", "bob"))
    kept = found.within((0.0, 1.0))
    assert all(0.0 <= value <= 1.0 for value in kept.scores.values())
    with pytest.raises(InvalidInputError, match=r"has the score 1, outside of 0 to 0\.5"):
        found.within((0.0, 0.5))


def test_levels_are_said_as_they_are() -> None:
    assert "97.5% confidence" in gate(baseline(ONES), recorded(ONES), margin=0.1, delta=0.025).sentence
    with pytest.raises(InvalidInputError, match=r"a coin has 0\.5"):
        GateConfig.of(baseline=__file__, margin=0.1, level=0.05)


def test_the_baseline_is_not_in_the_budget(tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("item,score\na,1\n")
    config = GateConfig.of(baseline=str(tmp_path / "old.csv"), margin=0.1)
    assert config.resolve_budget(120, 2).amount == 240  # so that what failed can be asked again
    assert replace(config, budget="1x").resolve_budget(120, 2).amount == 120
    half = GateConfig.of(baseline=str(tmp_path / "old.csv"), margin=0.1, budget="50%")
    assert half.resolve_budget(120, 2).amount == 60


def test_a_saved_baseline_keeps_the_name_of_its_clusters(tmp_path: Path) -> None:
    labels = tuple(str(i // 3) for i in range(12))
    kept = baseline(ONES[:12], categories=labels)
    path = tmp_path / "saved.csv"
    path.write_text(as_csv(kept, "document"))
    assert dict(read_baseline(path, cluster="document").clusters) == dict(kept.clusters)


def test_one_cluster_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="all items belong to one cluster"):
        gate(baseline(ONES, categories=("x",) * 300), recorded(ONES), margin=0.1, cluster="document")


def test_hints_say_what_would_settle_it() -> None:
    asked: dict[str, Any] = {"margin": 0.1, "alpha": 0.05, "largest": 1, "span": 1.0, "pool": 40}
    found = GateEvidence.of(Differences.of(ONES[:10], ONES[:10]), np.arange(10), **asked)
    told = str(Gate("old", "new", "match", 0.1, found, 40, these_items=True))
    assert "The 30 items that are left settle it: raise --budget." in told
    failing = np.where(np.arange(40) < 9, np.nan, 1.0)
    failed = GateEvidence.of(Differences.of(failing, ONES[:40]), np.arange(40), **asked)
    told = str(Gate("old", "new", "match", 0.1, failed, 40, these_items=True))
    assert told.startswith(
        "Undecided: 9 items failed; with them the difference is anything from -0.23 to +0.00."
    )
    assert "Evaluate what is missing; or say what it counts as" in told
    lost = Gate("old", "new", "match", 0.1, found, 40, given_up="it could not be loaded")
    assert (lost.exit_code, lost.sentence) == (4, "Not evaluated: new was given up (it could not be loaded).")


def test_a_format_without_categories_says_so(tmp_path: Path) -> None:
    recorded(ONES).save(tmp_path / "scores.npz")
    assert plugins().open_scores(tmp_path / "scores.npz", category="category").categories is None


@pytest.mark.parametrize("command", ["gate", "report", "plan", "doctor"])
def test_lower_is_better_is_said_of_the_score_that_decides(tmp_path: Path, command: str) -> None:
    """Another of the same log, of which more is better, does not contradict it."""
    for model, errors in (("old", 3), ("new", 30)):
        rows = [f"q{i},{model},wer,{int(i < errors)},\nq{i},{model},acc,1,higher\n" for i in range(100)]
        (tmp_path / f"{model}.csv").write_text("item,model,metric,score,better\n" + "".join(rows))
    old, new = str(tmp_path / "old.csv"), str(tmp_path / "new.csv")
    asked = {
        "gate": ["--baseline", old, "--candidate", new, "--margin", "0.1", "--score", "wer"],
        "report": [old, new, "--rater", "wer"],
        "plan": [new, "--half-width", "0.1", "--rater", "wer"],
        "doctor": [old, new, "--rater", "wer"],
    }
    result = CliRunner().invoke(cli, [command, *asked[command], "--lower-is-better"])
    assert result.exit_code == (1 if command == "gate" else 0), result.output
    assert "Lower is better" in result.output or command in ("plan", "doctor")


def test_a_baseline_by_the_hosts_name_of_the_score_is_turned_alone(tmp_path: Path) -> None:
    path = tmp_path / "old.csv"
    path.write_text(
        "item,metric,score,better\n" + "".join(f"q{i},wer,{i},\nq{i},acc,1,higher\n" for i in "01")
    )
    found = read_baseline(path, series=["wer,none", "wer"], lower_is_better=True)
    assert (found.score, found.lower_is_better) == ("wer", True)
