"""What a header says was to be run, against what is in the file."""

from __future__ import annotations

from dataclasses import dataclass

from evalbudget_inspect.host.how_bought import BUDGET, is_race, step_of, stops_early
from evalbudget_inspect.reading.logs import Key, Log, several

_ENDED = {
    "cancelled": "was cancelled",
    "error": "ended with an error",
    "started": "was killed, or is still running,",
}
_WORDS = 100  # characters of an error


@dataclass(frozen=True, slots=True)
class Planned:
    """What became of one log's plan.

    Attributes:
        lacking: samples that the header says were run and that the file does not have.
        whole: whether whatever was to be scored is known.
        notes: for people.
    """

    lacking: tuple[Key, ...] = ()
    whole: bool = True
    notes: tuple[str, ...] = ()


def planned(log: Log) -> Planned:
    """Compare a log's header and its samples."""
    header = log.header
    ids = [] if header.eval.dataset.sample_ids is None else list(header.eval.dataset.sample_ids)
    epochs = range(1, (header.eval.config.epochs or 1) + 1)
    chosen = step_of(header, BUDGET) is not None or is_race(header)  # by a sampler, as it went
    told = 0 if header.results is None else header.results.total_samples
    total = 0 if chosen else len(ids) * len(epochs) or told
    there = {(str(sample.id), sample.epoch) for sample in log.all}
    name = f"{log.name} ({header.eval.model})"
    drained = header.results is not None and header.results.logged_samples is not None
    if header.status != "success" or (drained and len(there) < total):
        return Planned((), False, (_cut_short(log, name, len(there), total),))
    if chosen or stops_early(header):
        note = (
            f"{name}: the task stopped asking an item by a rule of its own, so that how often it was asked "
            "depends on its scores; only first epochs count."
        )
        return Planned(notes=(note,) if stops_early(header) else ())
    if not ids:
        lost = total - len(there)
        ran = several(total, "sample")
        note = f"{name} says that {ran} ran, and has {len(there):,}; nothing says which are missing."
        return Planned((), lost <= 0, (note,) if lost > 0 else ())
    lacking = tuple((id_, epoch) for id_ in ids for epoch in epochs if (str(id_), epoch) not in there)
    note = f"{name} says that {several(total, 'sample')} ran, and {len(lacking):,} of them are not in it."
    return Planned(lacking, True, (note,) if lacking else ())


def _cut_short(log: Log, name: str, n: int, total: int) -> str:
    header = log.header
    how = _ENDED.get(header.status, "was cut short")
    of = f"{n:,} of {several(total, 'sample')}" if total else several(n, "sample")
    ids = [str(id_) for id_ in header.eval.dataset.sample_ids or []]
    first = set(ids[: len({str(sample.id) for sample in log.all})])
    in_order = bool(total) and n < total and first == {str(sample.id) for sample in log.all}
    order = ", in the order of the dataset" if in_order else ""
    said = "" if header.error is None else f" ({header.error.message.splitlines()[0][:_WORDS]})"
    rest = " What it says is not of all items." if n < total else ""
    return f"{name} {how} after {of}{order}{said}.{rest}"
