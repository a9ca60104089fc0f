from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evalbudget.audits.samplers import PPLUCB, AuditEProcess, AuditSampler, HumanOnly
from evalbudget.design import Cell, Design, Reading
from evalbudget.errors import InvalidInputError, UnknownNameError

DESIGN = Design(tuple(f"i{n}" for n in range(200)), ("a", "b", "c"), ("judge", "human"))


def scores(gap: float = 0.3) -> Any:
    rng = np.random.default_rng(3)
    human = np.clip(0.7 - gap * np.arange(3)[:, None] + 0.2 * rng.standard_normal((3, 200)), 0, 1)
    return np.stack([np.clip(human + 0.1 * rng.standard_normal(human.shape), 0, 1), human])


def run(sampler: AuditSampler, table: Any, at_once: int = 100_000) -> int:
    """Number of labels bought."""
    labels = 0
    while asked := sampler.ask(at_once):
        labels += sum(request.cell.rater for request in asked)
        sampler.tell(Reading(r, float(table[r.cell.rater, r.cell.model, r.cell.item])) for r in asked)
    return labels


@pytest.mark.parametrize("at_once", [1, 7, 100_000])
@pytest.mark.parametrize("most", [1, 5, 33])
@pytest.mark.parametrize("cls", [AuditEProcess, PPLUCB, HumanOnly])
def test_the_most_labels_allowed_are_never_exceeded(
    cls: type[AuditEProcess] | type[PPLUCB], most: int, at_once: int
) -> None:
    sampler = cls(DESIGN, max_labels=most, seed=most)
    assert run(sampler, scores(0.01), at_once) <= most
    assert sampler.verdict.labels <= most
    assert sampler.verdict.finished


@pytest.mark.parametrize("cls", [AuditEProcess, HumanOnly])
def test_what_is_paid_is_what_was_read(cls: type[AuditEProcess]) -> None:
    sampler = cls(DESIGN, prices=(2.0, 30.0))
    labels = run(sampler, scores())
    verdict = sampler.verdict
    assert verdict.labels == labels
    assert verdict.cost == 2.0 * verdict.judged + 30.0 * labels
    assert (verdict.winner, verdict.outcome) == (0, "best")


def test_reading_one_by_one_stops_no_later_than_in_batches() -> None:
    bought = [run(AuditEProcess(DESIGN), scores(), at_once) for at_once in (1, 100_000)]
    assert bought[0] <= bought[1]


def test_human_requests_carry_their_propensity() -> None:
    sampler = AuditEProcess(DESIGN)
    table = scores()
    while asked := sampler.ask(50):
        for request in asked:
            assert (request.propensity is None) == (request.cell.rater == 0)
        sampler.tell(Reading(r, float(table[r.cell.rater, r.cell.model, r.cell.item])) for r in asked)


def test_labels_of_cells_never_drawn_cannot_be_adopted() -> None:
    sampler = AuditEProcess(DESIGN)
    with pytest.raises(InvalidInputError, match="would bias"):
        sampler.adopt(Cell(0, 3, 0, 1))
    sampler.adopt(Cell(0, 3, 0, 0))  # a judge's score may be there already


def test_a_judge_score_adopted_before_is_not_bought_again() -> None:
    sampler, table = AuditEProcess(DESIGN), scores()
    known = {(0, item) for item in range(200)}
    sampler.tell([Reading(sampler.adopt(Cell(m, i)), float(table[0, m, i])) for m, i in sorted(known)])
    asked = []
    while requests := sampler.ask(100):
        asked += [r.cell for r in requests if r.cell.rater == 0]
        sampler.tell(Reading(r, float(table[r.cell.rater, r.cell.model, r.cell.item])) for r in requests)
    assert not known & {(cell.model, cell.item) for cell in asked}
    assert sampler.verdict.winner == 0


def test_bad_arguments_say_what_to_do() -> None:
    with pytest.raises(InvalidInputError, match="two raters"):
        AuditEProcess(Design(("i",), ("a", "b")))
    with pytest.raises(UnknownNameError, match="Did you mean 'uniform'"):
        PPLUCB(DESIGN, allocator="unifrom")
    with pytest.raises(UnknownNameError, match="literal"):
        PPLUCB(DESIGN, errata="litteral")
    with pytest.raises(InvalidInputError, match="least propensity"):
        PPLUCB(DESIGN, rho=0.1, least_propensity=0.5)


def test_fixed_pulls_name_the_leader_and_prove_nothing() -> None:
    sampler = PPLUCB(DESIGN, pulls=101, rho=0.2)
    run(sampler, scores())
    verdict = sampler.verdict
    assert verdict.judged == 101
    assert (verdict.outcome, verdict.winner, verdict.leader) == ("undecided", None, 0)
    assert "nothing is proved" in verdict.reason


def test_attempts_that_failed_are_paid_but_are_no_labels() -> None:
    sampler = AuditEProcess(DESIGN, max_labels=20)
    table = scores(0.01)
    human = 0
    while asked := sampler.ask(10):
        human += sum(request.cell.rater for request in asked)
        sampler.tell(
            Reading(r, None, error="no answer")
            if r.cell.rater and r.cell.epoch == 0
            else Reading(r, float(table[r.cell.rater, r.cell.model, r.cell.item]))
            for r in asked
        )
    verdict = sampler.verdict
    assert verdict.labels <= 20
    assert verdict.labels == human / 2
    assert verdict.cost == verdict.judged + 20.0 * human
