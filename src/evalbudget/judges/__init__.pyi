from ._config import DEFAULT_ROTATION as DEFAULT_ROTATION
from ._config import PanelConfig as PanelConfig
from ._config import check_seed as check_seed
from ._config import split_entries as split_entries
from ._panel import Call as Call
from ._panel import PanelRows as PanelRows
