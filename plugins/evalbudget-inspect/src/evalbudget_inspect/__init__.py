"""evalbudget for inspect-ai: adaptive repeats, judges that take turns, and races, on unmodified tasks."""

import lazy_loader

# evalbudget loads this package as a plugin for every command; the host takes seconds to import
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
