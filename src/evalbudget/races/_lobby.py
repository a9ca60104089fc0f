"""Who takes part in a race whose arms run in several processes: rows beside its book, one an arm."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any, Protocol

from sqlalchemy import Table, bindparam, delete, select
from sqlalchemy.dialects import postgresql, sqlite

from evalbudget.book import Book, Turn
from evalbudget.book._tables import ARMS, SO_FAR
from evalbudget.errors import InvalidInputError, StoreError
from evalbudget.races._lanes import SILENT, Entry, Key, KnownCell, Lane
from evalbudget.shown import shown_logger
from evalbudget.store._sql import change, rows
from evalbudget.untrusted import parsed_json

log = shown_logger(__name__)

_ALL = select(ARMS, SO_FAR.c.told).outerjoin(SO_FAR, SO_FAR.c.arm == ARMS.c.arm)
_CHANGED = select(SO_FAR).where(SO_FAR.c.changed > bindparam("after"))
_LEAVES = delete(ARMS).where(ARMS.c.arm == bindparam("which"))


class Race(Protocol):
    """What a lobby asks of its race: see :class:`~evalbudget.races._purchase.RacePurchase`."""

    lanes: list[Lane]

    @property
    def finished(self) -> bool: ...

    def begin(self, names: Sequence[str]) -> None: ...

    def replay(
        self,
        known: Mapping[int, Sequence[KnownCell]],
        unread: Mapping[int, float] = ...,
    ) -> set[tuple[int, Key]]: ...

    def recall(self, arm: int, known: Sequence[KnownCell], again: Mapping[Key, int] | None) -> None: ...

    def silent(self, arm: int, turn: Turn, worker: int, again: Mapping[Key, int]) -> None: ...


def _upsert(insert: Any, table: Table) -> Any:
    row = insert(table)
    return row.on_conflict_do_update(index_elements=["arm"], set_=dict(row.excluded))


_UPSERT = {
    (name, table): _upsert(insert, table)
    for name, insert in (("sqlite", sqlite.insert), ("postgresql", postgresql.insert))
    for table in (ARMS, SO_FAR)
}


@dataclass(frozen=True, slots=True)
class Seat:
    """An arm that takes part.

    Attributes:
        worker: that runs it.
        entry: what it came with.
        prices: of the models that are known to be asked there.
        left_out: of what it came with, keys of cells that were cut off and are not paid for again.
        so_far: what it has cost and brought, once the race has begun.
    """

    worker: int
    entry: Entry
    prices: Mapping[str, str]
    left_out: Sequence[Key] = ()
    so_far: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, row: Any) -> Seat:
        """As it stands in the store."""
        came = parsed_json(row.came_with)
        known = [KnownCell((key[0], key[1]), *rest) for key, *rest in came["known"]]
        entry = Entry(row.arm, known, float(came["unread"]))
        left_out = [(name, number) for name, number in parsed_json(row.left_out)]
        so_far = None if row.told is None else parsed_json(row.told)
        return cls(row.worker, entry, dict(came["prices"]), left_out, so_far)

    @property
    def again(self) -> dict[Key, int]:
        """Cells that its host runs again, and how often they were run before."""
        return {} if self.so_far is None else {(name, epoch): n for name, epoch, n in self.so_far["again"]}

    def as_row(self) -> dict[str, Any]:
        """To keep in the store."""
        known = [astuple(cell) for cell in self.entry.known]
        came = {"known": known, "unread": self.entry.unread, "prices": self.prices}
        return {
            "arm": self.entry.arm,
            "worker": self.worker,
            "came_with": json.dumps(came),
            "left_out": json.dumps(self.left_out),
        }


class Lobby:
    """Where arms meet; and what each process knows of those of others.

    Args:
        book: of the race, in a store.
        race: that begins when all are there.
        prices: of models that are known to be asked here.
        in_money: the budget is money or tokens, which the store's bill counts.
    """

    def __init__(self, book: Book, race: Race, prices: Mapping[str, str], *, in_money: bool) -> None:
        self._book, self._where, self._race = book, book.where, race
        self._prices, self._in_money = dict(prices), in_money
        self._entries: dict[str, Entry] = {}  # of arms that run here
        self._names: list[str] = []  # once the race has begun
        self._is_loaded = False  # of what stands in the store, which is sure to be there
        self._restart()
        book.add(self)

    @property
    def names(self) -> Sequence[str]:
        """Of the arms, in the order of the sampler's models; none before all are there."""
        return self._names

    @property
    def missing(self) -> int:
        """Arms that are not there yet."""
        return len(self._race.lanes) - len(self._seats)

    @property
    def left_out(self) -> set[tuple[int, Key]]:
        """Arms and keys of cells that were cut off and are not paid for again."""
        arms = enumerate(self._names)
        return {(arm, key) for arm, name in arms for key in self._seats[name].left_out}

    @property
    def runs_again(self) -> bool:
        """Whether any arm has yet to run again what was cut off, and may need less than is put aside."""
        return any(seat.again for seat in self._seats.values())

    def is_own(self, arm: int) -> bool:
        """Whether an arm runs here."""
        return self._names[arm] in self._entries

    def join(self, entry: Entry) -> bool:
        """Have an arm take part; whether the race went on with it before.

        Raises:
            StoreError: the race has gone on without it.
            StoreDownError: the store cannot be reached.
            InvalidInputError: another worker runs it.
        """
        has_begun = self._book.once(lambda turn: self._joins(turn, entry))
        self._entries[entry.arm] = entry
        return has_begun

    def _joins(self, turn: Turn, entry: Entry) -> bool:
        self._refuse(turn, entry)
        has_begun = bool(self._names)
        if not has_begun:
            self._sit(turn, entry)
        return has_begun

    def _refuse(self, turn: Turn, entry: Entry) -> None:
        name, seat = entry.arm, self._seats.get(entry.arm)
        if self._names and seat is None:
            raise InvalidInputError(
                f"{self._where}: {name} is not in the race, which has begun with {', '.join(self._names)}; "
                "begin a new store"
            )
        left = self._race.lanes[self._names.index(name)].left if self._names else None
        if left is not None:
            raise StoreError(
                f"{self._where}: the race has gone on without {name} ({left}); begin a new store"
            )
        others = [each.prices for each in self._seats.values() if each.worker != turn.me]
        known = {model: price for own in others for model, price in own.items()}
        if dear := [model for model, price in self._prices.items() if known.get(model, price) != price]:
            raise InvalidInputError(
                f"{self._where}: another worker has other prices of {', '.join(dear)} "
                f"({known[dear[0]]} there, {self._prices[dear[0]]} here); give all the same prices"
            )
        if self._in_money and not self._names and entry.known:
            raise InvalidInputError(
                f"{name} goes on from logs of another race, and {self._where} does not know what they "
                "cost; go on with the store of that race, or begin in a new folder"
            )
        if seat is not None and seat.worker != turn.me:
            raise InvalidInputError(
                f"{self._where}: {name} is in this race already, run by another worker; give every arm to "
                "one worker"
            )

    def _sit(self, turn: Turn, entry: Entry) -> None:
        self._change(turn, Seat(turn.me, entry, self._prices))
        if self.missing:
            return
        self._race.begin(names := sorted(self._seats))
        entries = [self._seats[name].entry for name in names]
        left_out = self._race.replay(
            {arm: each.known for arm, each in enumerate(entries)},
            {arm: each.unread for arm, each in enumerate(entries)},
        )
        for arm, (name, lane) in enumerate(zip(names, self._race.lanes, strict=True)):
            seat = self._seats[name]
            keys = [key for each, key in left_out if each == arm]
            self._change(turn, replace(seat, left_out=keys))
            self._keep(turn, name, lane.as_json())
            if seat.worker != turn.me:
                lane.flights.clear()
        self._names = names

    def _change(self, turn: Turn, seat: Seat) -> None:
        self._seats[seat.entry.arm] = seat
        turn.about["changes"] += 1
        change(turn.connection, _UPSERT[turn.connection.dialect.name, ARMS], seat.as_row())

    # in a turn

    def _restart(self) -> None:
        self._seats: dict[str, Seat] = {}
        self._seen = -1
        if not self._is_loaded:
            self._names = []

    def take_in(self, turn: Turn, *, anew: bool) -> None:
        """What others did; anew, where nobody knows how far the last turn got.

        Raises:
            StoreError: the others have gone on without an arm that runs here.
        """
        if anew or not self._is_loaded:
            self._restart()
        if turn.about["changes"] <= self._seen:
            return
        before = dict(self._seats)  # none, or all that there will be
        for row in rows(turn.connection, _CHANGED if before else _ALL, {"after": self._seen}):
            seat = replace(before[row.arm], so_far=parsed_json(row.told)) if before else Seat.of(row)
            self._seats[row.arm] = seat
            if self._is_loaded:
                self._know(turn, seat)
        self._seen = turn.about["changes"]
        if not self._is_loaded and not self.missing:
            self._load(turn)

    def _load(self, turn: Turn) -> None:
        self._race.begin(names := sorted(self._seats))
        self._names, self._is_loaded = names, True
        for arm, name in enumerate(names):
            seat, lane = self._seats[name], self._race.lanes[arm]
            assert seat.so_far is not None
            lane.take(seat.so_far)
            known = [cell for cell in seat.entry.known if cell.key not in seat.left_out]
            self._race.recall(arm, known, seat.again if seat.worker == turn.me else None)

    def _know(self, turn: Turn, seat: Seat) -> None:
        name = seat.entry.arm
        lane = self._race.lanes[self._names.index(name)]
        assert seat.so_far is not None
        if seat.worker != turn.me:
            lane.take(seat.so_far)
        elif seat.so_far["left"] == SILENT != lane.left:
            raise StoreError(
                f"{self._where}: the race has gone on without {name}, which gave no sign of life for too "
                "long; what it had under way counts as paid"
            )

    def bury(self, turn: Turn, worker: int) -> None:
        """A process is gone, and its arms with it."""
        if self._names and self._race.finished:
            return
        for seat in [each for each in self._seats.values() if each.worker == worker]:
            name = seat.entry.arm
            if not self._names:
                log.warning("%s: %s", name, SILENT)
                change(turn.connection, _LEAVES, {"which": name})
                turn.about["changes"] += 1
                del self._seats[name]
                continue
            arm = self._names.index(name)
            if self._race.lanes[arm].left is None:
                log.warning("%s: %s", name, SILENT)
                self._race.silent(arm, turn, worker, seat.again)
                self._keep(turn, name, self._race.lanes[arm].as_json())

    def write(self, turn: Turn) -> None:
        """What became of the arms that run here; before the race began, that they are there."""
        for name, entry in self._entries.items():
            if self._names:
                self._keep(turn, name, self._race.lanes[self._names.index(name)].as_json())
            elif name not in self._seats:  # others had taken it for silent
                self._sit(turn, entry)
        self._seen = turn.about["changes"]

    def _keep(self, turn: Turn, name: str, so_far: Mapping[str, Any]) -> None:
        if so_far != self._seats[name].so_far:
            self._seats[name] = replace(self._seats[name], so_far=so_far)
            turn.about["changes"] += 1
            row = {"arm": name, "told": turn.storable(json.dumps(so_far)), "changed": turn.about["changes"]}
            change(turn.connection, _UPSERT[turn.connection.dialect.name, SO_FAR], row)
