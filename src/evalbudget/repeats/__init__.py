"""Which item again? Samplers, estimates, the replay of recorded scores, what every host's runs share."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
