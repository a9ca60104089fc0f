from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.audits.store.audits import audit, design, drawn

from evalbudget.audits.store import AuditStore, Imported, Scale, import_labels
from evalbudget.audits.store._importing import format_of
from evalbudget.errors import InvalidInputError, UnknownNameError


@pytest.fixture
def store(tmp_path: Path) -> Iterator[AuditStore]:
    with audit(tmp_path / "a.audit") as store:
        yield store


def test_bad_lines_are_named_and_nothing_is_imported(store: AuditStore, tmp_path: Path) -> None:
    i = store.id
    with AuditStore.create(tmp_path / "other.audit", design()) as other:
        other.draws.append(drawn(range(3)))
        foreign = other.draws.tasks()[0].id
    text = (
        "task,score,by,response\n"
        f'{i}-0,5,ann,"two\nlines"\n'
        f"{i}-1,11,ann,\n"
        f"{i}-2,5,ann,\n"
        f"{i}-99,5,ann,\n"
        f"{foreign},5,ann,\n"
        f"story 7,5,ann,\n"
        f"{i}-6,five,ann,\n"
        f"{i}-7,5,,\n"
    )
    with pytest.raises(InvalidInputError) as refusal:
        import_labels(store, text, "csv")
    message = str(refusal.value)
    assert message.startswith("nothing was imported:\n")
    assert "line 4: score 11.0 is outside the scale of this audit: whole numbers 1 to 10" in message
    assert "line 5: the coin of draw 2 asked for no label" in message
    assert "line 6: draw 99 was never drawn" in message
    assert "line 7: task" in message
    assert "is of another audit store" in message
    assert "line 8: 'story 7' is not the id of a task" in message
    assert "and 2 more" in message
    assert store.labels.history() == []
    with pytest.raises(InvalidInputError, match="line 2: score 'five' is not a number"):
        import_labels(store, f"task,score,by\n{i}-6,five,ann\n", "csv")
    with pytest.raises(InvalidInputError, match=r"line 2: does not say who labelled.*--by NAME"):
        import_labels(store, f"task,score\n{i}-7,5\n", "csv")
    with pytest.raises(InvalidInputError, match="line 2: time 'noon'"):
        import_labels(store, f"task,score,by,at\n{i}-7,5,ann,noon\n", "csv")


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("csv", "", "no single column 'task'"),
        ("csv", "id,score\n1,2\n", "no single column 'task': id, score. Fill in what"),
        ("csv", "task,score,score\n", "no single column 'score'"),
        ("csv", 'task,score\n"x,1\n', "line"),
        ("jsonl", '{"task": "x"}\n{\n', "line 2 is not JSON"),
        ("jsonl", "[]\n", "line 1 is not an object with a task"),
        ("jsonl", '{"task": "STORE-0", "score": [1], "by": "a"}\n', r"line 1: score \[1\] is not a number"),
        ("jsonl", '{"task": "STORE-0", "score": true, "by": "a"}\n', "line 1: score True"),
        ("label-studio", "{", "not JSON"),
        ("label-studio", "{}", "not a list of tasks"),
        ("label-studio", '[{"data": {}}]', "entry 1 has no task"),
        ("label-studio", "[3]", "entry 1 has no task"),
        ("label-studio", '[{"data": {"task": "STORE-0"}, "annotations": [1]}]', "entry 1 has annotations"),
    ],
)
def test_damaged_files_are_refused(store: AuditStore, kind: str, text: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        import_labels(store, text.replace("STORE", store.id), kind)
    assert store.labels.history() == []


def test_tables_as_spreadsheets_of_other_countries_write_them(store: AuditStore) -> None:
    text = f"\ufeffTask;Item;Score;By\r\n{store.id}-0;x;5;ann\r\n;;;\r\n"
    assert import_labels(store, text, "csv").new == 1


def test_decimal_commas(tmp_path: Path) -> None:
    with audit(tmp_path / "halves.audit", scale=Scale(1, 10, 0.5)) as store:
        assert import_labels(store, f"task;score;by\n{store.id}-0;7,5;ann\n", "csv").new == 1
        assert store.labels.counting()[0].score == 7.5
        with pytest.raises(InvalidInputError, match="not a number"):  # a thousand and a half?
            import_labels(store, f"task\tscore\tby\n{store.id}-1\t1,5\tann\n", "csv")


def test_a_task_whose_number_is_absurd_is_no_task(store: AuditStore) -> None:
    with pytest.raises(InvalidInputError, match="not the id of a task") as refusal:
        import_labels(store, f"task,score,by\n{store.id}-{'9' * 5000},5,ann\n", "csv")
    assert len(str(refusal.value)) < 300


def test_times_that_no_calendar_shows_are_refused(store: AuditStore) -> None:
    for at in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"):
        with pytest.raises(InvalidInputError, match="not when anybody labelled"):
            import_labels(store, f"task,score,by,at\n{store.id}-0,5,ann,{at}\n", "csv")


def test_what_label_studio_writes(store: AuditStore) -> None:
    i = store.id

    def task(draw: int, *annotations: object) -> dict[str, object]:
        return {"id": draw + 100, "data": {"task": f"{i}-{draw}"}, "annotations": list(annotations)}

    def annotation(value: dict[str, object], by: object = 3, **more: object) -> dict[str, object]:
        when = {"created_at": "2026-01-02T03:04:05.678Z", "lead_time": 4.2}
        return {"completed_by": by, "result": [{"from_name": "score", "value": value}], **when, **more}

    text = json.dumps(
        [
            task(0, annotation({"choices": ["7"]}, {"email": "ann@x.org"})),
            task(1, annotation({"number": 6}), annotation({"rating": 5}, 4, was_cancelled=True)),
            task(6, annotation({"rating": 5}), annotation({"rating": 4}, 4)),
            task(7),
            task(12, {"completed_by": 3, "result": []}),
        ]
    )
    assert import_labels(store, text, "label-studio") == Imported(3, 0, 0, 1, 2)
    found = store.labels.counting()
    assert {d: (x.score, x.by) for d, x in found.items()} == {
        0: (7, "ann@x.org"),
        1: (6, "annotator 3"),
        6: (5, "annotator 3"),
    }
    assert found[0].at == pytest.approx(1767323045.678)
    minimal = json.dumps([{"id": 1, "task": f"{i}-13", "score": "9", "annotator": 5, "lead_time": 1.0}])
    assert import_labels(store, minimal, "label-studio").new == 1
    two = json.dumps([task(7, annotation({"choices": ["7", "8"]}))])
    with pytest.raises(InvalidInputError, match=r"entry 1: its score is .* not one number or choice"):
        import_labels(store, two, "label-studio")


def test_formats_are_told_by_suffix() -> None:
    assert [format_of(n) for n in ("a.csv", "b.JSONL", "c.json")] == ["csv", "jsonl", "label-studio"]
    assert format_of("standard input", "csv") == "csv"
    with pytest.raises(InvalidInputError, match="give --format"):
        format_of("labels.txt")


def test_unknown_formats_are_refused(store: AuditStore) -> None:
    with pytest.raises(UnknownNameError, match="format"):
        import_labels(store, "", "label-studio-config")
