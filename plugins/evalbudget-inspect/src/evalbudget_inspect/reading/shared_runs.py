"""Logs of processes that shared a budget: each holds its own samples, and all of them are one run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inspect_ai.log import EvalLog

from evalbudget.backtest import Bought
from evalbudget.errors import InvalidInputError
from evalbudget.shown import shown_logger
from evalbudget_inspect.host.how_bought import entries_of
from evalbudget_inspect.host.scoring import METADATA
from evalbudget_inspect.reading.logs import Log

logger = shown_logger(__name__)


@dataclass(frozen=True, slots=True)
class SharedRuns:
    """Which logs belong together.

    Attributes:
        run_of: by the task id of a process, which is its name in the store: the name of its run.
        told: by run, what a process says of it that saw its end; nothing where none did.
    """

    run_of: Mapping[str, str]
    told: Mapping[str, Mapping[str, Any]]

    @classmethod
    def of(cls, headers: Sequence[EvalLog], path: Path) -> SharedRuns:
        """Of all logs that are read.

        Raises:
            InvalidInputError: logs of some processes are missing.
        """
        there = {header.eval.task_id for header in headers}
        run_of: dict[str, str] = {}
        told: dict[str, Mapping[str, Any]] = {}
        of_store: dict[str, str] = {}
        for header in headers:
            for entry in entries_of(header):
                names = [str(name) for name in entry.get("processes") or ()]
                if not names:
                    continue
                run = " ".join(names)
                run_of |= dict.fromkeys([*names, header.eval.task_id], run)
                told[run] = entry
                of_store[str(entry["store"])] = run
                if missing := len(set(names) - there):
                    raise InvalidInputError(
                        f"{path} holds what {len(names) - missing} of {len(names)} processes bought that "
                        "shared a budget, and each log holds only its own part. Give a folder with the logs "
                        "of all of them; the estimate of all is in the results of every log that ended"
                    )
        for (
            header
        ) in headers:  # of runs whose end no process saw, or that one joined too late to buy anything
            if (store := _store_of(header)) is not None:
                run_of.setdefault(header.eval.task_id, of_store.get(store, store))
        return cls(run_of, told)

    def log(self, header: EvalLog, file: Path) -> str:
        """Name of the log, the same for all processes of a run."""
        return self.run_of.get(header.eval.task_id, str(file))

    def counted(self, logs: Sequence[Log]) -> list[Log]:
        """Without samples of killed processes that were logged and never told: others bought these again."""
        found = []
        read: dict[str, Counter[str]] = {run: Counter() for run in self.run_of.values()}
        cells: set[tuple[str, str, int]] = set()
        ended = {log.file for log in logs if any("processes" in e for e in entries_of(log.header))}
        for log in sorted(logs, key=lambda log: log.file not in ended):
            run = self.run_of.get(log.header.eval.task_id)
            if run is None:
                found.append(log)
                continue
            kept = []
            per_item = self.told[run]["per_item"] if run in self.told else {"id": (), "readings": ()}
            most = dict(zip(per_item["id"], per_item["readings"], strict=True))
            for one in sorted(log.samples, key=lambda each: each.epoch):
                item, scored = str(one.id), bool(one.scores) and one.error is None
                again = (run, item, one.epoch) in cells
                if log.file in ended or not (
                    again or (scored and read[run][item] >= most.get(item, math.inf))
                ):
                    kept.append(one)
                    cells.add((run, item, one.epoch))
                    read[run][item] += scored
            found.append(replace(log, paid=kept, samples=kept))
        for run, entry in self.told.items():
            told = sum(entry["per_item"]["readings"])
            if (missing := told - read[run].total()) > 0:
                logger.warning(
                    "%d of %d readings are in no log: a process was killed before it wrote them. The "
                    "estimate of all is in the results of every log that ended",
                    missing,
                    told,
                )
        return sorted(found, key=lambda log: str(log.file))

    def together(self, header: EvalLog, before: Bought | None, more: Bought) -> Bought:
        """What the processes of a run bought so far, and one more; a killed one does not say how."""
        if before is None or header.eval.task_id not in self.run_of:
            return more
        told = more if header.results is not None else before
        cost = (before.purchase.cost or 0.0) + (more.purchase.cost or 0.0)
        usd = None
        if before.purchase.usd is not None and more.purchase.usd is not None:
            usd = before.purchase.usd + more.purchase.usd
        purchase = replace(told.purchase, cost=cost, usd=usd)
        return Bought(purchase, max(before.epochs, more.epochs))


def _store_of(header: EvalLog) -> str | None:
    """Where the processes of a run met; None if it had one process."""
    entries = [(scorer.metadata or {}).get(METADATA) for scorer in header.eval.scorers or []]
    stores = [entry.get("store") for entry in entries if isinstance(entry, dict)]
    return next((str(store) for store in stores if store), None)
