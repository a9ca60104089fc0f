"""Scores in hand: read from anywhere, given back as frames, and what they prove."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evalbudget.comparisons import Comparisons
from evalbudget.comparisons import compare as compared
from evalbudget.errors import InvalidInputError
from evalbudget.estimate import check_level
from evalbudget.frames import _summaries
from evalbudget.frames._columns import COLUMNS
from evalbudget.frames._readings import readings
from evalbudget.frames._write import library, write
from evalbudget.hooks._plugins import plugins
from evalbudget.missing import as_missing
from evalbudget.plans import Plans
from evalbudget.plans import plan as planned
from evalbudget.recorded._direction import notes_of, with_lower_better
from evalbudget.recorded._frame_table import read_frame
from evalbudget.recorded._missing import require_scores
from evalbudget.recorded._race_record import RaceRecord
from evalbudget.recorded._rescale import rescale_raters
from evalbudget.recorded._scores import RecordedScores
from evalbudget.recorded._side_by_side import side_by_side
from evalbudget.report._leaderboard import Leaderboard
from evalbudget.report._report import report
from evalbudget.shown import shown, shown_html

_NAMED = 8
_CATEGORY = "category"


@dataclass(frozen=True, eq=False, repr=False)
class Scores:
    """Recorded scores in hand.

    Frames are of pandas, polars or pyarrow, whichever is asked for (``frame``) or else installed, in this
    order. Their columns (:data:`~evalbudget.frames.COLUMNS`) and types are always the same; what is not known
    is missing.

    Attributes:
        recorded: the scores as arrays.
        category: field or column that says what category an item belongs to.
    """

    recorded: RecordedScores
    category: str = _CATEGORY

    def readings(self, *, frame: str | None = None) -> Any:
        """One row per reading; :func:`from_frame` makes the same scores of it again.

        Human labels (``reference`` of ``.npz`` files) are no readings, and are left out.

        Args:
            frame: library of the frame; None for the first that is installed.

        Raises:
            UnknownNameError: no such library.
            InvalidInputError: it, or narwhals, is not installed.
        """
        library(frame)
        return write(readings(self.recorded), COLUMNS["readings"], frame)

    def items(self, *, level: float = 0.95, frame: str | None = None) -> Any:
        """One row per item and model: how often it was asked, its mean and spread, and how it was asked.

        Args:
            level: of the intervals.
            frame: as of :meth:`readings`.

        Raises:
            InvalidInputError: as :meth:`readings` does, or a level that is none.
            InvalidInferenceError: the scores do not support it.
        """
        library(frame)
        return write(_summaries.items(self.recorded, check_level(level)), COLUMNS["items"], frame)

    def models(self, *, level: float = 0.95, rescale: bool = False, frame: str | None = None) -> Any:
        """One row per model: estimate, error and intervals, as ``evalbudget report`` prints them.

        Of several metrics each has a row; several judges are a panel.

        Args:
            level: of the intervals.
            rescale: map the range that each rater used to 0..1 first.
            frame: as of :meth:`readings`.

        Raises:
            InvalidInputError: as :meth:`items` does.
            InvalidInferenceError: judges on different scales, or no reading that may count.
        """
        library(frame)
        recorded = self._rescaled(rescale)
        return write(_summaries.models(recorded, check_level(level)), COLUMNS["models"], frame)

    def judges(self, *, level: float = 0.95, rescale: bool = False, frame: str | None = None) -> Any:
        """One row per judge: its mean, and where there are several its bias against their mean.

        Args:
            level: of the intervals.
            rescale: map the range that each rater used to 0..1 first.
            frame: as of :meth:`readings`.

        Raises:
            InvalidInputError: as :meth:`items` does.
            InvalidInferenceError: judges on different scales.
        """
        library(frame)
        recorded = self._rescaled(rescale)
        return write(_summaries.judges(recorded, check_level(level)), COLUMNS["judges"], frame)

    def select(self, model: str | None = None, rater: str | None = None) -> Scores:
        """Those of one model, or of one rater; None for all of them.

        Raises:
            UnknownNameError: no such model or rater; suggests the nearest.
        """
        return replace(self, recorded=self.recorded.select(model, rater))

    def estimate(
        self,
        *,
        level: float = 0.95,
        models: Sequence[str] = (),
        rater: str | None = None,
        rescale: bool = False,
        missing: str | None = None,
    ) -> Leaderboard:
        """Every model's mean with intervals and ranks: the leaderboard of ``evalbudget report``.

        Args:
            level: of the intervals.
            models: only these; empty for all.
            rater: only this one; None for all, which are then a panel of judges.
            rescale: map the range that each rater used to 0..1 first.
            missing: as of :meth:`compare`.

        Raises:
            UnknownNameError: no such model or rater.
            InvalidInputError: several metrics, or a level that is none.
            InvalidInferenceError: judges on different scales, or no reading that may count.
        """
        found = report(
            self.recorded,
            level=level,
            models=models,
            rater=rater,
            rescale=rescale,
            missing=as_missing(missing),
            sections=(Leaderboard,),
        )
        (board,) = found.sections
        assert isinstance(board, Leaderboard)
        return board

    def compare(
        self,
        *,
        margin: float | None = None,
        against: str | None = None,
        models: Sequence[str] = (),
        scores: Sequence[str] = (),
        level: float = 0.95,
        cluster: str | None = None,
        guaranteed: bool = False,
        missing: str | None = None,
        score_range: tuple[float, float] | None = None,
    ) -> Comparisons:
        """Which differences between models are real? See :func:`evalbudget.comparisons.compare`.

        Args:
            margin: differences smaller than this do not matter, in the units of the scores.
            against: compare all with this model only; None for all pairs.
            models: only these; empty for all.
            scores: only these metrics, or judges; empty for all.
            level: of all intervals together.
            cluster: name of the category that items were sampled in together, as the scores were read with
                (``read(..., category="document")``); None if items are sampled one by one.
            guaranteed: wider intervals that hold however scores are spread.
            missing: what an item counts as that a model was asked and has no score on: ``worst`` (the
                default), ``zero`` or ``drop``.
            score_range: smallest and largest possible score; None: as the source declares it.

        Raises:
            InvalidInputError: as that does, or another category than was read.
            UnknownNameError: no such model or score.
            InvalidInferenceError: a model without a score that may count.
        """
        if cluster not in (None, self.category):
            raise InvalidInputError(
                f"cluster {cluster!r}: the scores were read with the category {self.category!r}; read them "
                f"again with category={cluster!r}"
            )
        return compared(
            self.recorded,
            margin=margin,
            against=against,
            models=models,
            scores=scores,
            level=level,
            cluster=cluster,
            guaranteed=guaranteed,
            missing=as_missing(missing),
            score_range=score_range,
        )

    @property
    def race(self) -> RaceRecord | None:
        """What a finished race said of itself; None for other scores."""
        return self.recorded.race

    @property
    def notes(self) -> tuple[str, ...]:
        """What the sources say beside the scores: what was left out, counted once, renamed or not read."""
        return notes_of(self.recorded)

    def plan(self, **options: Any) -> Plans:
        """How many items, repeats, judges, evaluations or labels are needed, with these scores as a pilot.

        Args:
            options: of :func:`evalbudget.plans.plan`: ``half_width``, ``item_half_width``, ``usd``, ``race``
                or ``audit``, and what they take.

        Raises:
            InvalidInputError: as that does.
            InvalidInferenceError: the scores do not support a plan.
            UnknownNameError: no such model, judge, rater or sampler.
        """
        require_scores(self.recorded, "the pilot")
        return planned(self.recorded, **options)

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Every model's estimate with its intervals on axes of matplotlib.

        Args:
            ax: where to draw; None for axes of their own.
            options: of :meth:`estimate`.

        Returns:
            The axes.

        Raises:
            InvalidInputError: matplotlib is not installed, or as :meth:`estimate` does.
            InvalidInferenceError: as that does.
        """
        return self.estimate(**options).plot(ax)

    def _rescaled(self, wanted: bool) -> RecordedScores:
        return rescale_raters(self.recorded) if wanted else self.recorded

    def _told(self) -> list[tuple[str, Sequence[str]]]:
        recorded = self.recorded
        return [("models", recorded.models), ("items", recorded.items), ("raters", recorded.raters)]

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(names):,} {axis}" for axis, names in self._told())
        return f"<Scores: {sizes}, {int(self.recorded.counts.sum()):,} readings>"

    def _repr_html_(self) -> str:
        """What notebooks show: how many there are, and their first names."""
        rows = "".join(
            f'<tr><th style="text-align:left">{axis}</th><td>{len(names):,}</td>'
            f'<td style="text-align:left">{_listed(names)}</td></tr>'
            for axis, names in self._told()
        )
        n = int(self.recorded.counts.sum())
        task = "" if self.recorded.task is None else f" of {shown_html(str(self.recorded.task))}"
        told = [*([self.race.sentence] if self.race is not None else []), *self.notes]
        notes = "".join(f"<p>{shown_html(note)}</p>\n" for note in told)
        return f"<p>{n:,} readings{task}</p>\n{notes}<table>{rows}</table>"


