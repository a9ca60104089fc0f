"""Tables as others write them: formats, booleans, names of columns, columns that nothing reads."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import evalbudget
from evalbudget.backtest import RecordedScores
from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.recorded._missing import missing_answers

CASES = Path(__file__).parent.parent / "cases"


def read(name: str | Path) -> RecordedScores:
    return evalbudget.read(CASES / name).recorded


def notes(recorded: RecordedScores) -> tuple[str, ...]:
    return recorded.declared.notes if recorded.declared is not None else ()


def test_booleans_are_ones_and_zeros() -> None:
    found = read("booleans.csv")
    assert set(np.unique(found.scores)) == {0.0, 1.0}
    np.testing.assert_allclose(found.true_scores.mean(axis=(1, 2)), [8 / 12, 8 / 12])


@pytest.mark.parametrize("name", ["array.json", "tab.tsv"])
def test_arrays_and_tabs_are_read(name: str) -> None:
    found = read(name)
    assert (found.models, len(found.items)) == (("a", "bb"), 12)


def test_json_that_is_no_table_says_what_is_needed() -> None:
    with pytest.raises(InvalidInputError, match=r'an object with evalId, .*array of objects such as {"item"'):
        read("promptfoo.json")


def test_judges_in_a_column_of_their_name_are_raters() -> None:
    found = read("judge_col.csv")
    assert found.raters == ("gpt", "claude")
    assert found.one_measure
    assert notes(found) == ()


@pytest.mark.parametrize("name", ["extra.csv", "metrics_flag.csv"])
def test_metrics_are_no_judges(name: str) -> None:
    assert not read(name).one_measure


def test_columns_that_nothing_reads_are_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("item,score,Grader Notes,epoch\nq1,1,fine,1\nq2,0,bad,1\n")
    assert notes(read(path)) == ("Columns that were not read: Grader Notes, epoch.",)
    path.write_text(",item,score\n0,q1,1\n1,q2,0\n")
    assert read(path).declared is None


def test_judges_of_several_metrics_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("item,score,judge,metric\nq1,1,a,acc\nq1,1,a,f1\n")
    with pytest.raises(InvalidInputError, match="columns judge and metric"):
        read(path)


def test_an_empty_score_is_a_reading_that_failed(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("item,model,score\nq1,a,1\nq2,a,\nq1,b,0\nq2,b,1\n")
    found = read(path)
    assert missing_answers(found).tolist() == [1, 0]
    path.write_text("item,model,score,complete\nq1,a,1,true\nq1,b,0,\nq2,b,1,\n")
    assert missing_answers(read(path)).tolist() == [0, 0]


def test_directions_and_ranges_are_read(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("item,score,better,score_low,score_high\nq1,1,lower,0,5\nq2,0,,,\n")
    declared = read(path).declared
    assert declared is not None
    assert (declared.lower_is_better, declared.ranges) == ((True,), ((0.0, 5.0),))
    path.write_text("item,score,better\nq1,1,lower\nq2,0,higher\n")
    with pytest.raises(InvalidInputError, match="differs from that in other rows"):
        read(path)


@pytest.mark.parametrize(
    ("told", "lower"),
    [
        (("false", "False"), True),
        (("true", ""), False),
        (("0", "0"), True),
        (("0.0", ""), True),
        ((True, True), False),
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_directions_go_by_the_name_that_hosts_give_them(
    told: tuple[object, object], lower: bool, suffix: str, tmp_path: Path
) -> None:
    path = tmp_path / f"t.{suffix}"
    rows = [{"item": f"q{i}", "score": i, "higher_is_better": way} for i, way in enumerate(told)]
    if suffix == "json":
        path.write_text(json.dumps(rows))
    else:
        lines = [",".join(map(str, row.values())) for row in rows]
        path.write_text("\n".join(["item,score,higher_is_better", *lines]))
    found = read(path)
    assert found.declared is not None
    assert found.declared.lower_is_better == (lower,)
    assert not notes(found)


def test_directions_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("item,score,better,higher_is_better\nq1,1,lower,false\nq2,0,lower,\n")
    assert read(path).declared is not None
    path.write_text("item,score,better,higher_is_better\nq1,1,lower,false\nq2,0,lower,true\n")
    with pytest.raises(InvalidInputError, match="line 3: better is 'lower', and higher_is_better 'true'"):
        read(path)
    path.write_text("item,score,higher_is_better\nq1,1,false\nq2,0,true\n")
    with pytest.raises(InvalidInputError, match="differs from that in other rows"):
        read(path)


def test_tasks_of_a_table_are_read_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = [f"{i},{m},{t},{score}" for m in "ab" for t, score in (("easy", 1), ("hard", 0)) for i in range(9)]
    path.write_text("\n".join(["item,model,task,score", *rows]))
    with pytest.raises(InvalidInputError, match=r"2 tasks in the column task \(easy, hard\).*--task easy"):
        read(path)
    hard = evalbudget.read(path, task="hard").recorded
    assert (hard.scores.shape, hard.scores.max()) == ((2, 9, 1, 1), 0.0)
    assert str(hard.task) == "hard"
    with pytest.raises(UnknownNameError, match="Did you mean 'hard'"):
        evalbudget.read(path, task="hrd")
    with pytest.raises(InvalidInputError, match="no column task, so there is no 'easy'; leave --task out"):
        evalbudget.read(CASES / "tab.tsv", task="easy")
    path.write_text("item,score,task,version\nq1,1,easy,1\nq2,0,easy,2\n")
    with pytest.raises(InvalidInputError, match="task easy has the versions 1 and 2"):
        read(path)


def test_rows_of_a_model_that_say_different_settings_are_refused(tmp_path: Path) -> None:
    told = [{"temperature": "0", "version": "1"}, {"version": "1", "temperature": "0"}, {"version": "2"}]
    rows = [
        {"item": f"q{i}", "model": model, "score": i, "settings": json.dumps(settings)}
        for model, own in (("a", told[:2]), ("b", told[2:]))
        for i, settings in enumerate(own)
    ]
    path = tmp_path / "t.json"
    path.write_text(json.dumps(rows))
    known = read(path).declared
    assert known is not None
    assert [dict(own) for own in known.settings] == [told[0], told[2]]
    path.write_text(json.dumps([*rows, {**rows[2], "item": "q1", "model": "a"}]))
    with pytest.raises(InvalidInputError) as refused:
        read(path)
    shown = (json.dumps(told[2]), json.dumps(told[0]))
    assert f"settings of model 'a' are {shown[0]}, and {shown[1]} in a row before" in str(refused.value)


@pytest.mark.parametrize(
    ("column", "values", "told"),
    [
        ("failed", ("timeout", "no"), "Column failed was not read: "),
        ("complete", ("yes", "partial"), "Column complete was not read: "),
        ("complete", (1, 0), "Column complete was not read: line 2: complete of model 'model' differs"),
        ("score_high", (2, 3), "Column score_high was not read: line 2: score_high of rater"),
        ("better", ("a", "b"), "Columns that were not read: better."),
        ("higher_is_better", ("yes", "no"), "Columns that were not read: higher_is_better."),
        ("cluster", ("eu", ""), "Column cluster was not read: some items have none."),
        (
            "settings",
            ("hot", "hot"),
            "Column settings was not read: line 2: settings is 'hot', which is no",
        ),
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_columns_of_others_under_names_of_ours_are_named_and_left(
    column: str, values: tuple[object, object], told: str, suffix: str, tmp_path: Path
) -> None:
    path = tmp_path / f"t.{suffix}"
    if suffix == "json":
        told = told.partition(": line ")[0]
        path.write_text(json.dumps([{"item": f"q{i}", "score": i, column: v} for i, v in enumerate(values)]))
    else:
        path.write_text(f"item,score,{column}\nq0,0,{values[0]}\nq1,1,{values[1]}\n")
    found = read(path)
    (note,) = notes(found)
    assert note.startswith(told)
    assert found.scores.ravel().tolist() == [0.0, 1.0]
    assert found.declared is not None
    assert (found.declared.complete, found.declared.lower_is_better) == ((False,), (None,))
    assert (found.declared.ranges, found.declared.clusters) == ((None,), None)


def test_a_direction_that_is_misspelled_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("item,score,better\nq1,1,lwer\nq2,0,lwer\n")
    with pytest.raises(UnknownNameError, match="Did you mean 'lower'"):
        read(path)


def test_a_table_that_says_what_was_not_asked_is_quoted(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("item,model,score,complete\nq1,a,1,true\nq2,a,1,true\nq1,b,0,true\n")
    assert notes(read(path)) == ("By the column complete, b was not asked 1 of the 2 items.",)
