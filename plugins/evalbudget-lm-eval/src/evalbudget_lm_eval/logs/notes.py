"""What was not as it should be, in as many sentences as a person reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from evalbudget.backtest import few
from evalbudget_lm_eval.logs.log import Log
from evalbudget_lm_eval.logs.metrics import Metrics
from evalbudget_lm_eval.logs.missing import Missing

_Part = tuple[set[int], int, int]
"""Of one log: its documents, how many were evaluated, and how many there are."""


@dataclass(slots=True)
class Notes:
    """Taken log by log; many of one kind become few sentences.

    Attributes:
        group: the host's ``metric,filter`` that it averages over a group; None where there is none.
    """

    group: frozenset[str] | None
    _limits: dict[tuple[str, str], dict[str, list[_Part]]] = field(default_factory=dict)
    _left_out: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    _missing: list[str] = field(default_factory=list)
    _contradicted: list[str] = field(default_factory=list)
    _both_ways: list[str] = field(default_factory=list)

    def take(self, log: Log, name: str, metrics: Metrics, missing: Missing) -> None:
        """What there is to say of a log.

        Args:
            log: that was read.
            name: of what it evaluated.
            metrics: of the log.
            missing: of its documents.
        """
        task = log.file.task
        self._missing += missing.notes
        if missing.limit is not None:
            how = log.file.config.get("limit")
            told = f" (--limit {how:g})" if isinstance(how, int | float) else ""
            here = {int(record["doc_id"]) for record in log.records}
            self._limits.setdefault((name, told), {}).setdefault(task, []).append((here, *missing.limit))
        if log.judged:
            return
        averaged = {key.partition(",")[0] for key in self.group or ()}
        for metric in dict.fromkeys([*metrics.names, *metrics.why_unread]):
            why = metrics.why_unread.get(metric, "")
            if not why and self.group is not None and metric not in averaged:
                why = "the group has no mean of it"
            if why:
                self._left_out.setdefault((metric, why), []).append(task)
        self._contradicted += [
            f"The results beside {log.label} say {metric} {total:.6g}, and its samples average {mean:.6g}: "
            "the samples count."
            for metric, (total, mean) in metrics.contradicted().items()
        ]

        for metric, higher in metrics.both_ways().items():
            better, worse = ("higher", "lower") if higher else ("lower", "higher")
            self._both_ways.append(
                f"The results beside {log.label} say that {better} {metric} is better, and the task's "
                f"metric_list in them that {worse} is: the former counts. Correct the one that is wrong."
            )

    def sentences(self) -> list[str]:
        """All of them."""
        limits = []
        for (name, how), own in self._limits.items():
            asked = sum(map(_evaluated, own.values()))
            every = sum(max(each for *_, each in parts) for parts in own.values())
            where = _listed(own)
            limits.append(f"{name}: {asked:,} of the {every:,} documents of {where} were evaluated{how}.")
        left_out = [
            f"{metric} of {_listed(tasks)} is not read: {why}."
            for (metric, why), tasks in self._left_out.items()
        ]
        return [
            *few(limits, "models answered a part of the documents"),
            *few(left_out, "metrics are not read"),
            *few(self._missing, "logs lack documents"),
            *few(self._contradicted, "totals differ from the samples"),
            *few(self._both_ways, "metrics are declared better both ways"),
        ]


def _evaluated(parts: Sequence[_Part]) -> int:
    """How many documents several runs of a task evaluated, some of them in more than one."""
    different = set().union(*(here for here, *_ in parts))
    return max(len(different), *(asked for _, asked, _ in parts))


def _listed(tasks: Iterable[str]) -> str:
    different = list(dict.fromkeys(tasks))
    return different[0] if len(different) == 1 else f"{len(different):,} tasks"
