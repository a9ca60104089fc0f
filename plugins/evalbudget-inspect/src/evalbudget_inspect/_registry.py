"""What inspect finds by name under ``evalbudget_inspect/``: imported by its entry point."""

from evalbudget_inspect.audits.registry_entry import audited_entry
from evalbudget_inspect.host import dict_scores
from evalbudget_inspect.host.current_run import RunHooks
from evalbudget_inspect.host.spread import go_on
from evalbudget_inspect.host.union_of_logs import join_logs
from evalbudget_inspect.judges.cyclic_judge import cyclic_judge, rotate
from evalbudget_inspect.judges.panel_metrics import panel_estimates
from evalbudget_inspect.pairwise.registry_entry import pairwise_entry
from evalbudget_inspect.providers.recorded import recorded
from evalbudget_inspect.providers.simulated import simulated
from evalbudget_inspect.races.metrics import race_estimates
from evalbudget_inspect.races.registry_entry import gate_entry, race_entry
from evalbudget_inspect.repeats.metrics import budget_estimates
from evalbudget_inspect.repeats.registry_entry import budgeted_entry

__all__ = [
    "RunHooks",
    "audited_entry",
    "budget_estimates",
    "budgeted_entry",
    "cyclic_judge",
    "dict_scores",
    "gate_entry",
    "go_on",
    "join_logs",
    "pairwise_entry",
    "panel_estimates",
    "race_entry",
    "race_estimates",
    "recorded",
    "rotate",
    "simulated",
]
