"""The file of flags that the host takes with ``--config``, and prints; it may have flags of ours."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from typing import Any

from lm_eval.utils import simple_parse_args_string

from evalbudget.errors import InvalidInputError, did_you_mean
from evalbudget.flags import Flag
from evalbudget.secrets import refuse_secrets
from evalbudget_lm_eval.host.flag_spelling import is_one_of, spelled
from evalbudget_lm_eval.host.private import EvaluatorConfig

WRITTEN = ("model_args", "gen_kwargs", "metadata")
"""Flags that the host writes into its results."""


def refuse_keys_of_file(parsed: argparse.Namespace, own: Iterable[Flag] = ()) -> None:
    """Refuse a file of flags with somebody's key in it, or with a flag that nobody knows.

    Args:
        parsed: the host's flags, which name it.
        own: flags of ours that may stand in it.

    Raises:
        InvalidInputError: there is one.
    """
    found = _in_file(parsed)
    refuse_secrets(found, f"--config {parsed.config}")
    _refuse_unknown_keys(parsed.config, found, own)


def _refuse_unknown_keys(path: object, found: Iterable[Any], own: Iterable[Flag]) -> None:
    """Refuse keys of the file of flags that nobody knows, at which the host raises whatever its class does.

    Args:
        path: of the file.
        found: its keys.
        own: ours.

    Raises:
        InvalidInputError: there is one; says what is meant.
    """
    ours = (spelled(flag).removeprefix("--") for flag in own)
    known = [*(field.name for field in fields(EvaluatorConfig)), *ours]
    for key in found:
        if key not in known:
            told = did_you_mean(str(key), known)
            raise InvalidInputError(
                f"--config {path} has the key {key!r}, which is no flag of lm-eval run.{told}"
            )


def typed_or_in_file(parsed: argparse.Namespace, name: str) -> Any:
    """One of the host's flags, as the host puts them together: what is typed comes before the file's."""
    return getattr(parsed, name, None) or _in_file(parsed).get(name)


def _in_file(parsed: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with suppress(OSError, TypeError, ValueError):  # which the host tells
        found = EvaluatorConfig.load_yaml_config(parsed.config) if parsed.config else {}
        for name in WRITTEN:
            if isinstance(found.get(name), str):
                found[name] = simple_parse_args_string(found[name])
    return found


def with_flags_of_file(arguments: Sequence[str], flags: Iterable[Flag]) -> tuple[list[str], frozenset[str]]:
    """The arguments, and before them flags of ours that stand in the file; typed ones come later, and count.

    Returns:
        Arguments, and the file's keys that the host does not know.

    Raises:
        InvalidInputError: a value in the file cannot be a flag's.
    """
    if not arguments or (arguments[0] != "run" and not arguments[0].startswith("-")):
        return list(arguments), frozenset()
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    finder.add_argument("--config", "-C")
    found: dict[str, Any] = {}
    path = None
    with suppress(OSError, TypeError, ValueError, argparse.ArgumentError):  # which the host tells
        path = finder.parse_known_args(arguments)[0].config
        found = {} if path is None else EvaluatorConfig.load_yaml_config(path)
    given, keys = [], set()
    _refuse_unknown_keys(path, found, flags)
    for flag in flags:
        name = spelled(flag)
        if (key := name.removeprefix("--")) in found:
            keys.add(key)
            if not any(is_one_of(argument, [flag]) for argument in arguments):
                given += _typed(flag, found[key])
    begin = 0 if arguments[0].startswith("-") else 1  # the host takes flags without a command for a run's
    return [*arguments[:begin], *given, *arguments[begin:]], frozenset(keys)


def _typed(flag: Flag, value: Any) -> list[str]:
    """As one would type it.

    Raises:
        InvalidInputError: it cannot be typed.
    """
    name = spelled(flag)
    if value is None:
        return []
    if flag.switch and not isinstance(value, bool):
        raise InvalidInputError(f"{name} is {value!r} in the file of --config; write true or false")
    if flag.switch:
        return [name] * value
    several = value if isinstance(value, list) else [value]
    if any(isinstance(each, bool) for each in several):  # YAML reads `no` as one
        raise InvalidInputError(f"{name} is {value!r} in the file of --config; put what it is in quotes")
    if isinstance(value, list | dict) and not (flag.repeated and isinstance(value, list)):
        raise InvalidInputError(f"{name} is {value!r} in the file of --config; write it as it is typed")
    return [f"{name}={each}" for each in several]


@contextmanager
def without_keys(keys: Collection[str]) -> Iterator[None]:
    """Within this block the host reads its file without these."""
    load = EvaluatorConfig.load_yaml_config

    def rest(path: Any) -> dict[str, Any]:
        return {name: value for name, value in load(path).items() if name not in keys}

    EvaluatorConfig.load_yaml_config = staticmethod(rest)
    try:
        yield
    finally:
        EvaluatorConfig.load_yaml_config = staticmethod(load)
