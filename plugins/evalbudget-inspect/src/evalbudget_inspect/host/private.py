"""Names of inspect that it does not promise to keep: all of them, and nowhere else."""

from importlib.metadata import version

from evalbudget.errors import PluginError

WORKS_WITH = ">=0.3.277,<0.4"
"""Versions of the host, as this package declares them."""

try:
    from inspect_ai._cli import main as _cli
    from inspect_ai._cli.util import parse_cli_config as parse_cli_config
    from inspect_ai._control.eval_state import get_eval_state as get_eval_state
    from inspect_ai._control.max_tasks import effective_max_tasks as effective_max_tasks
    from inspect_ai._control.max_tasks import task_dispatcher_stats as task_dispatcher_stats
    from inspect_ai._display.core.display import TaskDisplay as TaskDisplay
    from inspect_ai._display.core.display import TaskError as TaskError
    from inspect_ai._display.core.display import TaskProfile as TaskProfile
    from inspect_ai._display.core.display import TaskResult as TaskResult
    from inspect_ai._display.core.display import TaskSuccess as TaskSuccess
    from inspect_ai._eval import evalset as _evalset
    from inspect_ai._eval.eval_set_selection import EvalSetSelection as EvalSetSelection
    from inspect_ai._eval.evalset import task_identifier as task_identifier
    from inspect_ai._eval.loader import load_file_tasks as load_file_tasks
    from inspect_ai._eval.loader import load_task_spec as load_task_spec
    from inspect_ai._eval.loader import resolve_previous_tasks as resolve_previous_tasks
    from inspect_ai._eval.task import PreviousTask as PreviousTask
    from inspect_ai._eval.task.resolved import ResolvedTask as ResolvedTask
    from inspect_ai._eval.task.run import EvalSampleSource as EvalSampleSource
    from inspect_ai._eval.task.util import resolve_task_sample_ids as resolve_task_sample_ids
    from inspect_ai._eval.task.util import slice_dataset as slice_dataset
    from inspect_ai._util.config import parse_cli_args as parse_cli_args
    from inspect_ai._util.config import resolve_args as resolve_args
    from inspect_ai._util.dotenv import init_dotenv as init_dotenv
    from inspect_ai._util.error import PrerequisiteError as PrerequisiteError
    from inspect_ai._util.error import is_cancellation_message as is_cancellation_message
    from inspect_ai._util.exception import TerminateSampleError as TerminateSampleError
    from inspect_ai._util.file import clean_filename_component as clean_filename_component
    from inspect_ai._util.registry import is_registry_object as is_registry_object
    from inspect_ai._util.registry import registry_info as registry_info
    from inspect_ai._util.registry import registry_log_name as registry_log_name
    from inspect_ai._util.registry import registry_lookup as registry_lookup
    from inspect_ai._util.registry import registry_name as registry_name
    from inspect_ai._util.registry import registry_params as registry_params
    from inspect_ai._util.registry import registry_tag as registry_tag
    from inspect_ai._util.registry import set_registry_info as set_registry_info
    from inspect_ai._util.registry import set_registry_params as set_registry_params
    from inspect_ai._util.samples import parse_sample_id as parse_sample_id
    from inspect_ai._util.samples import parse_samples_limit as parse_samples_limit
    from inspect_ai._util.task import task_display_name as task_display_name
    from inspect_ai.hooks._startup import init_hooks as init_hooks
    from inspect_ai.log import _samples
    from inspect_ai.log._recover import RecoveryNotAvailable as RecoveryNotAvailable
    from inspect_ai.log._samples import sample_active as sample_active
    from inspect_ai.model._model import ModelName as ModelName
    from inspect_ai.model._model import init_model_roles as init_model_roles
    from inspect_ai.model._model_config import model_args_for_log as model_args_for_log
    from inspect_ai.model._providers.util.hooks import HttpHooks as HttpHooks
    from inspect_ai.scorer._metric import metric_create as metric_create
    from inspect_ai.scorer._reducer import reducer_log_names as reducer_log_names
    from inspect_ai.scorer._scorer import SCORER_METRICS as SCORER_METRICS
    from inspect_ai.scorer._scorer import scorer_metrics as scorer_metrics
    from inspect_ai.scorer._scorer import scorer_register as scorer_register
    from inspect_ai.scorer._scorer import unique_scorer_name as unique_scorer_name
    from inspect_ai.solver._task_state import Choices as Choices
    from inspect_ai.solver._task_state import sample_state as sample_state

    host_cli, host_main = _cli.inspect, _cli.main
    active_model_event = _samples._active_model_event
    resumed_task = _evalset._resumed_task
except (AttributeError, ImportError) as ex:
    raise PluginError(
        f"inspect-ai {version('inspect_ai')} is not what this version of evalbudget works with: {ex}. "
        f"Install another one: pip install 'inspect-ai{WORKS_WITH}', or a newer evalbudget-inspect"
    ) from ex
