r"""What a journal has no place for: the model's responses and the host's records, appended as they come.

It stands beside the journal, ``run.jsonl`` -> ``run.answers.jsonl``::

    {"evalbudget": "answers", "format": 1, "run": {"model": "...", "prompts": "9f...", "score": {...}}}
    {"said": 17, "number": 0, "response": "42"}
    {"answer": 17, "records": [{...}]}
    {"stopped": "ConnectionError"}
    {"finished": "budget used up"}

A response is written the moment the model has it, the records once the host has scored it, and only then the
reading into the journal: a process that is killed loses nothing that was paid for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from lm_eval.utils import handle_non_serializable

from evalbudget.errors import JournalError
from evalbudget.run import LinesFile, read_line, whole_lines
from evalbudget_lm_eval.host.answers import Record

_KIND = "answers"
_FORMAT = 1


@dataclass(slots=True)
class Content:
    """What is in the file.

    Attributes:
        run: what must be the same for the file to be continued.
        said: responses, by request and by number of the document's requests.
        records: of each filter, by request.
        finished: why the run ended; None if it did not.
        stopped: an error ended the run, with nothing under way; otherwise calls may have been cut off.
    """

    run: dict[str, Any]
    said: dict[int, dict[int, list[Any]]] = field(default_factory=dict)
    records: dict[int, list[Record]] = field(default_factory=dict)
    finished: str | None = None
    stopped: bool = False

    def take(self, entry: dict[str, Any]) -> None:
        """Add one line after the first."""
        self.stopped = "stopped" in entry
        if "said" in entry:
            numbers = self.said.setdefault(int(entry["said"]), {})
            numbers.setdefault(int(entry["number"]), []).append(entry["response"])
        elif "answer" in entry:
            self.records[int(entry["answer"])] = list(entry["records"])
        elif "finished" in entry:
            self.finished = str(entry["finished"])
        elif not self.stopped:
            raise ValueError(f"an entry {sorted(entry)}")


class AnswersFile:
    """Responses and records by the number of the request that asked for them.

    Attributes:
        content: what earlier runs wrote.
    """

    def __init__(self, lines: LinesFile, content: Content) -> None:
        self._lines = lines
        self.content = content

    @classmethod
    def create(cls, path: Path, run: Mapping[str, Any]) -> Self:
        """Begin a file.

        Raises:
            JournalError: it exists, or cannot be written.
        """
        file = cls(LinesFile.create(path), Content(dict(run)))
        file._write({"evalbudget": _KIND, "format": _FORMAT, "run": file.content.run})
        return file

    @classmethod
    def open(cls, path: Path, run: Mapping[str, Any]) -> Self:
        """Continue a file; a last line that was cut off is removed.

        Raises:
            JournalError: it cannot be read, is damaged, or is of another run.
        """
        lines, content = LinesFile.open(path, _parse)
        try:
            _check(path, content.run, run)
        except JournalError:
            lines.close()
            raise
        return cls(lines, content)

    def add_response(self, request: int, number: int, response: Any) -> None:
        """The model answered one of a document's requests."""
        self._write({"said": request, "number": number, "response": response})

    def add_records(self, request: int, records: list[Record]) -> None:
        """The host scored a document."""
        self._write({"answer": request, "records": records})

    def stop(self, reason: str) -> None:
        """The run ended with an error; what was under way is accounted for."""
        self._write({"stopped": reason})

    def finish(self, reason: str) -> None:
        """The run is over."""
        self._write({"finished": reason})

    def close(self) -> None:
        """Let the file go."""
        self._lines.close()

    def _write(self, entry: dict[str, Any]) -> None:
        self._lines.append(entry, handle_non_serializable)


def _parse(data: bytes, path: Path) -> tuple[Content, int]:
    lines, whole = whole_lines(data, path)
    if not lines:
        raise JournalError(f"{path} has no header line, so what is in it is not known; start a new --journal")
    content = read_line(lines[0], f"{path}, line 1", _header)
    for number, line in enumerate(lines[1:], start=2):
        read_line(line, f"{path}, line {number}", content.take)
    return content, whole


def _header(entry: dict[str, Any]) -> Content:
    if entry.get("evalbudget") != _KIND or entry["format"] != _FORMAT:
        raise JournalError("this is no file of answers that this version reads")
    return Content(dict(entry["run"]))


def _check(path: Path, theirs: Mapping[str, Any], run: Mapping[str, Any]) -> None:
    ours = json.loads(json.dumps(run, default=handle_non_serializable))
    differing = sorted(k for k in ours.keys() | theirs.keys() if ours.get(k) != theirs.get(k))
    if differing:
        shown = ", ".join(f"{k} = {theirs.get(k)!r} there, {ours.get(k)!r} here" for k in differing)
        raise JournalError(
            f"{path} is of another run ({shown}); continue with the recorded arguments, or choose another "
            "--journal"
        )
