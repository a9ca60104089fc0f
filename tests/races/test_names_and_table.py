"""A leaderboard on a terminal of 80 columns: names in one piece, whole counts, a live table that is true."""

from __future__ import annotations

from io import StringIO

import numpy as np
import pytest
from rich.console import Console
from tests.races.worlds import new_race, play, played, table

from evalbudget.races._leaderboard import leaderboard_of
from evalbudget.races._progress import RaceProgress, live_lines
from evalbudget.races._purchase import RacePurchase
from evalbudget.races._table import shortened, wrapped

LONG = "openai-api/some-provider/gpt-5-mini-2025-08-07-preview"


@pytest.mark.parametrize("width", [8, 12, 20, 40, 80])
def test_names_break_after_separators_only(width: int) -> None:
    lines = wrapped(LONG, width).split("\n")
    assert "".join(lines) == LONG
    assert all(len(line) <= width for line in lines)
    for line in lines[:-1]:
        assert line[-1] in "/-:,=_" or len(line) == width
    assert wrapped("abcdefghij", 4) == "abcd\nefgh\nij"


def test_names_on_one_line_keep_what_tells_them_apart() -> None:
    assert shortened(LONG, 80) == LONG
    assert shortened(LONG, 20) == "…2025-08-07-preview"
    assert shortened("abcdefghij", 4) == "…hij"
    assert all(len(shortened(LONG, width)) <= width for width in range(3, 60))


def _race(names: list[str], budget: int = 200) -> RacePurchase:
    scores = table([0.9, 0.5, 0.4][: len(names)], 100, 3)
    race = new_race(scores, budget, "race", 3)
    race.design = type(race.design)(items=race.design.items, models=tuple(names))
    for lane, name in zip(race.lanes, names, strict=True):
        lane.name = name
    return played(race, scores)


def test_a_table_of_long_names_fits_80_columns() -> None:
    names = [f"{LONG}/{k}" for k in range(3)]
    text = leaderboard_of(_race(names)).table(width=80)
    assert max(map(len, text.splitlines())) <= 80
    assert "openai-api/" in text
    for number in text.replace(",", "").split():
        assert not number.endswith(".0")


def test_lines_of_the_live_table_fit_and_say_what_the_board_says() -> None:
    board = leaderboard_of(_race([f"{LONG}/{k}" for k in range(3)]))
    lines = [line.plain for line in live_lines(board, 80)]
    assert max(map(len, lines)) <= 80
    assert f"{board.spent} of {board.budget}" in lines[0]
    assert len(lines) == 2 + len(board.standings)
    for standing, line in zip(board.standings, lines[2:], strict=True):
        assert line.endswith(standing.status.value)


def test_off_a_terminal_there_is_a_line_per_twentieth() -> None:
    out = StringIO()
    progress = RaceProgress(Console(file=out, width=80), lambda: 0.0)
    scores = table([0.9, 0.5, 0.4], 100, 3)
    race = new_race(scores, 200, "uniform", 3)
    progress.begins(race)
    for _ in play(race, scores):
        progress(race)
    progress.close()
    lines = out.getvalue().splitlines()
    assert lines[0] == "race: 3 models x 100 items = 300 evaluations; at most 200 of them"
    assert len(lines) == 1 + 21
    assert lines[1].startswith("race: 1 of 200 evaluations; ")
    assert lines[-1].startswith("race: 200 of 200 evaluations; ")
    assert "of 3 still possible" in lines[3]
    assert progress.so_far == " after 200 evaluations"


def test_a_live_table_is_drawn_as_often_as_it_is_cheap() -> None:
    now = 0.0

    def clock() -> float:
        return now

    out = StringIO()
    progress = RaceProgress(Console(file=out, width=80, force_terminal=True), clock)
    scores = table([0.9, 0.5], 30, 3)
    race = new_race(scores, 60, "uniform", 3)
    looks = 0
    for _ in play(race, scores):
        before = len(out.getvalue())
        progress(race)
        looks += len(out.getvalue()) > before
        now += 0.1
    progress.close()
    assert 60 / 3 - 1 <= looks <= 60 / 3 + 1  # every quarter of a second
    assert np.isfinite(now)
