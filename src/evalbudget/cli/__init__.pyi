from ._lazy import LazyCommand as LazyCommand
from ._output import check_target as check_target
from ._output import write_text as write_text
from ._suggest import SuggestingGroup as SuggestingGroup
