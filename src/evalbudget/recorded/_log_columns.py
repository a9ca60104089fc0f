"""Several logs of a host as one array of recorded scores, with what each says of how they were bought."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from evalbudget.errors import EvalbudgetError, InvalidInputError
from evalbudget.recorded._how_bought import HowBought
from evalbudget.recorded._scores import RecordedScores, check_phases
from evalbudget.sampler import Allocation
from evalbudget.statistics._bounds import FloatArray


@dataclass(frozen=True, slots=True)
class Bought:
    """One log's samples of one model.

    Attributes:
        purchase: how they were bought.
        epochs: the largest number of epochs of an item; 0 if nothing was scored.
    """

    purchase: HowBought
    epochs: int

    @property
    def fixed(self) -> int:
        """Epochs of every item that were bought whatever the scores."""
        if self.purchase.allocation is Allocation.FIXED:
            return self.epochs
        return min(self.purchase.fixed_repeats, self.epochs)


class Ordinals:
    """Numbers the epochs of several logs of one model such that what may count for the mean can be told.

    If one of them was allocated adaptively, epochs that were bought whatever the scores come first. Else
    there is nothing to tell apart: if one has phases, all have (see :meth:`LogColumns.recorded`).

    Args:
        logs: in order.
    """

    def __init__(self, logs: Sequence[Bought]) -> None:
        kinds = {log.purchase.allocation for log in logs}
        self._logs = logs
        self._adaptive = Allocation.ADAPTIVE in kinds
        fixed = [log.fixed for log in logs]
        self._first = [sum(fixed[:i]) for i in range(len(logs))]
        beyond = [log.epochs - log.fixed for log in logs]
        self._rest = [sum(fixed) + sum(beyond[:i]) for i in range(len(logs))]
        self._before = [sum(log.epochs for log in logs[:i]) for i in range(len(logs))]
        allocation = Allocation.FIXED
        if self._adaptive:
            allocation = Allocation.ADAPTIVE
        elif Allocation.PHASED in kinds:
            allocation = Allocation.PHASED
        costs = [log.purchase.cost for log in logs]
        dollars = [log.purchase.usd for log in logs]
        sizes = [log.purchase.phase_sizes for log in logs]
        self.purchase = HowBought(
            allocation,
            sum(fixed) if self._adaptive else next((f for f in fixed if f), 0),
            cost=sum(c for c in costs if c is not None),
            usd=None if None in dollars else sum(d for d in dollars if d is not None),
            phase_sizes=tuple(size for own in sizes for size in own) if all(sizes) else (),
        )
        """Of all logs together."""

    def ordinal(self, log: int, epoch: int) -> int:
        """Of an epoch (from 1, as the host counts) of one of the logs."""
        at = epoch - 1
        if not self._adaptive:
            return self._before[log] + at
        fixed = self._logs[log].fixed
        return self._first[log] + at if at < fixed else self._rest[log] + at - fixed


@dataclass(slots=True)
class LogColumns:
    """Readings from several logs, one entry each; :meth:`recorded` makes them one array.

    Attributes:
        items: item of each reading.
        scores: nan where it failed, was to come and did not, or cannot be read.
        models: whose answer was scored.
        raters: who scored it.
        repeats: any label that tells the readings of a cell apart.
        generations: labels of the answers scored; those of one answer stand at one place among the repeats.
        logs: where the reading stands.
        epochs: from 1, as it is numbered there.
        phases: ``Request.phase``; nan where there were none, or the log does not say.
        costs: what each reading cost in dollars, nan where it is not known; empty where none is.
        outside: entries without a score since none applies, which did not fail.
        again: for readers that number scores of one answer.
    """

    items: list[str] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    models: list[str] = field(default_factory=list)
    raters: list[str] = field(default_factory=list)
    repeats: list[object] = field(default_factory=list)
    generations: list[object] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)
    epochs: list[int] = field(default_factory=list)
    phases: list[float] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    outside: set[int] = field(default_factory=set)
    again: dict[tuple[str, str, str], int] = field(default_factory=dict)

    def recorded(self, bought: Mapping[str, Mapping[str, Bought]]) -> RecordedScores:
        """As an array, with those of one generation, and no others, at the same place among repeats.

        Args:
            bought: by model and log.
        """
        recorded = RecordedScores.from_readings(
            self.items,
            self.scores,
            models=self.models,
            raters=self.raters,
            repeats=self.repeats,
            may_be_empty=True,
        )
        places: dict[str, dict[object, int]] = {}
        place: list[int] = []
        for model, generation in zip(self.models, self.generations, strict=True):
            known = places.setdefault(model, {})
            place.append(known.setdefault(generation, len(known)))
        scores = np.full((*recorded.scores.shape[:3], max(place) + 1), np.nan)
        model_of = _positions(self.models, recorded.models)
        item_of = _positions(self.items, recorded.items)
        rater_of = _positions(self.raters, recorded.raters)
        scores[model_of, item_of, rater_of, place] = self.scores
        ordinals = {model: Ordinals(list(logs.values())) for model, logs in bought.items()}
        number = {model: {log: i for i, log in enumerate(logs)} for model, logs in bought.items()}
        epochs = np.zeros(scores.shape, dtype=np.int64)
        epochs[model_of, item_of, rater_of, place] = [
            ordinals[model].ordinal(number[model][log], epoch)
            for model, log, epoch in zip(self.models, self.logs, self.epochs, strict=True)
        ]
        purchases = tuple(ordinals[model].purchase for model in recorded.models)
        told = any(p.allocation is not Allocation.FIXED for p in purchases)
        phases: FloatArray | None = None
        if any(p.allocation is Allocation.PHASED for p in purchases):
            phases = np.full(scores.shape, np.nan)
            phases[model_of, item_of, rater_of, place] = self._phases_in_turn(model_of, bought)
        costs: FloatArray | None = None
        if np.isfinite(self.costs).any():
            costs = np.full(scores.shape, np.nan)
            costs[model_of, item_of, rater_of, place] = self.costs
        lost = np.isnan(np.array(self.scores, dtype=np.float64))
        lost[list(self.outside)] = False
        failed = np.zeros(scores.shape[:3], dtype=np.int64)
        np.add.at(failed, (model_of, item_of, rater_of), lost)
        outside = np.zeros(scores.shape[:3], dtype=np.bool_)
        for row in self.outside:
            outside[model_of[row], item_of[row], rater_of[row]] = True
        return replace(
            recorded,
            scores=scores,
            purchases=purchases,
            epochs=epochs if told else None,
            phases=phases,
            costs=costs,
            failed=failed,
            outside=outside if self.outside else None,
            may_be_empty=bool(np.isnan(scores).all()),
        )

    def _phases_in_turn(
        self, model_of: Sequence[int], bought: Mapping[str, Mapping[str, Bought]]
    ) -> FloatArray:
        """Of each reading; those of a model's second log come after all of the first one's, and so on.

        A log of plain epochs is one phase.
        """
        plain = [
            bought[model][log].purchase.allocation is Allocation.FIXED
            for model, log in zip(self.models, self.logs, strict=True)
        ]
        phase = np.where(plain, 0.0, np.array(self.phases, dtype=np.float64))
        check_phases(phase)
        model, log = np.array(model_of), np.array(_positions(self.logs, list(dict.fromkeys(self.logs))))
        after: dict[int, float] = {}
        for m, source in dict.fromkeys(zip(model.tolist(), log.tolist(), strict=True)):
            rows = np.flatnonzero((model == m) & (log == source) & ~np.isnan(phase))
            if rows.size:
                phase[rows] += after.get(m, 0.0)
                own = bought[self.models[rows[0]]][self.logs[rows[0]]].purchase.phase_sizes
                after[m] = max(float(phase[rows].max()) + 1.0, after.get(m, 0.0) + len(own))
        return phase


@contextmanager
def as_written_by(host: str, path: Path) -> Iterator[None]:
    """While a host's file is read: values that the host does not write are told with the file.

    Args:
        host: its name.
        path: of the file, or of the folder.
    """
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as ex:
        ours = isinstance(ex, EvalbudgetError)
        if ours and str(path) in str(ex):
            raise
        told = str(ex) if ours else f"{type(ex).__name__}: {str(ex)[:200]}"
        raise InvalidInputError(
            f"{path} is damaged, or not what {host} wrote: {told}. Restore it, or move it away"
        ) from ex


def _positions(column: Sequence[str], names: Sequence[str]) -> list[int]:
    number = {name: i for i, name in enumerate(names)}
    return [number[name] for name in column]
