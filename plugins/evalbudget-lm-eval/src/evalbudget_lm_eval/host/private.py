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
    "EvaluatorConfig": "lm_eval.config.evaluate_config",
    "HarnessCLI": "lm_eval._cli.harness",
    "_handle_back_comp": "lm_eval.evaluator_utils",
    "_process_results": "lm_eval.evaluator_utils",
    "apply_template": "lm_eval.utils",
    "build_filter_ensemble": "lm_eval.filters",
    "env": "lm_eval.utils",
    "get_sample_size": "lm_eval.evaluator_utils",
    "hash_args": "lm_eval.api.model",
    "print_writeout": "lm_eval.evaluator_utils",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_HOME[name]), name)
    except (ImportError, AttributeError) as ex:
        # tried nowhere else: in 0.5.0.dev1, which has some elsewhere, runs fail later, once calls are paid
        raise PluginError(
            f"lm_eval {version('lm_eval')} is not what this version of evalbudget works with: it has no "
            f"{name} in {_HOME[name]}. Install another one: pip install 'lm_eval[api]{WORKS_WITH}', or a "
            "newer evalbudget-lm-eval"
        ) from ex
