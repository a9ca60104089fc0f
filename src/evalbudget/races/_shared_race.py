"""One race whose arms run in several processes or on several machines.

Every worker keeps the whole race and repeats what all of them did, in the order of the store: so all of them
know the same leaderboard, and the race takes the decisions that one process would have taken.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from typing import Any

from sqlalchemy import Connection

from evalbudget import Design, Request
from evalbudget._version import __version__
from evalbudget.errors import InvalidInputError, StoreError
from evalbudget.races._config import RaceConfig
from evalbudget.races._purchase import Asked, Key, KnownCell, RacePurchase
from evalbudget.run import UNANSWERED
from evalbudget.store import Address, Replica, Step, StepLog, Terms

log = logging.getLogger(__name__)

CUT_OFF = "cut off: its worker was started anew"
SILENT = "its worker gave no sign of life"


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
        lease: seconds without a sign of life after which the arms of a worker leave the race.
        clock: seconds since 1970; of use for files only, a server has its own.

    Attributes:
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
        settings = {name: str(value) for name, value in asdict(config).items() if name != "store"}
        settings |= {"attempts": str(attempts), **about}
        terms = Terms(__version__, Design(items=tuple(items)).fingerprint, settings)
        name = ", ".join(sorted(own))
        Replica.__init__(self, StepLog(Address.parse(config.store), terms, name, lease, clock))
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
                self._do("join", entry.as_body() | {"over": sorted(self._log.replaced)})
                self._check_joined(entry.arm)
                self._entries.append(entry)
        except BaseException:
            self.close()
            raise

    def _restart(self) -> None:
        self._joined: dict[str, Entry] = {}
        self._worker_of: dict[str, int] = {}
        self._since_wanted = True
        self.names: list[str] = []
        self.left_out: set[tuple[int, Key]] = set()

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

    # what the host calls

    def look(self) -> None:
        """Take in what other workers did."""
        self._turn(lambda: None)

    def wanted(self) -> list[Asked]:
        """Cells of the own arms to run next; those of others' go to them."""
        if self._repeats:
            return super().wanted()
        self._turn(self._ask)
        found = []
        for name in self._own if self.begun else ():
            arm = self.names.index(name)
            for key in self.lanes[arm].flights:
                if (name, key) not in self._with_host:
                    self._with_host.add((name, key))
                    found.append(Asked(arm, key))
        return found

    def started(self, arm: int, key: Key) -> None:
        """Every cell counts as running once it was handed out: nobody else sees when a call is made."""
        if self._repeats:
            super().started(arm, key)

    def completed(
        self, arm: int, key: Key, value: float | None, *, attempts: int = 1, error: str | None = None
    ) -> None:
        """The host is done with this cell, after so many paid attempts in this and earlier runs."""
        if self._repeats:
            super().completed(arm, key, value, attempts=attempts, error=error)
            return
        self._tell_all("completed", arm, key, value=value, attempts=attempts, error=error)
        self._with_host.discard((self.names[arm], key))

    def pay(self, arm: int, evaluations: float, reason: str = UNANSWERED) -> None:
        """Evaluations were paid for beside those of the readings, and teach nothing."""
        if self._repeats:
            super().pay(arm, evaluations, reason)
            return
        self._tell_all("pay", arm, evaluations=evaluations, reason=reason)

    def pays(self, arm: int, evaluations: float) -> bool:
        """Pay for what brought nothing; False, and nothing paid, if it exceeds what is left."""
        if self._repeats:
            return super().pays(arm, evaluations)
        return bool(self._tell_all("pays", arm, evaluations=evaluations))

    def abandoned(self, arm: int, key: Key) -> None:
        """The host was told not to run this cell, before it did."""
        if self._repeats:
            super().abandoned(arm, key)
            return
        self._tell_all("abandoned", arm, key)
        self._with_host.discard((self.names[arm], key))

    def leave(self, arm: int, reason: str) -> None:
        """Ask an arm nothing more: its task has ended. What it was running counts as paid."""
        if self._repeats:
            super().leave(arm, reason)
            return
        if self.lanes[arm].left is None:
            self._tell_all("leave", arm, reason=reason)

    def close(self) -> None:
        """Let the store go; the arms leave the race when the lease ends, unless they are joined again."""
        with self._guard:
            self._log.close(signs_off=False)

    # turns

    def _ask(self) -> None:
        if self.begun and self._since_wanted:
            self._do("wanted", {})

    def _tell_all(self, what: str, arm: int, key: Key | None = None, **given: Any) -> Any:
        body: dict[str, Any] = {"arm": self.names[arm], "given": given}
        if key is not None:
            body["key"] = list(key)
        return self._do(what, body)

    def _do(self, what: str, body: dict[str, Any]) -> Any:
        """Have all workers repeat a call of one's own."""
        return self._call(lambda call: Step(self._log.worker, what, body=body | {"call": call}))

    def _before_turn(self, connection: Connection) -> None:
        self._check_own()
        for entry in self._entries:
            if not self.begun and entry.arm not in self._worker_of:  # others had taken it for silent
                self._step(Step(self._log.worker, "join", body=entry.as_body() | {"over": []}))
        self._part_from_silent(connection)

    def _part_from_silent(self, connection: Connection) -> None:
        if self.begun and self.finished:
            return
        away = set(self._log.silent(connection)) - {self._log.worker} - self._log.replaced
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

    def _has_left(self, name: str) -> bool:
        return self.begun and self.lanes[self.names.index(name)].left is not None

    def _check_joined(self, name: str) -> None:
        if self.begun and name not in self.names:
            raise InvalidInputError(
                f"{name} is not in the race, which has begun with {', '.join(self.names)}; begin a new store"
            )
        if self._has_left(name):
            raise StoreError(
                f"{self._log.address}: the race has gone on without {name} "
                f"({self.lanes[self.names.index(name)].left}); begin a new store"
            )
        if self._worker_of.get(name) == self._log.worker:
            return
        raise InvalidInputError(
            f"{name} is in this race already, run by another worker; give every arm to one worker"
        )

    # steps

    def _apply(self, step: Step) -> Any:
        found = None
        body = step.body
        if step.kind == "join":
            self._join(Entry.of_body(body), step.worker, body["over"])
        elif step.kind == "part":
            self._part(body["arm"])
        elif step.kind == "wanted":
            super().wanted()
        else:
            arm = self.names.index(body["arm"])
            key = () if "key" not in body else ((body["key"][0], body["key"][1]),)
            found = getattr(super(), step.kind)(arm, *key, **body["given"])
        self._since_wanted = step.kind != "wanted"
        return found

    def _join(self, entry: Entry, worker: int, over: Sequence[int]) -> None:
        owner = self._worker_of.get(entry.arm)
        if owner is not None and owner != worker and owner not in over:
            return  # it is another worker's
        if self.begun:
            if owner is not None and not self._has_left(entry.arm):
                self._worker_of[entry.arm] = worker
                self._settle(entry)
            return
        self._joined[entry.arm] = entry
        self._worker_of[entry.arm] = worker
        config, items, attempts, arms = self._fresh
        if len(self._joined) < arms:
            return
        self.names = sorted(self._joined)
        entries = [self._joined[name] for name in self.names]
        widths = [entry.width for entry in entries]
        RacePurchase.__init__(self, config, self.names, items, attempts=attempts, widths=widths)
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
        self.left_out |= {(arm, cell.key) for cell in entry.known if cell.again}
        under_way = list(self.lanes[arm].flights)
        beyond = entry.unread - sum(key not in known for key in under_way)
        if beyond > 0.0:  # retries of the host
            super().pay(arm, min(beyond, self.purchase.ledger.free))
        for key in under_way:
            cell = known.get(key)
            value, error = (None, CUT_OFF) if cell is None else (cell.value, cell.error)
            attempts = 1 if cell is None else cell.attempts
            super().completed(arm, key, value, attempts=attempts, error=error)

    def _part(self, name: str) -> None:
        if self.begun:
            super().leave(self.names.index(name), SILENT)
        else:
            del self._joined[name]
        del self._worker_of[name]

    def _handed(self, request: Request) -> Asked:
        asked = super()._handed(request)
        super().started(asked.arm, asked.key)
        return asked
