"""Every check finds what it is for, with numbers known by hand, and is silent where there is nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.claims import binomial_claim, pinned, replications

from evalbudget.backtest import Declared, RecordedScores
from evalbudget.doctor import CHECKS, Check, Finding, Kind, diagnose
from evalbudget.doctor.checks._drift import Drift
from evalbudget.doctor.checks._gap import Gap
from evalbudget.doctor.checks._history import History
from evalbudget.doctor.checks._items_in_common import ItemsInCommon
from evalbudget.doctor.checks._judges import Judges
from evalbudget.doctor.checks._repeats import Repeats
from evalbudget.doctor.checks._savings import AuditSaving, RaceSaving, RepeatSaving, RotationSaving
from evalbudget.doctor.checks._sources import MissingScores, SourcesCheck
from evalbudget.errors import InvalidInferenceError
from evalbudget.recorded._direction import with_lower_better
from evalbudget.recorded._how_bought import HowBought
from evalbudget.sampler import Allocation


def recorded(scores: Any, **more: Any) -> RecordedScores:
    table = np.asarray(scores, dtype=float)
    models, items, raters, _ = table.shape
    return RecordedScores(
        table,
        tuple(f"m{i}" for i in range(models)),
        tuple(f"q{i}" for i in range(items)),
        tuple(f"judge {i}" for i in range(raters)),
        **more,
    )


def adaptive(scores: Any) -> RecordedScores:
    found = recorded(scores)
    return replace(found, purchases=(HowBought(Allocation.ADAPTIVE, 1, None, None),) * len(found.models))


def by(check: type[Check], scores: RecordedScores) -> tuple[Finding, ...]:
    return diagnose(scores, [check]).findings


def one(check: type[Check], scores: RecordedScores) -> Finding:
    (found,) = by(check, scores)
    return found


def passes(rng: np.random.Generator, chances: Sequence[float], items: int, repeats: int = 1) -> Any:
    return np.array([rng.random((items, 1, repeats)) < chance for chance in chances], dtype=float)


def test_models_that_miss_items() -> None:
    rng = np.random.default_rng(0)
    scores = passes(rng, [0.5, 0.5], 100)
    assert by(ItemsInCommon, recorded(scores)) == ()
    scores[1, :20] = np.nan
    found = one(ItemsInCommon, recorded(scores))
    assert (found.kind, found.numbers) == (Kind.PROBLEM, {"common": 80, "items": 100, "fewest": 80})
    assert "m1 has 80" in found.text
    assert one(ItemsInCommon, adaptive(scores)).kind is Kind.BEWARE
    scores[1, 5:20] = 1.0
    assert one(ItemsInCommon, recorded(scores)).kind is Kind.BEWARE
    assert one(ItemsInCommon, recorded(scores[:1, :7])).title == "few items"


def test_a_lead_that_is_proved_and_one_that_is_not() -> None:
    rng = np.random.default_rng(1)
    near = one(Gap, recorded(passes(rng, [0.5, 0.52], 200)))
    assert near.kind is Kind.PROBLEM
    assert near.numbers["low"] < 0.0 < near.numbers["lead"] < near.numbers["high"]
    far = one(Gap, recorded(passes(rng, [0.2, 0.9, 0.5], 200)))
    assert far.kind is Kind.FINE
    assert far.text.startswith("m1 is 0.")
    assert (far.numbers["proved"], far.numbers["pairs"]) == (2, 2)
    assert by(Gap, recorded(passes(rng, [0.5], 200))) == ()


def test_items_needed_would_prove_the_lead() -> None:
    scores = np.zeros((2, 400, 1, 1))
    scores[0, :30] = scores[1, 30:50] = 1.0
    found = one(Gap, recorded(scores))
    (said,) = [float(word.replace(",", "")) for word in found.text.split("About ")[1].split()[:1]]
    assert said == pytest.approx(found.numbers["items_needed"], rel=0.05)
    copies = round(found.numbers["items_needed"] / 400 * 1.3)
    many = recorded(np.tile(scores, (1, copies, 1, 1)))
    assert one(Gap, many).kind is Kind.FINE


def test_identical_repeats() -> None:
    scores = np.repeat(passes(np.random.default_rng(2), [0.5], 40), 3, axis=3)
    found = one(Repeats, recorded(scores))
    assert (found.kind, found.title) == (Kind.PROBLEM, "repeats are identical")
    assert "80 of 120 scores told nothing" in found.text
    assert by(Repeats, recorded(scores[..., :1])) == ()


def test_repeats_where_items_would_tell_more() -> None:
    rng = np.random.default_rng(3)
    items = rng.normal(0.0, 1.0, (1, 4000, 1, 1))
    found = one(Repeats, recorded(items + rng.normal(0.0, 0.5, (1, 4000, 1, 4))))
    assert found.kind is Kind.SAVING
    assert found.numbers["stderr"] == pytest.approx(np.sqrt((1.0 + 0.25 / 4) / 4000), rel=0.03)
    assert found.numbers["stderr_once"] == pytest.approx(np.sqrt(1.25 / 4000), rel=0.03)
    assert found.numbers["stderr_items"] == pytest.approx(np.sqrt(1.25 / 16000), rel=0.03)
    assert found.numbers["share_of_items"] == pytest.approx(1.0 / 1.0625, abs=0.02)
    noise = one(Repeats, recorded(rng.normal(0.0, 1.0, (1, 4000, 1, 4))))
    assert noise.kind is Kind.FINE
    assert by(Repeats, adaptive(rng.normal(0.0, 1.0, (1, 40, 1, 4)))) == ()


def test_one_judge_and_several() -> None:
    rng = np.random.default_rng(4)
    assert by(Judges, recorded(passes(rng, [0.5], 50))) == ()  # pass or fail: no judge to be seen
    assert one(Judges, recorded(rng.normal(5.0, 1.0, (1, 50, 1, 1)))).title == "one judge"
    items = rng.normal(5.0, 1.0, (1, 300, 1, 1))
    fair = by(Judges, recorded(items + rng.normal(0.0, 0.5, (1, 300, 4, 1))))
    assert [found.kind for found in fair] == [Kind.FINE, Kind.FINE]
    strict = items + rng.normal(0.0, 0.5, (1, 300, 4, 1)) - np.array([0.0, 0.0, 0.0, 1.0])[:, None]
    found, votes = by(Judges, recorded(strict))
    assert found.kind is Kind.BEWARE
    assert "judge 3, by -0.7" in found.text
    assert votes.numbers["votes"] == pytest.approx(4.0, abs=0.5)
    alike = items + np.repeat(rng.normal(0.0, 0.5, (1, 300, 2, 1)), [3, 1], axis=2)
    assert by(Judges, recorded(alike))[0].title == "4 judges are at most 2.0 independent votes"
    *_, same = by(Judges, recorded(np.repeat(items, 3, axis=2)))
    assert same.text == "No judge of 3 differs from the panel's mean beyond chance."


def test_a_judge_that_drifts() -> None:
    rng = np.random.default_rng(5)
    steady, moving = rng.normal(5.0, 1.0, (2, 1, 200, 1, 4))
    moving = moving + 0.2 * np.arange(4)
    found = by(Drift, recorded(np.concatenate([steady, moving], axis=2)))
    assert [each.title for each in found] == ["judge 1 drifts"]
    low, moved, high = (found[0].numbers[name] for name in ("low", "moved", "high"))
    assert low < 0.6 < high
    assert moved == pytest.approx((low + high) / 2) == pytest.approx(0.6, abs=0.2)
    # slope's error from items' sums: sd of a slope on 4 epochs is 1 / sqrt(5 * 200), times 3 epochs and z
    assert high - low == pytest.approx(2 * 3 * 2.85 / np.sqrt(1000.0), rel=0.2)
    pairs = one(Drift, recorded(moving[..., [0, 3]]))
    assert pairs.numbers["moved"] == pytest.approx(0.6, abs=0.2)
    assert one(Drift, recorded(steady)).kind is Kind.FINE
    steps = np.tile(np.arange(3.0), (1, 30, 1, 1))
    assert one(Drift, recorded(steps)).numbers == {"moved": 2.0, "low": 2.0, "high": 2.0}
    assert one(Drift, recorded(np.ones_like(steps))).kind is Kind.FINE
    later = np.array([3, 2, 1, 0]) * np.ones(steady.shape, dtype=int)
    assert by(Drift, recorded(moving, epochs=later))[0].numbers["moved"] == pytest.approx(-0.6, abs=0.2)
    assert by(Drift, recorded(steady[..., :1])) == ()
    assert by(Drift, adaptive(moving)) == ()


@pytest.mark.claim
def test_what_does_not_drift_is_seldom_said_to() -> None:
    runs = replications(90, 4000)
    wrong = 0
    for seed in range(runs):
        rng = np.random.default_rng([7, seed])
        scores = rng.random((1, 60, 1, 1)) + rng.integers(1, 4, (1, 60, 3, 3))  # ratings, items differ
        wrong += any(found.kind is Kind.PROBLEM for found in by(Drift, recorded(scores)))
    binomial_claim(wrong, runs, at_most=0.01)
    pinned(wrong, 1)


def test_history_that_helps_and_models_that_it_would_mislead() -> None:
    rng = np.random.default_rng(6)
    hard = rng.random(400)
    alike = np.array([rng.random(400) < hard for _ in range(8)], dtype=float)
    found = one(History, recorded(alike[:, :, None, None]))
    assert found.kind is Kind.SAVING
    r = found.numbers["correlation"]
    assert found.numbers["saved"] == pytest.approx(r * r)
    assert 0.4 < r < 0.7
    against = alike.copy()
    against[3] = rng.random(400) < 1.0 - hard
    warned, _ = by(History, recorded(against[:, :, None, None]))
    assert warned.kind is Kind.BEWARE
    assert "m3" in warned.text
    assert one(History, recorded(passes(rng, [0.5] * 6, 400))).title == "history says little"
    assert by(History, recorded(alike[:4, :, None, None])) == ()


def test_savings_of_repeats_rotation_races_and_audits() -> None:
    rng = np.random.default_rng(8)
    spread = np.where(np.arange(60) < 6, 3.0, 0.3)[None, :, None, None]
    repeats = one(RepeatSaving, recorded(5.0 + spread * rng.normal(0.0, 1.0, (1, 60, 1, 20))))
    assert repeats.kind is Kind.SAVING
    assert 0.2 < repeats.numbers["ratio"] < 0.9
    judged = rng.normal(5.0, 1.0, (1, 400, 1, 1)) + rng.normal(0.0, 0.5, (1, 400, 5, 1))
    turns = one(RotationSaving, recorded(judged))
    assert turns.numbers["stderr_all"] == pytest.approx(np.sqrt(1.05 / 400), rel=0.15)
    assert turns.numbers["stderr_in_turns"] == pytest.approx(np.sqrt(1.25 / 400), rel=0.15)
    assert (turns.numbers["calls"], turns.numbers["calls_in_turns"]) == (2000, 400)
    race = one(RaceSaving, recorded(passes(rng, [0.9, 0.3, 0.3, 0.3], 200)))
    assert race.kind is Kind.SAVING
    assert race.numbers["evaluations"] < 0.5 * race.numbers["grid"]
    tied = one(RaceSaving, recorded(np.tile(passes(rng, [0.5], 100), (3, 1, 1, 1))))
    assert tied.kind is Kind.FINE
    truth = passes(rng, [0.8, 0.4], 400)
    judge = np.where(rng.random(truth.shape) < 0.9, truth, 1.0 - truth)
    audit = one(AuditSaving, recorded(judge, reference=truth[:, :, 0]))
    assert audit.kind is Kind.SAVING
    assert audit.numbers["labels"] < 0.9 * audit.numbers["all"]
    assert audit.numbers["all"] == 400
    assert "2 of these models on 200 of the items, drawn at random" in audit.text


def test_metrics_are_examined_one_by_one() -> None:
    rng = np.random.default_rng(9)
    scores = np.concatenate([passes(rng, [0.5, 0.52], 200), passes(rng, [0.1, 0.9], 200)], axis=2)
    found = diagnose(recorded(scores, one_measure=False), CHECKS)
    gaps = {each.score: each.kind for each in found.findings if each.check == "gap"}
    assert gaps == {"judge 0": Kind.PROBLEM, "judge 1": Kind.FINE}
    assert [each.kind for each in found.findings] == sorted(
        (each.kind for each in found.findings), key=list(Kind).index
    )
    assert found.sentence.startswith("1 problem")
    assert "too few items for the lead (judge 0)" in str(found)
    both = recorded(scores, one_measure=False)
    told = Declared.of(both.models, both.items, both.raters, notes=["Cut off."])
    noted = diagnose(replace(both, declared=told), [SourcesCheck])
    assert [each.score for each in noted.findings if each.text == "Cut off."] == [""]


def test_a_model_without_a_score_that_may_count_leaves_a_check_unsaid() -> None:
    rng = np.random.default_rng(10)
    scores = recorded(passes(rng, [0.5, 0.6], 60))
    none = replace(scores, purchases=(HowBought(Allocation.ADAPTIVE, 0, None, None),) * 2)
    found = diagnose(none, [Gap])
    assert found.findings == ()
    assert found.silent[0][0] == "gap"
    assert "bought because of earlier scores" in str(found).replace("\n", " ").replace("  ", "")


def test_the_leader_by_means_may_be_behind_on_shared_items() -> None:
    scores = np.full((2, 400, 1, 1), np.nan)
    scores[0, :200] = (np.arange(200) < 170)[:, None, None]  # only the easy ones
    scores[1] = (np.arange(400) < 200)[:, None, None]
    found = one(Gap, recorded(scores))
    assert found.kind is Kind.PROBLEM
    assert found.title == "the ranking by means and the paired comparison disagree"
    assert "m0 is 0.150 behind m1 on the 200 items of both" in found.text


def test_the_second_is_not_the_only_rival() -> None:
    scores = np.zeros((3, 200, 1, 1))
    scores[0, :160] = scores[1, :140] = 1.0  # m1's failures hold m0's
    scores[2, 62:] = 1.0  # a little worse, and elsewhere
    found = one(Gap, recorded(scores))
    assert found.kind is Kind.PROBLEM
    assert "ahead of m2" in found.text


@pytest.mark.parametrize(
    "scores",
    [
        np.full((3, 40, 1, 1), 5.0),
        np.full((3, 40, 3, 2), 5.0),
        np.ones((3, 1, 1, 2)),
        np.random.default_rng(0).random((1, 1, 1, 1)),
        np.where(np.arange(40)[None, :, None, None] % 2 == np.arange(2)[:, None, None, None], 1.0, np.nan),
    ],
    ids=["constant", "constant panel", "one item", "one score", "no shared item"],
)
def test_whatever_the_scores_it_says_something(scores: Any) -> None:
    found = diagnose(recorded(scores), CHECKS)
    text = str(found)
    assert "nan" not in text
    assert "identical" not in text
    assert "differ from the panel" not in text


def test_repeats_that_agree_by_chance_are_no_problem() -> None:
    rng = np.random.default_rng(11)
    titles = [one_or_none(recorded(passes(rng, [0.99], 30, 2))) for _ in range(60)]
    assert "repeats are identical" not in titles


def one_or_none(scores: RecordedScores) -> str:
    return next((found.title for found in by(Repeats, scores)), "")


def test_judges_in_turns_that_save_nothing() -> None:
    rng = np.random.default_rng(12)
    found = one(RotationSaving, recorded(rng.normal(0.0, 1.0, (1, 400, 5, 1))))
    assert found.kind is Kind.FINE
    assert found.numbers["calls_as_exact"] == pytest.approx(1.0, abs=0.15)


def test_names_do_not_steer_the_terminal() -> None:
    scores = recorded(np.random.default_rng(0).random((2, 60, 1, 1)))
    named = replace(scores, models=("a\x1b[31m", "b"))
    assert "\x1b" not in str(diagnose(named, CHECKS))


def test_labels_show_the_judges_bias() -> None:
    rng = np.random.default_rng(5)
    labels = rng.integers(1, 6, (1, 60, 1)).astype(float)
    scores = (labels + rng.normal(0.8, 0.5, labels.shape))[..., None]
    found = one(Judges, recorded(scores, reference=labels))
    assert found.kind is Kind.BEWARE
    assert found.numbers["low"] < 0.8 < found.numbers["high"]
    assert "nothing here shows" not in found.text
    unknown = one(Judges, recorded(scores))
    assert "nothing here shows how large it is" in unknown.text


def test_judges_on_different_scales_are_refused() -> None:
    rng = np.random.default_rng(6)
    scores = np.concatenate(
        [rng.integers(0, 2, (1, 40, 1, 1)), rng.integers(1, 6, (1, 40, 1, 1))], axis=2
    ).astype(float)
    with pytest.raises(InvalidInferenceError, match="different scales"):
        diagnose(recorded(scores), CHECKS)


def test_missing_scores_and_what_is_unknown_are_said() -> None:
    scores = np.ones((2, 20, 1, 1))
    scores[:, ::2] = 0.0
    scores[1, 5:10] = np.nan
    missing = one(MissingScores, recorded(scores))
    assert "5 of m1 (up to 0.25 of its mean)" in missing.text
    assert missing.numbers == {"missing": 5.0}
    assert by(MissingScores, recorded(scores[:1])) == ()
    unknown = one(SourcesCheck, recorded(scores))
    assert "higher is taken for better" in unknown.text


def test_what_leads_is_ahead_where_lower_is_better() -> None:
    rng = np.random.default_rng(8)
    scores = recorded(passes(rng, [0.1, 0.3, 0.7], 200))
    mirrored = with_lower_better(scores)
    found = one(Gap, mirrored)
    assert found.title == "who is best is proved"
    assert found.text.startswith("m0 is 0.")
    assert "ahead of m1" in found.text
    assert found.numbers["low"] > 0.0
    assert one(Gap, replace(scores, scores=1.0 - scores.scores)).numbers == pytest.approx(found.numbers)
    raced = [one(RaceSaving, each) for each in (mirrored, replace(scores, scores=1.0 - scores.scores))]
    assert raced[0].text == raced[1].text


def test_a_lead_that_missing_answers_leave_open() -> None:
    rng = np.random.default_rng(9)
    table = passes(rng, [0.7, 0.65], 200)
    table[0, table[0, :, 0, 0] == 0.0] = np.nan
    assert one(Gap, recorded(table)).title == "answers are missing, which leaves the lead open"
