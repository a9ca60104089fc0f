"""Labels that a scorer gave stand in the host's log too: beside the answer, with text and usage."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import urlparse
from urllib.request import url2pathname

from inspect_ai.log import EvalLog, EvalSample, read_eval_log, write_eval_log
from inspect_ai.model import ModelUsage
from inspect_ai.scorer import Score

from evalbudget.audits.store import AuditStore, Reply
from evalbudget_inspect.audits.answers import ATTEMPT, USAGE, Found
from evalbudget_inspect.host.scoring import LABEL


def marked(score: Score, attempt: int) -> Score:
    """The score with the attempt of the store that it came of."""
    return score.model_copy(update={"metadata": {**(score.metadata or {}), LABEL: {ATTEMPT: attempt}}})


def keep_all(store: AuditStore, found: Mapping[tuple[str, str], Found]) -> None:
    """Put in the logs what the store alone has, because whoever asked for it was killed."""
    draws = {draw.index: draw for draw in store.draws.all()}
    behind = set()
    for attempt in store.attempts.all():
        draw = draws[attempt.draw]
        each = found.get((store.design.models[draw.model], store.design.items[draw.item]))
        if attempt.reply is not None and each is not None and attempt.number not in each.attempts:
            behind.add(each.log)
    for path in sorted(behind):
        keep_in_log(store, found, path, read_eval_log(path))


def keep_in_log(store: AuditStore, found: Mapping[tuple[str, str], Found], path: str, log: EvalLog) -> None:
    """Put in one log what a scorer said of the answers that are taken from it.

    Args:
        store: the audit.
        found: where its answers are.
        path: of the log.
        log: its content; it is changed and written back.
    """
    samples = {str(sample.id): sample for sample in log.samples or []}
    draws = {draw.index: draw for draw in store.draws.all()}
    changed = False
    for attempt in store.attempts.all():
        draw = draws[attempt.draw]
        key = store.design.models[draw.model], store.design.items[draw.item]
        if attempt.reply is None or key not in found or found[key].log != path:
            continue
        sample = samples[key[1]]
        if _add(sample, attempt.number, attempt.by.removeprefix("scorer "), attempt.reply):
            for model, used in attempt.reply.usage.items():
                usage = ModelUsage.model_validate(used)
                for total in (sample.model_usage, log.stats.model_usage):
                    total[model] = total.get(model, ModelUsage()) + usage
            changed = True
    if changed:
        _write(log, path)


def _add(sample: EvalSample, attempt: int, name: str, reply: Reply) -> bool:
    scores = sample.scores = dict(sample.scores or {})
    for known, score in scores.items():
        entry = (score.metadata or {}).get(LABEL) or {}
        if entry.get(ATTEMPT) == attempt:
            if USAGE in entry:
                return False
            name = known
            break
    else:
        name = next(n for n in (name, *(f"{name}{i}" for i in range(1, len(scores) + 2))) if n not in scores)
        score = Score(
            value=math.nan if reply.score is None else reply.score,
            answer=reply.answer or None,
            explanation=reply.explanation or reply.failure or None,
        )
    entry = {ATTEMPT: attempt, USAGE: {model: dict(used) for model, used in reply.usage.items()}}
    scores[name] = score.model_copy(update={"metadata": {**(score.metadata or {}), LABEL: entry}})
    return True


def _write(log: EvalLog, path: str) -> None:
    """In place of the old one, which is whole until the new one is."""
    format_: Literal["json", "eval"] = "json" if path.endswith(".json") else "eval"
    url = urlparse(path)
    if "://" in path and url.scheme != "file":
        write_eval_log(log, path, format=format_)  # stores of objects replace them whole
        return
    local = Path(url2pathname(url.path) if url.scheme == "file" else path)
    begun = local.with_name(f".{local.name}.part")  # no name of a log: nobody lists it
    try:
        write_eval_log(log, begun, format=format_)
        begun.replace(local)
    finally:
        begun.unlink(missing_ok=True)
