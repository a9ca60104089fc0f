"""What a race leaves behind: each arm's results as the host writes them, and the leaderboard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalbudget import __version__
from evalbudget.comparisons import Gate
from evalbudget.races import Leaderboard, RacePurchase, Standing
from evalbudget_lm_eval.arms.arm import folder_of
from evalbudget_lm_eval.arms.loaded_models import Entrant, Stable
from evalbudget_lm_eval.host.rows import ALL_MODELS, ESTIMATE, PLAIN, lead_with, named_rows

_ROUNDING = 1e-9


@dataclass(frozen=True)
class RaceResult:
    """How a race came out.

    Attributes:
        leaderboard: who is best, with intervals.
        results: of each arm that answered anything, as the host's ``simple_evaluate`` returns them.
        loads: how often each arm's model was loaded.
        journal: path of the record; None if there is none.
        gate: the verdict, of a gate.
    """

    leaderboard: Leaderboard
    results: dict[str, dict[str, Any]]
    loads: dict[str, int]
    journal: Path | None
    gate: Gate | None = None


def results_of(
    stable: Stable, race: RacePurchase, board: Leaderboard, metrics: Sequence[str], gate: Gate | None = None
) -> dict[str, dict[str, Any]]:
    """The host's results of each arm that answered anything, samples included, with our block in them."""
    found = {}
    lanes = {lane.name: lane for lane in race.lanes}
    for entrant, metric in zip(stable.entrants, metrics, strict=True):
        lane = lanes[entrant.arm.name]
        if lane.tally.readings and lane.evaluations:  # not only what its log had
            primed, name = stable.opened(entrant), entrant.arm.name
            results: dict[str, Any] = {
                **primed.results(),
                **(entrant.frame or {}),
                "evalbudget": _block(entrant, stable, race, board, metric)
                | ({} if gate is None else {"gate": gate.to_dict()}),
            }
            for table in (results["results"], results.get("groups") or {}):
                own = table.get(entrant.task)
                if own is not None and metric in own:
                    alone = gate is not None and (gate.cluster is not None or gate.repeats > 1)
                    rows = rows_of(board.of(name), metric, own, errors=not alone)
                    table[entrant.task] = lead_with(own, rows)
            found[name] = results
    return found


def rows_of(
    standing: Standing, metric: str, own: Mapping[str, Any], *, errors: bool = True
) -> dict[str, Any]:
    """A model's rows in the host's ``results``: the metric itself is the estimate, which the others are of.

    Args:
        standing: of the model.
        metric: the host's ``metric,filter``.
        own: the host's results of the task.
        errors: whether documents and answers are independent, as standard errors and intervals have it.
    """
    if standing.estimate is None:
        return {}
    rows = named_rows(metric, _known(standing) if errors else {"estimate": standing.estimate})
    plain = own.get(metric)
    if isinstance(plain, float) and abs(plain - standing.estimate) > _ROUNDING:
        measure, _, chosen = metric.partition(",")
        rows[f"{measure}{PLAIN},{chosen}"] = plain  # what the host makes of the same answers
    return rows


def _known(standing: Standing) -> dict[str, float]:
    told = {word: getattr(standing, word) for word in (*ESTIMATE.values(), *ALL_MODELS.values())}
    return {word: value for word, value in told.items() if value is not None}


def write_results(stable: Stable, results: dict[str, dict[str, Any]], *, log_samples: bool) -> None:
    """Write every arm's files with the host's tracker.

    Where several arms have the same model name, by which the host names folders, theirs are named by arm.
    """
    trackers = {e.arm.name: e.tracker for e in stable.entrants if e.arm.name in results}
    names = Counter(t.general_config_tracker.model_name_sanitized for t in trackers.values())
    for arm, tracker in trackers.items():
        general = tracker.general_config_tracker
        if names[general.model_name_sanitized] > 1 or not general.model_name_sanitized:
            general.model_name, general.model_name_sanitized = arm, folder_of(arm)
        written = dict(results[arm])
        samples = written.pop("samples", None) if log_samples else None
        written.pop("samples", None)
        tracker.save_results_aggregated(results=written, samples=samples)
        for task, own in (samples or {}).items():
            tracker.save_results_samples(task_name=task, samples=own)


def _block(
    entrant: Entrant, stable: Stable, race: RacePurchase, board: Leaderboard, metric: str
) -> dict[str, Any]:
    journal = stable.record.path
    return {
        "version": __version__,
        "arm": entrant.arm.name,
        **({"settings": dict(entrant.arm.settings)} if entrant.arm.settings else {}),
        "metric": metric,
        "sampler": dict(race.sampler.config),
        "budget": board.budget,
        "spent": board.spent,
        "journal": None if journal is None else str(journal),
        "race": board.as_json,
    }
