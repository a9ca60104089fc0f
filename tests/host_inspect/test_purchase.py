"""A purchase between host and sampler, against a random host that never existed."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.claims import variant
from tests.host_inspect.worlds import kept_in_memory, killed, paid_by

from evalbudget import Allocation
from evalbudget.book import Book
from evalbudget.errors import BudgetError, InvalidInputError
from evalbudget.repeats.phases._plan import FEWEST_ITEMS
from evalbudget.repeats.samplers import Readings
from evalbudget.run import LOST, UNANSWERED
from evalbudget_inspect.repeats.config import Config
from evalbudget_inspect.repeats.diagnostics import outcome, why_unfinished
from evalbudget_inspect.repeats.purchase import RepeatPurchase
from evalbudget_inspect.repeats.resume import Key, PriorCell, promises


@dataclass
class _Recorded:
    """What a log holds of one cell."""

    calls: int
    errored: bool
    value: float | None
    phase: int | None


@dataclass
class RandomHost:
    """Starts, fails, retries, abandons and completes cells in any order, and counts what was paid."""

    rng: random.Random
    book: RepeatPurchase
    attempts: int
    width: int
    failing: float
    abandoning: float
    unscored: float = 0.0
    log: dict[Key, _Recorded] = field(default_factory=dict)
    paid: int = 0
    queue: list[Key] = field(default_factory=list)
    running: list[Key] = field(default_factory=list)
    added: set[Key] = field(default_factory=set)
    in_flight_paid: dict[Key, int] = field(default_factory=dict)

    def begin(self, items: list[str], epochs: int) -> None:
        prior = [PriorCell(key, cell.calls, cell.errored, phase=cell.phase) for key, cell in self.log.items()]
        more = self.book.begin(prior)
        seeds = [(item, epoch) for epoch in range(1, epochs + 1) for item in items]
        self._add(seeds)
        self._add(more)

    def _add(self, keys: list[Key]) -> None:
        for key in keys:
            assert key not in self.added, f"{key} was given to the host twice"
            self.added.add(key)
            self.queue.append(key)

    def step(self) -> bool:
        """One thing happens; False when the host is done."""
        if self.queue and (len(self.running) < self.width):
            key = self.queue.pop(self.rng.randrange(len(self.queue)))
            cell = self.log.get(key)
            if cell is not None and not cell.errored:  # reused from the earlier attempt's log
                self.book.completed(key, cell.value, attempts=cell.calls)
            elif self.rng.random() < self.abandoning and cell is None:
                self.book.abandoned(key)
            elif not self.book.may_run(key):
                assert cell is not None
                self.book.completed(key, None, attempts=cell.calls, error="not run again")
            else:
                if self.rng.random() < 0.9:  # else it errors before its setup ran
                    self.book.started(key)
                self.running.append(key)
                return True
        elif self.running:
            key = self.running.pop(self.rng.randrange(len(self.running)))
            before = self.log[key].calls if key in self.log else 0
            calls, failed = 0, True
            while failed and calls < self.attempts and self.book.may_run(key):
                if calls:
                    self.book.started(key)
                calls += 1
                self.paid += 1
                failed = self.rng.random() < self.failing
                if failed and calls < self.attempts:
                    self.book.attempt_failed(key)
            value = None if failed or self.rng.random() < self.unscored else self.rng.gauss(0.0, 1.0)
            phase = self.book.share(key).get("phase")
            self.log[key] = _Recorded(before + calls, failed, value, phase)
            self.book.completed(key, value, attempts=before + calls, error="boom" if failed else None)
        elif not self.queue:
            keys = self.book.wanted()
            self._add(keys)
            return bool(keys)
        self._add(self.book.wanted())
        return True


def _allocation(
    rng: random.Random, items: list[str], budget: int, epochs: int, attempts: int
) -> RepeatPurchase:
    sampler = rng.choice(["uniform", "eb-bernstein", "auto"])
    return RepeatPurchase(
        Config.of(budget=budget, sampler=sampler, seed=rng.randrange(100)),
        items,
        epochs=epochs,
        attempts=attempts,
        width=rng.choice([None, 1, 3, 50]),
    )


@pytest.mark.parametrize("seed", [*range(30), *map(variant, range(30, 60))])
def test_any_host_spends_at_most_the_budget_and_tells_all_once(seed: int) -> None:
    rng = random.Random(seed)
    items = [f"i{n}" for n in range(rng.randint(2, 8))]
    epochs, attempts = rng.randint(1, 5), rng.randint(1, 3)
    budget = len(items) * max(epochs * attempts, 4) + rng.randint(0, 60)
    log: dict[Key, _Recorded] = {}
    paid = 0
    kills = rng.randint(0, 3)
    for run in range(kills + 1):
        book = _allocation(random.Random(seed), items, budget, epochs, attempts)
        host = RandomHost(
            rng,
            book,
            attempts,
            width=rng.choice([1, 3, 20]),
            failing=rng.choice([0.0, 0.1, 0.6]),
            abandoning=rng.choice([0.0, 0.0, 0.1]),
            unscored=rng.choice([0.0, 0.2]),
            log=log,
            paid=paid,
        )
        host.begin(items, epochs)
        stop = rng.randint(0, budget) if run < kills else None
        steps = 0
        while host.step():
            steps += 1
            assert host.paid <= budget
            assert book.book.free >= -1e-9
            assert steps < 20 * budget, "the run does not end"
            if steps == stop:
                break  # kill -9: cells that ran are lost, and so cost nothing that anybody knows of
        paid = host.paid
    assert book.finished
    assert not book.outstanding
    assert book.spent == sum(cell.calls for cell in log.values())
    assert book.spent == paid <= budget
    assert book.book.free == budget - paid
    cells = [reading.request.cell for reading in book.account.readings]
    assert len(cells) == len(set(cells))
    assert book.n_read == sum(cell.value is not None for cell in log.values())
    _check_phases(book, log)
    if host.failing == 0 and host.abandoning == 0 and kills == 0:
        assert paid == budget


def _check_phases(book: RepeatPurchase, log: dict[Key, _Recorded]) -> None:
    """After any kills and failures, readings are of the phases they were asked in."""
    told = {
        (book.sampler.design.items[r.request.cell.item], r.request.cell.epoch + 1): r.request.phase
        for r in book.account.readings
    }
    assert told.items() >= {key: cell.phase for key, cell in log.items()}.items()
    if book.sampler.allocation is not Allocation.PHASED:
        assert set(told.values()) == {None}
    elif len(book.items) >= FEWEST_ITEMS:
        first = [cell.phase for (_, epoch), cell in log.items() if epoch <= book.sampler.fixed_repeats]
        assert not any(first)


def test_a_cell_that_an_operator_has_run_again_is_counted() -> None:
    book = RepeatPurchase(Config.of(budget=30, sampler="uniform"), ["a", "b"], epochs=1)
    book.begin()
    for item in "ab":
        book.completed((item, 1), 1.0)
    book.completed(("a", 1), 0.0, attempts=2)
    assert book.spent == 3
    assert book.n_read == 2
    book.completed(("not in this run", 1), 0.0)
    assert book.spent == 3


def test_an_error_is_why_a_run_ended_also_where_it_cut_nothing_off() -> None:
    book = RepeatPurchase(Config.of(budget=30, sampler="uniform"), ["a", "b"], epochs=1)
    assert why_unfinished(book) == "interrupted"
    book.broken_off = 0
    assert why_unfinished(book) == "by an error"
    book.broken_off = 2
    assert why_unfinished(book).startswith("by an error; 2 under way cut off")


def test_width_follows_what_the_host_runs_at_once() -> None:
    items = [f"i{n}" for n in range(40)]
    book = RepeatPurchase(Config.of(budget=2000, sampler="uniform"), items, epochs=1)
    book.begin()
    queue = [(item, 1) for item in items]
    running: list[Key] = []
    for _ in range(600):
        while queue and len(running) < 16:
            running.append(queue.pop(0))
            book.started(running[-1])
        key = running.pop(0)
        book.completed(key, 0.5)
        queue += book.wanted()
    assert len(running) + len(queue) >= 16  # all hands are kept busy
    assert len(queue) <= 4  # and hardly anything is decided before it can run


def test_stopped_allocation_asks_nothing_more() -> None:
    book = RepeatPurchase(Config.of(budget=30, sampler="uniform"), ["a", "b"], epochs=1)
    book.begin()
    book.stop("drained by the operator")
    book.completed(("a", 1), 1.0)
    assert book.wanted() == []
    book.abandoned(("b", 1))
    assert book.wanted() == []
    assert book.finished
    assert book.stop_reason == "drained by the operator"


WARMUP = Config.of(budget=99).fixed_repeats


@pytest.mark.parametrize(
    ("sampler", "epochs", "attempts", "minimum", "why"),
    [
        ("eb-bernstein", 1, 1, 2 * WARMUP, f"reads each of the 2 items {WARMUP} times"),
        ("eb-bernstein", WARMUP + 2, 1, 2 * WARMUP + 4, "(--epochs)"),
        ("uniform", 2, 3, 12, "(--retry-on-error)"),
    ],
)
def test_budget_below_the_minimum_says_the_minimum(
    sampler: str, epochs: int, attempts: int, minimum: int, why: str
) -> None:
    config = Config.of(budget=minimum - 1, sampler=sampler)
    with pytest.raises(BudgetError) as caught:
        RepeatPurchase(config, ["a", "b"], epochs=epochs, attempts=attempts)
    assert why in str(caught.value)
    assert f"Raise --budget to {minimum} or more" in str(caught.value)
    RepeatPurchase(
        Config.of(budget=minimum, sampler=sampler), ["a", "b"], epochs=epochs, attempts=attempts
    ).begin()


def test_what_a_killed_run_had_begun_counts_as_spent() -> None:
    items = ["a", "b", "c", "d"]
    config, kept = Config.of(budget=8, sampler="uniform"), kept_in_memory()
    first = RepeatPurchase(config, items, epochs=2, where=kept)
    first.begin()
    for item in items:
        first.started((item, 1))
    first.completed(("a", 1), 1.0)
    first.wanted()
    killed(kept)
    book = RepeatPurchase(config, items, epochs=2, where=kept)
    assert book.spent == 4.0  # of the samples that wait for their turn nothing
    book.begin([PriorCell(("a", 1), 1, errored=False)])
    assert book.spent == 3.0
    assert book.book.free == 0.0
    # the host starts all first epochs by itself: the last ones, which the rest does not pay, stay out
    seeds = [(item, epoch) for epoch in (1, 2) for item in items]
    assert [key for key in seeds if not book.may_run(key)] == [("b", 2), ("c", 2), ("d", 2)]
    for key in seeds:
        runs = book.may_run(key)
        book.completed(key, 1.0 if runs else None, attempts=int(runs))
    assert book.wanted() == []
    assert book.finished
    assert book.spent == 8.0


def test_each_try_of_a_sample_that_is_cut_off_counts_and_what_the_log_has_is_not_paid_twice() -> None:
    """However often the run is killed, also while the host hands back."""
    items, kept = ["a", "b", "c", "d"], kept_in_memory()
    config = Config.of(budget=20, sampler="uniform")
    first = RepeatPurchase(config, items, epochs=1, attempts=3, where=kept)
    first.begin()
    for key in (("a", 1), ("b", 1), ("b", 1), ("c", 1)):
        first.started(key)
    assert first.pays(0.5)  # what was sent again
    prior = [PriorCell(("a", 1), 1, errored=False), PriorCell(("c", 1), 1, errored=True)]
    for _ in range(3):
        killed(kept)
        again = RepeatPurchase(config, items, epochs=1, attempts=3, where=kept)
        again.begin(prior, lost=1)
        assert again.spent == 2.5
        assert again.account.failures == {LOST: 1, UNANSWERED: 2}
    assert paid_by(kept) == 4.5
    again.started(("c", 1))
    assert paid_by(kept) == 5.5


def test_answers_of_several_attempts_that_are_lost_are_called_so() -> None:
    """Each goes on from the first log, and what the one before it bought is not in that."""
    kept, config = kept_in_memory(), Config.of(budget=40, sampler="uniform")
    found = []
    for attempt in range(4):
        book = RepeatPurchase(config, ["a", "b"], epochs=1, width=5, where=kept)
        book.begin([PriorCell(("a", 1), 1, errored=False)] if attempt else [])
        keys = [("a", 1), ("b", 1), *book.wanted()]
        for key in keys[bool(attempt) :]:
            book.started(key)
        for key in keys[:4]:
            book.completed(key, 1.0)
        found.append((book.lost, book.account.failures))
        killed(kept)
    assert found[0] == (0.0, {})
    assert found[1:] == [(3.0 * n, {LOST: 3 * n, UNANSWERED: n}) for n in (1, 2, 3)]


@pytest.mark.parametrize(("in_log", "lost"), [("ab", 0.0), ("a", 0.0), ("b", 1.0), ("", 1.0)])
def test_calls_that_brought_no_answer_are_no_answers_that_are_lost(in_log: str, lost: float) -> None:
    """An error ended the run: what was under way was cut off, and one of its tries failed."""
    kept, config = kept_in_memory(), Config.of(budget=40, sampler="uniform")
    first = RepeatPurchase(config, ["a", "b", "c", "d"], epochs=1, where=kept)
    first.begin()
    for item in "abcd":
        first.started((item, 1))
    first.completed(("a", 1), 1.0)
    first.completed(("b", 1), None, error="RuntimeError")
    for item in "cd":
        first.completed((item, 1), None, error=UNANSWERED)
    assert first.book.spent == 4.0
    killed(kept)
    again = RepeatPurchase(config, ["a", "b", "c", "d"], epochs=1, where=kept)
    again.begin([PriorCell((item, 1), 1, errored=item == "b") for item in in_log])
    assert (again.spent, again.lost, paid_by(kept)) == (4.0 - len(in_log), lost, 4.0)
    unanswered = 2 + ("b" not in in_log)
    assert again.account.failures == {UNANSWERED: unanswered} | ({LOST: 1} if lost else {})


@pytest.mark.parametrize("paid", [0.0, 3.0, 30.0])
def test_what_the_log_tells_of_counts_where_the_book_lacks_it(paid: float) -> None:
    book = RepeatPurchase(Config.of(budget=20), ["a", "b"], epochs=1, where=kept_in_memory(paid))
    book.begin([PriorCell(("a", 1), 1, errored=False)], lost=4, unread=2)
    book.completed(("a", 1), 1.0)
    assert (book.lacks, book.spent) == ((True, 7.0) if paid < 5.0 else (False, paid))
    known = RepeatPurchase(Config.of(budget=20), ["a", "b"], epochs=1, where=kept_in_memory(6.0))
    known.begin([PriorCell(("a", 1), 1, errored=False)], lost=4, unread=2, lacks=True)
    assert known.account.failures == {LOST: 4, UNANSWERED: 2}


@pytest.mark.parametrize(
    ("told", "lacks", "spent"), [(9.0, True, 9.0), (20.0, False, 20.0), (30.0, False, 20.0)]
)
def test_what_a_log_says_was_paid_counts_where_the_book_lacks_it(
    told: float, lacks: bool, spent: float
) -> None:
    book = RepeatPurchase(Config.of(budget=20), ["a", "b"], epochs=1, where=kept_in_memory())
    book.begin([PriorCell(("a", 1), 1, errored=False)], lost=1, unread=2, told=told, lacks=True)
    book.completed(("a", 1), 1.0)
    assert (book.lacks, book.spent) == (lacks, spent)
    assert book.account.failures == {LOST: 1, UNANSWERED: spent - 2}


def test_a_phase_in_an_earlier_log_that_is_none() -> None:
    book = RepeatPurchase(Config.of(budget=8), ["a", "b"], epochs=1)
    earlier = PriorCell(("b", 1), 1, errored=False, phase=-1)
    with pytest.raises(
        InvalidInputError, match=r"^sample 'b', epoch 1 of .*: phase -1 is .* restore the log"
    ):
        book.begin([earlier])


def test_what_failed_runs_again_only_if_everything_else_is_paid_for() -> None:
    def failed(item: str, attempts: int) -> PriorCell:
        return PriorCell((item, 1), attempts, errored=True)

    known = PriorCell(("a", 1), 1, errored=False)
    cells = [(("a", 1), known), (("b", 1), failed("b", 2)), (("c", 1), None), (("d", 1), failed("d", 1))]
    # a, c, and what b and d cost already: 1 + 3 + 2 + 1; one of them may run again with 3 more
    promised, refused = promises(cells, attempts=3, free=10.0)
    assert promised == {("a", 1): 1.0, ("c", 1): 3.0, ("b", 1): 5.0, ("d", 1): 1.0}
    assert refused == {("d", 1)}
    assert promises(cells, attempts=3, free=9.0)[1] == {("b", 1), ("d", 1)}
    promised, refused = promises(cells, attempts=3, free=13.0)
    assert sum(promised.values()) == 13.0
    assert not refused


def test_plans_know_who_scored_also_where_a_cell_was_asked_again() -> None:
    """A cell that failed is asked again in another epoch of the host's, whose judge may be another one."""
    items = [f"i{n}" for n in range(6)]

    def judge_of(item: int, epoch: int) -> int:
        return (item + epoch) % 2

    config = Config.of(budget=90, sampler="auto", judges="mockllm/a,mockllm/b")
    book = RepeatPurchase(config, items, epochs=1, width=3, judge_of=judge_of)
    rng, plan, seen = random.Random(1), book.sampler.plan, list[Readings]()

    def remembering(table: Readings, last: Any) -> Any:
        seen.append(table)
        return plan(table, last)

    book.sampler.plan = remembering  # type: ignore[method-assign]
    book.begin([PriorCell(("i1", 3), 1, errored=False)])
    queue = [*((item, 1) for item in items), ("i1", 3)]
    scored_by: dict[float, int] = {}
    failed = 0
    while queue:
        item, epoch = queue.pop(0)
        value = None if rng.random() < 0.2 else rng.gauss(0.0, 1.0)
        failed += value is None
        if value is not None:
            scored_by[value] = judge_of(items.index(item), epoch - 1)
        book.completed((item, epoch), value)
        queue += book.wanted()
    assert failed > 5
    assert len(seen) > 3
    for table in seen:
        told = dict(
            zip(table.value[table.is_read].tolist(), table.rater[table.is_read].tolist(), strict=True)
        )
        assert told.items() <= scored_by.items()


def test_what_is_told_of_a_run_is_counted_by_its_store(monkeypatch: pytest.MonkeyPatch) -> None:
    book = RepeatPurchase(Config.of(budget=30, sampler="uniform"), ["a", "b"], epochs=1)
    book.begin()
    book.completed(("a", 1), 1.0)
    book.completed(("b", 1), None, attempts=2, error="timeout")
    book.retried("timeout")
    monkeypatch.setattr(Book, "calls", lambda _: pytest.fail("every call is read"))
    told = outcome(book)
    assert (told["items"], told["readings"], told["spent"]) == (1, 1, 3)
    assert told["failures"] == {"timeout": 2}
