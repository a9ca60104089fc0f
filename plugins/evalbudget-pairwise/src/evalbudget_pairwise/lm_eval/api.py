"""``pairwise``: a judge of the host compares the answers of finished runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from evalbudget_lm_eval.host.identity import is_api
from evalbudget_lm_eval.host.judge_calls import counted
from evalbudget_lm_eval.judges.asking import context_for, options_of_call, quiet, replies_to
from evalbudget_lm_eval.judges.judge_models import JudgeSpec, read_judges
from evalbudget_pairwise import Comparisons, PairwiseConfig, PairwisePurchase
from evalbudget_pairwise.lm_eval.answers import read_answers


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
    return asked(
        logs,
        judge=judge,
        record=record,
        budget=budget,
        until_proved=until_proved,
        sampler=sampler,
        orders=orders,
        template=template,
        level=level,
        seed=seed,
        **options,
    ).buy()


@dataclass(frozen=True, eq=False)
class Asked:
    """Comparisons that are asked for.

    Attributes:
        comparisons: to buy.
        judge: that makes them.
        record: where what is bought is kept.
    """

    comparisons: Comparisons
    judge: JudgeSpec
    record: Path

    def buy(self) -> PairwisePurchase:
        """Ask the judge.

        Raises:
            EvalbudgetError: the judge cannot be loaded; see also ``Comparisons.buy``.
        """
        lm = self.judge.load()
        api = is_api(lm)

        def reply(prompt: str, number: int) -> str:
            options = options_of_call(self.judge, lm, self.record.name, prompt, number)
            (said,) = replies_to(lm, [context_for(self.judge, lm, prompt)], options)
            if isinstance(said, Exception):
                raise said
            return said

        async def ask(prompt: str, number: int) -> str:
            return await anyio.to_thread.run_sync(reply, prompt, number)

        async def bought() -> PairwisePurchase:
            at_once = max(int(lm._concurrent), 1) if api else 1
            return await self.comparisons.buy(ask, record=self.record, concurrency=at_once)

        # what may be billed and brought nothing is a call that failed, not one that is sent again
        with counted([lm] if api else [], lambda calls: not calls), quiet():
            return anyio.run(bought)


def asked(
    logs: Sequence[str | Path],
    /,
    *,
    judge: str | Mapping[str, Any],
    record: str | Path | None = None,
    **typed: Any,
) -> Asked:
    """What would be bought; arguments and refusals are those of :func:`pairwise`."""
    config = PairwiseConfig.of(**typed)
    paths = [str(log) for log in logs]
    answers = read_answers(paths)
    (spec,) = read_judges([judge])
    comparisons = Comparisons(config, answers, spec.name)
    return Asked(comparisons, spec, comparisons.record_beside(paths[0]) if record is None else Path(record))
