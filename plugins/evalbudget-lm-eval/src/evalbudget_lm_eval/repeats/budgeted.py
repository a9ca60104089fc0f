"""``with budgeted(...): lm_eval.simple_evaluate(...)``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from evalbudget.errors import InvalidInputError
from evalbudget.flags import said_in
from evalbudget.repeats import Summary
from evalbudget.secrets import refuse_secrets
from evalbudget.shown import shown_logger
from evalbudget_lm_eval.repeats.config import Config
from evalbudget_lm_eval.repeats.flags import FLAGS
from evalbudget_lm_eval.repeats.kept_answers import Answers

log = shown_logger(__name__)
_lock = threading.Lock()
_OURS = "__evalbudget__"
_ignored: ContextVar[bool] = ContextVar("blocks_ignored", default=False)


@contextmanager
def budgeted(
    *,
    budget: str | int | None = None,
    prices: str | Path | None = None,
    risk: float | None = None,
    sampler: str | None = None,
    score: str | None = None,
    seed: int | None = None,
    score_range: str | Sequence[float] | None = None,
    estimators: str | Sequence[str] | None = None,
    scorer: str | None = None,
    repeat: str | None = None,
    judges: str | Sequence[str | Mapping[str, Any]] | None = None,
    rotation: str | None = None,
    judge_prices: str | Mapping[str, float] | None = None,
    until: str | None = None,
    strata: str | None = None,
    cluster: str | None = None,
    variances: str | Path | None = None,
    store: str | Path | None = None,
    journal: str | Path | None = None,
    **options: Any,
) -> Iterator[None]:
    """Within this block lm-eval's ``simple_evaluate`` and ``evaluate`` run under a budget.

    Args:
        budget: calls of the model: ``2000``, or ``"20x"`` for 20 answers per document. Where judges score,
            calls of the judges. Or ``"$5"`` or ``"2Mtok"``, for the model and the judges together. None is
            for ``judges`` only: the host's own run, scored by them.
        prices: file of prices, for a budget in money.
        risk: the accepted chance that the last calls exceed a budget in money or tokens.
        sampler: registered name; default ``auto``: in phases, each planned by what earlier ones showed; where
            the budget does not pay for two answers to each document ``sample``: as many documents as it pays
            for, once each. ``uniform`` asks every document equally often.
        score: ``metric`` or ``metric,filter`` that drives the sampler; default each task's first.
        seed: of the sampler.
        score_range: the smallest and the largest possible score, ``"0..1"``; with it every document gets a
            guaranteed interval, and a score outside counts as failed.
        estimators: names of further estimates of the benchmark that plugins bring, ``"median,mode"``.
        scorer: of a plugin, in place of the tasks' own metrics.
        repeat: ``generation`` (default): a repeat is a fresh answer, scored; ``judge``: the first answer of
            each document is scored again.
        judges: that take turns, in place of the tasks' own metrics; as in ``CyclicJudgeFilter``.
        rotation: which of them scores what; default ``cyclic``.
        judge_prices: of one call of each judge, for the rotation ``priced``.
        until: ``"item±0.5"``, to end before the budget is used up, once every document is known that well.
        strata: field of the documents in proportion to whose values a sample of them is drawn, where the
            budget pays for no more than that.
        cluster: field of the documents; those that share a value are not independent of each other, and
            intervals are between clusters.
        variances: how much each document's scores vary, where that is known: a YAML file of lines
            ``task:doc_id: variance``, or samples of an earlier run; for sampler ``robin``, which then needs
            no first answers.
        store: where processes that run the same meet, to share the budget: a file, or
            ``"postgresql://user@host/database#name"``. Each returns its own samples, and estimates of all.
        journal: file that keeps what was paid for; it is continued if it exists, and a finished run is told
            again, for 0 calls. Default: one below ``evalbudget-journals``; ``"none"`` for none.
        options: further arguments of the sampler, for example ``objective="mean"``.

    Raises:
        EvalbudgetError: an argument is no good; and, from within, whatever cannot be budgeted.

    Example::

        with budgeted(budget=2000):
            results = lm_eval.simple_evaluate(model="hf", model_args="pretrained=gpt2", tasks=["gsm8k"])
        results["evalbudget"]
    """
    said = said_in(locals(), FLAGS)
    config = Config.of(**said, **options)
    check_typed(config)
    with evaluate_replaced(lambda _tasks: config):
        yield


def check_typed(config: Config) -> None:
    """Refuse judges that cannot be used, before the host loads a model.

    Raises:
        EvalbudgetError: they cannot.
    """
    if config.judges is not None:
        from evalbudget_lm_eval.judges.typed import typed_panel

        typed_panel(config.judges)


@contextmanager
def evaluate_replaced(
    config_of: Callable[[Mapping[str, Any]], Config | None],
    *,
    folder: Path = Path(),
    about: Mapping[str, Any] | None = None,
    told: Callable[[Summary], object] = lambda _summary: None,
    answers: Answers | None = None,
) -> Iterator[None]:
    """Have the host call ours in place of its ``evaluate``.

    Args:
        config_of: the configuration for these tasks, by name; None to run the host's own.
        folder: where journals go that were given no path.
        about: what else must be the same for a journal to be continued; JSON values.
        told: called with what a run found, in words.
        answers: of a finished run, to be scored in place of asking the model.

    Raises:
        InvalidInputError: within another such block.
    """
    import lm_eval.evaluator as host

    from evalbudget_lm_eval.host.host_evaluate import tasks_of
    from evalbudget_lm_eval.repeats.run import foresee, run_budgeted

    if not _lock.acquire(blocking=False):
        raise InvalidInputError(
            "a budgeted run of lm-eval is within another one, or in another thread; run them one by one"
        )
    original = host.evaluate

    def evaluate(lm: Any, task_dict: Mapping[Any, Any], *positional: Any, **arguments: Any) -> Any:
        tasks = tasks_of(task_dict)[1]
        config = None if positional else config_of(tasks)
        if config is None:
            return original(lm, task_dict, *positional, **arguments)
        for name, task in tasks.items():
            for what in ("generation_kwargs", "metadata"):  # also what the host was given in Python
                refuse_secrets(getattr(task.config, what, None), f"{what} of task {name!r}")
        if config.budget is None:
            _refuse_blocks(tasks)
        with _rescored(config, tasks):
            if config.budget is None and config.dry_run:
                foresee(config, lm, task_dict, **arguments)
            if config.budget is None:
                return original(lm, task_dict, **arguments)
            return run_budgeted(
                config, lm, task_dict, folder=folder, about=about, told=told, answers=answers, **arguments
            )

    evaluate.__dict__[_OURS] = True
    host.evaluate = evaluate
    try:
        yield
    finally:
        host.evaluate = original
        _lock.release()


def _refuse_blocks(tasks: Mapping[str, Any]) -> None:
    for name, task in tasks.items():
        if isinstance(getattr(task, "evalbudget", None), Config):
            raise InvalidInputError(
                f"task {name!r} brings a budget along (evalbudget: in its YAML), and judges named beside the "
                "command come before it; give --budget too"
            )


def _rescored(config: Config, tasks: Mapping[str, Any]) -> AbstractContextManager[None]:
    if config.scorer is not None:
        from evalbudget_lm_eval.repeats.plugin_scorer import scored_by

        return scored_by(config.scorer, tasks)
    if config.judges is None:
        return nullcontext()
    from evalbudget_lm_eval.judges.on_tasks import judged_by
    from evalbudget_lm_eval.judges.typed import typed_panel

    return judged_by(typed_panel(config.judges), tasks, scale=config.score_range)


def budget_next(config_of: Callable[[Mapping[str, Any]], Config | None]) -> None:
    """Have the host's next ``evaluate`` ask ``config_of`` whether to run under a budget.

    For tasks that bring their budget along: they are loaded right before. What runs under a budget already
    keeps that.
    """
    import lm_eval.evaluator as host

    if _ignored.get() or _OURS in vars(host.evaluate):
        return
    original = host.evaluate

    def evaluate(*positional: Any, **arguments: Any) -> Any:
        host.evaluate = original
        with evaluate_replaced(config_of):
            return host.evaluate(*positional, **arguments)

    evaluate.__dict__[_OURS] = True
    host.evaluate = evaluate


@contextmanager
def blocks_ignored() -> Iterator[None]:
    """Within this block tasks do not bring their budget along: a race has one of its own."""
    before = _ignored.set(True)
    try:
        yield
    finally:
        _ignored.reset(before)
