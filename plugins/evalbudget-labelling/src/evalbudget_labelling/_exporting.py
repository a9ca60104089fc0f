"""Draws to label, as text of several formats."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from typing import Any
from xml.sax.saxutils import quoteattr

from evalbudget.audits.store import AuditStore, Label, LabelTask, Scale
from evalbudget.errors import UnknownNameError
from evalbudget.spreadsheets import as_cell

INSPECT = "inspect-scores"
FORMATS = ("csv", "jsonl", "label-studio", "label-studio-config", INSPECT)
_COLUMNS = ("task", "item", "segment", "prompt", "response", "score", "by", "at")
_JUDGE = ("model", "judge", "reason")
_MOST_CHOICES = 21


def export(
    store: AuditStore,
    kind: str,
    *,
    labelled: bool | None = None,
    judge: bool = False,
    among: Collection[int] | None = None,
    model: str | None = None,
) -> str:
    """Every draw whose coin asked for a label, with its label if it has one.

    The system is not named and the judge is not quoted, so that whoever labels is not led.

    Args:
        store: the audit.
        kind: one of ``FORMATS``.
        labelled: only those with a label, or only those without.
        judge: add the system and what the judge said, of draws that are labelled.
        among: draws whose label the verdict waits for; others without a label are left out. None for all.
        model: with ``inspect-scores``, a file for inspect's ``precomputed_scores``: the system labelled.

    Raises:
        UnknownNameError: there is no such format, or no such system.
    """
    if kind == INSPECT:
        return _inspect_scores(store, model or "")
    if kind == "label-studio-config":
        return _labelling_config(store.design.scale)
    if kind not in FORMATS:
        raise UnknownNameError("format", kind, FORMATS)
    labels = store.labels.counting()
    rows = [
        _row(store, task, labels.get(task.draw), judge)
        for task in store.draws.tasks(labelled=labelled)
        if among is None or task.draw in among or task.draw in labels
    ]
    if kind == "csv":
        return _csv(rows, _COLUMNS + (_JUDGE if judge else ()))
    if kind == "jsonl":
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    tasks = [_label_studio(row, store.design.scale) for row in rows]
    return json.dumps(tasks, indent=1, ensure_ascii=False) + "\n"


def _row(store: AuditStore, task: LabelTask, label: Label | None, judge: bool) -> dict[str, Any]:
    row: dict[str, Any] = task.as_row() | {
        "score": None if label is None else label.score,
        "by": None if label is None else label.by,
        "at": None if label is None else datetime.fromtimestamp(label.at, UTC).isoformat(),
    }
    if judge and label is not None:
        opinion = store.draws.opinion(task.draw)
        row |= {"model": opinion.model, "judge": opinion.score, "reason": opinion.reason}
    return row


def _csv(rows: Iterable[dict[str, Any]], columns: tuple[str, ...]) -> str:
    text = io.StringIO()
    # spreadsheets tell UTF-8 by this mark alone
    text.write("\ufeff")
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\r\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(value) for name, value in row.items()})
    return text.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return as_cell(value)
    return f"{value:.15g}" if isinstance(value, float) else value


def _label_studio(row: dict[str, Any], scale: Scale) -> dict[str, Any]:
    score, by, at = (row.pop(name) for name in ("score", "by", "at"))
    task: dict[str, Any] = {"data": row}
    if score is not None:
        # Label Studio takes only its own accounts as authors of annotations
        row |= {"labelled_by": by, "labelled_at": at}
        value = (
            {"type": "choices", "value": {"choices": [f"{score:.15g}"]}}
            if _choices(scale)
            else {"type": "number", "value": {"number": score}}
        )
        task["annotations"] = [{"result": [{"from_name": "score", "to_name": "response"} | value]}]
    return task


def _inspect_scores(store: AuditStore, model: str) -> str:
    """Labels of one system's answers, by the id of its sample."""
    if model not in store.design.models:
        raise UnknownNameError("system in --model", model, store.design.models)
    records = [
        {"id": store.draws.task(draw).item, "value": label.score, "explanation": f"labelled by {label.by}"}
        for draw, label in store.labels.counting().items()
        if store.draws.opinion(draw).model == model
    ]
    return json.dumps(records, indent=1, ensure_ascii=False) + "\n"


def _labelling_config(scale: Scale) -> str:
    """The labelling interface that fits the exported tasks."""
    levels = _choices(scale)
    if levels:
        choices = "".join(
            f"    <Choice value={quoteattr(f'{level:.15g}')}{_hotkey(level, levels)}/>\n" for level in levels
        )
        control = (
            '  <Choices name="score" toName="response" choice="single" showInline="true" required="true">\n'
            f"{choices}  </Choices>\n"
        )
    else:
        step = f' step="{scale.step:g}"' if scale.step is not None else ' step="any"'
        control = (
            f'  <Number name="score" toName="response" min="{scale.low:g}" max="{scale.high:g}"{step} '
            'required="true"/>\n'
        )
    return (
        "<View>\n"
        '  <Header value="Prompt"/>\n  <Text name="prompt" value="$prompt"/>\n'
        '  <Header value="Response"/>\n  <Text name="response" value="$response"/>\n'
        f"  <Header value={quoteattr(f'Score, {scale}')}/>\n{control}</View>\n"
    )


def _choices(scale: Scale) -> tuple[float, ...]:
    levels = scale.levels
    return levels if levels is not None and len(levels) <= _MOST_CHOICES else ()


def _hotkey(level: float, levels: tuple[float, ...]) -> str:
    if level == 10 and 0.0 not in levels:
        return ' hotkey="0"'
    return f' hotkey="{level:g}"' if level in range(10) else ""
