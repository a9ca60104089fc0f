"""How many repeats until every item is known: a plan from a pilot, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

import numpy as np

from evalbudget._fields import percent
from evalbudget.design import Design
from evalbudget.errors import InvalidInferenceError, InvalidInputError
from evalbudget.plans._result import Plans, table_of
from evalbudget.recorded._scores import RecordedScores
from evalbudget.repeats import plan_repeats
from evalbudget.repeats.estimates import ItemReadings
from evalbudget.replay._contestant import Contestant, contestants
from evalbudget.replay._workers import Progress
from evalbudget.sampler import Sampler


def plan_items(
    recorded: RecordedScores,
    half_width: float,
    *,
    model: str | None,
    level: float,
    samplers: Sequence[str],
    source: str,
    progress: Progress,
) -> Plans:
    """What ways of repeating need, on the items of one model and one rater.

    Raises:
        InvalidInputError: there are several models or raters, or the half-width is no good.
        InvalidInferenceError: the pilot does not tell how scores vary.
        UnknownNameError: no such model or sampler.
    """
    one = recorded.select(model=model)
    for axis, remedy in (("models", "choose one with --model"), ("raters", "plan judges with --half-width")):
        names = getattr(one, axis)
        if len(names) > 1:
            raise InvalidInputError(f"there are {len(names)} {axis} ({', '.join(names[:5])}); {remedy}")
    item, epoch = np.nonzero(~np.isnan(one.scores[0, :, 0]))
    readings = ItemReadings.of(item, epoch, one.scores[0, item, 0, epoch], n_items=len(one.items))
    ways = []
    for name in samplers:
        (entrant,) = contestants([name], {})
        ways.append((name, partial(_make, entrant)))
    try:
        plans = plan_repeats(readings, half_width, ways, level=level, progress=progress)
    except InvalidInferenceError as ex:
        raise InvalidInferenceError(f"{source}: {ex}") from ex
    found = {"item_half_width": half_width, "level": level, "plans": [asdict(plan) for plan in plans]}
    caption = (
        f"Until each item is known to ±{half_width:g} ({percent(level)}), if scores vary as in the pilot. "
        "Calls: the median over worlds that fit it; the last column is enough in 90% of them. No sampler "
        "needs fewer than the last row."
    )
    columns = ["strategy", "per_item", "calls", "calls_upper"]
    return Plans(found, (table_of(plans, caption, only=columns),))


def _make(entrant: Contestant, design: Design, seed: int, budget: int) -> Sampler:
    return entrant.construct(design, seed=seed, known={"budget": budget})
