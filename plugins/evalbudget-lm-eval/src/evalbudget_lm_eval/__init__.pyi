from .judges.filter import CyclicJudgeFilter as CyclicJudgeFilter
from .judges.rows import JUDGED_METRICS as JUDGED_METRICS
from .judges.rows import judged as judged
from .judges.rows import panel as panel
from .judges.rows import process_judged as process_judged
from .races.api import race as race
from .repeats.budgeted import budgeted as budgeted
from .repeats.task import BudgetedTask as BudgetedTask
