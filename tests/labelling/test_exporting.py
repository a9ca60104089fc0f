from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.audits.store.audits import TEN, Clock, audit, design, drawn

from evalbudget.audits.store import AuditStore, Imported, LabelKind, Scale, import_labels
from evalbudget.errors import UnknownNameError
from evalbudget_labelling import export

NOTHING = Imported(new=0, known=0, agrees=0, conflicts=0, empty=0)
WANTED = (0, 1, 6, 7, 12, 13)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[AuditStore]:
    with audit(tmp_path / "a.audit") as store:
        yield store


def copy(store: AuditStore, path: Path) -> AuditStore:
    """The same store before any label."""
    store.close()
    path.write_bytes(store.address.path.read_bytes())
    return AuditStore.open(path, clock=Clock())


def fill(text: str, scores: dict[int, str]) -> str:
    """What somebody types into the exported table."""
    rows = list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))))
    for row in rows:
        row["score"] = scores.get(int(row["task"].rpartition("-")[2]), row["score"])
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


@pytest.mark.parametrize("kind", ["csv", "jsonl", "label-studio"])
def test_labels_come_back_as_they_left(tmp_path: Path, kind: str) -> None:
    with (
        audit(tmp_path / "a.audit") as store,
        copy(store, tmp_path / "b.audit") as labelled,
        AuditStore.open(store.address) as empty,
    ):
        labelled.labels.add(0, 7, "ann", at=1_600_000_000.25)
        labelled.labels.add(12, 10, "bob", at=1_600_000_001.0)
        labelled.labels.correct(12, 9, "bob")
        text = export(labelled, kind)
        assert import_labels(empty, text, kind) == Imported(new=2, known=0, agrees=0, conflicts=0, empty=4)
        found = empty.labels.counting()
        expected = labelled.labels.counting()
        assert {d: (x.score, x.by) for d, x in found.items()} == {0: (7, "ann"), 12: (9, "bob")}
        assert [x.at for x in found.values()] == [x.at for x in expected.values()]
        before = empty.labels.history()
        again = import_labels(empty, text, kind)
        assert again == Imported(new=0, known=2, agrees=0, conflicts=0, empty=4)
        assert empty.labels.history() == before


@pytest.mark.parametrize("kind", ["csv", "jsonl", "label-studio"])
def test_nothing_exported_leads_the_labeller(store: AuditStore, kind: str) -> None:
    store.labels.add(0, 7, "ann")
    text = export(store, kind)
    assert "Reason" not in text
    assert "beta" not in text
    assert "Story 3 by 1." in text
    with_judge = export(store, kind, judge=True)
    assert "Reason 0" in with_judge
    assert "alpha" in with_judge
    assert "Reason 3" not in with_judge  # not labelled yet


def test_only_what_is_wanted_or_labelled(store: AuditStore) -> None:
    store.labels.add(6, 7, "ann")

    def draws(labelled: bool | None) -> list[int]:
        lines = export(store, "jsonl", labelled=labelled).splitlines()
        return [int(json.loads(line)["task"].rpartition("-")[2]) for line in lines]

    assert draws(None) == list(WANTED)
    assert draws(True) == [6]
    assert draws(False) == [0, 1, 7, 12, 13]


def test_a_table_filled_in_by_part_and_then_further(store: AuditStore) -> None:
    text = export(store, "csv")
    first = fill(text, {0: "3", 6: " 4 "})
    assert import_labels(store, first, "csv", by="ann").new == 2
    second = fill(first, {1: "5"})
    assert import_labels(store, second, "csv", by="ann") == Imported(1, 2, 0, 0, 3)
    assert {d: x.score for d, x in store.labels.counting().items()} == {0: 3, 1: 5, 6: 4}


def test_contradictions_in_files_are_kept_and_reported(store: AuditStore) -> None:
    store.labels.add(0, 7, "ann")
    text = fill(export(store, "csv", labelled=None), {0: "2", 1: "5"}).replace("ann", "bob")
    assert import_labels(store, text, "csv", by="bob") == Imported(1, 0, 0, 1, 4)
    assert store.labels.counting()[0].score == 7
    assert store.labels.history()[-2].kind is LabelKind.CONFLICTS
    assert import_labels(store, text, "csv", by="bob") == Imported(0, 2, 0, 0, 4)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "label-studio"])
