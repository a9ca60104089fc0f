r"""Other people's text, made safe to show: what a terminal or a build would obey is written out.

Names, item ids, prompts, answers and messages of servers come from anywhere. Escapes of terminals, control
characters, line breaks, marks of direction, invisible characters and halves of characters become what Python
writes for them (``\x1b``, ``\n``, ``\u202e``), so that nothing is obeyed and nothing is hidden silently. So
do the beginnings of commands to a build (``::error``, ``##[group]``), wherever they stand, since a table may
break a line before them. Letters of all scripts, accents and emoji stay.

Almost everything passes through here in one of these places:

- :mod:`evalbudget.tables`: cells, heads, titles and notes of every table, on terminals and on pages;
- :meth:`evalbudget.errors.EvalbudgetError.__str__`: every message of ours, whatever it quotes;
- :mod:`evalbudget.cli.main`: refusals of arguments, and tracebacks of everything else;
- ``publish`` and ``say`` of :mod:`evalbudget.cli`: what commands print, those of plugins too;
- :func:`shown_logger`: what is logged;
- ``wrapped`` and ``shortened`` of summaries and findings, ``Gate.lines``, the lines of races, and forecasts;
- the pictures and the pages of reports.
"""

from __future__ import annotations

import logging
import re
import unicodedata
from html import escape

_OF_EMOJI = "#*0-9©®‼-㊙\U0001f000-\U0001faff"
_JOINED = "\u0590-\u115e\u1161-\u17b3\u17b6-\u180a\u1810-\u1fff‼-㊙\ufe0f\U0001f000-\U0001faff"
"""Scripts in which joiners between letters mean something, and emoji, which are put together by them."""
_HIDDEN = (
    r"\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    r"\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\ud800-\udfff"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)
_IDEOGRAPHS = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""What a selector of one of its shapes may follow, as in names of people and towns."""
_IN_THE_MIDDLE = r"(?<=#)\#(?=\[|vso\[|teamcity\[)"
_COMMANDS = (
    r"(?<=:):(?=(?i:add-mask|add-matcher|add-path|debug|echo|endgroup|error|group|internal-set-repo-path|notice"
    r"|remove-matcher|save-state|set-env|set-output|stop-commands|warning)(?:[ :]|$))"
    rf"|{_IN_THE_MIDDLE}"
)
"""What GitHub, Azure and TeamCity obey; ``std::vector`` is none, ``std::error`` may be one in a table."""
_SHOWN = re.compile(
    rf"[{_HIDDEN}]"
    rf"|(?<![{_OF_EMOJI}])[\ufe0e\ufe0f]"
    rf"|(?<![{_JOINED}])[\u200c\u200d](?![{_JOINED}])"
    rf"|(?<![{_IDEOGRAPHS}])[\U000e0100-\U000e01ef]"
    rf"|{_COMMANDS}"
)
_BEGINNING = re.compile(r"(?:^|(?<=\s))[^\w\s\x00-\u02ff]+")
"""May be marks that have no letter to stand on, and would stand on what is printed before them."""


def shown(text: str, most: int | None = None) -> str:
    """The text on one line.

    Args:
        text: anything.
        most: characters; of a longer text the middle is left out. None for all.
    """
    text = _cut(text, most)
    if text.isascii() and text.isprintable() and "::" not in text and "##" not in text:
        return text
    while (left := _SHOWN.sub(_written, _BEGINNING.sub(_marks_written, text))) != text:
        text = left  # a joiner may have stood by what is written out now
    return text


def shown_lines(text: str, most: int | None = None) -> str:
    """The text with its own line breaks, each line as of :func:`shown`; tabs are spaces.

    Args:
        text: anything.
        most: characters; of a longer text the middle is left out. None for all.
    """
    lines = _cut(text, most).replace("\r\n", "\n").split("\n")
    return "\n".join(shown(line.expandtabs(4)) for line in lines)


def shown_html(text: str) -> str:
    """As of :func:`shown_lines`, for a page or a picture: its markup is escaped."""
    return escape(shown_lines(text))


def shown_json(text: str) -> str:
    r"""JSON with the same values, in which what :func:`shown` writes out is written ``\u202e``."""
    return re.sub(rf"(?![\n\t])[{_HIDDEN}]|{_IN_THE_MIDDLE}", lambda found: _in_json(found[0]), text)


def shown_logger(name: str) -> logging.Logger:
    """The logger of that name; its lines are as of :func:`shown_lines`."""
    found = logging.getLogger(name)
    found.addFilter(_show)
    return found


def _show(record: logging.LogRecord) -> bool:
    said = record.getMessage()
    if record.exc_info:
        said += "\n" + (record.exc_text or logging.Formatter().formatException(record.exc_info))
        record.exc_info = record.exc_text = None
    record.msg, record.args = shown_lines(said), None
    return True


def _cut(text: str, most: int | None) -> str:
    if most is None or len(text) <= most:
        return text
    end = most // 4  # of a name the end tells apart, of a message it is the remedy
    return f"{text[: most - end - 1]}…{text[len(text) - end :]}"


def _written(found: re.Match[str]) -> str:
    character = found[0]
    if character in ":#":
        return f"\\x{ord(character):02x}"
    return character.encode("unicode_escape").decode()


def _marks_written(found: re.Match[str]) -> str:
    text = found[0]
    marks = next((at for at, c in enumerate(text) if not unicodedata.category(c).startswith("M")), len(text))
    return text[:marks].encode("unicode_escape").decode() + text[marks:]


def _in_json(character: str) -> str:
    code = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{code[at : at + 4]}" for at in range(0, len(code), 4))
