from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from evalbudget.audits.policies import HumanOnly
from evalbudget.backtest import RecordedScores, backtest_audits
from evalbudget.cli.main import cli
from evalbudget.errors import InvalidInputError, UnknownNameError


@pytest.fixture(scope="module")
def labelled() -> RecordedScores:
    """3 systems x 300 items on 1..5: the judge prefers the second system, humans the first."""
    rng = np.random.default_rng(0)
    human = np.clip(np.array([4.0, 3.2, 2.4])[:, None] + 0.7 * rng.standard_normal((3, 300)), 1, 5)
    judge = np.clip(human + np.array([-0.8, 0.8, 0.0])[:, None] + 0.3 * rng.standard_normal((3, 300)), 1, 5)
    reference = human[..., None] + np.array([-0.0, 0.0])
    return RecordedScores(
        judge[:, :, None, None], ("a", "b", "c"), tuple(map(str, range(300))), ("j",), reference=reference
    )


def test_audits_find_what_the_judge_alone_misses(labelled: RecordedScores) -> None:
    found = backtest_audits(labelled, seeds=3, score_range=(1, 5), allocators=["uniform", "oracle"])
    assert [(row.sampler, row.allocator) for row in found.rows] == [
        ("audit-eprocess", "-"),
        ("pp-lucb", "uniform"),
        ("pp-lucb", "oracle"),
        ("human-only", "-"),
    ]
    ours = found.rows[0]
    assert (ours.correct, ours.decided, ours.wrong) == (1.0, 1.0, 0.0)
    assert ours.verdict_counts == {"best": 3}
    assert ours.audits < 0.3 * 900
    assert ours.cost == pytest.approx(ours.pulls + 20 * ours.audits)
    assert (found.best, found.judge_best) == ("a", "b")
    assert "names b: " in str(found.table()).replace("\n", " ")
    keys = {"sampler", "allocator", "correct", "decided", "pulls", "audits", "cost", "verdict_counts"}
    assert keys <= set(json.loads(found.to_json())[0])


def test_same_seeds_give_the_same_rows(labelled: RecordedScores) -> None:
    one, other = (
        backtest_audits(labelled, ["audit-eprocess"], seeds=2, score_range=(1, 5)) for _ in range(2)
    )
    assert one == other


def test_labels_that_are_missing_from_the_reference_cost_and_prove_nothing(labelled: RecordedScores) -> None:
    assert labelled.reference is not None
    reference = labelled.reference.copy()
    reference[0, ::2] = np.nan
    found = backtest_audits(
        replace(labelled, reference=reference), ["audit-eprocess"], seeds=1, score_range=(1, 5)
    )
    assert found.rows[0].wrong == 0.0


def test_all_attempts_at_a_label_that_is_missing_are_paid_for_and_none_is_a_label(
    labelled: RecordedScores,
) -> None:
    assert labelled.reference is not None
    found = {}
    for holes in (False, True):
        reference = labelled.reference.copy()
        if holes:
            reference[:, 150:] = np.nan
        one = replace(labelled, reference=reference)
        options = {"human-only": {"labels_per_batch": 900, "pilot": 900, "second_pass": False}}
        (found[holes],) = backtest_audits(
            one, ["human-only"], seeds=1, score_range=(1, 5), prices=(1.0, 20.0), sampler_options=options
        ).rows
    assert (found[False].audits, found[False].cost) == (900, 20 * 900)
    assert (found[True].audits, found[True].cost) == (450, 20 * (450 + 3 * 450))


@pytest.mark.parametrize("name", ["audit-eprocess", "pp-lucb", "human-only"])
def test_the_most_labels_allowed_are_never_exceeded(labelled: RecordedScores, name: str) -> None:
    for most in (1, 5, 33):
        options = {name: {"max_labels": most}}
        found = backtest_audits(labelled, [name], seeds=3, score_range=(1, 5), sampler_options=options)
        assert found.rows[0].audits <= most


def test_a_policy_of_a_third_party_is_replayed_like_ours(labelled: RecordedScores) -> None:
    class Everything(HumanOnly):
        name = "everything"

    found = backtest_audits(labelled, [Everything, "human-only"], seeds=2, score_range=(1, 5))
    mine, ours = found.rows
    assert mine.sampler == "everything"
    assert replace(mine, sampler="", judge_correct=0.0) == replace(ours, sampler="", judge_correct=0.0)


