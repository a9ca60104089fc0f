"""Logs as they are read: the header, and a summary of each sample."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from inspect_ai.log import (
    EvalLog,
    EvalSample,
    EvalSampleSummary,
    read_eval_log,
    read_eval_log_sample,
    read_eval_log_sample_summaries,
)

from evalbudget.errors import InvalidInputError
from evalbudget.shown import shown_logger
from evalbudget.untrusted import is_plain_file
from evalbudget_inspect.host.log_files import check_log, is_summary
from evalbudget_inspect.host.scoring import METADATA
from evalbudget_inspect.reading.files import EVAL, logs_in, pipes_in

Wanted = Callable[[EvalLog], bool]
"""Whether to read a log, told by its header."""

Key = tuple[int | str, int]
"""Id and epoch of a sample."""

logger = shown_logger(__name__)

_LARGE = {"messages", "attachments", "store", "timelines"}
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Log:
    """One log.

    Attributes:
        file: its path.
        header: all but the samples.
        paid: samples that no other log has, those included that a later attempt took the place of.
        samples: of them, those that count.
        all: every sample in the file.
    """

    file: Path
    header: EvalLog
    paid: Sequence[EvalSampleSummary]
    samples: Sequence[EvalSampleSummary]
    all: Sequence[EvalSampleSummary]

    @property
    def name(self) -> str:
        """For people."""
        return self.file.name

    def without(self, keys: Collection[Key]) -> Log:
        """Some of its samples do not count."""
        return replace(self, samples=[s for s in self.samples if (s.id, s.epoch) not in keys])


def read_logs(path: Path, wanted: Wanted | None) -> tuple[list[Log], list[str]]:
    """The logs at a path, oldest first, and notes on those that could not be read.

    Where others can be read, one that cannot is left out; that is said unless logs are picked by their
    headers, which it does not show.

    Raises:
        InvalidInputError: none can be read.
    """
    found: list[Log] = []
    unread: list[tuple[Path, InvalidInputError]] = []
    for file in sorted((*logs_in(path), *pipes_in(path))):
        try:
            header = _header(file)
            if wanted is None or wanted(header):
                samples = _summaries(file)
                found.append(Log(file, header, samples, samples, samples))
        except InvalidInputError as ex:
            unread.append((file, ex))
    if unread and not found and wanted is None:
        raise unread[0][1]
    damaged = [file for file, _ in unread if is_plain_file(file)]
    others = [file for file, _ in unread if file not in damaged]
    notes = [
        *_left_out(damaged, "If the run was killed, finish it with inspect eval-retry."),
        *_left_out(others, "Only files are read, no pipes, devices, sockets, folders or broken links."),
    ]
    return sorted(found, key=_when), notes


def read_headers(path: Path) -> Iterator[EvalLog]:
    """Of the log at a path, which must be readable, or of those in a folder that are."""
    for file in sorted(logs_in(path)):
        try:
            yield _header(file)
        except InvalidInputError as ex:
            if not path.is_dir():
                raise
            logger.warning("left out: %s", ex)


def _left_out(files: Sequence[Path], why: str) -> Iterator[str]:
    if files:
        names = ", ".join(map(str, files[:_NAMED]))
        more = f" and {len(files) - _NAMED:,} more" if len(files) > _NAMED else ""
        yield f"{several(len(files), 'log')} could not be read: {names}{more}; left out. {why}"


def several(n: int, what: str) -> str:
    """Such as "1 log" and "2 logs"."""
    return f"{n:,} {what}{'s' * (n != 1)}"


def _header(file: Path) -> EvalLog:
    try:
        check_log(file, is_summary)
        return read_eval_log(str(file), header_only=True)
    except InvalidInputError:
        raise
    except Exception as ex:  # the host raises whatever its zip and JSON readers raise
        raise _unreadable(file, ex) from ex


def _summaries(file: Path) -> Sequence[EvalSampleSummary]:
    try:
        if file.suffix == EVAL:
            return _with_large_panels(file, read_eval_log_sample_summaries(str(file)))
        # the host's own summaries of a log in JSON are those of when it read the file last
        samples = read_eval_log(str(file)).samples or []
        return [sample.summary().model_copy(update={"scores": sample.scores}) for sample in samples]
    except Exception as ex:  # as above
        raise _unreadable(file, ex) from ex


def _unreadable(file: Path, ex: Exception) -> InvalidInputError:
    return InvalidInputError(
        f"{file} is not a readable inspect log ({type(ex).__name__}: {ex}); if the run was killed, "
        "finish it with inspect eval-retry"
    )


def _with_large_panels(file: Path, summaries: list[EvalSampleSummary]) -> list[EvalSampleSummary]:
    """Summaries with the readings of large panels: the host cuts metadata above a thousand characters."""
    cut = any(
        isinstance((score.metadata or {}).get(METADATA), str)
        for summary in summaries
        for score in (summary.scores or {}).values()
    )
    if not cut:
        return summaries
    keys = [(summary.id, summary.epoch) for summary in summaries]
    scores = {(s.id, s.epoch): s.scores for s in read_samples(file, keys, but={"events"})}
    return [s.model_copy(update={"scores": scores.get((s.id, s.epoch), s.scores)}) for s in summaries]


def read_samples(file: Path, keys: Collection[Key], *, but: Collection[str] = ()) -> Iterator[EvalSample]:
    """Samples of a log that have more to say than their summaries.

    Args:
        file: the log.
        keys: of the samples.
        but: what not to read of them, beside their messages.
    """
    left_out = _LARGE | set(but)
    if file.suffix == EVAL:
        members = {f"samples/{id_}_epoch_{epoch}.json" for id_, epoch in keys}
        check_log(file, members.__contains__, together=False)
        for id_, epoch in keys:
            yield read_eval_log_sample(str(file), id_, epoch, exclude_fields=left_out)
        return
    chosen = set(keys)
    yield from (s for s in read_eval_log(str(file)).samples or [] if (s.id, s.epoch) in chosen)


_SCORED = re.compile(r"-scored(?:-(\d+))?$")


def _when(log: Log) -> tuple[str, datetime, int, str]:
    """When a log was begun and, of several of one run, which of them was scored last.

    The host writes a log that is scored again under another name, by default ``NAME-scored.eval``, and the
    header does not say when that was.
    """
    again = _SCORED.search(log.file.stem)
    place = 0 if again is None else 1 + int(again[1] or 0)
    return str(log.header.eval.created), _written(log.file), place, str(log.file)


def _written(file: Path) -> datetime:
    """When the header was written, which copies of the file keep."""
    with suppress(BadZipFile, OSError, ValueError):
        if file.suffix == EVAL:
            with ZipFile(file) as log:
                times = [info.date_time for info in log.infolist() if info.filename == "header.json"]
            if times:
                return datetime(*max(times))
    return datetime.fromtimestamp(file.stat().st_mtime)
