"""Which model? Samplers, predictions from history, estimates, what every host's races share."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
