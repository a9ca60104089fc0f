"""What a judge is asked, and what its reply says."""

from __future__ import annotations

import re
from pathlib import Path

from evalbudget.errors import InvalidInputError

TEMPLATE = """\
Below are a request and two answers to it. Which answer is better?

Judge what the answers say: whether it is right, whether it does what was asked, and whether it is clear. \
Their order and their length do not matter.

[Request]
{input}

[Answer A]
{first}

[Answer B]
{second}

[End of the answers]

Give your reasons in one or two sentences. Then write your verdict on a line of its own: [[A]] if answer A \
is better, [[B]] if answer B is better, [[C]] if they are equally good.
"""
"""Asked by default."""

_NAMES = ("input", "first", "second")
_BLANK = re.compile(r"\{(" + "|".join(_NAMES) + r")\}")
_MARKED = re.compile(r"\[\[\s*(A|B|C|tie|A>+B|B>+A|A=B)\s*\]\]", re.IGNORECASE)
_PLAIN = re.compile(
    r"(?i:(?:.*\b(?:verdict|winner|better(?: answer)?|choice|preference|decision|result)\s*(?:is\s*:?|:)\s*)?"
    r"(?:answer |response |assistant |(?:it is |it's )?a )?)"
    r"(?P<verdict>[ABC]|(?i:tie|draw))(?i: is (?:the )?(?:better|winner)(?: \w+)?| wins)?"
)
_DECORATION = " \t*_`\"'.!#()[]>"


def read_template(path: str | Path | None) -> str:
    """The template of a file; the default one if None.

    Raises:
        InvalidInputError: it cannot be read, or has no place for an answer.
    """
    if path is None:
        return TEMPLATE
    try:
        return check_template(Path(path).read_text(encoding="utf-8"), str(path))
    except OSError as ex:
        raise InvalidInputError(f"--template {path} cannot be read: {ex.strerror or ex}") from ex
    except UnicodeDecodeError as ex:
        raise InvalidInputError(f"--template {path} is not UTF-8 text ({ex.reason})") from ex


def check_template(template: str, place: str = "the template") -> str:
    """Return the template if both answers have a place in it, once each.

    Raises:
        InvalidInputError: they have not.
    """
    for name in ("first", "second"):
        found = template.count(f"{{{name}}}")
        if found != 1:
            raise InvalidInputError(
                f"--template {place} has {{{name}}} {found} times; write {{first}} and {{second}} once each "
                "where the answers belong, and {input} where the request does"
            )
    return template


def prompt_of(template: str, *, request: str, first: str, second: str) -> str:
    """What the judge is asked; what looks like a place in the texts themselves is left alone."""
    texts = {"input": request, "first": first, "second": second}
    return _BLANK.sub(lambda found: texts[found[1]], template)


def parse_verdict(reply: str) -> float | None:
    """Value for the answer shown first: 1, 0, or 0.5 for a tie; None if the reply states none.

    The last ``[[A]]``, ``[[B]]`` or ``[[C]]`` counts (also ``[[tie]]``, ``[[A>B]]``, ``[[A>>B]]`` and
    ``[[A=B]]``); without one, a last line that says nothing but the verdict: ``B``, ``Verdict: tie``,
    ``Answer A is better``. Several different ones on one line, as in instructions that are repeated, are
    none.
    """
    lines = [line.strip() for line in reply.strip().splitlines() if line.strip()]
    for line in reversed(lines):
        stated = {_value(each) for each in _MARKED.findall(line)}
        if stated:
            return stated.pop() if len(stated) == 1 else None
    last = _PLAIN.fullmatch(lines[-1].strip(_DECORATION).replace("**", "")) if lines else None
    return None if last is None else _value(last["verdict"])


def _value(stated: str) -> float:
    return {"A": 1.0, "B": 0.0}.get(re.sub(r">+[AB]", "", stated.upper()), 0.5)
