"""RecordedScores: scores bought earlier, with every repeat, as a source of readings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from evalbudget.design import Design
from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.recorded import _npz
from evalbudget.recorded._declared import Declared
from evalbudget.recorded._how_bought import HowBought
from evalbudget.recorded._layout import (
    AS_THEY_ARE,
    AXES,
    bought_as_arrays,
    declared_as_arrays,
    fields_in,
    floats,
)
from evalbudget.recorded._places import Places
from evalbudget.recorded._race_record import RaceRecord
from evalbudget.recorded._task_name import TaskName
from evalbudget.statistics._means import mean_of_known
from evalbudget.statistics._phase_means import MOST_PHASES
from evalbudget.statistics._strata import Strata

FloatArray = NDArray[np.floating[Any]]
IntArray = NDArray[np.int64]
Chosen = slice | IntArray
T = TypeVar("T")

_TEXT = 500
"""Characters of an item's text that are kept."""


@dataclass(frozen=True, eq=False)
class RecordedScores:
    """Every recorded repeat of every cell.

    Attributes:
        scores: shape (models, items, raters, repeats), float32 or float64; NaN where nothing was recorded.
            Raters score the same generation at the same place among the repeats; the order means nothing
            else. Cells may have different numbers of repeats. None may be beyond 1e30; what is
            within 1e-60 of 0 is read as 0.
        models: one name per model, unique.
        items: one name per item, unique.
        raters: one name per rater, unique.
        categories: optional, one label per item.
        reference: optional, the expensive truth (human labels), shape (models, items, n_reference); NaN where
            there is none.
        purchases: optional, how each model's scores were bought; None: whatever the scores were.
        epochs: optional, shape of ``scores``: the ordinal, from 0, of each reading among its item's, which
            says what may count for the mean where the allocation is not FIXED. None: the place among the
            repeats.
        phases: optional, shape of ``scores``: phase in which each reading was bought, where the allocation
            is PHASED; NaN where nothing was recorded, or it is not known. None: there are none.
        costs: optional, shape of ``scores``: what each reading cost in dollars, 0 or more, those that failed
            included; NaN where it is not known.
        failed: optional, shape (models, items, raters): readings that were asked and came back without a
            score, beside those recorded. None: none is known of.
        outside: optional, shape of ``failed``: where the source itself says that there is no score since none
            applies, which is so unless another model has one. None: nowhere.
        declared: optional, what the source says of the scores.
        race: what a race recorded of itself, where these are the scores of one that ended; not saved.
        strata: of the items, where those that are here are a random sample of a benchmark's, drawn by
            strata; None where none was drawn, or nothing tells.
        by_category: the categories are the tasks of a group, which are given: each has an error of its own,
            and the mean is of their means, weighted by their items.
        one_generation: a cell's repeats are scores of one answer again, not of one answer each.
        one_measure: the raters are judges of the same thing; False where they are different metrics, whose
            mean means nothing.
        task: that the scores are of, where the file says so; not saved.
        texts: optional, one per item: what was asked, cut to 500 characters; empty where nothing tells it;
            not saved.
        may_be_empty: there may be no score at all, as in a part of other scores, or where every answer is
            missing; not saved.

    Raises:
        InvalidInputError: an array of another shape or type, names that do not fit or stand twice, scores
            that are infinite or all missing, a negative cost.
    """

    scores: FloatArray
    models: tuple[str, ...]
    items: tuple[str, ...]
    raters: tuple[str, ...]
    categories: tuple[str, ...] | None = None
    reference: FloatArray | None = None
    purchases: tuple[HowBought, ...] | None = None
    epochs: IntArray | None = None
    phases: FloatArray | None = None
    costs: FloatArray | None = None
    failed: IntArray | None = None
    outside: NDArray[np.bool_] | None = None
    declared: Declared | None = None
    race: RaceRecord | None = None
    strata: Strata | None = None
    by_category: bool = False
    one_generation: bool = False
    one_measure: bool = True
    task: TaskName | None = None
    texts: tuple[str, ...] | None = None
    may_be_empty: bool = False

    def __post_init__(self) -> None:
        scores = floats("scores", self.scores)
        if scores.ndim != 4:
            raise InvalidInputError(f"scores has shape {scores.shape}; it must have the four axes {AXES}")
        if 0 in scores.shape:
            raise InvalidInputError(
                f"scores has shape {scores.shape} {AXES}; every axis needs at least one entry"
            )
        if not (self.may_be_empty or np.isfinite(scores).any()):
            raise InvalidInputError(
                f"all {scores.size} scores are NaN, that is missing; check how the scores were parsed"
            )
        object.__setattr__(self, "scores", scores)
        for axis, name in enumerate(("models", "items", "raters")):
            object.__setattr__(self, name, _names(name, getattr(self, name), scores.shape, axis))
        if self.categories is not None:
            labels = _names("categories", self.categories, scores.shape, 1, unique=False)
            object.__setattr__(self, "categories", labels)
        if self.texts is not None:
            texts = _names("texts", self.texts, scores.shape, 1, unique=False)
            object.__setattr__(self, "texts", tuple(map(_cut, texts)))
        if self.reference is not None:
            reference = floats("reference", self.reference)
            if reference.ndim != 3 or reference.shape[:2] != scores.shape[:2]:
                raise InvalidInputError(
                    f"reference has shape {reference.shape}; with scores of shape {scores.shape} it must be "
                    f"({scores.shape[0]}, {scores.shape[1]}, n_reference)"
                )
            object.__setattr__(self, "reference", reference)
        if self.purchases is not None and len(self.purchases) != scores.shape[0]:
            raise InvalidInputError(
                f"purchases has {len(self.purchases)} entries for {scores.shape[0]} models; give one each"
            )
        if self.epochs is not None:
            epochs = np.asarray(self.epochs)
            if epochs.shape != scores.shape or epochs.dtype.kind not in "iu":
                raise InvalidInputError(
                    f"epochs holds {epochs.dtype} values of shape {epochs.shape}; give one integer "
                    f"per score, {scores.shape}"
                )
            object.__setattr__(self, "epochs", epochs.astype(np.int64))
        if self.phases is not None:
            phases = floats("phases", self.phases)
            if phases.shape != scores.shape:
                raise InvalidInputError(
                    f"phases has shape {phases.shape}; give one per score, {scores.shape}"
                )
            check_phases(phases)
            object.__setattr__(self, "phases", phases)
        if self.costs is not None:
            costs = floats("costs", self.costs)
            if costs.shape != scores.shape:
                raise InvalidInputError(f"costs has shape {costs.shape}; give one per score, {scores.shape}")
            if (costs < 0.0).any():
                raise InvalidInputError(f"a reading costs {np.nanmin(costs):g}; give dollars, 0 or more")
            object.__setattr__(self, "costs", costs)
        if self.failed is not None:
            failed = np.asarray(self.failed)
            if failed.shape != scores.shape[:3] or failed.dtype.kind not in "iu":
                raise InvalidInputError(
                    f"failed has shape {failed.shape}; give one whole number per model, item and rater, "
                    f"{scores.shape[:3]}"
                )
            object.__setattr__(self, "failed", failed.astype(np.int64))
        if self.outside is not None and np.asarray(self.outside).shape != scores.shape[:3]:
            raise InvalidInputError(
                f"outside has shape {np.asarray(self.outside).shape}; give one truth per model, item and "
                f"rater, {scores.shape[:3]}"
            )
        if self.declared is not None:
            self.declared.check(*scores.shape[:3])
        if self.strata is not None and self.strata.of_item.shape != scores.shape[1:2]:
            raise InvalidInputError(
                f"strata are of {self.strata.of_item.size} items, and the scores of {scores.shape[1]}"
            )

    # files and tables

    @classmethod
    def load(cls, path: str | Path) -> RecordedScores:
        """Read an ``.npz`` file in the recorded-scores layout.

        It holds ``scores`` and, each optional, ``models``, ``items``, ``raters`` (numbers are the names where
        they are missing), ``categories``, ``by_category``, ``reference``, ``epochs``, ``phases``, ``costs``,
        ``failed``, ``outside``, ``strata``, ``strata_sizes``, ``one_generation``, ``one_measure`` and, one
        entry per model,
        ``allocation``, ``fixed_repeats``, ``cost``, ``usd`` and ``phase_sizes``. Nothing is ever unpickled.

        Raises:
            InvalidInputError: the file is missing, broken, or holds something else.
        """
        path = Path(path)
        arrays = _npz.read(path)
        if "scores" not in arrays:
            raise InvalidInputError(
                f"{path} has no array 'scores' (it holds {', '.join(sorted(arrays)) or 'nothing'}); the "
                f"recorded-scores layout is an .npz with scores {AXES}, models, items and raters"
            )
        try:
            return cls(**fields_in(arrays))
        except UnknownNameError as ex:
            raise UnknownNameError(f"{ex.kind} in {path}:", ex.name, ex.known) from None
        except InvalidInputError as ex:
            raise InvalidInputError(f"{path}: {ex}") from None

    def save(self, path: str | Path) -> None:
        """Write an ``.npz`` file in the recorded-scores layout."""
        _npz.write(Path(path), self._arrays())

    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays: dict[str, NDArray[Any]] = {
            "scores": self.scores,
            "models": np.asarray(self.models),
            "items": np.asarray(self.items),
            "raters": np.asarray(self.raters),
        }
        if self.categories is not None:
            arrays["categories"] = np.asarray(self.categories)
        for name in AS_THEY_ARE:
            if (own := getattr(self, name)) is not None:
                arrays[name] = own
        if self.declared is not None:
            arrays |= declared_as_arrays(self.declared)
        if self.purchases is not None:
            arrays |= bought_as_arrays(self.purchases)
        if self.strata is not None:
            arrays |= {"strata": self.strata.of_item, "strata_sizes": self.strata.sizes}
        if self.by_category:
            arrays["by_category"] = np.array(True)
        if self.one_generation:
            arrays["one_generation"] = np.array(True)
        if not self.one_measure:
            arrays["one_measure"] = np.array(False)
        return arrays

    @classmethod
    def from_readings(
        cls,
        items: Sequence[str],
        scores: Sequence[float],
        *,
        models: Sequence[str] | None = None,
        raters: Sequence[str] | None = None,
        repeats: Sequence[object] | None = None,
        costs: Sequence[float] | None = None,
        may_be_empty: bool = False,
    ) -> RecordedScores:
        """Build the array from a long table, one entry per reading; names keep the order of appearance.

        Args:
            items: the item of each reading.
            scores: NaN where the reading failed.
            models: the model of each reading; None for a single one named ``model``.
            raters: the rater of each reading; None for a single one named ``rater``.
            repeats: any label that tells a cell's readings apart, the same for all raters of an answer; None
                numbers them.
            costs: of each reading in dollars, NaN where not known; None where none is.
            may_be_empty: all of them may have failed.

        Raises:
            InvalidInputError: columns of different lengths, or a cell with the same repeat twice.
        """
        n = len(items)
        columns = {"scores": scores, "models": models, "raters": raters, "repeats": repeats, "costs": costs}
        for name, column in columns.items():
            if column is not None and len(column) != n:
                raise InvalidInputError(
                    f"{name} has {len(column)} entries for {n} items; give one per reading"
                )
        if n == 0:
            raise InvalidInputError("there are no readings; give at least one")
        places = Places.of(items, models=models, raters=raters, repeats=repeats)
        of_readings = None if costs is None else places.array(costs)
        return cls(places.array(scores), *places.names, costs=of_readings, may_be_empty=may_be_empty)

    # what is in it

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Recorded repeats per cell, shape (models, items, raters)."""
        return np.asarray(np.isfinite(self.scores).sum(axis=3), dtype=np.int64)

    @cached_property
    def true_scores(self) -> NDArray[np.float64]:
        """Mean of a cell's recorded repeats, shape (models, items, raters); NaN where there are none."""
        return mean_of_known(self.scores)

    @cached_property
    def true_variances(self) -> NDArray[np.float64]:
        """Variance (1/n) of one replayed reading, drawn with replacement; NaN where there are none."""
        deviations = np.asarray(self.scores, dtype=np.float64) - self.true_scores[..., None]
        return mean_of_known(deviations * deviations)

    def select(self, model: str | None = None, rater: str | None = None) -> RecordedScores:
        """The sub-table of one model and one rater; None for all of them.

        Raises:
            UnknownNameError: no such model or rater; suggests the nearest.
        """
        return self.part(
            _position("model", model, self.models), raters=_position("rater", rater, self.raters)
        )

    def part(
        self,
        models: Chosen = slice(None),
        items: Chosen = slice(None),
        *,
        raters: Chosen = slice(None),
        may_be_empty: bool = False,
    ) -> RecordedScores:
        """The sub-table of some models, items and raters, by their numbers; all of them by default.

        Raises:
            InvalidInputError: nobody has a score in it, and it may not be empty.
        """

        def cut(table: NDArray[Any]) -> NDArray[Any]:
            return table[models][:, items][:, :, raters]

        def named(names: tuple[T, ...], chosen: Chosen) -> tuple[T, ...]:
            return tuple(names[i] for i in np.arange(len(names))[chosen].tolist())

        chosen = zip(self.scores.shape, (models, items, raters), strict=False)
        numbers = [np.arange(n)[wanted].tolist() for n, wanted in chosen]
        whole = numbers[1] == list(range(len(self.items)))  # some of a sample's items are no random sample
        purchases = self.purchases if whole or self.phases is None else self._with_phase_sizes()
        return replace(
            self,
            scores=cut(self.scores),
            models=named(self.models, models),
            items=named(self.items, items),
            raters=named(self.raters, raters),
            categories=None if self.categories is None else named(self.categories, items),
            texts=None if self.texts is None else named(self.texts, items),
            reference=None if self.reference is None else self.reference[models][:, items],
            purchases=None if purchases is None else named(purchases, models),
            epochs=None if self.epochs is None else cut(self.epochs),
            phases=None if self.phases is None else cut(self.phases),
            costs=None if self.costs is None else cut(self.costs),
            failed=None if self.failed is None else cut(self.failed),
            outside=None if self.outside is None else cut(self.outside),
            declared=None if self.declared is None else self.declared.part(*numbers),
            strata=None if self.strata is None or not whole else self.strata,
            may_be_empty=may_be_empty or self.may_be_empty,
        )

    def _with_phase_sizes(self) -> tuple[HowBought, ...] | None:
        """How they were bought, such that some items are folded over phases as in the whole run."""
        assert self.phases is not None
        if self.purchases is None:
            return None
        known = ~np.isnan(self.scores) & ~np.isnan(self.phases)
        found = []
        for purchase, phases, there in zip(self.purchases, self.phases, known, strict=True):
            sizes = np.bincount(phases[there].astype(np.int64)) / len(self.items)
            found.append(replace(purchase, phase_sizes=purchase.phase_sizes or tuple(sizes.tolist())))
        return tuple(found)

    def as_panel(self) -> RecordedScores:
        """The same scores, if their raters may be averaged.

        Raises:
            InvalidInputError: they are several metrics.
        """
        if len(self.raters) > 1 and not self.one_measure:
            raise InvalidInputError(
                f"these scores are {len(self.raters)} metrics ({', '.join(self.raters)}), whose mean means "
                f"nothing; choose one of them, for example {self.raters[0]!r}"
            )
        return self

    def __repr__(self) -> str:
        m, i, r, _ = self.scores.shape
        return f"<RecordedScores: {m} models x {i} items x {r} raters, {int(self.counts.sum())} scores>"


