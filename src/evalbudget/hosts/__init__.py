"""What runs on every host are made of, each part once: a host hands over what it alone knows."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
