"""On inspect: judges that compare the answers of finished logs."""

from typing import Any

import lazy_loader

# inspect imports this package in every run
_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name in __all__:
        from evalbudget_pairwise._hosts import check_installed

        check_installed("inspect")
    return _load(name)
