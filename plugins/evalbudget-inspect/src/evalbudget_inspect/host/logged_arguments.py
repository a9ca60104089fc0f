"""What the host writes into its logs of the arguments that models are given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import yaml  # type: ignore[import-untyped]

from evalbudget.secrets import keep_out, refuse_secrets
from evalbudget_inspect.host.private import (
    PrerequisiteError,
    host_cli,
    model_args_for_log,
    parse_cli_args,
    parse_cli_config,
    resolve_args,
)
from evalbudget_inspect.host.rewrite import parse


def refuse_logged_keys(arguments: Sequence[str]) -> None:
    """Refuse keys where the host would write them into its log, as it does not what is named api_key.

    Args:
        arguments: the host's command, and what follows.

    Raises:
        InvalidInputError: there is one.
    """
    command, *rest = arguments
    found: list[tuple[str, Any]] = []
    with suppress(PrerequisiteError, OSError, TypeError, ValueError, yaml.YAMLError):  # which the host tells
        found.extend(_given(parse(host_cli.commands[command], rest)))
    for option, value in found:
        refuse_secrets(value, option)


def _given(parsed: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield "-M", _of_model(parse_cli_config(parsed.get("m") or (), parsed.get("model_config")))
    for role in parse_cli_args(parsed.get("model_role") or ()).values():
        yield "--model-role", _of_role(role)
    for spec in parsed.get("model_spec") or ():
        yield "--model-spec", _of_role(yaml.safe_load(spec))
    yield "--run-config", resolve_args(parsed.get("run_config") or {})
    yield "--model-base-url", parsed.get("model_base_url")
    yield "--metadata", parse_cli_args(parsed.get("metadata") or ())
    for name in ("extra_headers", "extra_body"):
        yield f"--{name.replace('_', '-')}", yaml.safe_load(parsed.get(name) or "")
    yield "--generate-config", resolve_args(parsed.get("generate_config") or {})


def _of_role(role: Any) -> Any:
    if not isinstance(role, Mapping):
        return role
    return {**role, "model_args": _of_model(role.get("model_args") or {})}


def _of_model(args: dict[str, Any]) -> dict[str, Any]:
    keep_out(args)  # its server may repeat them
    return model_args_for_log(args)