def read(
    path: str | Path,
    *more: str | Path,
    task: str | None = None,
    category: str | None = None,
    across_tasks: bool = False,
    lower_is_better: bool = False,
) -> Scores:
    """Read logs or files of recorded scores: whatever ``evalbudget report`` reads.

    Logs and folders of logs of the installed hosts, ``.npz``, ``.csv``, ``.jsonl`` and ``.parquet``. Several
    are put side by side; a model that stands in several goes by the name of the file, too.

    Args:
        path: of a log, a file or a folder.
        more: the same.
        task: of several in a folder of logs or in a table, the one to read.
        category: field of an item that says what it belongs to; None for the usual one.
        across_tasks: take logs of tasks of different names or versions for one task.
        lower_is_better: lower scores are better, where the source does not say so itself.

    Raises:
        InvalidInputError: nothing there, a format that nobody knows, or a damaged file, with its name.
        UnknownNameError: no such task.
    """
    paths = [Path(one) for one in dict.fromkeys((path, *more))]
    opened = {
        str(one): plugins().open_scores(one, task, category=category, may_be_empty=True) for one in paths
    }
    recorded = side_by_side(opened, across_tasks=across_tasks)
    return Scores(with_lower_better(recorded) if lower_is_better else recorded, category or _CATEGORY)


def from_frame(frame: object, *, category: str | None = None) -> Scores:
    """Scores from a frame with one row per reading, with the columns of :meth:`Scores.readings`.

    ``item`` and ``score`` are needed; other columns are ignored. Numbers and booleans are scores, missing
    ones are readings that failed. Without ``repeat`` the rows of a cell are its repeats.

    Args:
        frame: of pandas, polars, pyarrow, duckdb or another library that narwhals knows.
        category: column that says what category an item belongs to; None for ``category``, if there is one.

    Raises:
        InvalidInputError: no frame, a column missing, or a row that cannot be used, with its number from 0.
    """
    if isinstance(frame, Scores | RecordedScores):
        raise InvalidInputError("these are scores already, and no frame; use them as they are")
    recorded = read_frame(frame, category=category)
    require_scores(recorded, "the frame")
    return Scores(recorded, category or _CATEGORY)


def _listed(names: Sequence[str]) -> str:
    rest = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return shown_html(shown(", ".join(names[:_NAMED]))) + rest