@pytest.mark.parametrize(
    "response",
    ["x" * 200_000, "a\u2028b\x85c\x0bd\x1ce\r\nf\rg\0h", "\ufeff'=1+1", "＝1+1", "\n=1+1"],
    ids=["long", "line ends", "mark", "wide", "second line"],
)
def test_any_answer_survives_the_way_out_and_back(tmp_path: Path, kind: str, response: str) -> None:
    with AuditStore.create(tmp_path / "a.audit", design(scale=Scale(0, 1, 1 / 3))) as store:
        (draw, answer), *_ = drawn(range(1))
        store.draws.append([(draw, type(answer)("prompt", response))])
        store.labels.add(0, 1 / 3, '=HYPERLINK("http://x")')
        text = export(store, kind)
        assert import_labels(store, text, kind) == Imported(0, known=1, agrees=0, conflicts=0, empty=0)
        if kind == "csv" and len(response) < 100_000:  # Python's own reader takes no more
            row = next(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline="")))
            assert row["by"] == '\'=HYPERLINK("http://x")'
            assert row["response"].removeprefix("'") == response.removeprefix("'")
            assert row["response"][0] not in "=＝\n"


def test_texts_are_no_formulas_in_a_spreadsheet(tmp_path: Path) -> None:
    with AuditStore.create(tmp_path / "a.audit", design()) as store:
        (draw, answer), *_ = drawn(range(1))
        evil = '=HYPERLINK("http://x","y")'
        store.draws.append([(draw, type(answer)("- a list\n- of two", evil, ""))])
        row = next(csv.DictReader(io.StringIO(export(store, "csv").removeprefix("\ufeff"), newline="")))
        assert row["response"] == "'" + evil
        assert row["prompt"] == "'- a list\n- of two"
        assert json.loads(export(store, "jsonl"))["response"] == evil


def test_labels_sent_to_label_studio_stay_those_of_who_gave_them(store: AuditStore) -> None:
    store.labels.add(0, 7, "ann")
    tasks = json.loads(export(store, "label-studio"))
    # what Label Studio adds to an annotation it was given
    tasks[0]["annotations"][0] |= {"completed_by": 1, "lead_time": None, "updated_at": "2026-01-02T03:04:05Z"}
    assert import_labels(store, json.dumps(tasks), "label-studio") == Imported(0, 1, 0, 0, 5)


@pytest.mark.parametrize(
    ("scale", "control", "values"),
    [
        (TEN, "Choices", [str(n) for n in range(1, 11)]),
        (Scale(0, 1, 1), "Choices", ["0", "1"]),
        (Scale(0, 1), "Number", []),
        (Scale(0, 100, 1), "Number", []),
    ],
)
def test_the_labelling_interface_has_the_scale(
    tmp_path: Path, scale: Scale, control: str, values: list[str]
) -> None:
    with audit(tmp_path / "a.audit", scale=scale) as store:
        view = ElementTree.fromstring(export(store, "label-studio-config"))
        tasks = json.loads(export(store, "label-studio"))
    found = view.find(control)
    assert found is not None
    assert (found.get("name"), found.get("toName")) == ("score", "response")
    assert [choice.get("value") for choice in found] == values
    shown = {text.get("value", "").removeprefix("$") for text in view.iter("Text")}
    assert shown == {"prompt", "response"} <= set(tasks[0]["data"])


def test_unknown_formats_are_refused_with_the_nearest(store: AuditStore) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'jsonl'"):
        export(store, "json")


def test_labels_for_inspects_precomputed_scores(store: AuditStore) -> None:
    store.labels.add(0, 7, "ann")
    store.labels.add(1, 4, "bob")
    store.labels.add(12, 9, "ann")
    records = json.loads(export(store, "inspect-scores", model="alpha"))
    assert records == [
        {"id": "story 0", "value": 7.0, "explanation": "labelled by ann"},
        {"id": "story 6", "value": 9.0, "explanation": "labelled by ann"},
    ]
    with pytest.raises(UnknownNameError, match="alpha"):
        export(store, "inspect-scores", model="alfa")
