"""The file of flags that the host takes with ``--config``, and prints."""

from __future__ import annotations

import argparse
from contextlib import suppress
from typing import Any

from lm_eval.utils import simple_parse_args_string

from evalbudget.secrets import refuse_secrets
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
