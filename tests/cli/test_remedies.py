"""Every option that a message names is one of the command that says it, or of the command that it names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

from evalbudget.cli.main import cli

COMMANDS = {
    "report": ("report", "PATH"),
    "report of missing scores dropped": ("report", "PATH", "--missing", "drop"),
    "compare": ("compare", "PATH"),
    "compare guaranteed": ("compare", "PATH", "--guaranteed"),
    "compare in clusters": ("compare", "PATH", "--cluster", "place"),
    "gate": ("gate", "--baseline", "PATH", "--candidate", "PATH", "--margin", "0.1"),
    "gate in clusters": (
        *("gate", "--baseline", "PATH", "--candidate", "PATH", "--margin", "0.1", "--cluster", "place"),
    ),
    "doctor": ("doctor", "PATH"),
    "plan": ("plan", "PATH", "--half-width", "0.1"),
    "plan of items": ("plan", "PATH", "--item-half-width", "0.1"),
    "plan of races": ("plan", "PATH", "--race"),
    "plan of audits": ("plan", "PATH", "--audit"),
    "backtest repeats": ("backtest", "repeats", "PATH", "--budget", "2x", "--seeds", "1"),
    "backtest races": ("backtest", "races", "PATH", "--budget", "50%", "--seeds", "1"),
    "backtest judges": ("backtest", "judges", "PATH", "--budget", "20", "--seeds", "1"),
    "backtest audits": ("backtest", "audits", "PATH", "--seeds", "1"),
}
NAMED = ("report", "compare", "gate", "plan", "inspect eval", "inspect race")
"""Commands that messages of others name."""
Rows = Iterator[dict[str, object]]


def two(
    score: Callable[[Random, str, int], object], raters: tuple[str, ...] = ("r",), **more: object
) -> Rows:
    """Rows of two models on twelve items."""
    rng = Random(0)
    for model, item, rater in product("ab", range(12), raters):
        yield {"model": model, "item": f"q{item}", "judge": rater, "score": score(rng, rater, item), **more}


def coin(rng: Random, rater: str, item: int) -> int:
    return rng.randrange(2)


SOURCES: dict[str, Callable[[], Rows]] = {
    "plain": lambda: two(coin),
    "one model": lambda: (row for row in two(coin) if row["model"] == "a"),
    "beyond 1": lambda: two(lambda rng, rater, item: 10 * rng.random()),
    "one category": lambda: two(coin, place="here"),
    "judges on two scales": lambda: two(
        lambda rng, rater, item: rng.random() * (100 if rater == "y" else 1), ("x", "y")
    ),
    "metrics": lambda: two(coin, ("x", "y"), one_measure=False),
    "of which one is an error": lambda: (
        row | {"better": "lower" if row["judge"] == "x" else "higher"} for row in two(coin, ("x", "y"))
    ),
    "missing": lambda: two(lambda rng, rater, item: "" if item % 3 == 0 else rng.randrange(2)),
    "one model without scores": lambda: (
        row | ({"score": ""} if row["model"] == "a" else {}) for row in two(coin)
    ),
    "bought by scores": lambda: two(coin, allocation="adaptive", fixed_repeats=0),
    "two tasks": lambda: (row | {"task": f"t{row['item'] == 'q0'}"} for row in two(coin)),
    "one task to each model": lambda: (row | {"task": f"t{row['model']}"} for row in two(coin)),
    "repeats": lambda: (row for _ in range(4) for row in two(coin)),
}


@cache
def options_of(command: str) -> frozenset[str]:
    """What its help lists."""
    told = CliRunner().invoke(cli, [*command.split(), "--help"]).output
    return frozenset(re.findall(r"^ +(?:-\w, )?(--[a-z][a-z_-]+)", told, flags=re.MULTILINE))


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("command", COMMANDS)
def test_options_in_messages_are_there(command: str, source: str, tmp_path: Path) -> None:
    rows = list(SOURCES[source]())
    path = tmp_path / "scores.csv"
    lines = [list(rows[0]), *(list(row.values()) for row in rows)]
    path.write_text("\n".join(",".join(map(str, line)) for line in lines) + "\n")
    done = CliRunner().invoke(cli, [str(path) if word == "PATH" else word for word in COMMANDS[command]])
    assert done.exit_code in (0, 1, 2, 3), done.output
    said, own = (
        " ".join(done.output.split()),
        " ".join(COMMANDS[command][: 1 + command.startswith("backtest")]),
    )
    for sentence in re.split(r"(?<=[.;]) ", said):
        for found in re.finditer(r"(?<![\w-])--[a-z][a-z-]+", sentence):
            before = sentence[: found.start()]
            named = [name for name in NAMED if re.search(rf"\b{name}\b", before)]
            allowed = options_of(own).union(*map(options_of, named))
            assert found[0] in allowed, f"{own} has no {found[0]}: {sentence}"
