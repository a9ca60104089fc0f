"""What a log's model was evaluated with: with other settings it is another model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from evalbudget.backtest import names_by_settings
from evalbudget.secrets import cleaned, is_secret, without_secrets
from evalbudget_lm_eval.host.identity import run_args
from evalbudget_lm_eval.host.logfiles import NAMING, SamplesFile, parsed_args
from evalbudget_lm_eval.logs.log import Log
from evalbudget_lm_eval.logs.metrics import reducer
from evalbudget_lm_eval.logs.other_questions import answer_labels, prompt_labels, question_labels

_OF_THE_MACHINE = frozenset(
    {
        "cache_dir",
        "data_parallel_size",
        "device_map",
        "device_map_option",
        "download_dir",
        "enforce_eager",
        "max_cpu_memory",
        "max_memory_per_gpu",
        "max_num_seqs",
        "mem_fraction_static",
        "offload_folder",
        "parallelize",
        "pipeline_parallel_size",
        "swap_space",
        "tensor_parallel_size",
        "tokenized_requests",
        "trust_remote_code",
        "use_fast_tokenizer",
    }
)
"""Arguments of a model that say where and how fast it runs."""

_OF_THE_MODEL = ("model_sha", "model_dtype", "peft_sha", "delta_sha")
"""What the host finds out of a model that it loads."""

_OF_THE_SCORING = ("doc_to_choice", "filter_list", "process_results")
"""What a task's configuration says of how answers become scores."""

_OF_THE_PROMPT = ("description", "doc_to_text")
"""Likewise of prompts, for logs that have no digest of them."""

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")

DEFAULT = "default"
UNKNOWN = "unknown"


class _Told(NamedTuple):
    """What one log says; of options, whatever is not named is the default, unless all are None.

    Attributes:
        arguments: of the model.
        facts: of the run, what is known.
        options: of the task.
        of_task: of the task, what is known.
    """

    arguments: Mapping[str, str] | None
    facts: Mapping[str, str]
    options: Mapping[str, str] | None
    of_task: Mapping[str, str]


def named_by_settings(logs: Sequence[Log]) -> tuple[list[str], dict[str, dict[str, str]]]:
    """Of every log, the name of what was evaluated; and by that name, its settings.

    A setting that only some logs of a model tell is taken to be the same in the others, unless those that
    tell it differ. Logs that tell the same, and ask otherwise or something else, are of different models too.
    """
    told = [_of_log(log) for log in logs]
    names, settings = _named(logs, told)
    kinds = {"questions": question_labels, "prompt": prompt_labels, "right_answers": answer_labels}
    for key, labels_of in kinds.items():
        labels = labels_of(logs, names)
        if any(labels):
            told = [
                one._replace(of_task={**one.of_task, **({key: label} if label else {})})
                for one, label in zip(told, labels, strict=True)
            ]
            names, settings = _named(logs, told)
    return names, settings


def _named(logs: Sequence[Log], told: Sequence[_Told]) -> tuple[list[str], dict[str, dict[str, str]]]:
    models: dict[str, list[int]] = {}
    for number, log in enumerate(logs):
        models.setdefault(log.file.model, []).append(number)
    evaluated: dict[tuple[str, str], dict[str, str]] = {}
    tasks = len({log.file.task for log in logs})
    for model, group in models.items():
        runs = _of_runs([logs[number] for number in group], [told[number] for number in group], tasks)
        evaluated |= {(model, run): own for run, own in runs.items()}
    found = names_by_settings([model for model, _ in evaluated], list(evaluated.values()))
    called = dict(zip(evaluated, found, strict=True))
    names = [called[log.file.model, log.file.run] for log in logs]
    return names, {called[which]: own for which, own in evaluated.items()}


def _of_runs(logs: Sequence[Log], told: Sequence[_Told], tasks: int) -> dict[str, dict[str, str]]:
    """Settings of each run of one model, whatever is not known filled in.

    Of several tasks, by whichever models, each has its own version.
    """
    arguments = _filled([one.arguments for one in told])
    options = _filled([one.options for one in told])
    several = len({log.file.task for log in logs}) > 1
    runs: dict[str, dict[str, str]] = {log.file.run: {} for log in logs}
    for log, one, given in zip(logs, told, arguments, strict=True):
        runs[log.file.run] |= {**given, **one.facts}
    by_key: dict[str, dict[tuple[str, str], str]] = {}
    for log, one, chosen in zip(logs, told, options, strict=True):
        for key, value in {**chosen, **one.of_task}.items():
            by_key.setdefault(key, {})[log.file.task, log.file.run] = value
    of_task: dict[tuple[str, str], set[str]] = {}
    for key, values in by_key.items():
        for (task, _), value in values.items():
            of_task.setdefault((key, task), set()).add(value)
    for key, values in by_key.items():
        by_task = tasks > 1 and key == "version"
        alike = not several or len(set(values.values())) == 1
        for (task, run), value in values.items():
            if alike and not by_task:
                runs[run][key] = value
            elif len(of_task[key, task]) > 1 or by_task:
                runs[run][f"{key} of {task}"] = value
    for key in dict.fromkeys(key for own in runs.values() for key in own):
        known = {own[key] for own in runs.values() if key in own}
        for own in runs.values():
            own.setdefault(key, known.copy().pop() if len(known) == 1 else UNKNOWN)
    return runs


