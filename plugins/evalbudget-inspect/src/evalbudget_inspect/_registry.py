"""What inspect finds by name under ``evalbudget_inspect/``: imported by its entry point."""

from evalbudget_inspect.audits.entry import audited_entry
from evalbudget_inspect.host import by_key
from evalbudget_inspect.host.context import RunHooks
from evalbudget_inspect.judges.judging import cyclic_judge, rotate
from evalbudget_inspect.judges.panel_metrics import panel_estimates
from evalbudget_inspect.providers.recorded import recorded
from evalbudget_inspect.providers.simulated import simulated
from evalbudget_inspect.races.entry import race_entry
from evalbudget_inspect.races.metrics import race_estimates
from evalbudget_inspect.repeats.entry import budgeted_entry
from evalbudget_inspect.repeats.metrics import budget_estimates

__all__ = [
    "RunHooks",
    "audited_entry",
    "budget_estimates",
    "budgeted_entry",
    "by_key",
    "cyclic_judge",
    "panel_estimates",
    "race_entry",
    "race_estimates",
    "recorded",
    "rotate",
    "simulated",
]
