"""Names of lm-eval that it does not promise to keep, or that moved: all of them, and nowhere else.

Each is imported when it is asked for: some of their modules take the host seconds.
"""

from importlib import import_module
from importlib.metadata import version
from typing import Any

from evalbudget.errors import PluginError

WORKS_WITH = ">=0.4.12,<0.5"
"""Versions of the host, as this package declares them."""

_HOME = {
    "EvaluatorConfig": ("lm_eval.config.evaluate_config:EvaluatorConfig",),
    "HarnessCLI": ("lm_eval._cli.harness:HarnessCLI",),
    "_handle_back_comp": ("lm_eval.evaluator_utils:_handle_back_comp",),
    "_process_results": ("lm_eval.evaluator_utils:_process_results",),
    "apply_template": ("lm_eval.utils:apply_template", "lm_eval.config.templates:apply_template"),
    "get_sample_size": (
        "lm_eval.evaluator_utils:get_sample_size",
        "lm_eval.evaluator_utils:_get_sample_size",
    ),
    "hash_args": ("lm_eval.api.model:hash_args",),
    "print_writeout": ("lm_eval.evaluator_utils:print_writeout", "lm_eval.evaluator_utils:_print_writeout"),
}
"""Where each stands, or stood: the second place is that of the 0.5 pre-release."""


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for place in _HOME[name]:
        module, _, there = place.partition(":")
        try:
            return getattr(import_module(module), there)
        except (ImportError, AttributeError):
            continue
    raise PluginError(
        f"lm_eval {version('lm_eval')} is not what this version of evalbudget works with: it has no "
        f"{' or '.join(_HOME[name])}. Install another one: pip install 'lm_eval[api]{WORKS_WITH}', or a "
        "newer evalbudget-lm-eval"
    )
