"""Options of samplers as users write them on a command line."""

from __future__ import annotations

from evalbudget.errors import InvalidInputError

_OWN_FLAGS = ("task", "sampler", "budget", "repeat", "score", "score_range", "seed")


def parse_option(text: str, flag: str = "--sampler-option") -> tuple[str, int | float | bool | str]:
    """Read ``bonus=2.0``.

    Raises:
        InvalidInputError: it is not NAME=VALUE, or has a flag of its own.
    """
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InvalidInputError(f"{flag} {text!r} is not NAME=VALUE; for example bonus=2.0")
    name = name.replace("-", "_")
    if name in _OWN_FLAGS:
        raise InvalidInputError(f"{name} is not an option of the sampler; give it by its own flag")
    return name, _value(value)


def _value(text: str) -> int | float | bool | str:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
