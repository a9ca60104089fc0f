"""``pairwise``: an inspect task in which a model compares the answers of finished logs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver

from evalbudget.errors import EvalbudgetError
from evalbudget_inspect.host.listening import listen
from evalbudget_inspect.host.refusals import refused
from evalbudget_inspect.host.sent_again import paying
from evalbudget_pairwise import Answers, Comparisons, PairwiseConfig, PairwisePurchase, folder_of
from evalbudget_pairwise.inspect.answers import COMPARING, read_answers

_AT_ONCE = 10
"""Calls at once, where nobody says how many connections there are; inspect's own number."""

_purchases: list[PairwisePurchase] = []


def take_purchases() -> list[PairwisePurchase]:
    """Purchases that ended since the last call."""
    taken = list(_purchases)
    _purchases.clear()
    return taken


def pairwise(
    logs: Sequence[str | Path],
    *,
    budget: str | int | None = None,
    until_proved: bool = False,
    sampler: str | None = None,
    orders: str | None = None,
    template: str | Path | None = None,
    level: float | None = None,
    record: str | Path | None = None,
    seed: int | None = None,
    **options: Any,
) -> Task:
    """A task whose model is a judge: it says which of two models' answers to an item is better.

    The answers come from finished logs; the calls are those of inspect's model, in one sample. Which pair is
    asked next, and which answer is shown first, decides the sampler. Give it to inspect's ``eval`` with the
    judge as the model. The reading is in the sample's metadata as ``evalbudget``, with the fields of
    :class:`evalbudget_pairwise.PairwiseReading`.

    Args:
        logs: of two models or more, on the same items; files, or folders of them.
        budget: calls of the judge: ``400``, ``"2x"`` for two per item, ``"20%"`` of all comparisons.
        until_proved: stop once a winner is proved; the budget is then a cap, by default all comparisons.
        sampler: registered name of a sampler of pairs; default ``duel``.
        orders: ``fresh``, every item in one order first, or ``both``; default ``fresh``.
        template: file with what the judge is asked, with ``{input}``, ``{first}`` and ``{second}`` in it.
        level: of intervals, and of all that is proved; default .95.
        record: where what is bought is kept, to go on from; default a file beside the first log.
        seed: of the order of items.
        options: further arguments of the sampler, for example ``batch=16``.

    Raises:
        EvalbudgetError: a log cannot be read, logs of other items, or one of the arguments is no good.

    Example::

        (log,) = eval(pairwise(["a.eval", "b.eval"], budget=400), model="openai/gpt-5")
        log.samples[0].metadata["evalbudget"]["sentence"]
    """
    listen()
    config = PairwiseConfig.of(
        budget=budget,
        until_proved=until_proved,
        sampler=sampler,
        orders=orders,
        template=template,
        level=level,
        seed=seed,
        **options,
    )
    paths = [str(log) for log in logs]
    answers = read_answers(paths)
    if record is None:
        folder_of(paths[0])  # refuses what has none
    told = f"Which of {len(answers.models)} models' answers to {len(answers.items):,} items are better?"
    return Task(
        dataset=MemoryDataset([Sample(id="comparisons", input=told)], name="comparisons"),
        solver=_comparing(config, answers, None if record is None else Path(record), paths[0]),
        name="pairwise",
        metadata={"models": list(answers.models), "items": len(answers.items)},
    )


@solver(name=COMPARING)
def _comparing(config: PairwiseConfig, answers: Answers, record: Path | None, log: str) -> Solver:
    async def compare(state: TaskState, generate: Generate) -> TaskState:
        judge = get_model()

        async def ask(prompt: str, _: int) -> str:
            async with paying(_never):
                return (await judge.generate(prompt)).completion

        try:
            asked = Comparisons(config, answers, str(judge))
            bought = await asked.buy(
                ask,
                record=record or asked.record_beside(log),
                concurrency=judge.config.max_connections or _AT_ONCE,
            )
        except EvalbudgetError as ex:
            refused(ex)
            raise
        _purchases.append(bought)
        state.metadata["evalbudget"] = bought.to_dict()
        state.output.completion = "\n".join(
            [*([] if bought.reading is None else [bought.reading.sentence]), *bought.lines()]
        )
        return state

    return compare


async def _never(calls: float) -> bool:
    """What may be billed and brought nothing is not sent again by itself: it is a call that failed."""
    return calls <= 0.0
