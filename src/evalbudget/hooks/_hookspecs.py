"""Every hook a plugin can implement. Built-ins register through the same ones.

A plugin is a module (or object) with functions decorated by :data:`hookimpl`, named in the entry-point
group ``evalbudget``::

    from evalbudget import hookimpl

    @hookimpl
    def evalbudget_register_samplers():
        return [MySampler]

Register hooks return classes with a ``name``, never running instances; no hook decides what is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    import click

    from evalbudget.audits.policies import AuditPolicy
    from evalbudget.doctor import Check
    from evalbudget.judges.schedules import JudgeSchedule
    from evalbudget.prices import Price
    from evalbudget.recorded._scores import RecordedScores
    from evalbudget.repeats.estimates import Estimator
    from evalbudget.report._section import Section
    from evalbudget.sampler import Sampler
    from evalbudget.scorer import Scorer

PROJECT = "evalbudget"
"""Name of the pluggy project and of the entry-point group."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def evalbudget_register_samplers() -> Sequence[type[Sampler]]:  # type: ignore[empty-body]
    """Sampler classes, each with a ``name`` that is unique among those of its ``kind``."""


@hookspec
def evalbudget_register_audits() -> Sequence[type[AuditPolicy]]:  # type: ignore[empty-body]
    """Audit policies (which answers a human labels), each with a unique ``name``."""


@hookspec
def evalbudget_register_schedules() -> Sequence[type[JudgeSchedule]]:  # type: ignore[empty-body]
    """Judge schedules (which judge scores which generation), each with a unique ``name``."""


@hookspec
def evalbudget_register_estimators() -> Sequence[type[Estimator]]:  # type: ignore[empty-body]
    """Further estimates of a benchmark (``--estimators``), each with a unique ``name``."""


@hookspec
def evalbudget_register_scorers() -> Sequence[type[Scorer]]:  # type: ignore[empty-body]
    """Scorers of answers (``--scorer``), each with a unique ``name``."""


@hookspec
def evalbudget_register_reports() -> Sequence[type[Section]]:  # type: ignore[empty-body]
    """Sections of ``evalbudget report``, each with a unique ``name``; they follow those registered before."""


@hookspec
def evalbudget_register_checks() -> Sequence[type[Check]]:  # type: ignore[empty-body]
    """Checks of ``evalbudget doctor``, each with a unique ``name``."""


@hookspec(firstresult=True)
def evalbudget_open_scores(path: Path, task: str | None, category: str | None) -> RecordedScores | None:
    """Read a file or folder of scores if this plugin knows its format; of one task, if the user named one.

    ``category`` is the field of an item that says what it belongs to (``--cluster``); None for the usual one.
    A plugin may leave ``task`` and ``category`` out if its format has no such thing.

    Return None if the path is of another format. Raise InvalidInputError, naming file and remedy, if it is
    of this format but unreadable, and UnknownNameError if it has no such task.
    """


@hookspec(firstresult=True)
def evalbudget_price_of(model: str) -> Price | None:
    """What calls of a model cost, for budgets in money; None if this plugin does not know it.

    Asked for models that neither the user's price file nor the host prices.
    """


@hookspec
def evalbudget_add_commands(cli: click.Group) -> None:
    """Add commands to the ``evalbudget`` command line."""


@hookspec
def evalbudget_add_commands_to(name: str, group: click.Group) -> None:
    """Add commands to those of a host, ``inspect`` or ``lm-eval``, or of ``audit``: ``evalbudget audit ...``.

    Called for each of these groups whose commands are asked for; a plugin that has none for it adds none.
    """
