"""On lm-eval: judges that compare the answers of finished runs."""

import lazy_loader

# the host takes seconds to import
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
