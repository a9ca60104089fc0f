"""What evalbudget itself registers, through the same hooks as anybody; imported when it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evalbudget.hooks._hookspecs import hookimpl

if TYPE_CHECKING:
    from evalbudget.audits.policies import AuditPolicy
    from evalbudget.doctor import Check
    from evalbudget.judges.schedules import JudgeSchedule
    from evalbudget.recorded._scores import RecordedScores
    from evalbudget.report._section import Section
    from evalbudget.sampler import Sampler


@hookimpl
def evalbudget_register_samplers() -> Sequence[type[Sampler]]:
    """The samplers of repeats and those of models."""
    from evalbudget.comparisons import GateSampler
    from evalbudget.races.samplers import (
        LUCB,
        UCBE,
        NaivePooling,
        PairedEProcess,
        Pulse,
        Race,
        SequentialHalving,
        SuccessiveRejects,
        UniformRacing,
        Visit,
    )
    from evalbudget.repeats.samplers import (
        Auto,
        EBBernstein,
        RatingKernel,
        Robin,
        RobinHood,
        Sample,
        Uniform,
    )

    repeats: list[type[Sampler]] = [Auto, Uniform, Robin, RobinHood, EBBernstein, RatingKernel, Sample]
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
        Visit,
        GateSampler,
    ]
    return [*repeats, *models]


@hookimpl
def evalbudget_register_audits() -> Sequence[type[AuditPolicy]]:
    """The audit policies."""
    from evalbudget.audits.policies import PPLUCB, AuditEProcess, HumanOnly

    return [AuditEProcess, PPLUCB, HumanOnly]


@hookimpl
def evalbudget_register_schedules() -> Sequence[type[JudgeSchedule]]:
    """The judge schedules."""
    from evalbudget.judges.schedules import All, Cyclic, Modulo, Priced, Random, Single

    return [All, Random, Cyclic, Modulo, Priced, Single]


@hookimpl
def evalbudget_register_reports() -> Sequence[type[Section]]:
    """The sections of ``evalbudget report``."""
    from evalbudget.comparisons import Verdicts
    from evalbudget.report import SECTIONS

    leaderboard, *others = SECTIONS
    return [leaderboard, Verdicts, *others]


@hookimpl
def evalbudget_register_checks() -> Sequence[type[Check]]:
    """The checks of ``evalbudget doctor``."""
    from evalbudget.doctor import CHECKS

    return CHECKS


@hookimpl(trylast=True)
def evalbudget_open_scores(path: Path, task: str | None, category: str | None) -> RecordedScores | None:
    """The recorded-scores layout as .npz, and long tables: .csv, .jsonl and .parquet."""
    from evalbudget.recorded._files import open_scores

    return open_scores(path, category, task)