def _filled(given: Sequence[Mapping[str, str] | None]) -> list[dict[str, str]]:
    """All with the same keys, where anything is known."""
    keys = dict.fromkeys(key for own in given for key in own or ())
    return [{} if own is None else {key: own.get(key, DEFAULT) for key in keys} for own in given]


def _of_log(log: Log) -> _Told:
    file = log.file
    return _Told(
        _arguments(file) if file.config else None,
        _facts(file),
        _options(log) if file.task_config else None,
        _of_task(file),
    )


def _arguments(file: SamplesFile) -> dict[str, str]:
    return {
        key: _text(value)
        for key, value in run_args(parsed_args(file.config.get("model_args"))).items()
        if key not in _OF_THE_MACHINE and not (key in NAMING and str(value) == file.model)
    }


def _facts(file: SamplesFile) -> dict[str, str]:
    found = {key: file.config[key] for key in _OF_THE_MODEL if file.config.get(key)}
    if file.config.get("model"):
        found["model_source"] = file.config["model"]
    if "system_instruction" in file.results:
        found["system_instruction"] = file.results["system_instruction"] or "none"
    if "chat_template_sha" in file.results:
        found["chat_template"] = (file.results["chat_template_sha"] or "none")[:_SHOWN]
    return {key: _text(value) for key, value in found.items()}


_SHOWN = 12
"""Characters of a digest."""


def _of_task(file: SamplesFile) -> dict[str, str]:
    found = {"version": file.version, "num_fewshot": file.about("n-shot")}
    shots, turns = file.about("n-shot"), file.results.get("fewshot_as_multiturn")
    if shots and turns is not None and file.results.get("chat_template_sha"):
        found["fewshot_as_multiturn"] = turns
    return {key: _text(value) for key, value in found.items() if value is not None}


def _options(log: Log) -> dict[str, str]:
    config, file = log.file.task_config, log.file
    found: dict[str, Any] = {}
    if config.get("output_type") not in ("loglikelihood", "loglikelihood_rolling", "multiple_choice"):
        sent = {**parsed_args(file.config.get("gen_kwargs")), **parsed_args(config.get("generation_kwargs"))}
        found = {f"gen_kwargs.{key}": value for key, value in sent.items() if key != "seed"}
    found |= _metadata(file)
    if config.get("dataset_name"):
        found["dataset_name"] = config["dataset_name"]
    if not log.judged:
        found |= _metric_options(config)
        hashed = all(record.get("prompt_hash") for record in log.records)
        keys = _OF_THE_SCORING if hashed else (*_OF_THE_SCORING, *_OF_THE_PROMPT)
        found |= {key: config[key] for key in keys if config.get(key)}
        if any(reducer(log, name) for name in log.filters):
            found["repeats"] = config.get("repeats")
    return {key: _text(value) for key, value in found.items() if not is_secret(key)}


def _metric_options(config: Mapping[str, Any]) -> dict[str, Any]:
    """What metrics were told beside how to average them, such as ``ignore_case``."""
    entries = [entry for entry in config.get("metric_list") or () if isinstance(entry, Mapping)]
    return {
        f"{entry.get('metric')}.{key}": value
        for entry in entries
        for key, value in entry.items()
        if key not in ("metric", "aggregation", "higher_is_better")
    }


def _metadata(file: SamplesFile) -> dict[str, Any]:
    """Arguments of the task (``--metadata``), among which the host has those of the model, too."""
    given = file.task_config.get("metadata")
    others = {*parsed_args(file.config.get("model_args")), "version", "config_source"}
    named = given.items() if isinstance(given, Mapping) else ()
    return {f"metadata.{key}": value for key, value in named if key not in others}


def _text(value: object) -> str:
    """A text of several words is a prompt, and may be about a password."""
    if not isinstance(value, str):
        text = json.dumps(cleaned(value), sort_keys=True, default=str)
    else:
        text = value if " " in value else without_secrets(value)
    text = {"true": "True", "false": "False"}.get(text, text)
    return _ADDRESS.sub("", text)
