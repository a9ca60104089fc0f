from ._hookspecs import hookimpl as hookimpl
from ._plugins import PluginInfo as PluginInfo
from ._plugins import Plugins as Plugins
from ._plugins import plugins as plugins
