"""Is the difference real? Comparisons of what was scored, and gates that buy what decides."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
