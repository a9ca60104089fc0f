"""Finds what lm-eval wrote: ``samples_*.jsonl`` and the ``results_*.json`` that each belongs to."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evalbudget.backtest import as_written_by, digest_of
from evalbudget.errors import InvalidInputError
from evalbudget.shown import shown_logger
from evalbudget.untrusted import is_plain_file, parsed_json
from evalbudget_lm_eval.host.answers import SHARED

log = shown_logger(__name__)

NAMING = ("peft", "delta", "pretrained", "model", "path", "engine")
"""Arguments of a model from which the host takes its name."""

_TEXT = 500
"""Characters of a prompt that are kept."""

_DATE = r"(?P<date>\d{4}-\d\d-\d\dT\d\d[-:]\d\d[-:]\d\d(?:\.\d+)?)"
_NAME = re.compile(rf"samples_(?P<task>.+)_{_DATE}\.jsonl?")
_NOT_IN_FOLDERS = re.compile(r"[\"<>:/|\\?*\[\]]+")
"""What the host writes as ``__`` when it calls a folder after a model."""
_RESULTS = re.compile(rf".+_{_DATE}\.json")


@dataclass(frozen=True)
class SamplesFile:
    """The samples of one task in one run.

    Attributes:
        path: of the ``.jsonl``, or of an array in a ``.json``, as lm-eval wrote them for some weeks of 2024.
        task: its name.
        date: of the run, as it stands in the name.
        results: what the host wrote beside it; empty if there is nothing.
        folder_of: the model that the host calls the file's folder after, by the results of others; empty if
            nothing tells it.
    """

    path: Path
    task: str
    date: str
    results: Mapping[str, Any]
    folder_of: str = ""

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
    def config(self) -> Mapping[str, Any]:
        """Of the run: the model and its arguments; empty if nothing is known."""
        config = self.results.get("config")
        return config if isinstance(config, Mapping) else {}

    @property
    def task_config(self) -> Mapping[str, Any]:
        """Of the task; empty if nothing is known."""
        config = self.about("configs")
        return config if isinstance(config, Mapping) else {}

    def about(self, key: str) -> Any:
        """What the results have of this task under one of their keys; None if nothing."""
        known = self.results.get(key)
        return known.get(self.task) if isinstance(known, Mapping) else None

    @property
    def model(self) -> str:
        """The model evaluated: the arm of a race, the host's name of it, or else that of the folder."""
        arm = (self.block or {}).get("arm")
        args = self.config.get("model_args") or ""
        if not arm and self.config.get("model") and not any(key in str(args) for key in NAMING):
            return f"{self.config['model']}:{args}".rstrip(":{}")  # the host made up a random name
        named = self.results.get("model_name") or _named(args)
        return str(arm or named or self.folder_of or self.path.parent.name or "model")

    def records(
        self, *, responses: bool = False, prompts: bool = False, category: str = "category"
    ) -> Iterator[dict[str, Any]]:
        """One entry per document and filter, in the order of the file.

        ``text`` is the end of the prompt, ``question`` the digest of what was asked, of the right answer and
        of the requests, and ``said`` tells what the model said from anything else that it could have said,
        in this process.

        Args:
            responses: keep them.
            prompts: keep them (``arguments``).
            category: field of the documents that becomes ``category``.

        Raises:
            InvalidInputError: a line is not what the host writes.
        """
        long = [*([] if responses else ["resps"]), *([] if prompts else ["arguments"])]
        try:
            for where, record in self._array() if self.path.suffix == ".json" else self._lines():
                yield self._record(record, where, long, category)
        except (OSError, UnicodeDecodeError) as ex:
            raise InvalidInputError(f"{self.path} cannot be read: {ex}") from ex

    def _lines(self) -> Iterator[tuple[str, Any]]:
        with self.path.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                try:
                    yield f"line {number}", parsed_json(line)
                except ValueError as ex:
                    raise InvalidInputError(
                        f"{self.path}, line {number} is no JSON ({ex}); if the run was killed while it "
                        "wrote, remove that line"
                    ) from ex

    def _array(self) -> Iterator[tuple[str, Any]]:
        try:
            records = parsed_json(self.path.read_text(encoding="utf-8-sig"))
        except ValueError as ex:
            raise InvalidInputError(f"{self.path} is no JSON ({ex}); restore it, or move it away") from ex
        if not isinstance(records, list):
            raise InvalidInputError(f"{self.path} is no array of samples; move the file away")
        return ((f"entry {number}", record) for number, record in enumerate(records, start=1))

    def _record(self, record: Any, where: str, long: Sequence[str], category: str) -> dict[str, Any]:
        if not isinstance(record, dict) or "doc_id" not in record:
            raise InvalidInputError(
                f"{self.path}, {where} has no doc_id, so it is no sample of lm-eval; move the file away"
            )
        doc = record.pop("doc", None)
        record["text"] = _text(record.get("arguments"))
        record["said"] = hash(str(record.get("resps")))
        record["question"] = _question(record, doc)
        for name in ("target", *long):  # logs may be larger than the memory
            record.pop(name, None)
        record["category"] = doc.get(category) if isinstance(doc, dict) else None
        return record


def parsed_args(given: object) -> dict[str, Any]:
    """Arguments as the host takes them: ``a=1,b=2``, or a mapping."""
    if isinstance(given, Mapping):
        return {str(key): value for key, value in given.items()}
    pairs = (part.partition("=") for part in str(given or "").split(","))
    return {key.strip(): value.strip() for key, equals, value in pairs if equals}


def _named(args: object) -> object:
    """The model's name by its arguments, as the host takes it; None if none of them names it."""
    given = parsed_args(args)
    return next((given[key] for key in NAMING if key in given), None)


