"""Buying scores: a sampler with its budget and journal, and the way in for those without a host."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
