"""What a log says of its metrics: which are means, which way is better, between what, of which answers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeGuard

from evalbudget_lm_eval.host.aggregations import named_by_code
from evalbudget_lm_eval.host.filters import ONE_OF_EACH
from evalbudget_lm_eval.judges.rows import NAME
from evalbudget_lm_eval.logs.log import Log
from evalbudget_lm_eval.repeats.ranges import SHARE, TWO_VALUED

LOWER_IS_BETTER = frozenset(
    {"bits_per_byte", "brier_score", "byte_perplexity", "perplexity", "ter", "word_perplexity"}
)
"""The host's own metrics of which less is better."""

NO_MEANS = LOWER_IS_BETTER | {"bleu", "bypass", "chrf", "chrf++", "f1", "mcc"}
"""The host's own metrics whose totals are no means, unless a task says otherwise."""

HIGHER_IS_BETTER = frozenset(
    {
        "acc",
        "acc_all",
        "acc_bytes",
        "acc_mutual_info",
        "acc_norm",
        "bleu",
        "chrf",
        "chrf++",
        "exact_match",
        "f1",
        "likelihood",
        "mcc",
    }
)
"""The host's own metrics of which more is better."""

_MEANS = ("mean", "nanmean")
_SINGLE = 1e-5
_FUNCTION = re.compile(r"<function (?:\S+\.)?(\w+)(?: at 0x[0-9a-f]+)?>")


@dataclass(frozen=True, eq=False)
class Metrics:
    """Of one log.

    Attributes:
        log: that says it.
    """

    log: Log

    @cached_property
    def left_out(self) -> dict[str, str]:
        """Metrics whose total is no mean of the documents' numbers, and why."""
        found = {metric: self._why_no_mean(metric) for metric in self.names}
        return {metric: why for metric, why in found.items() if why}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Metrics that are a number of some document."""
        return tuple(
            dict.fromkeys(
                metric
                for record in self.log.records
                for metric in record.get("metrics") or ()
                if is_number(record.get(metric))
            )
        )

    @cached_property
    def why_unread(self) -> dict[str, str]:
        """Metrics that have no score, and why."""
        kinds = {str: "text", list: "lists", dict: "dicts", type(None): "nothing"}
        found = {
            metric: self._why_no_mean(metric)
            or f"its values are {kinds.get(type(record.get(metric)), 'something else')}, and no numbers"
            for record in self.log.records
            for metric in record.get("metrics") or ()
            if metric not in self.names
        }
        scored = {metric for metric, _ in self.scored}
        nowhere = dict.fromkeys(
            self.of_some_documents & {*self.names} - scored, "it applies to no document (all are nan)"
        )
        return found | nowhere | self.left_out

    @cached_property
    def of_some_documents(self) -> frozenset[str]:
        """Metrics that are nan where a document has none by design."""
        return frozenset(
            name for name, entry in self._entries.items() if _function(entry.get("aggregation")) == "nanmean"
        )

    @cached_property
    def scored(self) -> frozenset[tuple[str, str]]:
        """Those of :attr:`names` that some document has a score by, each with the filter of that."""
        return frozenset(
            (metric, str(record["filter"]))
            for record in self.log.records
            for metric in record.get("metrics") or ()
            if is_number(value := record.get(metric)) and math.isfinite(value)
        )

    def is_outside(self, metric: str, value: object) -> bool:
        """Whether a document's value says that it has none by design."""
        return metric in self.of_some_documents and is_number(value) and math.isnan(value)

    def is_owed(self, metric: str, chosen: str) -> bool:
        """Whether every record of a filter is an answer that was bought for its score by this metric."""
        return (metric, chosen) in self._decided

    def listed(self, metric: str) -> bool:
        """Whether the task's configuration names it."""
        return metric in self._entries

    def lower_is_better(self, metric: str) -> bool | None:
        """Whether less is better; None if nothing tells it."""
        block = self.log.file.block or {}
        raced = str(block.get("metric")).partition(",")[0] == metric
        if raced and (block.get("race") or {}).get("lower_is_better"):
            return True
        told = (self.log.file.about("higher_is_better") or {}).get(metric)
        entry = self._entries.get(metric, {})
        if not isinstance(told, bool):
            told = entry.get("higher_is_better")
        if not isinstance(told, bool) and entry:
            told = True if metric in HIGHER_IS_BETTER else False if metric in LOWER_IS_BETTER else None
        return not told if isinstance(told, bool) else None

    def both_ways(self) -> dict[str, bool]:
        """Metrics of which results and configuration contradict each other, and what the results say."""
        results = self.log.file.about("higher_is_better") or {}
        ways = {
            name: (results.get(name), self._entries.get(name, {}).get("higher_is_better")) for name in results
        }
        return {
            name: told
            for name, (told, entry) in ways.items()
            if isinstance(told, bool) and isinstance(entry, bool) and told != entry
        }

    def contradicted(self) -> dict[str, tuple[float, float]]:
        """Metrics of which the results have another mean than the samples: what they say, and what is so."""
        read = [metric for metric in self.names if metric not in self.left_out]
        return {metric: totals for metric in read if (totals := self._totals(metric)) and _differ(*totals)}

    @cached_property
    def _entries(self) -> dict[str, Mapping[str, Any]]:
        listed = self.log.file.task_config.get("metric_list") or ()
        entries = [entry for entry in listed if isinstance(entry, Mapping)]
        return {str(entry.get("metric")): entry for entry in entries}

    @cached_property
    def _decided(self) -> frozenset[tuple[str, str]]:
        """Metrics that a run or a race of ours went by, which are means, each with its filter."""
        block, task = self.log.file.block or {}, self.log.file.task
        keys = [(block.get("score") or {}).get(task), block.get("metric")]
        named = (str(key).partition(",") for key in keys if key)
        return frozenset((metric, chosen) for metric, _, chosen in named)

    def _why_no_mean(self, metric: str) -> str:
        if metric in dict(self._decided):
            return ""
        if metric == "bypass":
            return "--predict_only makes no scores"
        totals = self._totals(metric)
        entry = self._entries.get(metric)
        how = entry.get("aggregation") if entry else None
        if how is not None:
            if _function(how) in _MEANS:
                return ""
            if _is_code(how) and totals is not None and not _differ(*totals):
                return ""
            return f"it is aggregated by {_function(how) or 'code of the task'}, which is no mean"
        if metric in NO_MEANS and (totals is None or _differ(*totals)):
            return "its total is no mean of the documents' numbers"
        if entry is None and totals is not None and _differ(*totals):
            return f"its total is {totals[0]:.6g}, and the mean of its documents {totals[1]:.6g}"
        return ""

    def _totals(self, metric: str) -> tuple[float, float] | None:
        """The host's total of a metric and the samples' mean, by the first filter that they differ for.

        None if they cannot be compared: in a run of ours, whose totals are estimates, or without all samples.
        """
        if self.log.file.block is not None:
            return None
        reported = self.log.file.about("results") or {}
        effective = (self.log.file.about("n-samples") or {}).get("effective")
        found = None
        for chosen in self.log.filters:
            total = reported.get(f"{metric},{chosen}")
            values = [record.get(metric) for record in self.log.records if record["filter"] == chosen]
            if effective not in (None, len(values)):
                return None
            numbers = [float(value) for value in values if is_number(value) and not math.isnan(value)]
            if not is_number(total) or not numbers:
                continue
            found = float(total), math.fsum(numbers) / len(numbers)
            if _differ(*found):
                break
        return found


