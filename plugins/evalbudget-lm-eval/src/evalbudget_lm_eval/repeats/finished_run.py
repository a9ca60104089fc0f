"""What a model said in a run that is finished, from the samples that the host logged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalbudget.errors import InvalidInputError
from evalbudget.shown import shown_logger
from evalbudget_lm_eval.host.logfiles import SamplesFile, of_newest_runs, samples_files
from evalbudget_lm_eval.repeats.kept_answers import Answers

log = shown_logger(__name__)


def answers_in(path: Path) -> tuple[str, Answers]:
    """The model of a finished run, and what it said first to every document.

    Args:
        path: a folder with ``samples_*.jsonl``, or one such file. Of several runs of a task the last counts.

    Raises:
        InvalidInputError: there are none, they are of several models, or one has no responses.
    """
    files = samples_files(path)
    if not files:
        raise InvalidInputError(
            f"{path} has no samples_*.jsonl of lm-eval; run it with --log_samples --output_path, and name "
            "that folder"
        )
    models = list(dict.fromkeys(file.model for file in files))
    if len(models) > 1:
        raise InvalidInputError(
            f"{path} has answers of {len(models)} models ({', '.join(models[:5])}), and one is scored at a "
            "time; name the folder or the file of one"
        )
    said: dict[tuple[str, int], Mapping[int, Sequence[Any]]] = {}
    hashes: dict[tuple[str, int], str] = {}
    first: dict[tuple[str, int], int] = {}
    every: set[tuple[str, int, int]] = set()
    for file in of_newest_runs(files, path):
        for record in file.records(responses=True):
            document, epoch = (file.task, int(record["doc_id"])), int(record.get("epoch", 0))
            every.add((*document, epoch))
            if epoch < first.get(document, epoch + 1):
                first[document] = epoch
                said[document] = dict(enumerate(_responses(record, file)))
                hashes[document] = str(record.get("doc_hash"))
    if len(every) > len(said):
        log.warning(
            "evalbudget: %s has %d answers to %d documents, and the first to each is scored; have all of "
            "them scored while they are bought, with --judges of evalbudget lm-eval run",
            path,
            len(every),
            len(said),
        )
    return models[0], Answers(str(path), said, hashes)


def _responses(record: Mapping[str, Any], file: SamplesFile) -> list[Any]:
    responses = record.get("resps")
    if not isinstance(responses, list) or not all(isinstance(own, list) and own for own in responses):
        raise InvalidInputError(
            f"{file.path} has no responses (resps) to document {record['doc_id']}, so there is nothing to "
            "score; was it shortened?"
        )
    return responses
