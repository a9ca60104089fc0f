"""Judges as a user writes them: names, inspect's inline form of a model with arguments, or a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inspect_ai.model import GenerateConfig, Model, get_model
from pydantic import ValidationError

from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.judges import split_entries
from evalbudget.secrets import keep_out, quoted, refuse_secrets, without_secrets
from evalbudget.yaml_text import parsed_yaml, read_yaml
from evalbudget_inspect.host.private import PrerequisiteError

Judges = str | Mapping[str, Any] | Sequence[str | Model | Mapping[str, Any]]

_OURS = ("name", "model", "base_url", "model_args")
_FORMS = "write a,b,c, or '[a, {name: b, model: openai/gpt-5, temperature: 0.5}]', or a .yaml file of these"


@dataclass(frozen=True, eq=False)
class JudgeModel:
    """A judge that is a model.

    Attributes:
        name: in logs and metrics.
        model: as inspect names it, or a model.
        config: of generation.
        base_url: of its server; None for the provider's.
        model_args: of its provider.
    """

    name: str
    model: str | Model
    config: Mapping[str, Any] = field(default_factory=dict)
    base_url: str | None = None
    model_args: Mapping[str, Any] = field(default_factory=dict)

    def instance(self, role: str) -> Model:
        """One of its own, as the host makes for roles: usage would be counted for another otherwise.

        Raises:
            InvalidInputError: inspect does not know the model, or cannot use it.
        """
        if isinstance(self.model, Model):
            judge = copy(self.model)
            judge.config = judge.config.merge(GenerateConfig(**self.config))
        else:
            judge = self._made()
        keep_out({"api_key": judge.api.api_key, "base_url": judge.api.base_url})  # its server may repeat them
        judge._set_role(role)
        return judge

    def _made(self) -> Model:
        try:
            return get_model(
                str(self.model),
                config=GenerateConfig(**self.config),
                base_url=self.base_url,
                memoize=False,
                **self.model_args,
            )
        except (ValueError, TypeError, PrerequisiteError) as ex:
            raise InvalidInputError(f"judge {self.name!r} cannot be used: {without_secrets(str(ex))}") from ex

    @property
    def is_plain(self) -> bool:
        """Whether it is nothing but a model's name."""
        return self.name == self.model and not (self.config or self.base_url or self.model_args)

    def spec(self) -> str | dict[str, Any]:
        """What :func:`read_judges` reads the same judge from."""
        if self.is_plain:
            return self.name
        optional = {"base_url": self.base_url, "model_args": dict(self.model_args)}
        return {
            "name": self.name,
            "model": str(self.model),
            **{key: value for key, value in optional.items() if value},
            **self.config,
        }


def read_judges(judges: Judges) -> tuple[JudgeModel, ...]:
    """Read a panel.

    Args:
        judges: ``"a,b,c"``; ``"cold={model: a, temperature: 0},b"``; YAML or JSON as inspect's
            ``--model-role`` takes it, a list or a mapping from names; a ``.yaml`` or ``.json`` file of that;
            or names, models and mappings in Python. A mapping holds ``model``, and optionally ``name``,
            ``base_url``, ``model_args`` and any field of inspect's ``GenerateConfig``.

    Raises:
        InvalidInputError: it cannot be read, two judges have one name, or one has a key or a password in it.
        UnknownNameError: an option that models do not have.
    """
    found = tuple(_entries(judges))
    names = Counter(judge.name for judge in found)
    for judge in found:
        given: list[object] = [judge.spec()]
        if isinstance(model := judge.model, Model):
            given.append({"extra_headers": model.config.extra_headers, "base_url": model.explicit_base_url})
        refuse_secrets(given, f"judge {judge.name!r}")
        if judge.name and names[judge.name] > 1 and not judge.is_plain:
            raise InvalidInputError(
                f"two judges are named {judge.name!r}; name them apart, for example "
                f"'[{{name: cold, model: {judge.model}, temperature: 0}}, {judge.model}]'"
            )
    return found


def judges_argument(judges: Sequence[JudgeModel]) -> str | list[str | dict[str, Any]]:
    """What :func:`read_judges` reads the same judges from, of JSON's kinds."""
    specs = [judge.spec() for judge in judges]
    return ",".join(map(str, specs)) if all(judge.is_plain for judge in judges) else specs


def _entries(judges: Any) -> Iterator[JudgeModel]:
    if isinstance(judges, str):
        text = judges.strip()
        if text[:1] in ("[", "{"):
            yield from _entries(parsed_yaml(text, f"judges {quoted(judges)}"))
        elif text.endswith((".yaml", ".yml", ".json")):
            yield from _of_file(Path(text))
        else:
            for piece in split_entries(text):
                yield _of_text(piece)
    elif isinstance(judges, Mapping):
        if "model" in judges and isinstance(judges["model"], str | Model):
            yield _of_mapping(judges, None)
        else:
            for name, value in judges.items():
                yield _named(str(name), value)
    elif isinstance(judges, Sequence):
        for entry in judges:
            if isinstance(entry, Mapping) and not entry.keys() & {"model", "name"}:
                yield from _entries(entry)  # - cold: {model: ...}
            elif isinstance(entry, Mapping):
                yield _of_mapping(entry, None)
            else:
                yield entry_of(entry)
    else:
        raise InvalidInputError(f"judges {quoted(judges)} cannot be read; {_FORMS}")


def entry_of(entry: Any) -> JudgeModel:
    """A judge from a name or a model."""
    if isinstance(entry, Model):
        return JudgeModel(str(entry), entry)
    if isinstance(entry, str):
        return _of_text(entry)
    raise InvalidInputError(f"judge {quoted(entry)} is neither a model's name nor a model; {_FORMS}")


def _of_file(path: Path) -> Iterator[JudgeModel]:
    content = read_yaml(path, "file of judges")
    if isinstance(content, str) or not isinstance(content, Mapping | Sequence):
        raise InvalidInputError(f"{path} holds no list of judges; {_FORMS}")
    yield from _entries(content)


def _of_text(text: str) -> JudgeModel:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals:
        return JudgeModel(name, name)
    return _named(name, parsed_yaml(value, f"judges {quoted(text)}") if value.startswith("{") else value)


def _named(name: str, value: Any) -> JudgeModel:
    if isinstance(value, Mapping):
        return _of_mapping(value, name)
    if isinstance(value, Model):
        return JudgeModel(name, value)
    if isinstance(value, str) and value:
        return JudgeModel(name, value)
    raise InvalidInputError(f"judge {name!r} is {quoted(value)}, which is no model; {_FORMS}")


def _of_mapping(given: Mapping[str, Any], name: str | None) -> JudgeModel:
    model = given.get("model")
    named = str(given.get("name") or name or model)
    if not isinstance(model, str | Model) or not str(model):
        raise InvalidInputError(f"judge {named!r} names no model; add model: openai/gpt-5, for example")
    known = [*_OURS, *GenerateConfig.model_fields]
    for option in given:
        if option not in known:
            raise UnknownNameError(f"option of judge {named!r}", str(option), known)
    arguments = given.get("model_args") or {}
    if not isinstance(arguments, Mapping):
        raise InvalidInputError(f"model_args of judge {named!r} is {quoted(arguments)}; give a mapping")
    config = {option: value for option, value in given.items() if option not in _OURS}
    try:
        GenerateConfig(**config)
    except ValidationError as ex:
        told = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in ex.errors()[:3])
        raise InvalidInputError(f"judge {named!r} cannot be used: {told}") from ex
    return JudgeModel(named, model, config, given.get("base_url"), dict(arguments))
