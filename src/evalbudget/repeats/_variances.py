"""Known variances of items: from a file that says them, or from earlier scores of the same items."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from evalbudget.errors import InvalidInputError
from evalbudget.hooks._plugins import plugins
from evalbudget.recorded._scores import RecordedScores
from evalbudget.statistics._shrinkage import VariancePrior
from evalbudget.yaml_text import read_yaml

_FILES = (".yaml", ".yml")
_NAMED = 3


class KnownVariances(dict[str, float]):
    """Of the readings of each item.

    Attributes:
        tasks: that they are of, where a log says so.
        digests: of what each item asks; empty where nothing tells.
    """

    def __init__(
        self, variances: Mapping[str, float] = MappingProxyType({}), digests: Sequence[str] = ()
    ) -> None:
        super().__init__(variances)
        self.tasks: frozenset[str] = frozenset()
        self.digests = dict(zip(variances, digests or [""] * len(variances), strict=True))

    def of_another_task(self, tasks: Collection[str], path: str) -> str | None:
        """A sentence where they are of none of these tasks, as far as anything tells."""
        if not self.tasks or self.tasks & set(tasks):
            return None
        named = ", ".join(sorted(self.tasks)[:_NAMED])
        here = ", ".join(sorted(tasks)[:_NAMED])
        told = f"--variances {path} is of {named}, and this is {here}"
        return (
            f"{told}: items are taken for the same by what they ask or, where that is not known, by their ids"
        )


def read_variances(path: str | Path, score: str | None = None) -> KnownVariances:
    """Variance of the readings of each item.

    Args:
        path: of a YAML file with a line ``item: variance`` for each item, or of a log or a table of scores of
            one model, whose items' variances are shrunk to what they are on average
            (:class:`~evalbudget.statistics._shrinkage.VariancePrior`).
        score: of several metrics in it, whose scores count.

    Raises:
        InvalidInputError: it cannot be read, a variance is none, several models are in it or several metrics
            and not this one, or no item was read twice; names file and item.
    """
    path = Path(path)
    if path.suffix.lower() not in _FILES:
        return _of_scores(plugins().open_scores(path), path, score)
    content = read_yaml(path, "file of variances", names=True)
    if not isinstance(content, dict) or not content:
        raise InvalidInputError(f"{path} holds no variances; write a line for each item, as in  q1: 0.25")
    return KnownVariances({item: _variance(value, f"{path}, {item}") for item, value in content.items()})


def in_order(
    variances: Mapping[str, float], names: Mapping[str, str], path: str, notes: Sequence[str] = ()
) -> tuple[float, ...]:
    """Of these items, shape (n_items,); what is known of others is left out.

    Args:
        variances: that are known.
        names: of each item, its name there.
        path: of the file.
        notes: what may be said of items without one.

    Raises:
        InvalidInputError: an item has none.
    """
    missing = [item for item, name in names.items() if name not in variances]
    if missing:
        named = ", ".join(missing[:_NAMED]) + (", ..." if len(missing) > _NAMED else "")
        raise InvalidInputError(
            f"{path} has no variance of {len(missing)} of {len(names)} items ({named}); add them, or leave "
            "--variances out: the sampler then learns them from its own first readings"
            + "".join(f". {note}" for note in notes).rstrip(".")
        )
    return tuple(variances[name] for name in names.values())


def _variance(value: Any, where: str) -> float:
    try:
        # also of text: 1e-3 is no number in YAML
        found = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not 0.0 <= found < math.inf:
        raise InvalidInputError(f"{where}: {str(value)[:40]} is no variance; write a number, 0 or more")
    return found


def _of_scores(recorded: RecordedScores, path: Path, score: str | None) -> KnownVariances:
    if len(recorded.models) > 1:
        raise InvalidInputError(
            f"{path} has scores of {len(recorded.models)} models, whose answers vary differently; give the "
            "log of one"
        )
    if len(recorded.raters) > 1 and not recorded.one_measure:
        if score not in recorded.raters:
            raise InvalidInputError(
                f"{path} has scores of several metrics ({', '.join(recorded.raters)}), which vary "
                "differently; name the one that decides with --score"
            )
        recorded = recorded.select(rater=score)
    scores = recorded.scores[0]  # items, raters, repeats
    n = np.isfinite(scores).sum(axis=2)
    mean = np.nansum(scores, axis=2) / np.maximum(n, 1)
    squares = np.nansum((scores - mean[:, :, None]) ** 2, axis=2).sum(axis=1)
    degrees = np.maximum(n - 1, 0).sum(axis=1)
    several = degrees > 0
    if not several.any():
        raise InvalidInputError(
            f"{path} has one reading of each item, which says nothing of how much readings vary; give a log "
            "with several of each"
        )
    prior = VariancePrior.fit(squares[several] / degrees[several], degrees[several])
    variances = dict(zip(recorded.items, prior.posterior_mean(squares, degrees).tolist(), strict=True))
    found = KnownVariances(variances, () if recorded.declared is None else recorded.declared.digests)
    if recorded.by_category and recorded.categories is not None:
        found.tasks = frozenset(recorded.categories)
    elif recorded.task is not None:
        found.tasks = frozenset({recorded.task.name})
    return found
