r"""What a journal has no place for: the model's responses and the host's records, appended as they come.

It stands beside the journal, ``run.jsonl`` -> ``run.answers.jsonl``::

    {"evalbudget": "answers", "format": 1, "run": {"model": "...", "prompts": "9f...", "score": {...}}}
    {"said": 17, "number": 0, "response": "42"}
    {"answer": 17, "records": [{...}]}
    {"finished": "budget used up"}

A response is written the moment the model has it, the records once the host has scored it, and only then the
reading into the journal: a process that is killed loses nothing that was paid for.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from lm_eval.utils import handle_non_serializable

from evalbudget.errors import JournalError
from evalbudget_lm_eval.answered import Record

log = logging.getLogger(__name__)
FORMAT = 1


class AnswersFile:
    """Responses and records by the number of the request that asked for them.

    Attributes:
        path: of the file.
        said: responses, by request and by number of the document's requests.
        records: of each filter, by request.
        finished: why the run ended; None if it did not.
    """

    def __init__(self, path: Path, run: Mapping[str, Any], stream: IO[bytes]) -> None:
        self.path = path
        self.run = dict(run)
        self.said: dict[int, dict[int, list[Any]]] = {}
        self.records: dict[int, list[Record]] = {}
        self.finished: str | None = None
        self._stream = stream

    @classmethod
    def create(cls, path: Path, run: Mapping[str, Any]) -> AnswersFile:
        """Begin a file.

        Raises:
            JournalError: it exists, or cannot be written.
        """
        try:
            stream = path.open("xb")
        except FileExistsError:
            raise JournalError(
                f"{path} exists without its journal; move it away, or choose another --journal"
            ) from None
        except OSError as ex:
            raise JournalError(f"{path} cannot be written: {ex.strerror}") from ex
        file = cls(path, run, stream)
        file._write({"evalbudget": "answers", "format": FORMAT, "run": file.run})
        return file

    @classmethod
    def open(cls, path: Path, run: Mapping[str, Any]) -> AnswersFile:
        """Continue a file; a last line that was cut off is removed.

        Raises:
            JournalError: it cannot be read, is damaged, or is of another run.
        """
        try:
            stream = path.open("r+b")
        except OSError as ex:
            raise JournalError(
                f"{path} cannot be opened ({ex.strerror}), and the journal beside it has the scores alone; "
                "start a new --journal"
            ) from ex
        file = cls(path, run, stream)
        try:
            data = stream.read()
            whole = data.rfind(b"\n") + 1
            stream.seek(whole)
            stream.truncate()
            for number, line in enumerate(data[:whole].splitlines(), start=1):
                try:
                    file._take(json.loads(line), first=number == 1)
                except (ValueError, TypeError, KeyError, AttributeError) as ex:
                    raise JournalError(f"{path}, line {number} is damaged: {ex}") from ex
        except BaseException:
            stream.close()
            raise
        return file

    @property
    def is_empty(self) -> bool:
        """Whether nothing was answered."""
        return not (self.said or self.records)

    def add_response(self, request: int, number: int, response: Any) -> None:
        """The model answered one of a document's requests."""
        self._write({"said": request, "number": number, "response": response})

    def add_records(self, request: int, records: list[Record]) -> None:
        """The host scored a document."""
        self._write({"answer": request, "records": records})

    def finish(self, reason: str) -> None:
        """The run is over."""
        self._write({"finished": reason})
        self.finished = reason

    def close(self) -> None:
        """Let the file go."""
        self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _take(self, entry: dict[str, Any], *, first: bool) -> None:
        if first:
            if entry.get("evalbudget") != "answers" or entry.get("format") != FORMAT:
                raise JournalError(f"{self.path} is no file of answers that this version reads")
            self._check(entry["run"])
        elif "said" in entry:
            numbers = self.said.setdefault(int(entry["said"]), {})
            numbers.setdefault(int(entry["number"]), []).append(entry["response"])
        elif "answer" in entry:
            self.records[int(entry["answer"])] = list(entry["records"])
        elif "finished" in entry:
            self.finished = str(entry["finished"])
        else:
            raise ValueError(f"an entry {sorted(entry)}")

    def _check(self, theirs: Mapping[str, Any]) -> None:
        ours = json.loads(json.dumps(self.run, default=handle_non_serializable))
        differing = sorted(k for k in ours.keys() | theirs.keys() if ours.get(k) != theirs.get(k))
        if differing:
            shown = ", ".join(f"{k} = {theirs.get(k)!r} there, {ours.get(k)!r} here" for k in differing)
            raise JournalError(
                f"{self.path} is of another run ({shown}); continue with the recorded arguments, or choose "
                "another --journal"
            )

    def _write(self, entry: dict[str, Any]) -> None:
        line = json.dumps(entry, separators=(",", ":"), default=handle_non_serializable).encode() + b"\n"
        try:
            self._stream.write(line)
            self._stream.flush()
        except (OSError, ValueError) as ex:  # ValueError: closed
            raise JournalError(f"{self.path} cannot be written: {ex}") from ex
