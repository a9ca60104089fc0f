"""How a race goes while it runs: a live table on a terminal, a line per twentieth of the budget elsewhere."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.live import Live
from rich.text import Text

from evalbudget.budget import Unit
from evalbudget.races._leaderboard import Leaderboard, leaderboard_of
from evalbudget.races._purchase import RacePurchase
from evalbudget.races._summary import decimals_of
from evalbudget.races._table import shortened
from evalbudget.races._verdict import Status
from evalbudget.shown import shown

LINES = 20
"""Of a race from its beginning to its end, where there is no terminal."""
_MOST_ROWS = 12
_PAUSE, _LONGEST = 0.25, 5.0  # seconds between two looks, within which it is this many times what one takes:
_TIMES = 20.0
_BAR = 20
_IN_QUESTION = (Status.BEST, Status.TIE, Status.LEADS, Status.POSSIBLE)


class RaceProgress:
    """Told the state of a race after each reading or round.

    Args:
        console: to write to; a live table if it is a terminal.
        clock: seconds that go on, to look at the race a few times a second; what a look costs is small beside
            what it waits.

    Attributes:
        so_far: how far the race has come, for a message when it is broken off.
    """

    _mark = -1
    """Twentieths of the budget that there is a line of."""

    def __init__(self, console: Console, clock: Callable[[], float]) -> None:
        self._console = console
        self._clock = clock
        self._live: Live | None = None
        self._next = float("-inf")
        self._lost: set[str] = set()
        self.so_far = ""

    def begins(self, race: RacePurchase) -> None:
        """Say what is about to be spent at most."""
        models, items = race.design.n_models, race.design.n_items
        unit = race.budget.unit
        most = (
            f"{min(int(race.budget.amount), race.grid):,} of them"
            if unit is Unit.SCORES
            else str(race.budget)
        )
        until = ", until the best is proved" if race.config.until_proved else ""
        if race.config.until is not None:
            until = f", until {'its mean is' if models == 1 else 'means are'} known to {race.config.until}"
        known = f"; {race.evaluations:,} are known" if race.evaluations else ""
        self._line(
            f"race: {models:,} model{'s' * (models != 1)} x {items:,} items = {race.grid:,} evaluations; at "
            f"most {most}{until}{known}"
        )

    def __call__(self, race: RacePurchase) -> None:
        """Show what changed, if it is time."""
        spent = race.evaluations
        self.so_far = f" after {spent:,} evaluations"
        if self._console.is_terminal:
            if self._clock() >= self._next:
                self._show(race)
            return
        mark = self._part(race)
        if mark > self._mark:
            self._mark = mark
            self._say(race)

    def close(self) -> None:
        """Take away what is live."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _show(self, race: RacePurchase) -> None:
        started = self._clock()
        state = self._state(race)
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(state, refresh=True)
        now = self._clock()
        self._next = now + min(max(_PAUSE, _TIMES * (now - started)), _LONGEST)

    def _part(self, race: RacePurchase) -> int:
        """Twentieths of the budget that are spent."""
        return int(race.spent * LINES / race.budget.amount)

    def _state(self, race: RacePurchase) -> Text:
        """What a terminal shows."""
        return Text("\n").join(live_lines(leaderboard_of(race), self._console.width))

    def _say(self, race: RacePurchase) -> None:
        """A line, where there is no terminal."""
        board = leaderboard_of(race)
        for standing in board.standings:
            if standing.status is Status.LOST and standing.name not in self._lost:
                self._lost.add(standing.name)
                why = standing.left or "it kept failing"
                self._line(f"race: {standing.name} was lost: {why}")
        self._line(f"race: {_state(board)}")

    def _line(self, text: str) -> None:
        self._console.print(shown(text), emoji=False, highlight=False, markup=False, soft_wrap=True)


def live_lines(board: Leaderboard, width: int) -> list[Text]:
    """A table of the race as it stands, no line wider than the terminal."""
    share = min(1.0, board.spent / max(1, board.budget))
    done = round(_BAR * share)
    bar = "━" * done + "╌" * (_BAR - done)
    left = board.named(*_IN_QUESTION)
    state = f"{board.spent:,} of {board.budget:,}; {len(left):,} of {len(board.standings):,} still possible"
    lines = [Text(f"{bar} {share:4.0%}  {state}"[:width], style="bold")]
    d = decimals_of(board)
    first = board.standings[:_MOST_ROWS]
    numbers = [
        (
            "–" if s.estimate is None else f"{s.estimate:.{d}f}",
            f"{s.all_lower:.{d}f} to {s.all_upper:.{d}f}",
            f"{s.readings:,}",
            s.status.value,
        )
        for s in first
    ]
    heads = ("estimate", "all_lower to all_upper", "read", "status")
    sizes = [max(len(heads[k]), *(len(row[k]) for row in numbers)) for k in range(4)]
    room = max(8, min(max(len(s.name) for s in first), width - sum(sizes) - 2 * len(sizes)))
    lines.append(Text(_row("model".ljust(room), heads, sizes)[:width], style="dim"))
    for standing, row in zip(first, numbers, strict=True):
        style = {Status.BEHIND: "dim", Status.LOST: "red"}.get(standing.status, "")
        lines.append(Text(_row(shortened(standing.name, room).ljust(room), row, sizes)[:width], style=style))
    more = len(board.standings) - len(first)
    if more:
        lines.append(Text(f"and {more:,} more", style="dim"))
    return lines


def _row(name: str, cells: tuple[str, ...], sizes: list[int]) -> str:
    aligned = (cells[0].rjust(sizes[0]), cells[1].ljust(sizes[1]), cells[2].rjust(sizes[2]), cells[3])
    return "  ".join([name, *aligned])


def _state(board: Leaderboard) -> str:
    """Spent of the budget, who leads, how many are still possible."""
    spent = f"{board.spent:,} of {board.budget:,} evaluations"
    if len(board.standings) == 1 and board.leader.estimate is not None:
        low, high, d = board.leader.all_lower, board.leader.all_upper, decimals_of(board)
        return (
            f"{spent}; {board.leader.name} scores {board.leader.estimate:.{d}f} ({low:.{d}f} to {high:.{d}f})"
        )
    best = board.named(Status.BEST, Status.TIE)
    if best:
        return f"{spent}; {' and '.join(best[:2])} {'is best' if len(best) == 1 else 'tie'}"
    possible = board.named(Status.LEADS, Status.POSSIBLE)
    leads = board.named(Status.LEADS)
    if not leads:
        return f"{spent}; no score yet"
    return f"{spent}; {leads[0]} leads, {len(possible):,} of {len(board.standings):,} still possible"
