"""What inspect finds by name under ``evalbudget_inspect/``, and our rows under ``eb/``.

Inspect imports this in every run, also those that have nothing to do with us. So there are stubs here, and
what a stub stands for is imported when it is called; nothing here imports more than a plain run has loaded.
"""

import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, Literal

from inspect_ai import Task
from inspect_ai.model import ModelAPI
from inspect_ai.scorer import Metric, Scorer
from inspect_ai.util import RegistryInfo

from evalbudget_inspect.host.entries import MOST_ARMS, entry_of_arm
from evalbudget_inspect.host.private_registry import registry_add, registry_lookup

PACKAGE = "evalbudget_inspect"
ROWS_PACKAGE = "eb"
"""Short, for inspect puts four tables of dict scores side by side; an entry point of its own."""


def _register(
    kind: Literal["task", "scorer", "metric", "modelapi"],
    made: object,
    module: str,
    names: Iterable[str],
    package: str = PACKAGE,
    **metadata: Any,
) -> None:
    """Stubs for what a module registers when it is imported, under the names that it gives them."""
    module = f"{PACKAGE}.{module}"
    if module in sys.modules:
        return
    for each in names:
        name = f"{package}/{each}"
        stub = _stub(kind, name, module)
        stub.__annotations__["return"] = made  # inspect calls what says that it makes one
        registry_add(stub, RegistryInfo(type=kind, name=name, metadata=metadata))


def _stub(
    kind: Literal["task", "scorer", "metric", "modelapi"], name: str, module: str
) -> Callable[..., Any]:
    def stub(*args: Any, **kwargs: Any) -> Any:
        import_module(module)  # puts what the stub stands for in its place
        make: Any = registry_lookup(kind, name)
        return make(*args, **kwargs)

    return stub


_TAKES_ALL: dict[str, Any] = {"attribs": {}, "params": ["args"]}
_register("task", Task, "audits.registry_entry", ["audited"], **_TAKES_ALL)
_register(
    "task",
    Task,
    "races.registry_entry",
    ["race", "gate", *(entry_of_arm(number + 1) for number in range(MOST_ARMS))],
    **_TAKES_ALL,
)
_register("task", Task, "repeats.registry_entry", ["budgeted"], **_TAKES_ALL)
_register("scorer", Scorer, "judges.cyclic_judge", ["cyclic_judge", "rotate"], metrics=[])
_register("metric", Metric, "judges.panel_metrics", ["evalbudget_panel"])
_register("metric", Metric, "races.metrics", ["race"])
_register("metric", Metric, "repeats.metrics", ["evalbudget"])
_register(
    "metric",
    Metric,
    "host.dict_scores",
    ["estimate", "stderr", "lower", "upper", "bias", "variance", "share"],
    ROWS_PACKAGE,
)
_register("modelapi", ModelAPI, "providers.recorded", ["recorded"])
_register("modelapi", ModelAPI, "providers.simulated", ["simulated"])
