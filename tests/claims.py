"""Statistical claims tested by simulation: how often to try, and what counts as a broken claim."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest


def replications(default: int, full: int) -> int:
    """``default``, or ``full`` if the environment says EVALBUDGET_CLAIMS=full."""
    return full if is_full() else default


def is_full() -> bool:
    """Whether claims are tested with all replications; pinned counts hold for the default only."""
    return os.environ.get("EVALBUDGET_CLAIMS", "") == "full"


def variant(*values: Any) -> Any:
    """A parameter set that is tested in `make claims` only: what it shows of the product others show too."""
    return pytest.param(*values, marks=pytest.mark.variant)


def only(kept: set[str], cases: Iterable[Any]) -> list[Any]:
    """Parameter sets with ids, of which all but these are variants."""
    return [
        each if each.id in kept else pytest.param(*each.values, id=each.id, marks=pytest.mark.variant)
        for each in cases
    ]


def binomial_claim(failures: int, trials: int, *, at_most: float, significance: float = 0.001) -> None:
    """Fail if ``failures`` in ``trials`` contradict a failure probability of at most ``at_most``.

    Raises:
        AssertionError: a one-sided exact binomial test rejects the claim.
    """
    from scipy.stats import binomtest  # takes a second to import, and this module is loaded with every test

    p = float(binomtest(failures, trials, at_most, alternative="greater").pvalue)
    if p < significance:
        raise AssertionError(
            f"claimed to fail with probability at most {at_most:g}, failed {failures} times in {trials} "
            f"({failures / trials:.4f}); one-sided binomial p = {p:.2g}"
        )


def pinned(failures: int, expected: int) -> None:
    """Fail if a seeded count changed: the same code must give the same answer (default replications only).

    Raises:
        AssertionError: the count differs.
    """
    if not is_full() and failures != expected:
        raise AssertionError(
            f"the seeded run failed {failures} times, pinned at {expected}; has the method changed?"
        )
