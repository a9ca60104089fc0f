from ._plan import check_question as check_question
from ._plan import plan as plan
from ._result import Plans as Plans
