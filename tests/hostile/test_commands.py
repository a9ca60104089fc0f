"""Whatever is typed ends with a result or with exit code 2 and a message, never with a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from tests.audits.store.audits import Told
from tests.hostile.damage import always_the_same

from evalbudget.backtest import RecordedScores
from evalbudget.cli._groups import LazyCommand
from evalbudget.cli.main import cli

VALUES = (
    "", "-1", "0", "1", "nan", "inf", "1e400", "0.5", "..", "5..1", "0..4", "2x", "-3x", "$5", "5Mtok",
    "9" * 30, "9" * 300, "x", "[red]x[/", "a,b", ",,", "a=1,b=", "=", "uniform", "auto", "race", "é💥",
    "scores.npz", "no.npz", "folder", "a.sqlite", "/proc/x", "-", "--", "../../etc/passwd",
    "1,2,3", "{}", "a", "r", "\udcff",
)  # fmt: skip
FILES = ("scores.npz", "scores.npz", "a.sqlite", "scores.csv", "folder", "no.npz", "-", "9" * 300, "../x")
ENDS = {0, 1, 2, 3, 4}  # 3 and 4 are of audits: labels are wanted, or the next batch
ELSEWHERE = ("inspect", "lm-eval", "demo", "serve", "plugins")


Known = tuple[tuple[str, ...], click.Command]


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[Known]:
    if isinstance(command, LazyCommand):
        command = command._load()
    if not isinstance(command, click.Group):
        yield path, command
        return
    for name in command.list_commands(click.Context(command)):
        inner = command.get_command(click.Context(command), name)
        if name not in ELSEWHERE and inner is not None:
            yield from commands(inner, (*path, name))


@st.composite
def typed(draw: st.DrawFn, known: list[Known]) -> list[str]:
    path, command = draw(st.sampled_from(known))
    words = list(path)
    words += [draw(st.sampled_from(FILES)) for p in command.params if isinstance(p, click.Argument)]
    options = [p for p in command.params if isinstance(p, click.Option)]
    for option in draw(st.lists(st.sampled_from(options), max_size=3, unique=True)):
        words.append(option.opts[-1])
        if not option.is_flag:
            choices = option.type.choices if isinstance(option.type, click.Choice) else ()
            words.append(draw(st.sampled_from([*choices, *VALUES])))
    return words


def test_any_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: RecordedScores) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVALBUDGET_CACHE", str(tmp_path))
    small.save("scores.npz")
    Path("scores.csv").write_text("item,score\na,1\nb,2\n")
    Path("folder").mkdir()
    told = Told(n_items=20)
    with told.create(tmp_path / "a.sqlite") as store:
        told.draw(store)

    @always_the_same(80, seconds=10.0)
    @given(typed(list(commands(cli))))
    def each(words: list[str]) -> None:
        done = CliRunner().invoke(cli, words, input="")
        assert done.exception is None or isinstance(done.exception, SystemExit), (words, repr(done.exception))
        assert done.exit_code in ENDS, words
        assert done.exit_code != 2 or done.stderr, words

    each()


@pytest.mark.parametrize("words", [["report", "9" * 300], ["audit", "status", "9" * 300]])
def test_a_name_that_is_too_long(words: list[str]) -> None:
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 2
    assert "999... is too long for the name of a file" in done.stderr


def test_more_seeds_than_a_word_counts(tmp_path: Path, small: RecordedScores) -> None:
    small.save(tmp_path / "scores.npz")
    command = ["backtest", "repeats", f"{tmp_path / 'scores.npz'}", "--rater", "r", "--model", "a"]
    done = CliRunner().invoke(cli, [*command, "--budget", "5x", "--seeds", "9" * 30])
    assert done.exit_code == 2
    assert "seeds" in done.stderr


@pytest.mark.parametrize(
    "scores", [(1.0, 1.0 + 2e-16), (1e16, 1e16 + 2), (1e-59, 2e-59), (5e-324, 0.0), (1e30, -1e30)]
)
def test_scores_of_any_size(tmp_path: Path, scores: tuple[float, float]) -> None:
    rows = [f"i{i},{k},{scores[i // 10 ^ (k == i % 3)]!r}" for i in range(20) for k in range(3)]
    (table := tmp_path / "table.csv").write_text("\n".join(["item,repeat,score", *rows]))
    for words in (["report"], ["doctor"], ["plan", "--half-width", "0.1"]):
        done = CliRunner().invoke(cli, [*words, str(table)])
        assert done.exit_code in (0, 2), done.output
