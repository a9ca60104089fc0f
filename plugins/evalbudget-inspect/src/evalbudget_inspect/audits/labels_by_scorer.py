"""A scorer of the task labels: an expensive judge, a panel, whatever is trusted more."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from inspect_ai import score
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.scorer import Scorer

from evalbudget.audits.store import AuditStore, weigh
from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget_inspect.audits.answers import Found
from evalbudget_inspect.host.score_values import score_to_float
from evalbudget_inspect.host.scoring import scorer_names
from evalbudget_inspect.host.tasks import load_one
from evalbudget_inspect.repeats.task import driving_score

_AT_ONCE = 16
"""Answers scored before their labels are saved."""


def without_scorer(scorers: list[Scorer], wanted: str) -> list[Scorer]:
    """The task's scorers less the one that labels, which is asked for what the coins pick and nothing else.

    Raises:
        InvalidInputError: there is no such scorer.
    """
    names = scorer_names(scorers)
    try:
        name, _ = driving_score(wanted, names)
    except UnknownNameError as ex:
        raise InvalidInputError(
            f"--labels-from names no scorer of the task: {ex} To have humans label, leave it out"
        ) from None
    return [scorer for scorer, each in zip(scorers, names, strict=True) if each != name]


def label_by_scorer(
    store: AuditStore, found: Mapping[tuple[str, str], Found], spec: str, args: dict[str, Any], wanted: str
) -> int:
    """Have the scorer label what is wanted now.

    Args:
        store: the audit.
        found: what the logs answer.
        spec: the task.
        args: the task's own arguments.
        wanted: the scorer, ``name`` or ``name.key``.

    Returns:
        How many labels it gave.

    Raises:
        InvalidInputError: it gave no score, or one that is not on the scale; earlier labels are kept.
    """
    draws = {draw.index: draw for draw in store.draws.all()}
    places: dict[str, list[tuple[int, str]]] = {}
    for index in weigh(store).wanted:
        draw = draws[index]
        item = store.design.items[draw.item]
        each = found.get((store.design.models[draw.model], item))
        if each is None:
            raise InvalidInputError(
                f"no log has the answer to {item!r} that it is to label; give the --log-dir of the "
                "earlier runs, or label by evalbudget audit serve"
            )
        places.setdefault(each.log, []).append((index, item))
    if not places:
        return 0
    scorers = load_one(spec, args).scorer or []
    names = scorer_names(scorers)
    name, key = driving_score(wanted, names)
    labeller = scorers[names.index(name)]
    given = 0
    for path, asked in places.items():
        whole = read_eval_log(path)
        for part in _parts(asked):
            for index, value in _values(whole, labeller, part, name, key):
                store.labels.add(index, value, f"scorer {name}")
                given += 1
    return given


def _parts(asked: list[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    for begin in range(0, len(asked), _AT_ONCE):
        yield asked[begin : begin + _AT_ONCE]


def _values(
    whole: EvalLog, labeller: Scorer, asked: list[tuple[int, str]], name: str, key: str | None
) -> Iterator[tuple[int, float]]:
    index_of = {item: index for index, item in asked}
    samples = [sample for sample in whole.samples or [] if str(sample.id) in index_of]
    scored = score(whole.model_copy(update={"samples": samples}), [labeller], action="append", display="none")
    silent = []
    for sample in scored.samples or []:
        entry = (sample.scores or {}).get(name)
        value = math.nan if entry is None else score_to_float(entry, name, key)
        if math.isnan(value):
            silent.append(repr(sample.id))
        else:
            yield index_of[str(sample.id)], value
    if silent:  # the others' labels are saved by now
        raise InvalidInputError(
            f"the scorer {name!r} of --labels-from gave no score to {', '.join(silent[:3])}; the verdict "
            "waits for it. Run the same command again, or label by evalbudget audit serve"
        )
