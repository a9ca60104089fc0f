"""evalbudget for inspect-ai: adaptive repeats on unmodified tasks, and judges that take turns."""

from evalbudget_inspect.judging import cyclic_judge, rotate
from evalbudget_inspect.task import budgeted

__all__ = ["budgeted", "cyclic_judge", "rotate"]
