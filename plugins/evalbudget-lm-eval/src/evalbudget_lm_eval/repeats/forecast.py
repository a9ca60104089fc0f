"""``--dry_run``: what a run would buy, from its tasks and from earlier records of the same run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalbudget.budget import Unit
from evalbudget.errors import EvalbudgetError
from evalbudget.run import Forecast
from evalbudget_lm_eval.host.host_evaluate import PrimedTasks
from evalbudget_lm_eval.host.identity import short_name
from evalbudget_lm_eval.repeats.config import Config
from evalbudget_lm_eval.repeats.money import Money
from evalbudget_lm_eval.repeats.refusals import calls_of_readings
from evalbudget_lm_eval.run.record import END, FOLDER, as_recorded, look, path_named


class Foreseen(BaseException):
    """A run that was only to be foreseen is known: the host has nothing more to do, and catches nothing.

    Args:
        forecast: of it.
    """

    def __init__(self, forecast: Forecast) -> None:
        super().__init__()
        self.forecast = forecast


@dataclass(frozen=True, slots=True)
class Earlier:
    """What readings took in earlier runs.

    Attributes:
        reading: cost of one on average, in units of the budget; None where there were none.
        seconds: that one took on average, with as many at a time as there were; None where nobody knows.
    """

    reading: float | None = None
    seconds: float | None = None

    @classmethod
    def of(cls, paths: Iterable[Path], run: Mapping[str, Any], unit: Unit) -> Earlier:
        """From records of the same run, with whatever budget; others, and damaged ones, are left out.

        Args:
            paths: of records.
            run: settings that decide what a model answers.
            unit: of the budget; costs in another one are left out.
        """
        wanted = as_recorded(run)
        cost = seconds = 0.0
        readings = timed = 0
        for path in paths:
            try:
                found, told, paid_in = look(path)
                had = found.settings
                # what decides may be known once the task has scored something
                known = {name: score for name, score in had["score"].items() if name in wanted["score"]}
                if {**had, "score": known} != wanted:
                    continue
                if paid_in is unit:
                    cost += told.cost
                    readings += told.readings
                seconds += found.seconds
                timed += found.timed
            except (EvalbudgetError, OSError, ValueError, LookupError, TypeError, AttributeError):
                continue
        return cls(cost / readings if readings else None, seconds / timed if timed else None)


def records_in(folder: Path, config: Config) -> list[Path]:
    """Where earlier runs may have left what they bought."""
    named = [] if config.journal is None else [path_named(config.journal)]
    return [*named, *sorted((folder / FOLDER).glob(f"*{END}"))]


def foreseen(config: Config, primed: PrimedTasks, money: Money | None, earlier: Earlier) -> Forecast:
    """What a run would buy.

    Args:
        config: what the user asked for.
        primed: the tasks, and the model, which is not asked.
        money: the bill; None where the budget counts scores.
        earlier: what is known of earlier runs.
    """
    documents = [(name, doc) for name in primed.names for doc in primed.documents(name)]
    calls = sum(primed.cost(*document) for document in documents)
    budget = None if config.budget is None else config.resolve_budget(calls)
    most: int | None = None
    if budget is None:
        most = len(documents)
    elif config.in_scores:
        most = int(budget.amount * len(documents) / max(calls, 1))
        if config.draws and config.options.get("once"):
            most = min(most, len(documents))
    return Forecast(
        task=", ".join(primed.names),
        model=short_name(primed.lm),
        sampler=config.sampler,
        items=len(documents),
        budget=budget,
        minimum=1 if config.draws else len(documents) * max(1, config.fixed_repeats),
        most=most,
        call=None if money is None else money.call,
        reading=None if money is None else earlier.reading,
        seconds=earlier.seconds,
        risk=config.risk,
        sample=config.draws,
        strata=config.strata if config.draws else None,
        notes=tuple(calls_of_readings(primed)),
    )
