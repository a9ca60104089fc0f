from ._gate_output import show_gate as show_gate
from ._groups import LazyCommand as LazyCommand
from ._groups import SuggestingGroup as SuggestingGroup
from ._output import check_target as check_target
from ._output import check_targets as check_targets
from ._output import write_json as write_json
from ._output import write_text as write_text
from ._pairwise_output import show_pairwise as show_pairwise
