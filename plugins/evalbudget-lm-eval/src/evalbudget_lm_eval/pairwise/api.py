"""``pairwise``: a judge of the host compares the answers of finished runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from evalbudget.pairwise import (
    Answers,
    PairwiseConfig,
    PairwisePurchase,
    buy_preferences,
    read_template,
    record_name,
)
from evalbudget_lm_eval.host.identity import is_api
from evalbudget_lm_eval.host.judge_calls import counted
from evalbudget_lm_eval.judges.asking import context_for, options_of_call, quiet, replies_to
from evalbudget_lm_eval.judges.judge_models import JudgeSpec, read_judges
from evalbudget_lm_eval.pairwise.answers import read_answers


def pairwise(
    logs: Sequence[str | Path],
    *,
    judge: str | Mapping[str, Any],
    budget: str | int | None = None,
    until_proved: bool = False,
    sampler: str | None = None,
    orders: str | None = None,
    template: str | Path | None = None,
    level: float | None = None,
    record: str | Path | None = None,
    seed: int | None = None,
    **options: Any,
) -> PairwisePurchase:
    """Have a judge say which of two models' answers to a document is better.

    Which pair is asked next, and which answer is shown first, decides the sampler. Called again with the same
    arguments it goes on from what was bought.

    Args:
        logs: of two models or more, on the same documents: what lm-eval wrote with ``--log_samples``.
        judge: the host's model string, or a mapping, as in ``judges:`` of a task.
        budget: calls of the judge: ``400``, ``"2x"`` for two per document, ``"20%"`` of all comparisons.
        until_proved: stop once a winner is proved; the budget is then a cap, by default all comparisons.
        sampler: registered name of a sampler of pairs; default ``duel``.
        orders: ``fresh``, every document in one order first, or ``both``; default ``fresh``.
        template: file with what the judge is asked, with ``{input}``, ``{first}`` and ``{second}`` in it.
        level: of intervals, and of all that is proved; default .95.
        record: where what is bought is kept, to go on from; default a file beside the first log.
        seed: of the order of documents.
        options: further arguments of the sampler, for example ``batch=16``.

    Returns:
        What was bought, and what it says.

    Raises:
        EvalbudgetError: a log cannot be read, logs of other documents, a judge that cannot be loaded, or one
            of the arguments is no good.

    Example::

        found = pairwise(["results/a", "results/b"], judge="local-chat-completions:model=j,base_url=...",
                         budget=400)
        say(found.reading.sentence)
    """
    config = PairwiseConfig.of(
        budget=budget,
        until_proved=until_proved,
        sampler=sampler,
        orders=orders,
        template=None if template is None else read_template(template),
        level=level,
        seed=seed,
        **options,
    )
    paths = [str(log) for log in logs]
    (spec,) = read_judges([judge])
    return buy(config, read_answers(paths), spec, record=None if record is None else Path(record), logs=paths)


def buy(
    config: PairwiseConfig,
    answers: Answers,
    spec: JudgeSpec,
    *,
    record: Path | None,
    logs: Sequence[str],
) -> PairwisePurchase:
    """Ask the judge.

    Args:
        config: what was asked for.
        answers: to compare.
        spec: the judge.
        record: where what is bought is kept; None for a file beside the first log.
        logs: that the answers are from.

    Raises:
        EvalbudgetError: the judge cannot be loaded; see also ``buy_preferences``.
    """
    lm = spec.load()
    api = is_api(lm)
    kept = record or record_beside(logs[0], config, answers, spec.name)

    def reply(prompt: str, number: int) -> str:
        options = options_of_call(spec, lm, kept.name, prompt, number)
        (said,) = replies_to(lm, [context_for(spec, lm, prompt)], options)
        if isinstance(said, Exception):
            raise said
        return said

    async def ask(prompt: str, number: int) -> str:
        return await anyio.to_thread.run_sync(reply, prompt, number)

    async def bought() -> PairwisePurchase:
        return await buy_preferences(
            config,
            answers,
            spec.name,
            ask,
            record=kept,
            concurrency=max(int(lm._concurrent), 1) if api else 1,
        )

    # what may be billed and brought nothing is a call that failed, not one that is sent again
    with counted([lm] if api else [], lambda calls: not calls), quiet():
        return anyio.run(bought)


def record_beside(log: str, config: PairwiseConfig, answers: Answers, judge: str) -> Path:
    """Where what is bought is kept if nobody says where."""
    path = Path(log)
    return (path if path.is_dir() else path.parent) / record_name(config, answers, judge)
