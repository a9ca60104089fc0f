"""What evalbudget itself registers, through the same hooks as anybody."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evalbudget.hookspecs import hookimpl
from evalbudget.reports import SECTIONS
from evalbudget.rotation import All, Cyclic, Priced, Random, Single
from evalbudget.samplers import (
    LUCB,
    PPLUCB,
    UCBE,
    AuditEProcess,
    Auto,
    EBBernstein,
    HumanOnly,
    NaivePooling,
    PairedEProcess,
    Pulse,
    Race,
    RatingKernel,
    Robin,
    RobinHood,
    SequentialHalving,
    SuccessiveRejects,
    Uniform,
    UniformRacing,
)

if TYPE_CHECKING:
    from evalbudget.backtest.recorded import RecordedScores
    from evalbudget.reports.section import Section
    from evalbudget.rotation import JudgeSchedule
    from evalbudget.sampler import Sampler


@hookimpl
def evalbudget_register_samplers() -> Sequence[type[Sampler]]:
    """The samplers of repeats, those of models and those of audits."""
    repeats: list[type[Sampler]] = [Auto, Uniform, Robin, RobinHood, EBBernstein, RatingKernel]
    models: list[type[Sampler]] = [
        UniformRacing,
        UCBE,
        NaivePooling,
        Pulse,
        Race,
        PairedEProcess,
        LUCB,
        SuccessiveRejects,
        SequentialHalving,
    ]
    audits: list[type[Sampler]] = [AuditEProcess, PPLUCB, HumanOnly]
    return [*repeats, *models, *audits]


@hookimpl
def evalbudget_register_scorers() -> Sequence[type[JudgeSchedule]]:
    """The judge schedules."""
    return [All, Random, Cyclic, Priced, Single]


@hookimpl
def evalbudget_register_reports() -> Sequence[type[Section]]:
    """The sections of ``evalbudget report``."""
    return SECTIONS


@hookimpl(trylast=True)
def evalbudget_open_scores(path: Path) -> RecordedScores | None:
    """The recorded-scores layout as .npz, and long .csv files."""
    from evalbudget.backtest.files import open_scores

    return open_scores(path)
