from __future__ import annotations

from dataclasses import replace

import pytest
from tests.asked.playing import play

from evalbudget import Cell, Design, Journal, Reading, Request, resume
from evalbudget.errors import JournalError, ReplayError
from evalbudget.journal import FORMAT, Header
from evalbudget.repeats.samplers import EBBernstein, Uniform
from evalbudget.testing import gaussian

DESIGN = Design.of_items(5)


def test_readings_pending_and_cost() -> None:
    a, b, c = (Request(i, Cell(item=i)) for i in range(3))
    journal = Journal()
    for request in (a, b, c):
        journal.ask(request)
    journal.tell(Reading(c, 0.5, cost=2.0))
    journal.tell(Reading(a, None, cost=0.5))
    assert [r.request for r in journal.readings] == [a, c]
    assert journal.pending == (b,)
    assert journal.spent == 2.5
    assert len(journal) == len(list(journal)) == 5


@pytest.mark.parametrize(
    ("other", "complaint"),
    [
        (EBBernstein(DESIGN, seed=1), "seed = 0 there, 1 here"),
        (EBBernstein(DESIGN, warmup=4), "warmup = 2 there, 4 here"),
        (Uniform(DESIGN), "sampler = 'eb-bernstein' there, 'uniform' here"),
        (EBBernstein(Design.of_items(6)), "another design"),
        (EBBernstein(Design(DESIGN.items, models=("other",))), "another design"),
    ],
)
def test_another_configuration_is_refused(other: EBBernstein, complaint: str) -> None:
    journal = play(EBBernstein(DESIGN), 20)
    with pytest.raises(JournalError, match=complaint):
        resume(other, journal)


def test_another_version_is_taken_if_it_decides_the_same() -> None:
    journal = play(EBBernstein(DESIGN), 20)
    assert journal.header is not None
    journal.header = replace(journal.header, version="0.0.1")
    resume(EBBernstein(DESIGN), journal)
    journal.header = replace(journal.header, format=FORMAT + 1)
    with pytest.raises(JournalError, match=r"0\.0\.1.*reads format"):
        resume(EBBernstein(DESIGN), journal)


def test_another_decision_names_the_event() -> None:
    journal = play(Uniform(DESIGN), 20)
    journal.header = None
    with pytest.raises(ReplayError, match="event 0"):
        resume(Uniform(DESIGN, seed=1), journal)


def test_weights_survive_a_round_through_json_types() -> None:
    sampler = EBBernstein(DESIGN, weights=[1, 2, 3, 4, 5], objective="mean")
    header = Header.of(sampler, "1")
    header.config["weights"] = [1, 2, 3, 4, 5]
    header.check(sampler)


def test_adopted_readings_are_recorded_and_resumed() -> None:
    earlier = play(Uniform(DESIGN), 15).readings
    sampler = EBBernstein(DESIGN)
    journal = Journal()
    for reading in earlier:
        request = sampler.adopt(reading.request.cell)
        adopted = Reading(request, reading.value, reading.cost, reading.error)
        sampler.tell([adopted])
        journal.ask(request, adopted=True)
        journal.tell(adopted)
    assert sampler.counts() == (3,) * 5
    assert all(event.adopted for event in journal if event.reading is None)
    again = EBBernstein(DESIGN)
    resume(again, journal)
    assert play(again, 60).events == play(sampler, 60).events


def test_a_late_reading_opens_a_closed_item_again() -> None:
    """Whether a cell is closed depends on how often it failed and was read, not on the order."""
    sampler = Uniform(Design.of_items(1))
    requests = sampler.ask(6)
    sampler.tell([Reading(request, None) for request in requests[:5]])
    assert list(sampler.closed) == [Cell()]
    assert list(sampler.ask(1)) == []
    sampler.tell([Reading(requests[5], gaussian(Cell()))])
    assert list(sampler.closed) == []
    assert len(sampler.ask(1)) == 1
