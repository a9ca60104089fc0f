"""The file of flags that the host takes with ``--config``, and prints; it may have flags of ours."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from lm_eval.utils import simple_parse_args_string

from evalbudget.flags import Flag
from evalbudget.secrets import refuse_secrets
from evalbudget_lm_eval.host.flag_spelling import spelled
from evalbudget_lm_eval.host.private import EvaluatorConfig

WRITTEN = ("model_args", "gen_kwargs", "metadata")
"""Flags that the host writes into its results."""


def refuse_keys_of_file(parsed: argparse.Namespace) -> None:
    """Refuse a file of flags with a key in it.

    Raises:
        InvalidInputError: there is one.
    """
    if not parsed.config:
        return
    found: dict[str, Any] = {}
    with suppress(OSError, TypeError, ValueError):  # which the host tells
        found = EvaluatorConfig.load_yaml_config(parsed.config)
        for name in WRITTEN:
            if isinstance(found.get(name), str):
                found[name] = simple_parse_args_string(found[name])
    refuse_secrets(found, f"--config {parsed.config}")


def with_flags_of_file(arguments: Sequence[str], flags: Iterable[Flag]) -> tuple[list[str], frozenset[str]]:
    """The arguments, and before them flags of ours that stand in the file; typed ones come later, and count.

    Returns:
        Arguments, and the file's keys that the host does not know.
    """
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    finder.add_argument("--config", "-C")
    found: dict[str, Any] = {}
    with suppress(OSError, TypeError, ValueError, argparse.ArgumentError):  # which the host tells
        path = finder.parse_known_args(arguments)[0].config
        found = {} if path is None else EvaluatorConfig.load_yaml_config(path)
    keys: dict[str, list[str]] = {}
    for flag in flags:
        name = spelled(flag)
        if (key := name.removeprefix("--")) in found:
            values = found[key] if isinstance(found[key], list) else [found[key]]
            keys[key] = [name] * bool(found[key]) if flag.switch else [f"{name}={value}" for value in values]
    return [*arguments[:1], *(each for own in keys.values() for each in own), *arguments[1:]], frozenset(keys)


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
