"""Where people label what an audit wants labelled: a local page, files of other tools, Label Studio."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
