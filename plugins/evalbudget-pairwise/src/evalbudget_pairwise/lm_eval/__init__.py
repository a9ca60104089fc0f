"""On lm-eval: judges that compare the answers of finished runs."""

from typing import Any

import lazy_loader

# the host takes seconds to import
_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name in __all__:
        from evalbudget_pairwise._hosts import check_installed

        check_installed("lm-eval")
    return _load(name)
