"""What a judge is told, and how its reply becomes a number on the declared scale."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment
from jinja2.meta import find_undeclared_variables

from evalbudget.errors import InvalidInputError
from evalbudget.scale import parse_range
from evalbudget_lm_eval.host.private import apply_template

TEMPLATE = """\
You are grading a response.

[Task]
{% for name, value in doc.items() %}{{ name }}: {{ value }}
{% endfor %}
[Response]
{{ response }}

[Instructions]
Rate how well the response does what the task asks, from {{ low }} (worst) to {{ high }} (best). If the task \
has a reference answer, hold the response against it. Explain in a sentence or two, then end with one line:
RATING: <number from {{ low }} to {{ high }}>
"""
# the last one counts; neither half of a number (4,5) nor of a range (3-4)
PATTERN = r"(?i)RATING[\s*_:=]*(-?\d+(?:\.\d+)?)(?![,.]?\d)(?!\s*[-–]\s*\d)"
_OURS = {"doc", "response", "low", "high"}
_READ = 100_000
_ALONE = re.compile(r"[\s*_]*(-?\d+(?:\.\d+)?)[\s*_.]*")

Prompt = str | Callable[[Mapping[str, Any], str], str]


@dataclass(frozen=True, slots=True)
class Grading:
    """A prompt and a scale.

    Attributes:
        prompt: a Jinja template, or a function of (document, response). The template knows the document's
            fields by name and as ``doc``, the ``response`` to grade, ``low`` and ``high``.
        low: of the scale.
        high: of the scale.
        pattern: whose one group, where it matches last, is the number.
    """

    prompt: Prompt
    low: float
    high: float
    pattern: re.Pattern[str]

    @classmethod
    def of(cls, prompt: object, scale: object, pattern: object) -> Grading:
        """From a YAML.

        Raises:
            InvalidInputError: a scale that is no two numbers, low before high, or a pattern that is none.
        """
        if prompt is None:
            prompt = TEMPLATE
        if not isinstance(prompt, str) and not callable(prompt):
            raise InvalidInputError(
                f"prompt is {prompt!r}; give a Jinja template, or !function module.name of "
                "(document, response)"
            )
        try:
            low, high = parse_range(scale if isinstance(scale, str | Sequence) else ())
        except InvalidInputError:
            raise InvalidInputError(
                f"scale is {scale!r}; give its two ends, for example scale: 1..5"
            ) from None
        try:
            found = re.compile(PATTERN if pattern is None else str(pattern))
        except (re.error, RecursionError, OverflowError) as ex:
            raise InvalidInputError(f"pattern {pattern!r} is no regular expression: {ex}") from ex
        if found.groups != 1:
            raise InvalidInputError(
                f"pattern {pattern!r} has {found.groups} groups; put one ( ) round the number, and (?: ) "
                "round anything else"
            )
        return cls(prompt, low, high, found)

    @property
    def fields(self) -> set[str]:
        """Of documents, which a template asks for by name."""
        assert isinstance(self.prompt, str)
        return find_undeclared_variables(Environment().parse(self.prompt)) - _OURS

    def render(self, doc: Mapping[str, Any], response: str) -> str:
        """What the judge is told.

        Raises:
            InvalidInputError: the template asks for a field that the document lacks.
        """
        if not isinstance(self.prompt, str):
            return self.prompt(doc, response)
        ours = {"doc": doc, "response": response, "low": f"{self.low:g}", "high": f"{self.high:g}"}
        try:
            return str(apply_template(self.prompt, {**doc, **ours}))
        except Exception as ex:  # whatever Jinja raises
            raise InvalidInputError(
                f"the judges' prompt cannot be filled in: {ex}; the document has {', '.join(doc)}"
            ) from ex

    def read(self, reply: str) -> float | None:
        """The number in the last 100,000 characters of a reply; None if there is none on the scale."""
        reply = reply[-_READ:]
        found = self.pattern.findall(reply)
        if not found and self.pattern.pattern == PATTERN:
            alone = _ALONE.fullmatch(reply)
            found = [alone.group(1)] if alone else []
        try:
            value = float(found[-1]) if found else float("nan")
        except ValueError:
            return None
        return value if self.low <= value <= self.high else None
