"""One race whose arms run in several processes or on several machines.

Every worker keeps the whole race and repeats what all of them did, in the order of the store: so all of them
know the same leaderboard, and the race takes the decisions that one process would have taken.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, astuple, dataclass
from functools import partial
from typing import Any

from sqlalchemy import Connection

from evalbudget import Design, Request
from evalbudget._version import __version__
from evalbudget.errors import InvalidInputError, StoreError
from evalbudget.prices import Tariff
from evalbudget.races._config import RaceConfig
from evalbudget.races._lanes import Asked, Key, KnownCell
from evalbudget.races._purchase import RacePurchase
from evalbudget.races._shared_bill import SharedBill
from evalbudget.run import UNANSWERED
from evalbudget.shown import shown_logger
from evalbudget.store import Address, Replica, Step, StepLog, Terms

log = shown_logger(__name__)

CUT_OFF = "cut off: its worker was started anew"
SILENT = "its worker gave no sign of life"
_REPEATED = frozenset({"completed", "pay", "pays", "abandoned", "unaffordable", "leave"})
"""Steps that are methods of the race."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An arm that a worker runs.

    Attributes:
        arm: its name, the same wherever it runs.
        width: cells it runs at once.
        known: what it answered before.
        unread: evaluations that earlier attempts paid for and nobody read.
    """

    arm: str
    width: int
    known: Sequence[KnownCell] = ()
    unread: float = 0.0

    def as_body(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "arm": self.arm,
            "width": self.width,
            "known": [astuple(cell) for cell in self.known],
            "unread": self.unread,
        }

    @classmethod
    def of_body(cls, body: Mapping[str, Any]) -> Entry:
        """As it was sent."""
        known = [KnownCell((key[0], key[1]), *rest) for key, *rest in body["known"]]
        return cls(body["arm"], body["width"], known, body["unread"])


class SharedRace(Replica, RacePurchase):
    """A race of which this process runs some arms.

    It is a :class:`RacePurchase` once all arms have joined (:attr:`begun`); :meth:`wanted` then gives the
    cells of the own arms only. A process that runs the same arms as one before it takes their place.

    Args:
        config: what the user asked for, the same for all workers, with the address of a store; the store is
            begun if nothing is there.
        items: sample ids, in order.
        own: names of the arms that run here, each the same wherever it runs.
        about: what else must be the same for all workers, such as the task and the score.
        attempts: how often a host runs one cell at most (1 + its retries on error): all of them cost.
        tariff: what calls cost here, where the budget is money or tokens.
        models: that calls here are known to ask; what other workers ask, too, must cost the same there.
        weighs_room: whether a cell is to begin only if what is left covers the dearest one so far, as with
            the ``bill`` of a :class:`RacePurchase`.
        defers: what is told goes to the store in the next :meth:`turn`, so that nothing but that waits for
            it. Turns may then be taken in another thread; :meth:`steady` keeps them from changing anything.
        lease: seconds without a sign of life after which the arms of a worker leave the race.
        clock: seconds since 1970; of use for files only, a server has its own.

    Attributes:
        bill: of the calls of all workers; None where evaluations are counted.
        names: of the arms, in the order of the sampler's models; empty before the race has begun.
        left_out: arms and keys of cells that were cut off and are not paid for again.

    Raises:
        StoreError: the store belongs to another race.
        StoreDownError: it cannot be reached.
        InvalidInputError: more arms run here than race, or none.
    """

    def __init__(
        self,
        config: RaceConfig,
        items: Sequence[str],
        own: Sequence[str],
        *,
        about: Mapping[str, str],
        attempts: int = 1,
        tariff: Tariff | None = None,
        models: Iterable[str] = (),
        weighs_room: bool = False,
        defers: bool = False,
        lease: float = 60.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        assert config.store is not None
        assert config.all_arms is not None
        arms = config.all_arms
        if not 0 < len(own) <= arms:
            raise InvalidInputError(f"{len(own)} arms run here, and the race has {arms} in all")
        self.config = config
        self._fresh = config, tuple(items), attempts, arms
        own_ways = ("store", "prices")  # prices are compared model by model
        settings = {name: str(value) for name, value in asdict(config).items() if name not in own_ways}
        settings |= {"attempts": str(attempts), **about}
        terms = Terms(__version__, Design(items=tuple(items)).fingerprint, settings)
        name = ", ".join(sorted(own))
        Replica.__init__(self, StepLog(Address.parse(config.store), terms, name, lease, clock))
        self.bill: SharedBill | None = None
        if tariff is not None:
            cap = config.resolve_budget(len(items), arms)
            self.bill = SharedBill(cap, tariff, self, risk=config.risk)
        self._own_prices = {} if tariff is None else tariff.told_of(models)
        self._weighs_room = weighs_room
        self._defers = defers
        self._own = set(own)
        self._entries: list[Entry] = []  # that have joined
        self._with_host: set[tuple[str, Key]] = set()
        self._restart()

    def join(self, entries: Iterable[Entry]) -> None:
        """Have the own arms take part; the store is let go if they cannot.

        Raises:
            StoreError: the race has gone on without one of them.
            StoreDownError: the store cannot be reached.
            InvalidInputError: another worker runs one of them.
        """
        try:
            for entry in entries:
                self.do_if("join", partial(self._as_body, entry, sorted(self._log.replaced)))
                self._check_joined(entry)
                self._entries.append(entry)
        except BaseException:
            self.close()
            raise

    def _restart(self) -> None:
        self._joined: dict[str, Entry] = {}
        self._worker_of: dict[str, int] = {}
        self._prices_of: dict[int, Mapping[str, str]] = {}  # by worker
        self._is_finished = False
        self._to_hand_out: list[Asked] = []
        self._since_wanted = True
        self.names: list[str] = []
        self.left_out: set[tuple[int, Key]] = set()
        if self.bill is not None:
            self.bill.restart()

    @property
    def address(self) -> Address:
        """Of the store."""
        return self._log.address

    @property
    def begun(self) -> bool:
        """Whether all arms have joined."""
        return bool(self.names)

    @property
    def missing(self) -> int:
        """Arms that have not joined yet."""
        return 0 if self.begun else self._fresh[3] - len(self._joined)

    @property
    def finished(self) -> bool:
        """Nothing is running and nothing more will be asked, as the sampler said when it was asked last."""
        return self._is_finished

    # what the host calls

    def steady(self) -> AbstractContextManager[Any]:
        """Within the block nothing changes that other processes or threads did."""
        return self._state

    def look(self) -> None:
        """Take in what other workers did."""
        self._turn(lambda: None)

    def turn(self) -> None:
        """Hand over what was told, take in what other workers did, and have the sampler asked."""
        self._turn(self._ask)

    def wanted(self) -> list[Asked]:
        """Cells of the own arms to run next, as far as turns brought some; those of others' go to them."""
        if self._repeats:
            return super().wanted()
        if not self._defers:
            self.turn()
        with self._state:
            found, self._to_hand_out = self._to_hand_out, []
            self._with_host |= {(self.names[each.arm], each.key) for each in found}
        return found

    def started(self, arm: int, key: Key) -> None:
        """Every cell counts as running once it was handed out: nobody else sees when a call is made."""
        if self._repeats:
            super().started(arm, key)

    def completed(
        self,
        arm: int,
        key: Key,
        value: float | None,
        *,
        attempts: int = 1,
        error: str | None = None,
        sample: str = "",
    ) -> None:
        """The host is done with this cell, after so many paid attempts in this and earlier runs."""
        given: dict[str, Any] = {"value": value, "attempts": attempts, "error": error, "sample": sample}
        if self._repeats:
            super().completed(arm, key, **given)
        else:
            self._tell_all("completed", arm, key, given)

    def pay(self, arm: int, evaluations: float, reason: str = UNANSWERED) -> None:
        """Evaluations were paid for beside those of the readings, and teach nothing."""
        if self._repeats:
            super().pay(arm, evaluations, reason)
        else:
            self._tell_all("pay", arm, None, {"evaluations": evaluations, "reason": reason})

    def pays(self, arm: int, evaluations: float) -> bool:
        """Pay for what brought nothing; False, and nothing paid, if it exceeds what is left."""
        if self._repeats:
            return super().pays(arm, evaluations)
        body = self._body(arm, None, {"evaluations": evaluations})
        return bool(self.do_if("pays", lambda: body))

    def abandoned(self, arm: int, key: Key) -> None:
        """The host was told not to run this cell, before it did."""
        if self._repeats:
            super().abandoned(arm, key)
        else:
            self._tell_all("abandoned", arm, key, {})

    def unaffordable(self, arm: int, key: Key) -> None:
        """It was not asked to its end, since that does not fit into what is left; nor is anything more."""
        if self._repeats:
            super().unaffordable(arm, key)
        else:
            self._tell_all("unaffordable", arm, key, {})

    def leave(self, arm: int, reason: str) -> None:
        """Ask an arm nothing more: its task has ended. What it was running counts as paid."""
        if self._repeats:
            super().leave(arm, reason)
        else:
            with self._state:
                has_left = self.lanes[arm].left is not None
            if not has_left:
                self._tell_all("leave", arm, None, {"reason": reason})

    def close(self) -> None:
        """Let the store go; the arms leave the race when the lease ends, unless they are joined again."""
        with self._guard:
            try:
                if self._outbox and not self._is_away:
                    self.look()
            except StoreError as ex:
                log.warning("%s: the end of some calls is not in it: %s", self.address, ex)
            finally:
                self._outbox.clear()
                self._log.close(signs_off=False)

    # turns

    @property
    def all_sent(self) -> bool:
        """Whether nothing is left for the next turn."""
        return not self._outbox

    def do_if(self, kind: str, make: Callable[[], dict[str, Any] | None]) -> Any:
        """Have all workers repeat what this gives with nothing missed, unless it is None; what came of it."""

        def step(call: int) -> Step | None:
            body = make()
            return None if body is None else Step(self._log.worker, kind, body=body | {"call": call})

        return self._call(step)

    def do_later(self, kind: str, body: dict[str, Any], then: Callable[[], None] = lambda: None) -> None:
        """Have all workers repeat this, in the next turn."""
        self._later(lambda call: Step(self._log.worker, kind, body=body | {"call": call}), then)

    def _ask(self) -> None:
        if self.begun and self._since_wanted:
            self.do_if("wanted", dict)

    def _tell_all(self, kind: str, arm: int, key: Key | None, given: dict[str, Any]) -> None:
        body = self._body(arm, key, given)
        name = body["arm"]

        def landed() -> None:  # from now on it may be asked anew
            if key is not None:
                self._with_host.discard((name, key))

        self.do_later(kind, body, landed)
        if not self._defers:
            self.look()

    def _body(self, arm: int, key: Key | None, given: dict[str, Any]) -> dict[str, Any]:
        with self._state:
            body: dict[str, Any] = {"arm": self.names[arm], "given": given}
        return body if key is None else body | {"key": list(key)}

    def _before_turn(self, connection: Connection) -> None:
        self._check_own()
        for entry in self._entries:
            if not self.begun and entry.arm not in self._worker_of:  # others had taken it for silent
                self._step(Step(self._log.worker, "join", body=self._as_body(entry, [])))
        self._part_from_silent(connection)

    def _after_turn(self) -> None:
        stale = self._weighs_room and self.bill is not None and self._since_wanted  # of what is left
        self._is_finished = self.begun and super().finished and not stale
        self._to_hand_out = [
            Asked(arm, key)
            for arm, name in enumerate(self.names)
            if name in self._own
            for key in self.lanes[arm].flights
            if (name, key) not in self._with_host
        ]

    def _part_from_silent(self, connection: Connection) -> None:
        away = set(self._log.silent(connection)) - {self._log.worker} - self._log.replaced
        for worker in away.intersection(() if self.bill is None else self.bill.owners):
            self._step(Step(worker, "lose"))
        if self.begun and super().finished:
            return
        for name, worker in list(self._worker_of.items()):
            if worker in away and not self._has_left(name):
                log.warning("%s: %s", name, SILENT)
                self._step(Step(worker, "part", body={"arm": name}))

    def _check_own(self) -> None:
        """The others may have gone on without this worker, or another process may run the same arms."""
        for entry in self._entries:
            name = entry.arm
            if self._worker_of.get(name, self._log.worker) > self._log.worker:
                raise StoreError(
                    f"{self._log.address}: another process runs {name} now; this one ends, so that nothing "
                    "is bought twice"
                )
            if self.begun and self.lanes[self.names.index(name)].left == SILENT:
                raise StoreError(
                    f"{self._log.address}: the race has gone on without {name}, which gave no sign of life "
                    "for too long; what it had under way counts as paid"
                )

    def _as_body(self, entry: Entry, over: Sequence[int]) -> dict[str, Any]:
        return entry.as_body() | {"over": list(over), "prices": self._own_prices}

    def _has_left(self, name: str) -> bool:
        return self.begun and self.lanes[self.names.index(name)].left is not None

    def _check_joined(self, entry: Entry) -> None:
        name = entry.arm
        if self.begun and name not in self.names:
            raise InvalidInputError(
                f"{self._log.address}: {name} is not in the race, which has begun with "
                f"{', '.join(self.names)}; begin a new store"
            )
        if self._has_left(name):
            raise StoreError(
                f"{self._log.address}: the race has gone on without {name} "
                f"({self.lanes[self.names.index(name)].left}); begin a new store"
            )
        if self._worker_of.get(name) == self._log.worker:
            return
        if dear := self._priced_otherwise(self._own_prices):
            raise InvalidInputError(
                f"{self._log.address}: another worker has other prices of {', '.join(dear)} "
                f"({self._prices[dear[0]]} there, {self._own_prices[dear[0]]} here); give all the same prices"
            )
        if self._is_unpaid(entry):
            raise InvalidInputError(
                f"{name} goes on from logs of another race, and {self._log.address} does not know what they "
                "cost; go on with the store of that race, or begin in a new folder"
            )
        raise InvalidInputError(
            f"{self._log.address}: {name} is in this race already, run by another worker; give every arm to "
            "one worker"
        )

    # steps

    def _apply(self, step: Step) -> Any:
        found = None
        body = step.body
        if step.kind == "join":
            self._join(Entry.of_body(body), step.worker, body)
        elif step.kind == "part":
            self._part(body["arm"])
        elif step.kind == "lose":
            self._lose({step.worker})
        elif step.kind in ("hold", "again", "end"):
            assert self.bill is not None
            found = self.bill.repeat(step.kind, step.worker, body)
        elif step.kind == "wanted":
            super().wanted()
        elif step.kind not in _REPEATED:
            raise StoreError(f"{self._log.address} is damaged: {step.kind!r} is no step; begin a new store")
        else:
            arm = self.names.index(body["arm"])
            key = () if "key" not in body else ((body["key"][0], body["key"][1]),)
            found = getattr(super(), step.kind)(arm, *key, **body["given"])
        if step.kind not in ("hold", "again"):  # which leave no more room than there was
            self._since_wanted = step.kind != "wanted"
        return found

    def _lose(self, workers: Iterable[int]) -> None:
        if self.bill is not None:
            self.bill.lose_those_of(set(workers))

    def _priced_otherwise(self, prices: Mapping[str, str]) -> list[str]:
        known = self._prices
        return [model for model, price in prices.items() if known.get(model, price) != price]

    @property
    def _prices(self) -> Mapping[str, str]:
        return {model: price for own in self._prices_of.values() for model, price in own.items()}

    def _is_unpaid(self, entry: Entry) -> bool:
        """Whether it knows answers whose cost is on another bill."""
        return self.bill is not None and not self.begun and bool(entry.known)

    def _join(self, entry: Entry, worker: int, body: Mapping[str, Any]) -> None:
        over: Sequence[int] = body["over"]
        self._lose(over)
        for gone in over:
            self._prices_of.pop(gone, None)
        if self._priced_otherwise(body["prices"]) or self._is_unpaid(entry):
            return
        owner = self._worker_of.get(entry.arm)
        if owner is not None and owner != worker and owner not in over:
            return  # it is another worker's
        if self.begun:
            if owner is not None and not self._has_left(entry.arm):
                self._prices_of[worker] = body["prices"]
                self._worker_of[entry.arm] = worker
                self._settle(entry)
            return
        self._prices_of[worker] = body["prices"]
        self._joined[entry.arm] = entry
        self._worker_of[entry.arm] = worker
        config, items, attempts, arms = self._fresh
        if len(self._joined) < arms:
            return
        self.names = sorted(self._joined)
        entries = [self._joined[name] for name in self.names]
        widths = [entry.width for entry in entries]
        RacePurchase.__init__(
            self,
            config,
            self.names,
            items,
            attempts=attempts,
            widths=widths,
            cost_of=None if self.bill is None else self.bill.of_sample,
            bill=self.bill if self._weighs_room else None,
        )
        self.left_out = super().replay(
            {arm: entry.known for arm, entry in enumerate(entries)},
            {arm: entry.unread for arm, entry in enumerate(entries)},
        )
        for arm, name in enumerate(self.names):
            if name in self._own:  # its host runs again what was cut off
                self._with_host |= {(name, key) for key in self.lanes[arm].flights}

    def _settle(self, entry: Entry) -> None:
        """Of what was under way when the arm's worker ended, read what its host kept; the rest is lost."""
        arm = self.names.index(entry.arm)
        known = {cell.key: cell for cell in entry.known if not cell.again}
        samples = {cell.key: cell.sample for cell in entry.known}
        self.left_out |= {(arm, cell.key) for cell in entry.known if cell.again}
        under_way = list(self.lanes[arm].flights)
        beyond = entry.unread - sum(key not in known for key in under_way)
        if beyond > 0.0 and self.bill is None:  # retries of the host
            super().pay(arm, min(beyond, self.free))
        for key in under_way:
            cell = known.get(key)
            value, error = (None, CUT_OFF) if cell is None else (cell.value, cell.error)
            attempts = 1 if cell is None else cell.attempts
            sample = samples.get(key, "")
            super().completed(arm, key, value, attempts=attempts, error=error, sample=sample)

    def _part(self, name: str) -> None:
        if self.begun:
            super().leave(self.names.index(name), SILENT)
        else:
            del self._joined[name]
        worker = self._worker_of.pop(name)
        if worker not in self._worker_of.values():
            self._prices_of.pop(worker, None)

    def _handed(self, request: Request) -> Asked:
        asked = super()._handed(request)
        super().started(asked.arm, asked.key)
        return asked
