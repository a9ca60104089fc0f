"""On inspect: judges that compare the answers of finished logs."""

import lazy_loader

# inspect imports this package in every run
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
