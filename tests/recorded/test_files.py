from __future__ import annotations

import gzip
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evalbudget.backtest import Declared, RecordedScores
from evalbudget.comparisons import Baseline, as_csv
from evalbudget.errors import InvalidInputError
from evalbudget.frames import Scores
from evalbudget.hooks._plugins import Plugins, plugins
from evalbudget.recorded._direction import direction_note
from evalbudget.recorded._files import open_scores


def csv(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "scores.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_csv_against_the_array_it_was_written_from(small: RecordedScores, tmp_path: Path) -> None:
    lines = ["comment,Model,item,rater,repeat,score"]
    for (m, i, r, j), score in np.ndenumerate(small.scores):
        text = "" if np.isnan(score) else f"{score:g}"
        lines.append(f'"a, b",{small.models[m]},{small.items[i]},{small.raters[r]},{j},{text}')
    table = open_scores(csv(tmp_path, "\ufeff" + "\n".join(lines) + "\n\n"))
    assert table is not None
    np.testing.assert_array_equal(table.scores, small.scores)
    assert (table.models, table.items, table.raters) == (small.models, small.items, small.raters)


def test_csv_without_optional_columns(tmp_path: Path) -> None:
    table = open_scores(csv(tmp_path, "score,item\n1,x\n2,x\nnan,y\n3,y\n"))
    assert table is not None
    assert (table.models, table.raters, table.items) == (("model",), ("rater",), ("x", "y"))
    assert table.counts.ravel().tolist() == [2, 1]


def test_csv_with_costs(tmp_path: Path) -> None:
    table = open_scores(csv(tmp_path, "item,score,Cost\nx,1,0.5\nx,,2\ny,0,\n"))
    assert table is not None
    np.testing.assert_array_equal(table.scores[0, :, 0], [[1, np.nan], [0, np.nan]])
    np.testing.assert_array_equal(table.costs[0, :, 0], [[0.5, 2.0], [np.nan, np.nan]])  # type: ignore[index]


@pytest.mark.parametrize("separator", [";", "\t"])
def test_a_table_whose_header_has_no_comma(tmp_path: Path, separator: str) -> None:
    rows = ("item", "score"), ("a, b", "0.5"), ("c", "NA"), ("d", "1")
    table = open_scores(csv(tmp_path, "".join(separator.join(row) + "\n" for row in rows)))
    assert table is not None
    assert table.items == ("a, b", "c", "d")
    np.testing.assert_array_equal(table.scores.ravel(), [0.5, np.nan, 1.0])


@pytest.mark.parametrize("word", ["NA", "n/a", "null", "NULL", "None", "#N/A", "<NA>", "NaN", " NA "])
def test_what_programs_write_for_a_missing_score(tmp_path: Path, word: str) -> None:
    rows = [{"item": "a", "score": 1}, {"item": "b", "score": word}]
    lines = tmp_path / "t.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for path in (csv(tmp_path, f"item,score\na,1\nb,{word}\n"), lines):
        table = open_scores(path)
        assert table is not None
        np.testing.assert_array_equal(table.scores.ravel(), [1.0, np.nan])
        assert table.failed is not None
        assert table.failed.ravel().tolist() == [0, 1]


def test_rows_that_differ_in_a_column_that_is_not_read_are_said_to_be_repeats(tmp_path: Path) -> None:
    rows = "".join(f"{item},{subset},1\n" for item in "ab" for subset in ("gsm8k", "mmlu"))
    told = "Columns that were not read: subset."
    again = " Rows that differ in nothing else count as repeats of one item by one model."
    for text, note in ((rows, told + again), (rows[: rows.index("b")].partition("\n")[0] + "\n", told)):
        table = open_scores(csv(tmp_path, f"item,subset,score\n{text}"))
        assert table is not None
        assert table.declared is not None
        assert table.declared.notes == (note,)
    numbered = "".join(f"a,x,{k},1\n" for k in range(2))
    table = open_scores(csv(tmp_path, f"item,subset,repeat,score\n{numbered}"))
    assert table is not None
    assert table.declared is not None
    assert table.declared.notes == (told,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prompt,value\n1,2\n", r"no column item and no column score \(found: prompt, value\)"),
        ("item|score\na|1\n", r"found: item.score.*separated by commas"),
        ('item;score\na;"1;5"\n', "line 2: score '1;5' is not a number"),
        ("item;score\na;1;2\n", "line 2: 3 fields, .* quote fields that contain semicolons"),
        ("item\tscore\na\t1\t2\n", "line 2: 3 fields, .* quote fields that contain tabs"),
        ("", "found: an empty file"),
        ("item,score,score\na,1,2\n", "2 columns named score"),
        ("item,score\n", "a header but no rows"),
        ("item,score\na,1\nb,good\n", "line 3: score 'good' is not a number; write numbers for words"),
        ("item,score\na,1%\n", "line 2: score '1%' is not a number; write numbers without a sign"),
        ('item,score\na,"0,5"\n', "line 2: score '0,5' is not a number; write a point before decimals"),
        ("item,score\na,1\nb,inf\n", "line 3: score 'inf' is infinite"),
        ("item,score\na,1\nb,-1e31\n", "line 3: score '-1e31' is infinite or beyond 1e.30"),
        (f"item,score\na,1\nb,{'9' * 5000}\n", "line 3: score '9{40}' is infinite or beyond 1e.30;"),
        ('item,score\n"a\nb",1\nb,1,2\n', "line 4: 3 fields, the header has 2"),
        ("item,score\na,1\n ,1\n", "line 3: the item is empty; give every row one$"),
        (
            "item,score,repeat\na,1,0\nb,1,0\na,1,0\n",
            "line 4: the same item, model, rater and repeat as line 2",
        ),
        ('item,score\n"a,1\n', "line"),
        ("item,score,cost\na,1,0.1\nb,1,$2\n", r"line 3: cost '\$2' is not a number; write dollars without"),
        ("item,score,cost\na,1,2 €\n", "line 2: cost '2 €' is not a number; write dollars without a sign"),
        ("item,score,cost\na,1,few\n", "line 2: cost 'few' is not a number; leave it empty if it is"),
        ("item,score,cost\na,1,-0.1\n", "line 2: cost '-0.1' is below 0"),
    ],
)
def test_broken_csv_names_file_line_and_remedy(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=r"(?s)scores\.csv.*" + message):
        open_scores(csv(tmp_path, text))


