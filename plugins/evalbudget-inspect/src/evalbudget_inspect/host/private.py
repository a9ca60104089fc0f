"""Names of inspect that it does not promise to keep: all of them, and nowhere else."""

from importlib.metadata import version

from evalbudget.errors import PluginError

WORKS_WITH = ">=0.3.277,<0.4"
"""Versions of the host, as this package declares them."""

try:
    from inspect_ai._cli.main import inspect as host_cli
    from inspect_ai._cli.main import main as host_main
    from inspect_ai._cli.util import parse_cli_config
    from inspect_ai._control.eval_state import get_eval_state
    from inspect_ai._control.max_tasks import effective_max_tasks, task_dispatcher_stats
    from inspect_ai._display.core.display import (
        TaskDisplay,
        TaskError,
        TaskProfile,
        TaskResult,
        TaskSuccess,
    )
    from inspect_ai._eval.loader import load_file_tasks, load_task_spec
    from inspect_ai._eval.task.run import EvalSampleSource
    from inspect_ai._eval.task.util import resolve_task_sample_ids, slice_dataset
    from inspect_ai._util.config import parse_cli_args
    from inspect_ai._util.dotenv import init_dotenv
    from inspect_ai._util.error import PrerequisiteError, is_cancellation_message
    from inspect_ai._util.exception import TerminateSampleError
    from inspect_ai._util.registry import (
        RegistryInfo,
        is_registry_object,
        registry_add,
        registry_info,
        registry_log_name,
        registry_lookup,
        registry_name,
        registry_params,
        registry_tag,
        set_registry_info,
        set_registry_params,
    )
    from inspect_ai._util.samples import parse_sample_id, parse_samples_limit
    from inspect_ai.log._recover import RecoveryNotAvailable
    from inspect_ai.log._recover._buffer import read_buffer_recovery_data
    from inspect_ai.log._samples import _active_model_event as active_model_event
    from inspect_ai.log._samples import sample_active
    from inspect_ai.model._model import ModelName, init_model_roles
    from inspect_ai.model._providers.util.hooks import HttpHooks
    from inspect_ai.scorer._metric import metric_create
    from inspect_ai.scorer._scorer import SCORER_METRICS, scorer_metrics, scorer_register, unique_scorer_name
    from inspect_ai.solver._task_state import Choices, sample_state
except ImportError as ex:
    raise PluginError(
        f"inspect-ai {version('inspect_ai')} is not what this version of evalbudget works with: {ex}. "
        f"Install another one: pip install 'inspect-ai{WORKS_WITH}', or a newer evalbudget-inspect"
    ) from ex

__all__ = [
    "SCORER_METRICS",
    "WORKS_WITH",
    "Choices",
    "EvalSampleSource",
    "HttpHooks",
    "ModelName",
    "PrerequisiteError",
    "RecoveryNotAvailable",
    "RegistryInfo",
    "TaskDisplay",
    "TaskError",
    "TaskProfile",
    "TaskResult",
    "TaskSuccess",
    "TerminateSampleError",
    "active_model_event",
    "effective_max_tasks",
    "get_eval_state",
    "host_cli",
    "host_main",
    "init_dotenv",
    "init_model_roles",
    "is_cancellation_message",
    "is_registry_object",
    "load_file_tasks",
    "load_task_spec",
    "metric_create",
    "parse_cli_args",
    "parse_cli_config",
    "parse_sample_id",
    "parse_samples_limit",
    "read_buffer_recovery_data",
    "registry_add",
    "registry_info",
    "registry_log_name",
    "registry_lookup",
    "registry_name",
    "registry_params",
    "registry_tag",
    "resolve_task_sample_ids",
    "sample_active",
    "sample_state",
    "scorer_metrics",
    "scorer_register",
    "set_registry_info",
    "set_registry_params",
    "slice_dataset",
    "task_dispatcher_stats",
    "unique_scorer_name",
]
