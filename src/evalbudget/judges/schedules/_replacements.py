"""Who gets the calls of a judge that was dropped: balance first, then judges new to the item."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from evalbudget.statistics._bounds import FloatArray, IntArray

_MANY = 1000  # partners that are looked through for a call


def deal_out(category: IntArray, calls: IntArray, shares: FloatArray, draws: np.random.Generator) -> IntArray:
    """Judges for a number of calls in each category, whichever item each goes to.

    Every category is filled up from its lowest counts, relative to the shares. Where that leaves a choice, it
    goes to judges with few calls overall; then single calls move between judges that are level in a
    category, as long as that evens out the counts overall.

    Args:
        category: of each call, shape (n_calls,).
        calls: per (category, judge) so far; counted up in place.
        shares: what counts are proportional to, shape (judges,).
        draws: settles ties.

    Returns:
        A judge for each call, shape (n_calls,).
    """
    tie = draws.permutation(shares.size)
    asked = np.bincount(category, minlength=len(calls))
    dealt = _fill(calls, shares, asked)
    calls += dealt
    total = calls.sum(axis=0)
    open_ = np.flatnonzero(dealt.sum(axis=1) < asked)
    for c in draws.permutation(open_).tolist():
        while (rest := int(asked[c] - dealt[c].sum())) > 0:
            level = np.round(calls[c] / shares, 9)
            order = np.lexsort((tie, total / shares, level))
            lowest = order[level[order] <= level[order[0]]][:rest]
            for table in (calls[c], dealt[c], total):
                table[lowest] += 1
    if np.ptp(shares) == 0.0:
        _even_out(calls, dealt)
    order = np.argsort(category, kind="stable")
    judge = np.empty(category.size, dtype=np.int64)
    judge[order] = _interleaved(dealt, tie)
    return judge


def _interleaved(dealt: IntArray, tie: IntArray) -> IntArray:
    """Judges in turn within each category, so that any stretch has its share of all of them."""
    counts = dealt.ravel()
    group = np.repeat(np.arange(counts.size), counts)
    ordinal = np.arange(group.size) - np.repeat(np.cumsum(counts) - counts, counts)
    category, judge = np.divmod(group, dealt.shape[1])
    due = (ordinal + 0.5) / counts[group]
    return np.asarray(judge[np.lexsort((tie[judge], due, category))], dtype=np.int64)


def _fill(calls: IntArray, shares: FloatArray, asked: IntArray) -> IntArray:
    """Calls that fill every category's judges up to one level, relative to the shares, and no further."""
    low = (calls / shares).min(axis=1)
    high = ((calls + asked[:, None]) / shares).max(axis=1) + 1.0

    def below(level: FloatArray) -> IntArray:
        return np.maximum(np.ceil(level[:, None] * shares - calls - 1e-9), 0).astype(np.int64)

    for _ in range(60):
        middle = (low + high) / 2.0
        fits = below(middle).sum(axis=1) <= asked
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return below(low)


def _even_out(calls: IntArray, dealt: IntArray) -> None:
    """Move calls from judges with many to judges with few, where they differ by one in a category."""
    K = calls.shape[1]
    for _ in range(8 * K):
        total = calls.sum(axis=0)
        with_many = np.flatnonzero(total >= total.min() + 2)
        with_many = with_many[np.argsort(-total[with_many], kind="stable")]
        paths = (_path(calls, dealt, high, total) for high in with_many.tolist())
        path = next((found for found in paths if found), [])
        if not path:
            return
        for giver, taker in pairwise(path):
            c = int(np.flatnonzero((dealt[:, giver] > 0) & (calls[:, giver] > calls[:, taker]))[0])
            for table in (calls, dealt):
                table[c, giver] -= 1
                table[c, taker] += 1


def _path(calls: IntArray, dealt: IntArray, start: int, total: IntArray) -> list[int]:
    """Shortest chain of judges, each of whom can give the next a call, to one with two calls less."""
    before, reached = {start: start}, [start]
    for giver in reached:
        rows = np.flatnonzero(dealt[:, giver])
        takers = (calls[rows, giver][:, None] > calls[rows]).any(axis=0)
        for taker in np.flatnonzero(takers).tolist():
            if taker in before:
                continue
            before[taker] = giver
            reached.append(taker)
            if total[taker] + 2 <= total[start]:
                path = [taker]
                while path[-1] != start:
                    path.append(before[path[-1]])
                return path[::-1]
    return []


def spread_over_items(
    judge: IntArray, category: IntArray, met: IntArray, draws: np.random.Generator
) -> IntArray:
    """Exchange calls within categories so that items meet judges they have met least.

    Args:
        judge: for each call, shape (n_calls,).
        category: of each call, same shape.
        met: how often the item of each call has met each judge, shape (n_calls, judges).
        draws: whom to try to exchange with, where there are many.

    Returns:
        The judges, every one as often within a category as before.
    """
    judge, worse = judge.copy(), met - met.min(axis=1)[:, None]
    by_category = np.argsort(category, kind="stable")
    members = np.split(by_category, np.cumsum(np.bincount(category))[:-1])
    for call in np.flatnonzero(worse[np.arange(judge.size), judge] > 0).tolist():
        mine, own = judge[call], worse[call]
        if not own[mine]:  # by an earlier exchange
            continue
        others = members[category[call]]
        if others.size > _MANY:
            others = others[draws.integers(others.size, size=_MANY)]
        theirs = judge[others]
        gain = own[mine] + worse[others, theirs] - own[theirs] - worse[others, mine]
        if gain[best := int(gain.argmax())] > 0:
            judge[call], judge[others[best]] = theirs[best], mine
    return judge
