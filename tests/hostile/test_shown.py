"""Whatever names, items, prompts, answers and errors hold, nothing is obeyed where it is shown."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from tests.audits.store.audits import Told
from tests.claims import replications
from tests.hostile.damage import always_the_same

from evalbudget.audits.store import Answer, AuditRun, AuditStore, weigh
from evalbudget.backtest import RecordedScores
from evalbudget.cli.main import cli
from evalbudget.comparisons import Baseline, as_csv, as_junit, as_markdown, compare, gate
from evalbudget.doctor import Diagnosis, Finding, Kind
from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.hooks._plugins import plugins
from evalbudget.judges.estimates._mixed import _Sums
from evalbudget.report import page, report
from evalbudget.shown import shown, shown_json, shown_lines, shown_logger
from evalbudget.spreadsheets import as_cell, from_cell, name_as_cell, names_from_cells
from evalbudget.statistics._paired_test import PairedDraws
from evalbudget.tables import PrintableTable
from evalbudget_pairwise import Answers, ModelAnswers, as_text, load_preferences
from evalbudget_pairwise._preferences import Preference, Preferences

PIECES = (
    "\x1b[2J", "\x1b]0;title\x07", "\x1b", "\x9b2J", "\x9d", "\x00", "\x7f", "\r", "\n", "\t", "\v", "\f",
    "\x85", "\u2028", "\u2029", "\u200b", "\u200c", "\u200d", "\u200e", "\u202e", "\u2066", "\u2069",
    "\u2060", "\ufeff", "\ufe0f", "\u3164", "\U000e0041", "\ud800", "\udc00", "\u0301", "\u0301" * 4,
    "::error file=a::x", "\n::error::", ":", "::", "##[error]", "##vso[task.complete]", "[red]", "[/]",
    "[link=http://x]", "\\", ":smile:", "@team", "<script>", "&amp;", "|", "`", "#1", "https://x.example",
    "é", "日本", "a b", "model", " ",
)  # fmt: skip
TEXTS = st.one_of(
    st.lists(st.one_of(st.sampled_from(PIECES), st.characters()), min_size=1, max_size=8).map("".join),
    st.text(min_size=1, max_size=20),
    st.text(st.sampled_from("\u0301\u0308\u20dd"), min_size=1),
)
HIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff]")


def check(text: str, *, lines: bool = True) -> None:
    text.encode()
    assert not HIDDEN.search(text), ascii(text)
    assert not re.search(r"::(error|group|set-env)([ :]|$)|##\[|##vso\[", text, re.MULTILINE), ascii(text)
    assert lines or "\n" not in text


HARMLESS = (
    "openai/gpt-5", "Ünïcode e\u0301", "日本語のモデル", "Tiếng Việt", "שלום", "می\u200cخواهم",
    "API\u200cهای", "葛\U000e0100城市", "क्\u200dष",
    "👩\u200d👩\u200d👧", "❤\ufe0f", "1\ufe0f\u20e3", "👍🏽", "[red]a[/]", "a:b", "C:\\x", "#1",
)  # fmt: skip


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_harmless_stays(text: str) -> None:
    assert shown(text) == shown_lines(text) == text


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("\x1b[2Ja", r"\x1b[2Ja"), ("a\nb\r\tc", r"a\nb\r\tc"), ("\x9bJ", r"\x9bJ"),
        ("a\u202eb", r"a\u202eb"), ("a\u200bb", r"a\u200bb"), ("a\u200db", r"a\u200db"),
        ("a\ufe0fb", r"a\ufe0fb"), ("\ud800", r"\ud800"), ("\u200c\u2066", r"\u200c\u2066"),
        ("\U000e0041", r"\U000e0041"), ("\u0301\u0308", r"\u0301\u0308"), ("a \u0301", r"a \u0301"),
        ("::error::x", r":\x3aerror::x"), ("std::vector", "std::vector"),
        ("std::error::E", r"std:\x3aerror::E"), ("##[error]", r"#\x23[error]"),
    ],
)  # fmt: skip
def test_what_is_obeyed_or_hidden_is_written_out(text: str, seen: str) -> None:
    assert shown(text) == seen
    assert shown(seen) == seen


def test_long_texts_lose_their_middle() -> None:
    assert shown("model-" + "x" * 100 + "-v2", 20) == "model-xxxxxxxx…xx-v2"
    told = str(InvalidInputError(f"{'x' * 10**6} is no name; give another one"))
    assert len(told) == 4000
    assert told.endswith("give another one")


def test_own_line_breaks_stay() -> None:
    assert shown_lines("a:\r\n\tb\x1b\n::group::x") == "a:\n    b\\x1b\n:\\x3agroup::x"


@pytest.mark.claim
def test_whatever_is_shown() -> None:
    @always_the_same(replications(120, 10_000))
    @given(TEXTS)
    def anything(text: str) -> None:
        check(shown(text), lines=False)
        check(shown_lines(text))
        assert shown(shown(text)) == shown(text)
        whole = json.loads(json.dumps(text))  # two halves in a row are one character in JSON
        assert json.loads(shown_json(json.dumps(text, ensure_ascii=False))) == whole
        for error in (
            InvalidInputError(f"{text}: give another"),
            UnknownNameError("model", text, (text, "b")),
        ):
            check(str(error))

    anything()


@pytest.mark.claim
def test_whatever_names_hold_in_what_commands_say(monkeypatch: pytest.MonkeyPatch) -> None:
    # names are what differs: fits and bisections would take nine tenths of the time
    monkeypatch.setattr(_Sums, "best_rho", lambda _: 0.5)
    monkeypatch.setattr(PairedDraws, "interval", lambda *_: (-0.5, 0.5))

    @always_the_same(replications(36, 10_000))
    @given(
        st.sampled_from((of_report, of_compare, of_gate, of_doctor)),
        st.lists(TEXTS, min_size=8, max_size=8, unique_by=lambda text: text.strip()),
    )
    def anything(said: Callable[[list[str]], tuple[str, ...]], texts: list[str]) -> None:
        for text in said(texts):
            check(text)

    anything()


def of_report(texts: list[str]) -> tuple[str, ...]:
    return (str(report(scores(texts)[0]).table()),)


def of_compare(texts: list[str]) -> tuple[str, ...]:
    found = compare(scores(texts)[0])
    return str(found.table()), repr(found)


def of_gate(texts: list[str]) -> tuple[str, ...]:
    _, old, new = scores(texts)
    found = gate(Baseline.of(old, name=texts[0]), new, margin=0.9)
    ElementTree.fromstring(as_junit(found))
    return str(found), repr(found), as_markdown(found), as_junit(found)


def of_doctor(texts: list[str]) -> tuple[str, ...]:
    finding = Finding(Kind.PROBLEM, texts[0], texts[1], texts[2], score=texts[3])
    found = Diagnosis(texts[4], 1, 1, (), 1, (finding,), ((texts[5], texts[6]),))
    return (str(found),)


def scores(texts: list[str]) -> tuple[RecordedScores, RecordedScores, RecordedScores]:
    """Two models on three items, and each of them by itself, named after the texts."""
    values = np.random.default_rng(0).random((2, 3, 2, 1))
    both = RecordedScores(
        values, tuple(texts[:2]), tuple(texts[2:5]), tuple(texts[5:7]), categories=texts[5:8]
    )
    old, new = (both.part(models=np.array([model])).select(rater=texts[5]) for model in (0, 1))
    return both, old, new


HOSTILE = "a\x1b[2J\n::error file=x::y\u202e[red]\u2028@team<b>|##[error]https://x.example"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    names = [HOSTILE + str(number) for number in range(8)]
    both, old, new = scores(names)
    for name, recorded in (("both", both), ("old", old), ("new", new)):
        recorded.save(f"{name}.npz")
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        ["report", "both.npz", "--html", "page.html"],
        ["report", "both.npz", "--model", HOSTILE],
        ["compare", "both.npz"],
        ["compare", "old.npz", "new.npz", "--json", "found.json"],
        ["doctor", "both.npz"],
        ["gate", "--baseline", "old.npz", "--candidate", "new.npz", "--margin", "0.9"],
        ["gate", "--baseline", "old.npz", "--save-baseline", "kept.csv"],
        ["backtest", "judges", "both.npz"],
        ["report", "no\x1b[2J\n::error::.npz"],
        ["no\x1b[2J\n::error::command"],
    ],
    ids=lambda words: " ".join(words[:2]).split("\n")[0].replace("\x1b", ""),
)
def test_commands(files: Path, command: list[str]) -> None:
    told = CliRunner().invoke(cli, command)
    assert told.exit_code in (0, 2, 3), told.output
    assert "Traceback" not in told.output
    check(told.output)


def test_json_holds_the_true_names(files: Path) -> None:
    told = CliRunner().invoke(cli, ["compare", "both.npz", "--json", "-"])
    check(told.output.replace("::", ""))
    assert json.loads(told.output)["rows"][0]["first"] == HOSTILE + "0"


def test_audit_next(tmp_path: Path) -> None:
    path, told = tmp_path / "a.sqlite", Told(n_items=30, pilot=8, labels_per_batch=8)
    told.design = replace(told.design, items=tuple(f"{HOSTILE}{i}" for i in range(30)))
    with told.create(path) as store:
        run = AuditRun(store)
        for context in run.contexts:
            answers = [Answer(f"Write:\n\t{HOSTILE}\n::error::z", HOSTILE, HOSTILE) for _ in context.models]
            run.record(context, answers, [5.0 for _ in answers] if context.judged else None)
        for draw in weigh(store).wanted[:2]:
            store.labels.add(draw, 3.0, "ann ##[error]")
    for verb in ("next", "status", "verdict"):
        found = CliRunner().invoke(cli, ["audit", verb, str(path)])
        assert "Error" not in found.output
        check(found.output)
        assert ("team<b>" in found.output) == (verb == "next"), found.output
    with AuditStore.open(path) as store:
        assert store.draws.task(weigh(store).wanted[0]).item.startswith("a\x1b")


def test_a_traceback_of_somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(HOSTILE)

    monkeypatch.setattr("evalbudget.cli._sources.opened", fail)
    told = CliRunner().invoke(cli, ["doctor", "x"])
    assert told.exit_code == 4
    assert "RuntimeError: a\\x1b[2J" in told.stderr
    check(told.stderr)


def test_pages_and_tables_in_them() -> None:
    recorded, _, _ = scores([HOSTILE + str(number) for number in range(8)])
    for html in (page(report(recorded)), report(recorded)._repr_html_(), compare(recorded)._repr_html_()):
        check(html)
        assert "<b>" not in html


def test_no_line_of_a_table_is_a_command() -> None:
    table = PrintableTable(box=None, pad_edge=False)
    table.add_column("model", overflow="fold")
    table.add_row("x" * 80 + "::error file=a::b")
    check(str(table))


def test_comments_call_nobody_and_link_nowhere() -> None:
    _, old, new = scores(["@team", "www.x.example", "#12", "a&lt;b", "GH-7", "https://x.example", "!3", "b"])
    found = as_markdown(gate(Baseline.of(old, name="a@team.example #12 GH-7 &lt; *b* $1"), new, margin=0.9))
    for live in ("@team", "www.", "://", "#12", "GH-7", "&lt;", " *b*", "$1"):
        assert live not in found
    assert "a@&#8203;team.example \\#&#8203;12 GH-&#8203;7 &amp;&#8203;lt; \\*b\\*" in found


NAMES = (
    "=1+1", "-1+x", "@a", "+b", "'=c", "''-d", "-5", "1e3", "'e", "＝f", "-", "--g", "=c", "'\"\\u0041\"",
    "''\"x", "A", "::error file=x::a", "a\n::error::b", "a##[group]b", "\x1b[2J", "a\u202eb", "::b", "a::b",
    "\u0301x",
)  # fmt: skip


@pytest.mark.parametrize("text", [*NAMES, "\t=x", "\r=x", "\n", "'\t", "", "'", "''", "-1e5", "+.5", "-1\n"])
def test_cells_of_spreadsheets(text: str) -> None:
    cell = as_cell(text)
    assert cell[:1] not in tuple("=@\t\r＝") or not cell
    assert cell[:1] not in "+-" or not cell or float(cell) is not None
    assert from_cell(cell) == text


@always_the_same(replications(60, 10_000))
@given(st.lists(TEXTS | st.text("'\"=-5: \n\\u0a", max_size=8), max_size=6))
def test_names_in_cells_come_back_and_are_not_obeyed(names: list[str]) -> None:
    cells = [name_as_cell(name) for name in names]
    assert names_from_cells(cells) == names
    for cell in cells:
        check(cell, lines=False)
        assert from_cell(as_cell(cell)) == cell
        assert not cell or cell.lstrip()[:1] not in tuple("=@＝＋－＠")
    foreign = [*names, "=x", "'=x", "''=x"]
    assert names_from_cells(foreign) == foreign


def test_foreign_names_that_differ_by_an_apostrophe_are_two(tmp_path: Path) -> None:
    table = tmp_path / "foreign.csv"
    table.write_text("item,score\n=x,1\n'=x,0\n\"'=y\",1\n", encoding="utf-8")
    assert plugins().open_scores(table).items == ("=x", "'=x", "'=y")
    table.write_text("item,first,second,value\nq,=x,'=x,1\n", encoding="utf-8")
    assert set(load_preferences(table).models) == {"=x", "'=x"}


def test_tables_for_spreadsheets_come_back_as_they_were(tmp_path: Path) -> None:
    values = -np.arange(1.0, len(NAMES) + 1.0)[None, :, None, None]
    recorded = RecordedScores(values, ("=model",), NAMES, ("@judge",), categories=NAMES)
    kept = tmp_path / "kept.csv"
    kept.write_text(as_csv(Baseline.of(recorded, name="=model"), "+field"), encoding="utf-8")
    rows = list(csv.reader(io.StringIO(kept.read_text(encoding="utf-8"))))
    assert "'+field" in rows[0]
    assert {"'=1+1", "-5", "''=c"} <= {row[0] for row in rows}
    check(kept.read_text(encoding="utf-8"))
    assert {row[1] for row in rows[1:]} == {repr(float(value)) for value in values.ravel()}
    again = plugins().open_scores(kept, category="+field")
    assert set(again.items) == set(NAMES)
    assert (again.models, again.raters) == (("=model",), ("@judge",))
    assert set(again.categories or ()) == set(NAMES)
    rows = [Preference(name, "=a", "+b", 1.0, "@judge") for name in NAMES]
    for suffix in (".csv", ".tsv"):
        table = tmp_path / f"preferences{suffix}"
        table.write_text(as_text(rows, suffix), encoding="utf-8")
        assert "\n'=1+1" in table.read_text(encoding="utf-8")
        check(table.read_text(encoding="utf-8").replace("\t", " "))
        found = load_preferences(table)
        assert set(found.items) == set(NAMES)
        assert set(found.models) == {"=a", "+b"}


def test_a_table_that_breaks_a_name_makes_no_command_of_it() -> None:
    for length in range(20):
        table = PrintableTable()
        table.add_column("model", width=12)
        table.add_row("a" * length + "::error::x")
        assert "::error" not in str(table)


def test_names_of_models_that_are_compared_break_no_line_of_a_message(tmp_path: Path) -> None:
    odd = "a\n\x1b[2J::error::x"
    said = {"x": "asked"}
    with pytest.raises(InvalidInputError, match="is given twice") as twice:
        Answers.of([ModelAnswers(odd, odd, said, said)] * 2)
    rows = [Preference("x", f"{odd}{k}", f"b{k}", 1.0, "j") for k in range(2)]
    with pytest.raises(InvalidInputError, match="cannot be ranked together") as apart:
        Preferences.of(rows).check_connected()
    (table := tmp_path / "table.csv").write_text(f'item,"{odd}"\n')
    with pytest.raises(InvalidInputError, match="has no column") as lacking:
        load_preferences(table)
    for told in (twice, apart, lacking):
        check(str(told.value), lines=False)


def test_lines_of_logs(caplog: pytest.LogCaptureFixture) -> None:
    shown_logger("evalbudget.tests").warning("judge %r failed: %s", "a", HOSTILE)
    check(caplog.records[0].getMessage())
    assert caplog.records[0].getMessage().startswith("judge 'a' failed: a\\x1b[2J")
