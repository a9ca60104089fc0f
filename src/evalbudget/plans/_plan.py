"""How many items, repeats, judge calls, evaluations or labels are needed, from a pilot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evalbudget.errors import InvalidInferenceError, InvalidInputError
from evalbudget.plans._contests import plan_contest
from evalbudget.plans._items import plan_items
from evalbudget.plans._panel import plan_panel
from evalbudget.plans._result import Plans
from evalbudget.recorded._scores import RecordedScores
from evalbudget.replay._workers import Progress

PURPOSES = ("half_width", "item_half_width", "usd", "race", "audit")
"""What a plan can be for, as arguments of :func:`plan`."""
LABEL_PRICE = 20.0
"""Of a human label, in scores of the judge."""


def _unseen(done: int, total: int) -> None:
    """Progress that nobody watches."""


def plan(
    pilot: RecordedScores,
    *,
    half_width: float | None = None,
    item_half_width: float | None = None,
    usd: float | None = None,
    race: bool = False,
    audit: bool = False,
    samplers: Sequence[str] = (),
    score_range: tuple[float, float] | None = None,
    label_price: float = LABEL_PRICE,
    rater: str | None = None,
    judge_prices: Mapping[str, float] | None = None,
    generation_price: float = 0.0,
    level: float = 0.95,
    model: str | None = None,
    judges_used: int | None = None,
    max_items: int | None = None,
    one_generation: bool = False,
    rescale: bool = False,
    source: str = "the pilot",
    progress: Progress | None = None,
) -> Plans:
    """Plan an evaluation, as ``evalbudget plan`` does; exactly one of the first five says what for.

    Args:
        pilot: scores; its raters are the judges.
        half_width: that the interval of the mean shall have.
        item_half_width: that every single item's interval shall have, by repeats of one judge's scores.
        usd: money to spend, instead of a half-width.
        race: until the best of the pilot's models is proved.
        audit: the same by human labels, which the pilot has as its reference.
        samplers: to plan with, for ``item_half_width``, ``race`` and ``audit``; empty for the default.
        score_range: smallest and largest possible score, for ``race`` and ``audit``.
        label_price: of a human label, in scores of the judge.
        rater: whose scores decide; None for all, which are then a panel; the judge, for ``audit``.
        judge_prices: dollars of one call of each judge; None for what the pilot says, or else 1.
        generation_price: dollars of one answer of the model judged.
        level: of the interval.
        model: whose scores; needed if the pilot has several.
        judges_used: also plan with so many of the judges, drawn at random.
        max_items: how many items there are.
        one_generation: the pilot's repeats are scores of one answer per item.
        rescale: map the range that each judge used to 0..1.
        source: names the pilot, for messages.
        progress: called with (replays done, in all).

    Raises:
        InvalidInputError: none or several of the first five, or a number that makes no sense.
        InvalidInferenceError: the pilot does not support a plan.
        UnknownNameError: no such model, judge, rater or sampler.
    """
    check_question(half_width, item_half_width, usd, race, audit)
    progress = progress or _unseen
    if item_half_width is not None:
        return plan_items(
            pilot,
            item_half_width,
            model=model,
            level=level,
            samplers=samplers or ("auto",),
            source=source,
            progress=progress,
        )
    if race or audit:
        for flag, given in {
            "--model": model,
            "--judge-prices": judge_prices,
            "--judges-used": judges_used,
            "--one-generation": one_generation,
            "--rescale": rescale,
        }.items():
            if given:
                raise InvalidInputError(f"{flag} is not for --race and --audit; drop it")
        try:
            return plan_contest(
                pilot,
                samplers,
                rater=rater,
                label_price=label_price if audit else None,
                n_items=max_items,
                score_range=score_range,
                progress=progress,
            )
        except InvalidInferenceError as ex:
            raise InvalidInferenceError(f"{source}: {ex}") from ex
    return plan_panel(
        pilot.select(rater=rater),
        half_width=half_width,
        usd=usd,
        judge_prices=judge_prices or {},
        generation_price=generation_price,
        level=level,
        model=model,
        judges_used=judges_used,
        max_items=max_items,
        one_generation=one_generation,
        rescale=rescale,
        source=source,
    )


def check_question(*purposes: float | bool | None) -> None:
    """Refuse none, or several, of what a plan can be for.

    Args:
        purposes: what is given of each.

    Raises:
        InvalidInputError: they are not exactly one.
    """
    if sum(given is not None and given is not False for given in purposes) != 1:
        raise InvalidInputError(
            "give one of --half-width (how narrow), --item-half-width (each item), --usd (how much money), "
            "--race and --audit (which model is best)"
        )