@pytest.mark.parametrize("name", ["scores.csv", "scores.jsonl"])
def test_a_chosen_category_that_items_lack_is_named_with_the_first_of_them(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(
        "item,score,by\na,1,x\nb,1,\nc,1,\n"
        if name.endswith("csv")
        else '{"item": "a", "score": 1, "by": "x"}\n{}\n{}\n'.replace("{}", '{"item": "b", "score": 1}')
    )
    told = r"line [23]: the by of item 'b' is empty, as in 1 more row; give every row one, or leave --cluster"
    with pytest.raises(InvalidInputError, match=told):
        open_scores(path, category="by")


def test_csv_of_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "latin.csv"
    path.write_bytes("item,score\ncafé,1\n".encode("latin-1"))
    with pytest.raises(InvalidInputError, match="not UTF-8"):
        open_scores(path)


def test_foreign_formats_are_left_to_others(tmp_path: Path) -> None:
    log = tmp_path / "log.eval"
    with zipfile.ZipFile(log, "w") as archive:
        archive.writestr("header.json", "{}")
    text = tmp_path / "notes.txt"
    text.write_text("hello")
    assert open_scores(log) is None
    assert open_scores(text) is None
    assert open_scores(tmp_path) is None
    with pytest.raises(InvalidInputError, match="not recorded scores that any installed plugin can read"):
        Plugins(disabled="1").open_scores(text)


@pytest.mark.parametrize(
    ("name", "host"),
    [("log.eval", "inspect"), ("results_1.json", "lm-eval"), ("samples_arc_1.jsonl", "lm-eval")],
)
def test_logs_of_hosts_name_what_to_install(name: str, host: str, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / name).write_text("{}")
    with pytest.raises(InvalidInputError, match=rf"pip install 'evalbudget\[{host}\]'$"):
        Plugins([]).open_scores(tmp_path)
    with pytest.raises(InvalidInputError, match=rf"pip install 'evalbudget\[{host}\]'$"):
        Plugins([]).open_scores(tmp_path / "logs")
    if host == "inspect":
        with pytest.raises(InvalidInputError, match=rf"pip install 'evalbudget\[{host}\]'$"):
            Plugins([]).open_scores(tmp_path / "logs" / name)


@pytest.mark.parametrize("said", ["winner", "value"])
def test_a_table_of_preferences_is_known(said: str, tmp_path: Path) -> None:
    path = tmp_path / "prefs.csv"
    path.write_text(f"first,second,{said}\na,b,1\n")
    with pytest.raises(
        InvalidInputError, match=r"a table of preferences and not of scores, .* pairwise reads"
    ):
        open_scores(path)


def test_an_archive_is_known_by_its_content(small: RecordedScores, tmp_path: Path) -> None:
    small.save(tmp_path / "scores")
    opened = open_scores(tmp_path / "scores")
    assert opened is not None
    assert opened.models == small.models


def test_tables_keep_settings_and_archives_too_that_a_direction_should_have_been_declared(
    small: RecordedScores, tmp_path: Path
) -> None:
    settings = {model: {"shots": f"{n}"} for n, model in enumerate(small.models)}
    declared = Declared.of(small.models, small.items, small.raters, settings=settings, direction_missing=True)
    unsaid = replace(small, declared=declared)
    unsaid.save(tmp_path / "scores.npz")
    Scores(unsaid).readings().to_csv(tmp_path / "scores.csv", index=False)
    one = unsaid.part(models=np.array([0]), raters=np.array([0]))
    (tmp_path / "baseline.csv").write_text(as_csv(Baseline.of(one, name="one")))
    for name in ("scores.npz", "scores.csv", "baseline.csv"):
        opened = open_scores(tmp_path / name)
        assert opened is not None
        assert direction_note(opened).startswith("No direction is declared for")
        if name != "scores.npz":
            assert opened.declared is not None
            assert opened.declared.settings == declared.settings[: len(opened.models)]


def test_a_truncated_archive_is_broken_not_foreign(small: RecordedScores, tmp_path: Path) -> None:
    path = tmp_path / "scores.npz"
    small.save(path)
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(InvalidInputError, match="truncated"):
        open_scores(path)


def test_a_metric_without_a_direction_is_said_to_have_none(tmp_path: Path) -> None:
    for text, told in (
        ("item,metric,score\na,wer,0.1\nb,wer,0.9\n", "No direction is declared for wer: higher is taken"),
        ("item,metric,score,better\na,wer,0.1,lower\nb,wer,0.9,lower\n", ""),
        ("item,judge,score\na,gpt,0.1\nb,gpt,0.9\n", ""),
    ):
        table = open_scores(csv(tmp_path, text))
        assert table is not None
        assert direction_note(table).startswith(told)
        assert bool(direction_note(table)) is bool(told)


def test_a_packed_table_is_to_be_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"item,score\na,1\n"))
    with pytest.raises(InvalidInputError, match=r"t\.csv\.gz is packed, and read when it is not: unpack it"):
        plugins().open_scores(path)