def is_number(value: object) -> TypeGuard[bool | int | float]:
    """Whether a metric's value is one, nan included."""
    return isinstance(value, bool | int | float)


def direction(metrics: Metrics, rater: str) -> bool | None:
    """Whether less is better by a rater: a judge, or a metric with its filter; None if nothing tells it."""
    return metrics.lower_is_better(NAME if metrics.log.judged else _metric(metrics, rater))


def _metric(metrics: Metrics, rater: str) -> str:
    """Of a rater that may go by its task and its filter, too."""
    return rater.removeprefix(f"{metrics.log.file.task}/").partition(",")[0]


def score_range(metrics: Metrics, rater: str, scores: Sequence[float]) -> tuple[float, float] | None:
    """The smallest and the largest possible score; None if unknown.

    Args:
        metrics: of a log.
        rater: a judge, or a metric with its filter.
        scores: all that are known, each once, which must not speak against it.
    """
    file, metric = metrics.log.file, _metric(metrics, rater)
    block = file.block or {}
    driver = str((block.get("score") or {}).get(file.task)).partition(",")[0]
    if metrics.log.judged or metric == driver:
        told = ((block.get("tasks") or {}).get(file.task) or {}).get("range") or _scale(metrics.log)
        if told and all(told[0] <= score <= told[1] for score in scores):
            return float(told[0]), float(told[1])
    if metrics.log.judged:
        return None
    named = metric in TWO_VALUED and all(SHARE[0] <= score <= SHARE[1] for score in scores)
    own = file.task_config.get("process_results")
    sure = named and (own is None or any(score > 0.0 for score in scores))
    return SHARE if sure or set(scores) == set(SHARE) else None


def _scale(log: Log) -> Sequence[float] | None:
    """That the judges of a task were given; None if there is none."""
    for one in log.file.task_config.get("filter_list") or ():
        for step in one.get("filter") or () if isinstance(one, Mapping) else ():
            scale = step.get("scale") if isinstance(step, Mapping) else None
            if isinstance(scale, list) and len(scale) == 2:
                return scale
    return None


def reducer(log: Log, chosen: str) -> str | None:
    """How a filter makes one answer of a document's repeats, where that is not one of them; None if it is.

    Args:
        log: of the task.
        chosen: name of the filter.
    """
    config = log.file.task_config
    repeats = config.get("repeats") or 1
    if log.judged or not isinstance(repeats, int) or repeats < 2:
        return None
    listed = config.get("filter_list")
    named = [one for one in listed or () if isinstance(one, Mapping) and one.get("name") == chosen]
    steps = [step for one in named for step in one.get("filter") or () if isinstance(step, Mapping)]
    for step in steps:
        name = str(step.get("function"))
        if name == "take_first_k":
            repeats = step.get("k", repeats)
        elif name == "take_first":
            return None
        elif name not in ONE_OF_EACH:
            return f"{_function(name) or name} of {repeats}"
    return f"all {repeats} answers" if steps else None


def _is_code(how: object) -> bool:
    return isinstance(how, str) and (how.startswith("<") or "\n" in how or "def " in how or "lambda" in how)


def _function(how: object) -> str:
    """The name of an aggregation; mean or nanmean if that is what its code does."""
    text = str(how or "")
    if (match := _FUNCTION.fullmatch(text.strip())) is not None:
        return match[1]
    if not _is_code(how):
        return text
    return named_by_code(text)


def _differ(total: float, mean: float) -> bool:
    """Whether a total is another number; some are rounded to three digits, or made in single precision."""
    rounded = total == round(total, 3)
    return not math.isclose(total, mean, rel_tol=_SINGLE, abs_tol=5.01e-4 if rounded else 1e-9)
