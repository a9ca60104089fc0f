"""The host's own flags beside arms: read by the host, held for every arm."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lm_eval.tasks import TaskManager
from lm_eval.utils import setup_logging

from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget_lm_eval.arms.arm import Arm
from evalbudget_lm_eval.arms.settings import TASK, Setting, every_pair
from evalbudget_lm_eval.host.config_file import refuse_keys_of_file
from evalbudget_lm_eval.host.private import EvaluatorConfig, HarnessCLI

_OF_ONE_MODEL = {
    "model": "name models with --arm NAME=MODEL:ARGS",
    "model_args": "give every arm its own: --arm NAME=MODEL:ARGS",
    "predict_only": "drop it: models are compared by scores",
    "wandb_args": "drop it: it reports one model",
    "wandb_config_args": "drop it: it reports one model",
    "trackio_args": "drop it: it reports one model",
}


_SAME = (
    *("num_fewshot", "batch_size", "max_batch_size", "device", "use_cache", "limit", "samples"),
    *("check_integrity", "write_out", "log_samples", "system_instruction", "apply_chat_template"),
    *("fewshot_as_multiturn", "gen_kwargs", "confirm_run_unsafe_code", "metadata"),
)
_CACHING = ("cache_requests", "rewrite_requests_cache", "delete_requests_cache")
_SEEDS = ("random_seed", "numpy_random_seed", "torch_random_seed", "fewshot_random_seed")
"""Options of ``simple_evaluate``: those that its config names alike, and those that it keeps together."""


_NO_MODEL = {
    False: "settings race on a model, and none is named; add --model and --model_args, or models as arms: "
    "--arm NAME=MODEL:ARGS",
    True: "no model is named, and a gate judges one; add --model and --model_args",
}


@dataclass(frozen=True)
class HostFlags:
    """What the host's flags say.

    Attributes:
        task: the one task, as the host's task manager takes it.
        manager: the host's.
        options: of ``simple_evaluate``.
        tracker: arguments of the host's ``EvaluationTracker``.
        arms: with what the host adds to every model's arguments.
    """

    task: Any
    manager: TaskManager
    options: Mapping[str, Any]
    tracker: Mapping[str, Any]
    arms: Sequence[Arm]


def read_flags(
    args: Sequence[str], arms: Sequence[Arm], settings: Sequence[Setting] = (), *, one_model: bool = False
) -> HostFlags:
    """Have the host read its flags.

    Args:
        args: what the user typed, without our flags.
        arms: the models.
        settings: that race each other; without ``arms``, of the model that ``--model`` names.
        one_model: the model that ``--model`` names is an arm, the last one.

    Raises:
        InvalidInputError: a flag that arms cannot honour, no task or several, or what the host refuses.
        UnknownNameError: no such task.
    """
    setup_logging()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # as the host's own command
    namespace, one = _parse(
        args, own_model=one_model or (bool(settings) and not arms), told=_NO_MODEL[one_model]
    )
    refuse_keys_of_file(namespace)
    arms = every_pair(arms if one is None else [*arms, one], settings, named=one is None)
    try:
        config = EvaluatorConfig.from_cli(namespace)
    except (ValueError, TypeError, OSError) as ex:
        raise InvalidInputError(f"lm-eval refuses its flags: {ex}") from ex
    for name, remedy in _OF_ONE_MODEL.items():  # those of a --config file are here too
        if name not in ("model", "model_args") and getattr(config, name, None):
            raise InvalidInputError(f"--{name} is not for several models: {remedy}")
    if set(config.model_args) - {"trust_remote_code"}:  # which the host adds
        raise InvalidInputError(
            f"--config has model_args, which is not for several models: {_OF_ONE_MODEL['model_args']}"
        )
    if not config.tasks and all(TASK in arm.settings for arm in arms):
        config.tasks = str(arms[0].settings[TASK])
    manager, task = _one_task(config)
    if config.output_path:
        config.hf_hub_log_args["output_path"] = config.output_path
    if os.environ.get("HF_TOKEN"):
        config.hf_hub_log_args["token"] = os.environ["HF_TOKEN"]
    added = {"trust_remote_code": True} if config.trust_remote_code else {}
    return HostFlags(
        task,
        manager,
        _options(config),
        dict(config.hf_hub_log_args),
        [arm if arm.is_live else replace(arm, args={**arm.args, **added}) for arm in arms],
    )


def _parse(args: Sequence[str], *, own_model: bool, told: str) -> tuple[argparse.Namespace, Arm | None]:
    """The flags, and the model that they name, where there may be one."""
    namespace: argparse.Namespace = HarnessCLI()._parser.parse_args(["run", *args])
    one = None
    if own_model:
        if not namespace.model:
            raise InvalidInputError(told)
        one = Arm(str(namespace.model), str(namespace.model), dict(namespace.model_args or {}))
        namespace.model, namespace.model_args = None, {}
    for name in _OF_ONE_MODEL:
        if getattr(namespace, name, None):
            raise InvalidInputError(f"--{name} is not for several models: {_OF_ONE_MODEL[name]}")
    return namespace, one


def _one_task(config: EvaluatorConfig) -> tuple[TaskManager, Any]:
    if not config.tasks:
        raise InvalidInputError("which task? Add --tasks NAME (lm-eval ls tasks lists them)")
    try:
        manager = config.process_tasks(config.metadata)
    except ValueError as ex:
        names = config.tasks.split(",") if isinstance(config.tasks, str) else config.tasks
        known = TaskManager(include_path=config.include_path).all_tasks
        for name in names:
            if name not in known and str(name) in str(ex):
                raise UnknownNameError("task", str(name), known) from None
        raise InvalidInputError(f"lm-eval refuses --tasks: {ex}") from ex
    if len(config.tasks) != 1:
        raise InvalidInputError(
            f"models are compared on one task or group, and --tasks names {len(config.tasks)}; name one of "
            "them"
        )
    return manager, config.tasks[0]


def _options(config: EvaluatorConfig) -> dict[str, Any]:
    """As the host's own command makes them."""
    seeds = dict(zip(_SEEDS, config.seed or [None] * 4, strict=False))
    caching = {name: config.cache_requests.get(name, False) for name in _CACHING}
    return {name: getattr(config, name) for name in _SAME} | caching | seeds
