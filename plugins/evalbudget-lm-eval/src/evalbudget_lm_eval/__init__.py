"""evalbudget for lm-evaluation-harness."""

import lazy_loader

# the host takes seconds to import: not for every command of evalbudget
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
