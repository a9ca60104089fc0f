"""Which answer is preferred? Judges who compare two answers: win rates, strengths, bias, a winner."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
