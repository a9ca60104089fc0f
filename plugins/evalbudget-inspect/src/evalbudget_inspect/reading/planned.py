"""What a header says was to be run, against what is in the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evalbudget_inspect.host.earlier_attempts import is_begun
from evalbudget_inspect.host.how_bought import BUDGET, is_race, step_of, stops_early, to_be_asked
from evalbudget_inspect.host.readings import ALL_ITEMS
from evalbudget_inspect.host.scoring import SHARE
from evalbudget_inspect.reading.begun import may_be_begun
from evalbudget_inspect.reading.logs import Log, several

_ENDED = {
    "cancelled": "was cancelled",
    "error": "ended with an error",
    "started": "was killed, or is still running,",
}
_WORDS = 100  # characters of an error


Cell = tuple[str, int]
"""Id of a sample, as text, and epoch."""


@dataclass(frozen=True, slots=True)
class Planned:
    """What became of one log's plan.

    Attributes:
        lacking: samples that were run or were to be, as the header says, and that the file does not have.
        whole: whether whatever was to be scored is known.
        notes: for people.
    """

    lacking: tuple[Cell, ...] = ()
    whole: bool = True
    notes: tuple[str, ...] = ()


def plans_of(logs: Sequence[Log], runs: Sequence[str], models: Sequence[str]) -> list[Planned]:
    """What became of each log's plan; a log that a retry went on with leaves that to the retry's.

    What a run that was cut short cannot have begun is not missing where another run of the model asked it:
    no attempt was made whose end could depend on its score. What it may have begun is missing: slow answers
    may be the wrong ones.

    Args:
        logs: oldest first.
        runs: of each, the name of its run, which may be of several processes.
        models: of each, the name of the model and of what its settings differ in.
    """
    last = {log.header.eval.task_id: number for number, log in enumerate(logs)}
    last_of_run = {run: number for number, run in enumerate(runs)}
    there: dict[str, set[Cell]] = {}
    asked: dict[str, set[str]] = {}
    begun: dict[str, set[str]] = {}
    of_model: dict[str, dict[str, set[str]]] = {}
    for log, run, model in zip(logs, runs, models, strict=True):
        cells = {(str(sample.id), sample.epoch) for sample in log.all if not is_begun(sample)}
        there.setdefault(log.header.eval.task_id, set()).update(cells)
        ids = {id_ for id_, _ in cells}
        asked.setdefault(run, set()).update(ids)
        begun.setdefault(run, set()).update(may_be_begun(log))
        of_model.setdefault(model, {}).setdefault(run, set()).update(ids)
        if is_race(log.header) or any(ALL_ITEMS in (s.metadata.get(SHARE) or ()) for s in log.all):
            asked[run].update(to_be_asked(log.header))  # by a sampler, who knows which items are left out
    plans = []
    for number, (log, run, model) in enumerate(zip(logs, runs, models, strict=True)):
        if last[log.header.eval.task_id] != number:
            plans.append(Planned())
            continue
        own = asked[run] if last_of_run[run] == number else None
        others = set[str]().union(*(ids for other, ids in of_model[model].items() if other != run))
        plans.append(_planned(log, there[log.header.eval.task_id], own, others - begun[run]))
    return plans


def _planned(log: Log, there: set[Cell], asked: set[str] | None, not_begun: set[str]) -> Planned:
    """What became of a log's plan.

    Args:
        log: of the plan.
        there: what it and what it went on with have.
        asked: ids that its run asked; None where a later log of the run speaks for it.
        not_begun: ids that its run cannot have begun, and that others of the same model and settings asked.
    """
    header = log.header
    all_items = to_be_asked(header)
    unasked = () if asked is None else tuple((id_, 1) for id_ in all_items if id_ not in asked)
    of_unasked = _unanswered(len(unasked), len(unasked), len(all_items))
    ids = [] if header.eval.dataset.sample_ids is None else list(header.eval.dataset.sample_ids)
    epochs = range(1, (header.eval.config.epochs or 1) + 1)
    chosen = step_of(header, BUDGET) is not None or is_race(header)  # by a sampler, as it went
    told = 0 if header.results is None else header.results.total_samples
    total = 0 if chosen else len(ids) * len(epochs) or told
    name = f"{log.name} ({header.eval.model})"
    drained = header.results is not None and header.results.logged_samples is not None
    if header.status != "success" or (drained and len(there) < total):
        absent = tuple(cell for cell in unasked if cell[0] not in not_begun)
        note = _cut_short(log, name, there, total) + _unanswered(len(unasked), len(absent), len(all_items))
        return Planned(absent, bool(all_items), (note,))
    if chosen:
        return Planned(unasked, notes=(f"{name}:{of_unasked}",) if unasked else ())
    if stops_early(header):
        note = (
            f"{name}: the task stopped asking an item by a rule of its own, so that how often it was asked "
            "depends on its scores; only first epochs count."
        )
        return Planned(notes=(note,))
    if not ids:
        lost = total - len(there)
        ran = several(total, "sample")
        note = f"{name} says that {ran} ran, and has {len(there):,}; nothing says which are missing."
        return Planned((), lost <= 0, (note,) if lost > 0 else ())
    listed = [(str(id_), epoch) for id_ in ids for epoch in epochs]
    lacking = tuple(cell for cell in listed if cell not in there)
    strange = len(there.difference(listed))
    notes = []
    if lacking:
        ran = several(total, "sample")
        notes.append(f"{name} says that {ran} ran, and {len(lacking):,} of them are not in it.")
    if strange:
        notes.append(f"{name} has {several(strange, 'sample')} that its header does not list; they count.")
    return Planned(lacking, True, tuple(notes))


def _unanswered(unasked: int, missing: int, items: int) -> str:
    """Sentences on the items of a run that it has no answer to, of which other runs asked some."""
    beside = unasked - missing
    told = f" {missing:,} of its {several(items, 'item')} have no answer: missing." if missing else ""
    if beside:
        verb = "is" if beside == 1 else "are"
        told += (
            f" {several(beside, 'item')} that it cannot have begun {verb} in another log of the same model "
            "and settings: not missing."
        )
    return told


def _cut_short(log: Log, name: str, there: set[Cell], total: int) -> str:
    header, n = log.header, len(there)
    how = _ENDED.get(header.status, "was cut short")
    of = f"{n:,} of {several(total, 'sample')}" if total else several(n, "sample")
    items = {id_ for id_, _ in there}
    first = {str(id_) for id_ in (header.eval.dataset.sample_ids or [])[: len(items)]}
    order = ", in the order of the dataset" if n < total and items == first else ""
    said = "" if header.error is None else f" ({header.error.message.splitlines()[0][:_WORDS]})"
    rest = " What it says is not of all items." if n < total else ""
    return f"{name} {how} after {of}{order}{said}.{rest}"
