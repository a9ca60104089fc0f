"""Scores in hand: logs, files and frames as one object that says what they prove, and gives frames back."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
