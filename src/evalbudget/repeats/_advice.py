"""What to do next, from where the error of the estimate comes from."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from evalbudget._fields import all_zero, share_of_all
from evalbudget.repeats._mean_rows import FEWEST_ITEMS
from evalbudget.repeats._outcome import Outcome
from evalbudget.repeats._sample_in_words import enough_for_half
from evalbudget.repeats._wording import count, shortened
from evalbudget.repeats.estimates import ItemReadings
from evalbudget.run import LOST, UNANSWERED

_MANY_FAILURES = 0.1
_CLEAR = 0.8
_REASON = 60


def items_share(rows: Mapping[str, float]) -> float | None:
    r"""Share of the estimate's variance that lies between items and that no repeat can take away.

    .. math:: 1 - (\text{repeats\_stderr} / \text{stderr})^2

    Args:
        rows: of :func:`~evalbudget.repeats._mean_rows.mean_rows`.

    Returns:
        From 0 to 1; None where either error is unknown.
    """
    if "stderr" not in rows or "repeats_stderr" not in rows:
        return None
    return max(0.0, 1.0 - (rows["repeats_stderr"] / rows["stderr"]) ** 2)


def next_steps(outcome: Outcome, failures: Mapping[str, int]) -> list[str]:
    """What to do next, the most useful first.

    Args:
        outcome: of the run.
        failures: how many calls gave no score, by reason, the most frequent first.
    """
    mean, table = outcome.mean, outcome.table
    steps: list[str] = []
    unread = {reason: calls for reason, calls in failures.items() if reason != LOST}
    failed, scored = sum(unread.values()), int(table.value.size)
    if failed and failed >= _MANY_FAILURES * (failed + scored):
        steps.append(_of_failures(unread, scored))
    if not scored:
        return steps
    if said := all_zero(scored, table.value):
        steps.append(said)
    items = int(np.count_nonzero(table.counts))
    known = "lower" in mean.rows and "full_lower" not in mean.rows  # every item that can be scored was read
    if outcome.drawn and items < table.n_items and not known:
        more = enough_for_half(items, table.n_items - outcome.in_vain)
        if more is not None and "full_lower" in mean.rows:
            steps.append(f"{more:,} of the {table.n_items:,} items would halve that interval.")
        if outcome.bounds is None and "full_lower" not in mean.rows:
            steps.append(
                f"Declare the range of the scores ({outcome.range_flag} LOW..HIGH) to get an interval."
            )
        return steps
    if items < FEWEST_ITEMS:
        steps.append(f"Add items: {count(items, 'item')} cannot speak for others.")
    elif _never_differed(table):
        steps.append(
            "Repeats of an item never differed, so they buy nothing: ask every item once, and spend the rest "
            "on more items."
        )
    elif (share := items_share(mean.rows)) is not None:
        judges_flag = outcome.judges_flag if outcome.judged and not outcome.judges else ""
        steps.append(_where_to_spend(share, judges_flag, clustered=mean.clusters is not None))
    if outcome.bounds is None:
        steps.append(
            f"Declare the range of the scores ({outcome.range_flag} LOW..HIGH) to get intervals for single "
            "items that hold however often you look."
        )
    return steps


def _of_failures(unread: Mapping[str, int], scored: int) -> str:
    """What there is to look at: an error that ends a run cuts off many calls, which tell nothing of why."""
    failed = {reason: calls for reason, calls in unread.items() if reason != UNANSWERED} or unread
    worst, calls = max(failed, key=lambda reason: failed[reason]), sum(failed.values())
    of_all = f"{calls:,} of {calls + scored:,} calls"
    if worst == UNANSWERED:
        return (
            f"{of_all} were cut off, or had no reply that the host could read, and count as spent: a run "
            "that is left to end by itself loses none to being cut off."
        )
    return f"{of_all} gave no score; find out why first (above all: {shortened(worst, _REASON)})."


def _where_to_spend(share: float, judges_flag: str, *, clustered: bool) -> str:
    more = "items of more clusters" if clustered else "more items"
    if judges_flag:
        more += f" or a second judge ({judges_flag})"
    of_items, of_repeats = share_of_all(share), share_of_all(1 - share)
    if share < 1 - _CLEAR:
        return (
            f"{of_repeats} of the estimate's variance comes from repeats: a larger budget will help; "
            "four times as many repeats halve that part of the error."
        )
    come_from = (
        f"{of_items} of the estimate's variance comes from which items were asked and {of_repeats} from "
        "repeats"
    )
    if share < _CLEAR:
        return f"{come_from}: both a larger budget and {more} will help."
    return f"{come_from}: {more} will do more for it than further repeats."


def _never_differed(table: ItemReadings) -> bool:
    moments = table.moments
    several = moments.n > 1
    return bool(several.any()) and not bool((moments.squares[several] > 0.0).any())
