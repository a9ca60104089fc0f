"""The baseline: one score per item, from a log or from a small file that is kept with the code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from evalbudget.backtest import RecordedScores
from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.missing import Missing
from evalbudget.recorded._differences import settings_note
from evalbudget.recorded._direction import direction_note
from evalbudget.recorded._questions import ACROSS_TASKS, match_questions
from evalbudget.recorded._task_name import TaskName
from evalbudget.report._study import Study
from evalbudget.statistics._bounds import FloatArray, IntArray

T = TypeVar("T")

UNNAMED = "rater"
"""The rater of a table that names none."""
PANEL = "panel"


@dataclass(frozen=True)
class Baseline:
    """What candidates are compared with.

    Attributes:
        name: of the model.
        score: that is compared.
        scores: of each item, the mean of what may count, by item id.
        task: that they are of, where it is known.
        clusters: label of each item, where there are any.
        read: smallest and largest of the scores behind these means; None where there are none.
        noise: variance of one score of an item about the item's mean; nan where items have one score each.
        repeats: scores per item, mean over items.
        missing: share of each item's scores that are missing, where some are; 1 where there is none.
        complete: what is not among the items was not asked.
        lower_is_better: whether the source says so of the score; None: it says nothing.
        answers_missing: how many answers these are.
        digests: of what was asked, by item; empty where nothing tells it.
        notes: what the log says beside its scores, for people.
        cluster: field by which the log itself says what was sampled together; None: it says nothing.
        sampled: label of each item by it.
        direction_note: for people, where the log should say which way is better and does not.
        outside: items that have no score since none applies, which is so unless the other has one.
        settings: what the model was evaluated with, as far as the log tells.
    """

    name: str
    score: str
    scores: Mapping[str, float]
    task: TaskName | None = None
    clusters: Mapping[str, str] = field(default_factory=dict)
    read: tuple[float, float] | None = None
    noise: float = field(default=float("nan"), compare=False)
    repeats: float = field(default=1.0, compare=False)
    missing: Mapping[str, float] = field(default_factory=dict)
    complete: bool = field(default=False, compare=False)
    lower_is_better: bool | None = None
    answers_missing: int = field(default=0, compare=False)
    digests: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = field(default=(), compare=False)
    cluster: str | None = None
    sampled: Mapping[str, str] = field(default_factory=dict)
    direction_note: str = field(default="", compare=False)
    outside: frozenset[str] = frozenset()
    settings: Mapping[str, str] = field(default_factory=dict, compare=False)

    @classmethod
    def of(
        cls,
        recorded: RecordedScores,
        *,
        name: str,
        score: str | None = None,
        series: Sequence[str] = (),
    ) -> Baseline:
        """From the scores of one model.

        Args:
            recorded: the scores.
            name: to go by.
            score: of several metrics, the one to compare by, or of several judges; None for the only metric,
                or all judges.
            series: names by which a host's logs may have the score that decides, the likeliest first; those
                that are not there are passed over.

        Raises:
            InvalidInputError: several models, several metrics and none chosen, or no score.
            UnknownNameError: no such score.
        """
        if len(recorded.models) > 1:
            raise InvalidInputError(
                f"{name} holds {len(recorded.models)} models ({', '.join(recorded.models[:4])}); a gate "
                "compares one with one: give the log of one"
            )
        known_as = next((each for each in series if each in recorded.raters), None)
        wanted = [name for name in (score, *series) if name is not None]
        if wanted and recorded.raters[0] not in (*wanted, UNNAMED) and len(recorded.raters) == 1:
            raise InvalidInputError(
                f"the scores of {name} are {recorded.raters[0]!r}, and {wanted[0]!r} is to be compared; give "
                "scores of one kind"
            )
        score = known_as or score
        if score is not None and (score in recorded.raters or not recorded.one_measure):
            if score not in recorded.raters:
                raise UnknownNameError("score", score, recorded.raters)
            number = recorded.raters.index(score)
            recorded = recorded.part(raters=np.array([number]), may_be_empty=True)
        if not recorded.one_measure and len(recorded.raters) > 1:
            raise InvalidInputError(
                f"{name} has the scores {', '.join(recorded.raters)}; name the one that decides, for example "
                f"--score {recorded.raters[0]}"
            )
        declared = recorded.declared
        study = Study.of(recorded)
        if study.is_panel and study.bounds is None:
            study.require_one_scale("--score NAME")
        shares = study.shares[0].tolist()
        missing = {item: float(x) for item, x in zip(recorded.items, shares, strict=True) if x > 0.0}
        outside = frozenset[str]()
        if recorded.outside is not None:
            here = recorded.outside[0].any(axis=1).tolist()
            outside = frozenset(item for item, is_out in zip(recorded.items, here, strict=True) if is_out)
        means = study.item_means(0).tolist()
        known = {
            item: float(value)
            for item, value in zip(recorded.items, means, strict=True)
            if not np.isnan(value)
        }
        if not known and recorded.counts.any():
            raise InvalidInputError(
                f"{name} has no score that may count for a mean; give a log of plain epochs"
            )
        n = recorded.counts[0].sum(axis=1)
        noise = float("nan")
        if len(recorded.raters) == 1 and (n > 1).any():
            squares = recorded.true_variances[0, :, 0] * n
            noise = float(squares[n > 1].sum() / (n[n > 1] - 1).sum())
        labels = recorded.categories or ()
        read = recorded.scores[0]
        return cls(
            name,
            recorded.raters[0] if len(recorded.raters) == 1 else PANEL,
            known,
            recorded.task,
            dict(zip(recorded.items, labels, strict=False)),
            (float(np.nanmin(read)), float(np.nanmax(read))) if known else None,
            noise,
            float(n[n > 0].mean()) if known else 1.0,
            missing,
            declared is not None and all(declared.complete),
            None if declared is None else declared.lower_is_better[0],
            study.lost_of(0),
            {} if declared is None else dict(zip(recorded.items, declared.digests, strict=True)),
            () if declared is None else declared.notes,
            None if declared is None else declared.cluster,
            {} if declared is None else dict(zip(recorded.items, declared.clusters or (), strict=False)),
            direction_note(recorded),
            outside.difference(known, missing),
            {} if declared is None else declared.settings[0],
        )

    @property
    def told(self) -> tuple[str, ...]:
        """The notes, and that the log does not say which way is better though it should."""
        return (*([self.direction_note] if self.direction_note else ()), *self.notes)

    def settings_note(self, candidate: Baseline) -> str:
        """What the candidate was evaluated with otherwise; empty where the logs tell no difference."""
        settings = (self.settings, candidate.settings)
        return settings_note((self.name, candidate.name), settings, ("baseline", "candidate"))

    @property
    def items(self) -> list[str]:
        """Those that were asked, with a score or without."""
        return [*self.scores, *(item for item, share in self.missing.items() if share == 1.0)]

    def shared(self, items: Sequence[str], notes: Sequence[str] = (), *, scored: bool = True) -> list[str]:
        """Items, in their order, that the baseline has a score of.

        Args:
            items: of the candidate.
            notes: on how they were paired.
            scored: otherwise those count, too, of which a score is missing.

        Raises:
            InvalidInputError: there are fewer than two.
        """
        own = list(self.scores) if scored else self.items
        known = set(own)
        found = [item for item in items if item in known]
        if len(found) < 2:
            what = f"item{'s' * (len(found) != 1)}{' with a score' * scored}"
            raise InvalidInputError(
                f"the baseline and the candidate have {len(found)} {what} in common (the baseline "
                f"{len(own):,}, such as {own[0] if own else '-'!r}; the candidate {len(items):,}, such as "
                f"{items[0] if items else '-'!r}); a gate needs two or more: give a baseline of the same "
                f"task with scores{''.join(f'. {note}' for note in notes).removesuffix('.')}"
            )
        return found

    def compared_with(self, other: Baseline) -> list[str]:
        """Items that were asked of both, or of which nobody says that the other was not asked.

        One that no score applies to, by either's source, is among them if the other has a score on it.
        """
        asked = {*other.items, *(item for item in other.outside if item in self.scores)}
        own = [*self.items, *sorted(item for item in self.outside if item in other.scores)]
        return [item for item in own if item in asked or not other.complete]

    def by_question_of(self, other: Baseline, *, trust_ids: bool = False) -> tuple[Baseline, tuple[str, ...]]:
        """The same with the items named as the other one names these questions; and notes on it.

        Args:
            other: whose names count.
            trust_ids: ids name the same questions, whatever was asked under them.
        """
        sources = [
            (each.name, {item: each.digests.get(item, "") for item in (*each.items, *each.outside)})
            for each in (other, self)
        ]
        matched = match_questions(sources, trust_ids=trust_ids, remedy=ACROSS_TASKS)
        name = matched.names[1]

        def renamed(table: Mapping[str, T]) -> dict[str, T]:
            return {name.get(item, item): value for item, value in table.items()}

        found = replace(
            self,
            scores=renamed(self.scores),
            missing=renamed(self.missing),
            clusters=renamed(self.clusters),
            digests=renamed(self.digests),
            outside=frozenset(name.get(item, item) for item in self.outside),
        )
        return found, matched.notes

    def ends(
        self,
        items: Sequence[str],
        bounds: tuple[float, float],
        *,
        lower_is_better: bool,
        missing: Missing = Missing.WORST,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Scores in [0, 1], 1 the best: as far as known, with what is missing the worst, and the best.

        All three are the same where missing scores count as ``zero`` or are left out.

        Args:
            items: n of them; a score that nothing is known of is missing.
            bounds: smallest and largest possible score.
            lower_is_better: of the scores.
            missing: what a missing score counts as.

        Returns:
            Three arrays of shape (n,); the first is nan where there is no score.
        """
        low, high = bounds
        known = (np.array([self.scores.get(item, np.nan) for item in items]) - low) / (high - low)
        known = 1.0 - known if lower_is_better else known
        share = np.array([self.missing.get(item, 0.0) for item in items])
        share = np.where(np.isnan(known), 1.0, share)
        worst = (1.0 - share) * np.nan_to_num(known)
        if missing is Missing.WORST:
            return known, worst, worst + share
        alone = worst if missing is Missing.ZERO else known
        return alone, alone, alone

    def same_direction(self, other: Baseline) -> bool:
        """Whether lower is better, by either of two that are compared.

        Raises:
            InvalidInputError: they disagree.
        """
        told = {self.lower_is_better, other.lower_is_better} - {None}
        if len(told) > 1:
            ways = {True: "lower", False: "higher"}
            raise InvalidInputError(
                f"of {self.score}, {ways[bool(self.lower_is_better)]} is better by the log of {self.name}, "
                f"and {ways[bool(other.lower_is_better)]} by that of {other.name}; give logs of one metric"
            )
        return True in told

    def codes(self, items: Sequence[str]) -> IntArray:
        """Number of each item's cluster, shape (len(items),).

        Raises:
            InvalidInputError: an item has none.
        """
        for item in items:
            if item not in self.clusters:
                raise InvalidInputError(
                    f"the baseline says of item {item!r} not which cluster it belongs to; leave --cluster "
                    "out, or give a baseline that does"
                )
        codes = np.unique([self.clusters[item] for item in items], return_inverse=True)[1].astype(np.int64)
        if not codes.any():
            raise InvalidInputError(
                f"all items belong to one cluster, {self.clusters[items[0]]!r}, so that nothing was sampled "
                "twice; leave --cluster out, or give a field that tells items apart"
            )
        return codes

    def check_task(self, task: TaskName | None) -> None:
        """Refuse a candidate of another task, or of another version of it.

        Raises:
            InvalidInputError: it is known what both are of, and it differs.
        """
        if self.task is not None and task is not None and self.task != task:
            raise InvalidInputError(
                f"the baseline is of {self.task} and the candidate of {task}: their items may differ under "
                "the same ids; give a baseline of the same task and version, or, of a log, --across-tasks if "
                "their items are the same"
            )

    def within(self, bounds: tuple[float, float]) -> Baseline:
        """The same, with means that lie in the range of the scores; those of judges in turn need not.

        Raises:
            InvalidInputError: a score is outside of the range.
        """
        low, high = bounds
        for value in self.read or ():
            if not low - 1e-9 <= value <= high + 1e-9:
                raise InvalidInputError(
                    f"{self.name} has the score {value:g}, outside of {low:g} to {high:g}; declare the "
                    "smallest and the largest possible score, for example --score-range 1..10"
                )
        return replace(self, scores={item: min(max(x, low), high) for item, x in self.scores.items()})
