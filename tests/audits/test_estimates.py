from __future__ import annotations

import numpy as np
import pytest
from tests.claims import binomial_claim, pinned, replications

from evalbudget.audits.draw import Coin
from evalbudget.audits.estimates import AuditedScores, by_segment, ipw_mean, ppi_mean
from evalbudget.audits.samplers import AuditEProcess
from evalbudget.design import Cell, Design, Reading, Request
from evalbudget.errors import InvalidInferenceError
from evalbudget.journal import Event, Journal
from evalbudget.testing import play

NAN = float("nan")


def _draw(seed: int, n: int = 300) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.beta(4.0, 2.0, n)
    f = np.clip(y + 0.1 + 0.15 * rng.standard_normal(n), 0.0, 1.0)
    pi = np.where(f > 0.5, 0.2, 0.5)
    return f, np.where(rng.random(n) < pi, y, NAN), pi


def test_ipw_against_the_formula() -> None:
    f, y, pi = _draw(0, 9)
    terms = [a + ((b - a) / p if b == b else 0.0) for a, b, p in zip(f, y, pi, strict=True)]
    found = ipw_mean(f, y, pi)
    assert found.value == pytest.approx(sum(terms) / 9)
    assert found.standard_error == pytest.approx(np.std(terms, ddof=1) / 3)
    assert found.asymptotic


def test_power_1_is_ipw_and_0_the_labels_alone() -> None:
    f, y, pi = _draw(1)
    assert ppi_mean(f, y, pi, power=1.0).value == pytest.approx(ipw_mean(f, y, pi).value)
    assert ppi_mean(f, y, pi, power=0.0).value == pytest.approx(np.nansum(y / pi) / y.size)


def test_the_estimated_power_is_the_one_of_least_standard_error() -> None:
    f, y, pi = _draw(2)
    best = ppi_mean(f, y, pi)
    others = [ppi_mean(f, y, pi, power=p).standard_error for p in np.linspace(0, 1, 41)]
    assert best.standard_error <= min(others) + 1e-6


@pytest.mark.claim
@pytest.mark.parametrize(("power", "expected"), [(1.0, 10), (None, 10)])
def test_intervals_cover_and_means_are_unbiased(power: float | None, expected: int) -> None:
    trials, missed, errors = replications(200, 4000), 0, []
    for seed in range(trials):
        found = ppi_mean(*_draw(seed), power=power)
        interval = found.confidence_interval(0.95)
        missed += not interval.low <= 4.0 / 6.0 <= interval.high
        errors.append(found.value - 4.0 / 6.0)
    pinned(missed, expected)
    binomial_claim(missed, trials, at_most=0.06)
    assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(trials) + 2e-3


def test_segments_are_estimated_by_themselves() -> None:
    f, y, pi = _draw(3)
    segment = ["a", "b", "b"] * 100
    found = by_segment(f, y, pi, segment, power=1.0)
    assert list(found) == ["a", "b"]
    here = np.array(segment) == "b"
    assert found["b"].value == pytest.approx(ipw_mean(f[here], y[here], pi[here]).value)
    with pytest.raises(InvalidInferenceError, match="one per item"):
        by_segment(f, y, pi, ["a"])


@pytest.mark.parametrize(
    ("judge", "human", "propensity", "message"),
    [
        ([0.5, 0.5], [0.5, NAN], [0.0, 0.5], "no propensity"),
        ([0.5, 0.5], [0.5, NAN], [NAN, 0.5], "no propensity"),
        ([NAN, 0.5], [0.5, NAN], [0.5, 0.5], "no judge score"),
        ([0.5], [0.5, NAN], [0.5, 0.5], "one entry per item"),
    ],
)
def test_what_cannot_be_estimated_is_refused(
    judge: list[float], human: list[float], propensity: list[float], message: str
) -> None:
    with pytest.raises(InvalidInferenceError, match=message):
        ipw_mean(np.array(judge), np.array(human), np.array(propensity))


def test_scores_come_with_their_propensities_from_a_journal() -> None:
    design = Design(tuple(f"i{n}" for n in range(60)), ("a", "b"), ("judge", "human"))
    rng = np.random.default_rng(0)
    table = rng.random((2, 2, 60))
    sampler = AuditEProcess(design, pilot=20, batch=20)
    journal = play(sampler, 300, score=lambda c: float(table[c.rater, c.model, c.item]))
    scores = AuditedScores.of(journal, model=1)
    assert any(d.coin is Coin.NONE for d in sampler.draws), "no second pass, whose labels are left out"
    drawn = {d.item: d for d in sampler.draws if d.model == 1 and d.coin is not Coin.NONE}
    for f, y, pi, item in zip(scores.judge, scores.human, scores.propensity, scores.item, strict=True):
        assert f == table[0, 1, item]
        if drawn[item].wanted:
            assert (y, pi) == (table[1, 1, item], drawn[item].propensity)
        else:
            assert np.isnan(y)
    assert 0.0 < ipw_mean(scores.judge, scores.human, scores.propensity).value < 1.0


def test_a_missing_label_is_not_passed_over() -> None:
    request = Request(0, Cell(0, 3, 0, 1), 0.5)
    with pytest.raises(InvalidInferenceError, match="would bias"):
        AuditedScores.of(Journal(events=[Event(request)]))
    with pytest.raises(InvalidInferenceError, match="propensity"):
        AuditedScores.of(
            Journal(events=[Event(Request(0, Cell(0, 3, 0, 1))), Event(request, Reading(request, 0.5))])
        )


def test_contexts_whose_labels_were_wanted_and_not_asked_for_are_left_out_given_the_draws() -> None:
    """A judge .3 too kind: items judged ahead of a limit on labels would pass for items no coin chose."""
    design = Design(tuple(f"i{n}" for n in range(300)), ("a", "b"), ("judge", "human"))
    sampler = AuditEProcess(design, pilot=60)
    journal = play(sampler, 80, score=lambda c: 0.7 if c.rater == 0 else 0.4, concurrency=80)
    assert not any(event.request.cell.rater for event in journal), "a label was asked for already"
    assert len(AuditedScores.of(journal).item) == 40
    scores = AuditedScores.of(journal, draws=sampler.draws)
    first = min(d.index for d in sampler.draws if d.model == 0 and d.wanted)
    assert set(scores.item) == {d.item for d in sampler.draws if d.model == 0 and d.index < first}


def test_items_without_a_judge_score_are_not_passed_over() -> None:
    request = Request(0, Cell(0, 3, 0, 1), 1.0)
    scores = AuditedScores.of(Journal(events=[Event(request), Event(request, Reading(request, 0.5))]))
    assert scores.item == (3,)
    with pytest.raises(InvalidInferenceError, match="1 items have no judge score"):
        ipw_mean(scores.judge, scores.human, scores.propensity)
    failed = Request(0, Cell(0, 4, 0, 0))
    journal = Journal(events=[Event(failed), Event(failed, Reading(failed, None, error="no answer"))])
    assert AuditedScores.of(journal).item == (4,)
