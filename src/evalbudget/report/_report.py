"""The report: sections assembled, printed, written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from evalbudget._third_party import is_ours, third_party
from evalbudget.errors import EvalbudgetError, InvalidInputError, UnknownNameError
from evalbudget.estimate import check_level
from evalbudget.missing import Missing, as_missing
from evalbudget.recorded._missing import require_scores
from evalbudget.recorded._percent import require_one_unit
from evalbudget.recorded._side_by_side import side_by_side
from evalbudget.replay._rows import AsJson
from evalbudget.report._agreement import JudgeAgreement
from evalbudget.report._categories import Categories
from evalbudget.report._charts import Chart, Histogram
from evalbudget.report._components import Components
from evalbudget.report._items import Items
from evalbudget.report._judges import Judges
from evalbudget.report._leaderboard import Leaderboard
from evalbudget.report._least_known import LeastKnown
from evalbudget.report._metrics import Metrics
from evalbudget.report._race import Race
from evalbudget.report._reference import AgainstReference
from evalbudget.report._section import Section
from evalbudget.report._self_preference import SelfPreferences
from evalbudget.report._sources import Sources
from evalbudget.report._spent import Spent
from evalbudget.report._study import Study
from evalbudget.shown import shown_logger
from evalbudget.tables import Tables

if TYPE_CHECKING:
    from evalbudget.recorded._scores import RecordedScores

log = shown_logger(__name__)

SECTIONS: tuple[type[Section], ...] = (
    Leaderboard,
    Judges,
    JudgeAgreement,
    Components,
    SelfPreferences,
    Categories,
    Items,
    LeastKnown,
    AgainstReference,
    Spent,
    Sources,
)
"""Those of this package, in order; :class:`~evalbudget.comparisons.Verdicts` follows the first."""


@dataclass(frozen=True, repr=False)
class Report(AsJson):
    """Everything a report says.

    Attributes:
        sections: in order, those that apply.
        level: of all intervals.
        models: reported on.
        raters: behind the scores.
        items: of the benchmark.
    """

    sections: tuple[Section, ...]
    level: float
    models: tuple[str, ...]
    raters: tuple[str, ...]
    items: int

    def __getitem__(self, name: str) -> Section:
        """The section of that name.

        Raises:
            UnknownNameError: it is not part of this report.
        """
        for section in self.sections:
            if section.name == name:
                return section
        raise UnknownNameError("section", name, [section.name for section in self.sections])

    def table(self) -> Tables:
        """All tables, one below the other, for 80 columns; it also prints itself as text."""
        return Tables(tuple(table for section in self.sections for table in section.tables()))

    def charts(self) -> tuple[Chart | Histogram, ...]:
        """What a picture shows."""
        return tuple(chart for section in self.sections for chart in section.charts())

    def _told(self) -> dict[str, Any]:
        """What was asked, then every section by its name."""
        asked = {"level": self.level, "models": self.models, "raters": self.raters, "items": self.items}
        return asked | {section.name: section.to_dict() for section in self.sections}

    def _repr_html_(self) -> str:
        """What notebooks show."""
        return self.table()._repr_html_()

    def __repr__(self) -> str:
        return f"<Report: {', '.join(s.name for s in self.sections)}; see .table(), .to_json()>"


def report(
    recorded: RecordedScores | Mapping[str, RecordedScores],
    *,
    level: float = 0.95,
    against: str | None = None,
    models: Sequence[str] = (),
    rater: str | None = None,
    rescale: bool = False,
    missing: str = Missing.WORST,
    sections: Sequence[type[Section]] | None = None,
) -> Report:
    """Say what recorded scores prove: a leaderboard, paired differences, and of panels what judges add.

    Of several metrics: what each says of every model, in short. Of a finished race: its own verdict.

    Args:
        recorded: the scores; several recordings, each by a name for messages, are put side by side.
        level: of all intervals.
        against: the model all others are compared with; None for the one with the highest estimate.
        models: only these; empty for all.
        rater: only this one; None for all, which are then a panel of judges.
        rescale: map the range that each rater used to 0..1.
        missing: what a missing score counts as.
        sections: what to report; None for all that are registered (``evalbudget_register_reports``).

    Raises:
        UnknownNameError: no such model, rater or value of ``missing``; suggests the nearest.
        InvalidInputError: recordings that do not go together, or a level that is none.
        InvalidInferenceError: judges on different scales, percent beside fractions, or no reading that may
            count.
    """
    check_level(level)
    counted = as_missing(missing)
    one = side_by_side(recorded) if isinstance(recorded, Mapping) else recorded
    if models or rater is not None:
        one = _only(one, models, rater)
    require_scores(one, "the source")
    require_one_unit(one)
    if sections is None and one.race is not None:
        sections = (Race, Sources)
    elif sections is None and len(one.raters) > 1 and not one.one_measure:
        sections = (Metrics, Sources)
    elif sections is not None or one.one_measure:
        one.as_panel()
    if rescale:
        from evalbudget.recorded._rescale import rescale_raters

        one = rescale_raters(one)
    if one.one_measure or len(one.raters) == 1:
        study = Study.of(one, level=level, against=against, missing=counted).of_the_scored()
    else:  # each metric has a study of its own
        study = Study(one, level, against, missing=counted)
    if study.is_panel and one.one_measure and not rescale:
        study.require_one_scale()
    if sections is None:
        from evalbudget.hooks._plugins import plugins

        sections = list(plugins().reports.values())
    return Report(_found(sections, study), level, study.models, one.raters, len(one.items))


def _found(sections: Sequence[type[Section]], study: Study) -> tuple[Section, ...]:
    """The sections that have something to say; without those of others that fail."""
    found = []
    for cls in sections:
        say = partial(log.warning, "section %r failed and is left out of the report: %s", cls.name)
        with third_party(say, BaseException if is_ours(cls) else EvalbudgetError):
            section = cls.of(study)
            if section is not None:
                found.append(section)
    return tuple(found)


def _only(recorded: RecordedScores, models: Sequence[str], rater: str | None) -> RecordedScores:
    for model in models:
        if model not in recorded.models:
            raise UnknownNameError("model", model, recorded.models)
        if list(models).count(model) > 1:
            raise InvalidInputError(f"model {model!r} is given twice; give it once")
    recorded = recorded.select(rater=rater)
    if rater is not None:  # it may be of some items only
        if recorded.race is not None:
            recorded.race.check_score(rater)
        told = recorded.counts if recorded.failed is None else recorded.counts + recorded.failed
        asked = told.any(axis=(0, 2))
        recorded = recorded if asked.all() else recorded.part(items=np.flatnonzero(asked))
    return recorded.part(np.array(list(map(recorded.models.index, models)))) if models else recorded
