"""Judges as a YAML names them: the host's model strings, or mappings with a name and options."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lm_eval.utils import simple_parse_args_string

from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.secrets import quoted, refuse_secrets, without_secrets

_OPTIONS = ("name", "model", "model_args", "gen_kwargs", "apply_chat_template")
_FORMS = (
    "write the host's --model and --model_args with a colon between, local-chat-completions:model=gpt-5,"
    "base_url=http://..., or {name: strict, model: local-chat-completions, model_args: {...}, "
    "gen_kwargs: {temperature: 1}}"
)
_GENERATION = {"max_gen_toks": 1024, "temperature": 0.0}


@dataclass(frozen=True, eq=False)
class JudgeSpec:
    """A judge before it is loaded.

    Attributes:
        name: in samples and metrics.
        kind: of model, as in the host's ``--model``.
        args: as in the host's ``--model_args``.
        gen_kwargs: of its replies.
        chat: whether prompts go through the model's chat template; None: where the kind is a chat model.
    """

    name: str
    kind: str
    args: Mapping[str, Any]
    gen_kwargs: Mapping[str, Any] = field(default_factory=dict)
    chat: bool | None = None

    @property
    def model(self) -> str:
        """The model behind it, as far as its arguments say."""
        return str(self.args.get("model") or self.args.get("pretrained") or self.kind)

    @property
    def is_chat(self) -> bool:
        """Whether its prompts are messages."""
        return self.kind.endswith("chat-completions") if self.chat is None else self.chat

    @property
    def temperature(self) -> float:
        """At 0 it says the same of the same answer again."""
        return float(self.gen_kwargs.get("temperature", 0.0) or 0.0)

    def load(self) -> Any:
        """The host's model object; one for all judges with the same kind and arguments.

        Raises:
            InvalidInputError: the host does not know the kind, or cannot make the model.
        """
        import lm_eval.models  # noqa: F401  registers what the host has
        from lm_eval.api.registry import get_model

        key = (self.kind, json.dumps(self.args, sort_keys=True, default=str))
        if key not in _loaded:
            try:
                _loaded[key] = get_model(self.kind).create_from_arg_obj(dict(self.args))
            except Exception as ex:  # whatever the model's own constructor raises
                raise InvalidInputError(f"judge {self.name!r} cannot be loaded: {_said(ex)}") from ex
        return _loaded[key]


_loaded: dict[tuple[str, str], Any] = {}
"""Models stay: a budgeted run makes the filter anew in every round."""


def forget_judges() -> None:
    """Let go of all models loaded as judges, for example to free a GPU."""
    _loaded.clear()


def read_judges(
    judges: Sequence[str | Mapping[str, Any]], gen_kwargs: Mapping[str, Any] | None = None
) -> tuple[JudgeSpec, ...]:
    """Read a panel.

    Args:
        judges: model strings of the host or mappings of options.
        gen_kwargs: of all judges; their own go first.

    Raises:
        InvalidInputError: an entry that is no judge, two judges of one name, or one with a key or a password.
        UnknownNameError: an option that judges do not have.
    """
    if isinstance(judges, str) or not isinstance(judges, Sequence):
        raise InvalidInputError(f"judges is {quoted(judges)}; give a list, one entry per judge: {_FORMS}")
    found = tuple(_judge(entry, dict(gen_kwargs or {})) for entry in judges)
    names = Counter(judge.name for judge in found)
    for judge in found:
        refuse_secrets([judge.args, judge.gen_kwargs], f"judge {judge.name!r}")
        if names[judge.name] > 1:
            raise InvalidInputError(
                f"two judges are named {judge.name!r}; name them apart: {{name: first, model: {judge.kind}, "
                "model_args: ...}"
            )
    return found


def _judge(entry: object, shared: dict[str, Any]) -> JudgeSpec:
    if isinstance(entry, str):
        kind, args = _parts(entry)
        return _named(None, kind, args, shared, None)
    if not isinstance(entry, Mapping) or not isinstance(entry.get("model"), str):
        raise InvalidInputError(f"judge {quoted(entry)} names no model; {_FORMS}")
    for option in entry:
        if option not in _OPTIONS:
            raise UnknownNameError("option of a judge", str(option), _OPTIONS)
    kind, args = _parts(entry["model"])
    more = entry.get("model_args") or {}
    args |= simple_parse_args_string(more) if isinstance(more, str) else dict(more)
    own = entry.get("gen_kwargs") or {}
    generation = shared | (simple_parse_args_string(own) if isinstance(own, str) else dict(own))
    return _named(entry.get("name"), kind, args, generation, entry.get("apply_chat_template"))


def _parts(text: str) -> tuple[str, dict[str, Any]]:
    kind, _, args = text.strip().partition(":")
    if not kind or "=" in kind or "," in kind:
        raise InvalidInputError(f"judge {quoted(text)} names no kind of model; {_FORMS}")
    return kind, dict(simple_parse_args_string(args))


def _named(
    name: object, kind: str, args: dict[str, Any], generation: dict[str, Any], chat: bool | None
) -> JudgeSpec:
    plain = JudgeSpec("", kind, args)
    return JudgeSpec(str(name or plain.model), kind, args, {**_GENERATION, **generation}, chat)


def _said(ex: Exception) -> str:
    text = str(ex.args[0] if isinstance(ex, KeyError) and ex.args else ex).strip()
    return without_secrets(text.splitlines()[0]) if text else type(ex).__name__