def _question(record: Mapping[str, Any], doc: object) -> str:
    """A digest of the document, its target and its requests; empty if neither of the first is known."""
    asked, target = record.get("doc_hash"), record.get("target_hash")
    if asked is None and doc is not None:  # as the host makes it, since April 2024
        asked = hashlib.sha256(json.dumps(doc, indent=2, ensure_ascii=False).encode()).hexdigest()
    if target is None and "target" in record:
        target = hashlib.sha256(str(record["target"]).encode()).hexdigest()
    sent = str(record["arguments"]) if record.get("arguments") else None
    return "" if asked is None else digest_of(asked, target, sent)


def _text(arguments: object) -> str:
    """The end of a document's first prompt, where it stands after the examples; empty if there is none."""
    if isinstance(arguments, list):  # before 0.4.3
        arguments = dict(enumerate(arguments))
    first = next(iter(arguments.values()), None) if isinstance(arguments, dict) else None
    if isinstance(first, list):
        first = {"arg_0": next(iter(first), None)}
    prompt = first.get("arg_0") if isinstance(first, dict) else None
    if isinstance(prompt, list) and prompt and isinstance(prompt[0], str):  # a chat: its messages as JSON
        prompt = _last_message(prompt[0])
    if not isinstance(prompt, str):
        return ""
    return prompt if len(prompt) <= _TEXT else f"…{prompt[1 - _TEXT :]}"


def _last_message(chat: str) -> str:
    try:
        told = parsed_json(chat)[-1]["content"]
    except (ValueError, LookupError, TypeError):
        return chat
    return told if isinstance(told, str) else chat


@dataclass(frozen=True)
class Unreadable:
    """A file that is damaged, or not what it is called.

    Attributes:
        path: of it.
        task: of the samples that are lost with it.
        told: what is wrong.
        model: that they are of; None if nothing tells it.
    """

    path: Path
    task: str
    told: str
    model: str | None = None


def samples_files(path: Path) -> list[SamplesFile]:
    """Those at a path, by task and date; none if the path is something else. Those left out are named.

    Raises:
        InvalidInputError: none can be read.
    """
    files, unreadable = readable_files(path)
    if unreadable and not files:
        raise InvalidInputError(unreadable[0].told)
    for one in unreadable:
        log.warning("left out: %s", one.told)
    return files


def readable_files(path: Path) -> tuple[list[SamplesFile], list[Unreadable]]:
    """Those at a path, by task and date, and those whose results cannot be read."""
    found = sorted(path.rglob("samples_*.json*")) if path.is_dir() else [path]
    folders: dict[Path, dict[str, Path]] = {}
    read: dict[Path, Mapping[str, Any]] = {}
    files, unreadable = [], []
    for file in found:
        match = _NAME.fullmatch(file.name)
        if match is None or file.is_dir():
            continue
        if not is_plain_file(file):
            told = f"{file} is no file, but a pipe, a device, a socket or a broken link; move it away"
            unreadable.append(Unreadable(file, match["task"], told))
            continue
        beside = folders.get(file.parent)
        if beside is None:
            beside = folders[file.parent] = _results_in(file.parent)
        results = beside.get(match["date"])
        try:
            if results is not None and results not in read:
                read[results] = _read_results(results)
        except InvalidInputError as ex:
            unreadable.append(Unreadable(file, match["task"], str(ex)))
            continue
        known = {} if results is None else read[results]
        files.append(SamplesFile(file, match["task"], match["date"], known))
    files = _named_by_folders(files)
    return sorted(files, key=lambda file: (file.task, file.date, str(file.path))), unreadable


def _named_by_folders(files: Sequence[SamplesFile]) -> list[SamplesFile]:
    """The same, where a file without results is of the model whose name makes that of its folder."""
    models: dict[str, set[str]] = {}
    for file in files:
        name = file.results.get("model_name")
        if isinstance(name, str):
            models.setdefault(_NOT_IN_FOLDERS.sub("__", name), set()).add(file.model)
    found = []
    for file in files:
        known = models.get(file.path.parent.name, set())
        found.append(replace(file, folder_of=min(known)) if not file.results and len(known) == 1 else file)
    return found


def results_without_samples(path: Path) -> Path | None:
    """Results of lm-eval at a path, which has no samples; None if there are none, or logs of inspect too."""
    found = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    if path.is_dir() and next(path.rglob("*.eval"), None) is not None:
        return None
    for file in found:
        if file.is_file() and _RESULTS.fullmatch(file.name) and not _NAME.fullmatch(file.name):
            try:
                results = _read_results(file)
            except InvalidInputError:
                continue
            if isinstance(results.get("results"), Mapping) and "configs" in results:
                return file
    return None


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


def _results_in(folder: Path) -> dict[str, Path]:
    """Files of results by their date."""
    # --output_path out.json makes out_<date>.json, a folder makes results_<date>.json
    found: dict[str, Path] = {}
    for file in sorted(folder.glob("*.json")):
        match = _RESULTS.fullmatch(file.name)
        if match is not None and not _NAME.fullmatch(file.name):
            found.setdefault(match["date"], file)
    return found


def _read_results(file: Path) -> Mapping[str, Any]:
    try:
        if not is_plain_file(file):
            raise ValueError("it is no file, but a pipe, a device, a socket or a folder")
        results = parsed_json(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as ex:
        raise InvalidInputError(
            f"{file} is not readable as results of lm-eval ({ex}); it says whose samples stand beside "
            "it, so restore it, or move both away"
        ) from ex
    return results if isinstance(results, dict) else {}
