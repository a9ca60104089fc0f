"""evalbudget for inspect-ai: adaptive repeats on unmodified tasks."""

from evalbudget_inspect.task import budgeted

__all__ = ["budgeted"]