def check_phases(phases: FloatArray) -> None:
    """Refuse what numbers no phase; NaN where there is none.

    Raises:
        InvalidInputError: there is such a number.
    """
    known = phases[~np.isnan(phases)]
    wrong = known[(known < 0.0) | (known >= MOST_PHASES) | (known != np.floor(known))]
    if wrong.size:
        raise InvalidInputError(
            f"phase {wrong[0]:g} is not a whole number from 0 to {MOST_PHASES - 1}; give the phase in which "
            "each reading was bought, and NaN where there is none"
        )


def _names(
    axis: str, names: Sequence[str], shape: tuple[int, ...], number: int, *, unique: bool = True
) -> tuple[str, ...]:
    result = (names,) if isinstance(names, str) else tuple(str(name) for name in names)
    if len(result) != shape[number]:
        raise InvalidInputError(
            f"{axis} has {len(result)} names, but scores of shape {shape} has {shape[number]} on axis "
            f"{number}; give one per entry"
        )
    if unique:
        Design(**{"items": ("item",), axis: result})  # the same check, and the same message, as everywhere
    return result


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT else f"{text[: _TEXT - 1]}…"


def _position(kind: str, name: str | None, names: tuple[str, ...]) -> slice:
    if name is None:
        return slice(None)
    if name not in names:
        raise UnknownNameError(kind, name, names)
    return slice(names.index(name), names.index(name) + 1)
