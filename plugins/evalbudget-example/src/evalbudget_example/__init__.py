"""A third-party sampler, audit policy, estimator and scorer.

Every command of evalbudget loads every plugin, so that classes are imported when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalbudget import Sampler, hookimpl

if TYPE_CHECKING:
    from evalbudget.audits.policies import AuditPolicy
    from evalbudget.repeats.estimates import Estimator
    from evalbudget.scorer import Scorer


@hookimpl
def evalbudget_register_samplers() -> list[type[Sampler]]:
    """Called by evalbudget, which found this module by its entry point."""
    from evalbudget_example.widest_range import WidestRange

    return [WidestRange]


@hookimpl
def evalbudget_register_audits() -> list[type[AuditPolicy]]:
    """As above, for audits."""
    from evalbudget_example.fixed_share import FixedShare

    return [FixedShare]


@hookimpl
def evalbudget_register_estimators() -> list[type[Estimator]]:
    """As above, for ``--estimators``."""
    from evalbudget_example.median import Median

    return [Median]


@hookimpl
def evalbudget_register_scorers() -> list[type[Scorer]]:
    """As above, for ``--scorer``."""
    from evalbudget_example.last_number import LastNumber

    return [LastNumber]