def test_a_policy_that_wants_nothing_and_goes_on_is_told_so(labelled: RecordedScores) -> None:
    class Stuck(HumanOnly):
        name = "stuck"

        @property
        def wanted(self) -> tuple[int, ...]:
            """Nothing."""
            return ()

    with pytest.raises(InvalidInputError, match="'stuck' goes on and wants nothing"):
        backtest_audits(labelled, [Stuck], seeds=1, score_range=(1, 5))


def test_settings_that_a_policy_does_not_have_or_that_the_replay_sets_are_refused(
    labelled: RecordedScores,
) -> None:
    for name, options, message in (
        ("pp-lucb", {"pilot": 3}, "sampler 'pp-lucb' has no option 'pilot'"),
        ("audit-eprocess", {"pilto": 3}, "Did you mean 'pilot'"),
        ("audit-eprocess", {"seed": 3}, "which the backtest sets itself"),
        ("audit-eprocess", {"n_items": 3}, "which the backtest sets itself"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            backtest_audits(labelled, [name], score_range=(1, 5), sampler_options={name: options})
    with pytest.raises(InvalidInputError, match="listed 2 times"):
        backtest_audits(labelled, ["human-only"] * 2, score_range=(1, 5))


def test_bad_input_says_what_to_do(labelled: RecordedScores) -> None:
    with pytest.raises(InvalidInputError, match="declare the score range"):
        backtest_audits(labelled)
    with pytest.raises(InvalidInputError, match="declare the judge range"):
        backtest_audits(labelled, score_range=(1, 5), judge_range=(2, 5))
    with pytest.raises(InvalidInputError, match="'reference'"):
        backtest_audits(replace(labelled, reference=None))
    with pytest.raises(UnknownNameError, match="Did you mean 'neyman'"):
        backtest_audits(labelled, ["pp-lucb"], ["neymann"], score_range=(1, 5))
    with pytest.raises(UnknownNameError, match="audit-eprocess"):
        backtest_audits(labelled, ["audit-process"], score_range=(1, 5))
    assert labelled.reference is not None
    single = replace(labelled, scores=labelled.scores[:1], models=("a",), reference=labelled.reference[:1])
    with pytest.raises(InvalidInputError, match="one system"):
        backtest_audits(single, score_range=(1, 5))


def test_the_command_line(labelled: RecordedScores, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("audits") / "labelled.npz"
    labelled.save(path)
    command = [
        "backtest",
        "audits",
        str(path),
        "--sampler",
        "pp-lucb,audit-eprocess,human-only",
        "--seeds",
        "2",
    ]
    audits = [*command, "--score-range", "1..5", "--label-price", "20", "--allocator", "uniform,neyman"]
    shown = CliRunner().invoke(cli, audits)
    assert shown.exit_code == 0, shown.output
    assert "The judge alone" in shown.output.replace("\n", "")
    assert max(map(len, shown.output.splitlines())) <= 80
    rows = json.loads(
        CliRunner().invoke(cli, [*audits, "--delta", ".1", "--max-labels", "30", "--json", "-"]).output
    )
    assert [row["allocator"] for row in rows] == ["uniform", "neyman", "-", "-"]
    assert all(row["audits"] <= 30 for row in rows)
    for extra, message in (
        (["--budget", "5x"], "No such option"),
        (["--prices", "1,20"], "Did you mean '--label-price'?"),
        (["--margin", "2"], "margin"),
    ):
        refused = CliRunner().invoke(cli, [*command, "--score-range", "1..5", *extra])
        assert refused.exit_code == 2
        assert message in refused.output


def test_a_system_without_a_label_or_a_score_is_refused(labelled: RecordedScores) -> None:
    assert labelled.reference is not None
    reference, judge = labelled.reference.copy(), labelled.scores.copy()
    reference[0] = np.nan
    judge[1] = np.nan
    with pytest.raises(InvalidInputError, match="'a' has no label"):
        backtest_audits(replace(labelled, reference=reference), seeds=1, score_range=(1, 5))
    with pytest.raises(InvalidInputError, match="'b' has no score"):
        backtest_audits(replace(labelled, scores=judge), seeds=1, score_range=(1, 5))
