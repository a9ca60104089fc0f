"""Finds what lm-eval wrote: ``samples_*.jsonl`` and the ``results_*.json`` that each belongs to."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalbudget.backtest import as_written_by
from evalbudget.errors import InvalidInputError
from evalbudget_lm_eval.host.answers import SHARED

_NAMING = ("peft", "delta", "pretrained", "model", "path", "engine")
"""Arguments of a model from which the host takes its name."""

_TEXT = 500
"""Characters of a prompt that are kept."""

_NAME = re.compile(r"samples_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?)\.jsonl")


@dataclass(frozen=True)
class SamplesFile:
    """The samples of one task in one run.

    Attributes:
        path: of the ``.jsonl``.
        task: its name.
        date: of the run, as it stands in the name.
        results: what the host wrote beside it; empty if there is nothing.
    """

    path: Path
    task: str
    date: str
    results: Mapping[str, Any]

    @property
    def block(self) -> Mapping[str, Any] | None:
        """Ours in the results; None where the run was stock, or nothing is known of it."""
        block = self.results.get("evalbudget")
        return block if isinstance(block, Mapping) else None

    @property
    def version(self) -> str | None:
        """Of the task; None where nothing tells it."""
        versions = self.results.get("versions")
        version = versions.get(self.task) if isinstance(versions, Mapping) else None
        return None if version is None else str(version)

    @property
    def shared(self) -> Mapping[str, Any] | None:
        """The processes that shared the run's budget; None where it was one."""
        return (self.block or {}).get(SHARED)

    @property
    def run(self) -> str:
        """The same for all tasks of one run, and for all processes that shared its budget."""
        if self.shared is not None:
            return " ".join(self.shared["processes"])
        return f"{self.path.parent} {self.date}"

    @property
    def model(self) -> str:
        """The model evaluated: the arm of a race, the host's name of it, or else that of the folder."""
        arm = (self.block or {}).get("arm")
        config = self.results.get("config")
        config = config if isinstance(config, Mapping) else {}
        args = str(config.get("model_args") or "")
        if not arm and config.get("model") and not any(key in args for key in _NAMING):
            return f"{config['model']}:{args}".rstrip(":{}")  # the host made up a random name
        return str(arm or self.results.get("model_name") or self.path.parent.name or "model")

    def records(
        self, *, responses: bool = False, prompts: bool = False, category: str = "category"
    ) -> Iterator[dict[str, Any]]:
        """One entry per document and filter, in the order of the file; ``text`` is the end of the prompt.

        Args:
            responses: keep them.
            prompts: keep them (``arguments``).
            category: field of the documents that becomes ``category``.

        Raises:
            InvalidInputError: a line is not what the host writes.
        """
        try:
            with self.path.open(encoding="utf-8") as lines:
                for number, line in enumerate(lines, start=1):
                    if line.strip():
                        long = [*([] if responses else ["resps"]), *([] if prompts else ["arguments"])]
                        yield self._record(line, number, long, category)
        except (OSError, UnicodeDecodeError) as ex:
            raise InvalidInputError(f"{self.path} cannot be read: {ex}") from ex

    def _record(self, line: str, number: int, long: Sequence[str], category: str) -> dict[str, Any]:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as ex:
            raise InvalidInputError(
                f"{self.path}, line {number} is no JSON ({ex}); if the run was killed while it wrote, remove "
                "that line"
            ) from ex
        if not isinstance(record, dict) or "doc_id" not in record:
            raise InvalidInputError(
                f"{self.path}, line {number} has no doc_id, so it is no sample of lm-eval; move the file away"
            )
        record["text"] = _text(record.get("arguments"))
        for name in ("target", *long):  # logs may be larger than the memory
            record.pop(name, None)
        doc = record.pop("doc", None)
        record["category"] = doc.get(category) if isinstance(doc, dict) else None
        return record


def _text(arguments: object) -> str:
    """The end of a document's first prompt, where it stands after the examples; empty if there is none."""
    first = next(iter(arguments.values()), None) if isinstance(arguments, dict) else None
    prompt = first.get("arg_0") if isinstance(first, dict) else None
    if isinstance(prompt, list) and prompt and isinstance(prompt[0], str):  # a chat: its messages as JSON
        prompt = _last_message(prompt[0])
    if not isinstance(prompt, str):
        return ""
    return prompt if len(prompt) <= _TEXT else f"…{prompt[1 - _TEXT :]}"


def _last_message(chat: str) -> str:
    try:
        told = json.loads(chat)[-1]["content"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return chat
    return told if isinstance(told, str) else chat


def samples_files(path: Path) -> list[SamplesFile]:
    """Those at a path, by task and date; none if the path is something else.

    Raises:
        InvalidInputError: the results beside one of them cannot be read.
    """
    found = sorted(path.rglob("samples_*.jsonl")) if path.is_dir() else [path]
    files = []
    for file in found:
        match = _NAME.fullmatch(file.name)
        if match is not None and file.is_file():
            files.append(SamplesFile(file, match["task"], match["date"], _results(file, match["date"])))
    return sorted(files, key=lambda file: (file.task, file.date, str(file.path)))


def check_whole(files: Sequence[SamplesFile], path: Path) -> None:
    """Refuse a part of what several processes bought with one budget: its readings say little alone.

    Raises:
        InvalidInputError: it is one.
    """
    seen: dict[str, set[str]] = {}
    processes: dict[str, Sequence[str]] = {}
    for file in files:
        with as_written_by("lm-eval", file.path):
            if (shared := file.shared) is not None:
                processes[file.run] = shared["processes"]
                seen.setdefault(file.run, set()).add(shared["this"])
    for run, names in processes.items():
        if missing := len(set(names) - seen[run]):
            raise InvalidInputError(
                f"{path} holds what {len(names) - missing} of {len(names)} processes bought that shared a "
                "budget, and each log holds only its own part. Give a folder with the output of all of them; "
                "the estimate of all is in every results_*.json"
            )


def of_newest_runs(files: Sequence[SamplesFile], path: Path) -> list[SamplesFile]:
    """Those of the newest run of every model and task: several files where processes shared its budget.

    Raises:
        InvalidInputError: some of these are missing.
    """
    newest = {(file.model, file.task): file.run for file in files}  # they come by date
    found = [file for file in files if file.run == newest[file.model, file.task]]
    check_whole(found, path)
    return found


def _results(samples: Path, date: str) -> Mapping[str, Any]:
    # --output_path out.json makes out_<date>.json, a folder makes results_<date>.json
    for file in sorted(samples.parent.glob(f"*_{date}.json")):
        try:
            results = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as ex:
            raise InvalidInputError(
                f"{file} is not readable as results of lm-eval ({ex}); it says whose samples stand beside "
                "it, so restore it, or move both away"
            ) from ex
        if isinstance(results, dict):
            return results
    return {}
