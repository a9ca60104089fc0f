from ._hookspecs import hookimpl as hookimpl
from ._plugins import PluginInfo as PluginInfo
from ._plugins import Plugins as Plugins
from ._plugins import get_audit_policy as get_audit_policy
from ._plugins import get_sampler as get_sampler
from ._plugins import get_schedule as get_schedule
from ._plugins import plugins as plugins
