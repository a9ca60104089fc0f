from ._hookspecs import hookimpl as hookimpl
from ._plugins import Plugins as Plugins
from ._plugins import plugins as plugins
from ._registry import PluginInfo as PluginInfo
