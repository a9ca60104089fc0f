"""What tests on inspect share: scorers and solvers in a line, the command, and what logs say."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from inspect_ai import eval_retry
from inspect_ai.log import EvalLog
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver
from tests.host_inspect.race_tasks import QUIET

from evalbudget.book import BESIDE_LOGS, begin_anew
from evalbudget.run import UNANSWERED
from evalbudget.store import Address, Database
from evalbudget_inspect.host.book_file import book_path, folder_of

EVALBUDGET = "import sys; from evalbudget.cli.main import main; sys.argv[0] = 'evalbudget'; main()"
COMMAND = [sys.executable, "-c", EVALBUDGET, "inspect"]
"""``evalbudget inspect`` in a process of its own."""
UNWATCHED = {
    "INSPECT_EVAL_NO_LOG_REALTIME": "1",
    "INSPECT_EVAL_SCORE_DISPLAY": "1",
    "INSPECT_EVAL_CTL_SERVER": "false",
    "INSPECT_EVAL_LOG_BUFFER": "1000",
}
"""Environment of a run that nobody watches and nothing kills: no buffer of events, no metrics on the way
(the host's variable for --no-score-display has no NO in its name), no server that says how it goes, and
samples are in the log when it ends."""


def kept_in_memory(paid: float = 0.0) -> Database:
    """What a run's book is in beside its log, without a file, after earlier attempts that paid so much."""
    kept = Database.in_memory(BESIDE_LOGS, {"version": "1"})
    begin_anew(kept, UNANSWERED, paid)
    return kept


def book_says(log: EvalLog, paid: float) -> None:
    """Have the book beside a log be that of a run that paid so much, where the log was cut short by hand."""
    path = book_path([folder_of(log.location)], log.eval.task_id)
    path.unlink(missing_ok=True)
    kept = Database.create(Address(path=path), BESIDE_LOGS, {"version": "1"})
    begin_anew(kept, UNANSWERED, paid)
    kept.close()


def scoring(name: str, value: Callable[[TaskState], Any], metrics: Any = None) -> Callable[[], Scorer]:
    """A scorer of this name; ``value`` is its score of a sample, and None is no score."""

    @scorer(metrics=[mean()] if metrics is None else metrics, name=name)
    def made() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score | None:
            said = value(state)
            return None if said is None else Score(value=said)

        return score

    return made


def solving(step: Callable[[TaskState], object], *, generates: bool = False) -> Solver:
    """A solver that does this with each sample, before the model answers or instead."""

    @solver
    def made() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            step(state)
            return await generate(state) if generates else state

        return solve

    return made()


def retried(log: EvalLog, **options: Any) -> EvalLog:
    """What the host's ``eval_retry`` makes of a log, to its end."""
    (again,) = eval_retry(log, **{**QUIET, "fail_on_error": False, **options})
    assert again.status == "success", again.error
    return again


def entry_of(log: EvalLog, key: str = "spent") -> dict[str, Any]:
    """Our entry in the log's scores that says this."""
    assert log.results is not None
    entries = [(score.metadata or {}).get("evalbudget") or {} for score in log.results.scores]
    return dict(next(entry for entry in entries if key in entry))


def rows_of(log: EvalLog, name: str) -> dict[str, float]:
    """Metrics of the score of this name that has an estimate."""
    assert log.results is not None
    (score,) = (s for s in log.results.scores if s.name == name and any("estimate" in m for m in s.metrics))
    return {key: metric.value for key, metric in score.metrics.items()}


def told_by(log: EvalLog) -> dict[str, float]:
    """Metrics of all scores."""
    assert log.results is not None
    return {name: m.value for s in log.results.scores for name, m in s.metrics.items()}
