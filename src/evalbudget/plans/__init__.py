"""Plans from a pilot: how many items, repeats, judge calls, evaluations or labels are needed."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
