"""What can and cannot be concluded from scores that are there, and what would have been saved."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
