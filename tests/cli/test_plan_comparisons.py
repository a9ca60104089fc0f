"""``evalbudget plan --race`` and ``--audit``: what proves which model is best, from a pilot."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.claims import binomial_claim, pinned, replications
from tests.cli.commands import typed

from evalbudget.audits.backtest._plan import plan_audit
from evalbudget.backtest import RecordedScores, backtest_race
from evalbudget.errors import InvalidInferenceError, InvalidInputError, UnknownNameError
from evalbudget.races.backtest._plan import plan_race
from evalbudget.recorded._declared import Declared
from evalbudget.replay._worlds import WORLDS, median_and_most, worlds


def answers(skills: list[float], items: int, seed: int) -> RecordedScores:
    """Right or wrong, items of different difficulty."""
    rng = np.random.default_rng(seed)
    ease = rng.normal(0.0, 0.15, size=items)
    right = rng.random((len(skills), items)) < np.clip(np.array(skills)[:, None] + ease, 0.02, 0.98)
    names = tuple(f"m{i}" for i in range(len(skills)))
    return RecordedScores(
        right.astype(float)[:, :, None, None], names, tuple(map(str, range(items))), ("judge",)
    )


def labelled(items: int, seed: int) -> RecordedScores:
    """Two systems, a judge that agrees in nine of ten answers, and the labels."""
    human = answers([0.8, 0.5], items, seed).scores[:, :, 0, :]
    agrees = np.random.default_rng(seed + 1).random(human.shape) < 0.9
    judge = np.where(agrees, human, 1.0 - human)[:, :, None, :]
    return RecordedScores(judge, ("a", "b"), tuple(map(str, range(items))), ("judge",), reference=human)


def test_worlds_are_drawn_from_items_that_all_answered() -> None:
    pilot = answers([0.5, 0.9], 40, 3)
    pilot.scores[1, :10] = np.nan
    kept = {tuple(pilot.scores[:, i, 0, 0]) for i in range(10, 40)}
    found = list(worlds(pilot, 70, n_worlds=3, seed=5))
    assert [len(world.items) for world in found] == [70] * 3
    assert all({tuple(world.scores[:, i, 0, 0]) for i in range(70)} <= kept for world in found)
    assert not np.array_equal(found[0].scores, found[1].scores)
    again = next(iter(worlds(pilot, 70, n_worlds=3, seed=5)))
    assert np.array_equal(found[0].scores, again.scores)
    # of 40 items, a resampled pilot has about 25 different ones, and a benchmark drawn from it no others
    several = RecordedScores(
        np.arange(40.0).reshape(1, 40, 1, 1), ("a",), tuple(map(str, range(40))), ("judge",)
    )
    seen = [np.unique(world.scores).size for world in worlds(several, 4000, n_worlds=20)]
    assert 22 < np.mean(seen) < 28
    with pytest.raises(InvalidInferenceError, match="10 items have a score of every model"):
        next(worlds(answers([0.5, 0.9], 10, 3), 70))
    with pytest.raises(InvalidInputError, match="ask for one or more"):
        next(worlds(pilot, 0))
    assert median_and_most([5.0, 1.2, 2.1, 9.5]) == (5, 10)


def test_a_race_is_planned_with_everything_beside_it() -> None:
    pilot = answers([0.9, 0.5, 0.5], 60, 1)
    everything, race, lucb = plan_race(pilot, ["race", "lucb"], n_items=300)
    assert (everything.evaluations, everything.evaluations_most) == (900, 900)
    assert 0 < race.evaluations <= race.evaluations_most < 900
    assert (race.proved, race.best) == (1.0, 1.0)
    assert race.evaluations < lucb.evaluations <= 900
    with pytest.raises(InvalidInputError, match="ends without a proof"):
        plan_race(pilot, ["race", "successive-rejects"])
    smaller = plan_race(pilot, n_items=40, n_worlds=5)
    assert smaller[0].evaluations == 120
    with pytest.raises(UnknownNameError, match="race"):
        plan_race(pilot, ["rac"])


@pytest.mark.claim
def test_the_larger_count_is_mostly_enough() -> None:
    """Pilots and benchmarks are drawn from the same population, with models of random skill."""
    trials, short, median_short = replications(3, 150), 0, 0
    for seed in range(trials):
        skills = np.random.default_rng((seed, 1)).uniform(0.3, 0.9, size=5).tolist()
        both = answers(skills, 80 + 200, seed)
        pilot, later = (
            RecordedScores(both.scores[:, part], both.models, both.items[part], both.raters)
            for part in (slice(80), slice(80, None))
        )
        plan = plan_race(pilot, n_items=200, n_worlds=replications(10, WORLDS), seed=seed)[1]
        needed = backtest_race(
            later,
            ["race"],
            ["100%"],
            [seed],
            intervals=False,
            sampler_options={"race": {"until_proved": True}},
            workers=1,
        ).rows[0]
        short += plan.evaluations_most < needed.evaluations
        median_short += plan.evaluations < needed.evaluations
    pinned(short, 0)
    pinned(median_short, 1)
    binomial_claim(short, trials, at_most=0.15)


def test_an_audit_of_errors_is_planned_as_that_of_their_opposites() -> None:
    human = answers([0.9, 0.4, 0.35], 60, 2).scores  # of two that are close, none is the best
    names = ("a", "b", "c")
    right = RecordedScores(human, names, tuple(map(str, range(60))), ("judge",), reference=human[:, :, 0])
    assert right.reference is not None
    errors = replace(
        right,
        scores=1.0 - right.scores,
        reference=1.0 - right.reference,
        declared=Declared.of(right.models, right.items, right.raters, lower_is_better={"judge": True}),
    )
    assert plan_audit(errors, n_worlds=4) == plan_audit(right, n_worlds=4)


def test_an_audit_is_planned_with_everything_beside_it() -> None:
    everything, audit, human = plan_audit(labelled(80, 2), n_items=400, n_worlds=8)
    assert (everything.labels, everything.cost) == (800, 16_000)
    assert 0 < audit.labels <= audit.labels_most < human.labels_most <= 800
    assert audit.cost <= audit.cost_most
    assert audit.decided == audit.right == 1.0
    small = labelled(30, 2)
    open_ended = plan_audit(small, ["pp-lucb"], n_worlds=4)[1]
    assert (open_ended.decided, open_ended.labels) == (0.0, 60)  # no verdict: everything is left to label
    dear = plan_audit(labelled(80, 2), ["human-only"], n_items=400, n_worlds=8, label_price=1.0)[1]
    assert dear.cost == dear.labels
    with pytest.raises(InvalidInputError, match="no 'reference'"):
        plan_audit(answers([0.9, 0.5], 60, 1))


def run(*arguments: Any) -> tuple[int, str]:
    result = typed("plan")(*arguments)
    return result.exit_code, " ".join((result.output + str(result.exception or "")).split())


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for planned in (plan_race, plan_audit):
        few = partial(planned, n_worlds=4)
        monkeypatch.setattr(f"evalbudget.plans._contests.{planned.__name__}", few)
    pilot, audited = tmp_path / "pilot.npz", tmp_path / "labelled.npz"
    answers([0.9, 0.4], 60, 1).save(pilot)
    labelled(80, 2).save(audited)
    code, text = run(pilot, "--race", "--max-items", 200, "--sampler", "race,lucb")
    assert (code, "400 400 0% 100%" in text, "lucb" in text) == (0, True, True), text
    code, text = run(audited, "--audit", "--label-price", 50)
    assert (code, "160 160 8,000 8,000" in text) == (0, True), text
    code, text = run(pilot, "--race", "--json", tmp_path / "plan.json")
    assert code == 0
    plans = json.loads((tmp_path / "plan.json").read_text())["plans"]
    assert [plan["sampler"] for plan in plans] == ["every model, every item", "race"]
    for given, message in [
        ([pilot, "--race", "--audit"], "give one of"),
        ([pilot, "--race", "--model", "m1"], "--model is not for --race"),
        ([pilot, "--audit"], "no 'reference'"),
        ([pilot, "--race", "--score-range", "2..3"], "outside 2 to 3"),
        ([pilot, "--race", "--rater", "jugde"], "judge"),
    ]:
        code, text = run(*given)
        assert (code != 0, message in text) == (True, True), text
