"""One answer per document, scored again and again (``--repeat judge``)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalbudget.errors import InvalidInputError

if TYPE_CHECKING:
    from evalbudget_lm_eval.host.answers import Asked
    from evalbudget_lm_eval.host.host_evaluate import PrimedTasks
    from evalbudget_lm_eval.run.kept import Kept

Said = Mapping[tuple[str, int], Mapping[int, Sequence[Any]]]
"""What a model said, by task and document, and then by request."""


@dataclass(frozen=True)
class Answers:
    """Of a finished run, to be scored in place of asking the model.

    Attributes:
        path: where they were found.
        said: what the model said.
        hashes: the host's, of the documents, by task and document.
    """

    path: str
    said: Said
    hashes: Mapping[tuple[str, int], str]

    @property
    def digest(self) -> str:
        """The same for the same answers."""
        told = sorted((task, doc, sorted(said.items())) for (task, doc), said in self.said.items())
        return hashlib.sha256(json.dumps(told, default=str).encode()).hexdigest()[:16]

    def check(self, primed: PrimedTasks) -> None:
        """Refuse answers to other documents, or to more requests than were answered.

        Raises:
            InvalidInputError: there is one.
        """
        for task in primed.names:
            for doc_id in primed.documents(task):
                if primed.doc_hash(task, doc_id) != self.hashes[task, doc_id]:
                    raise InvalidInputError(
                        f"document {doc_id} of task {task!r} is not the one that was answered in "
                        f"{self.path}: the data changed since; score it with the data of that run"
                    )
                said = self.said[task, doc_id]
                for number, instance in enumerate(primed.instances(task, doc_id)):
                    if len(said.get(number, ())) < (instance.repeats or 1):
                        raise InvalidInputError(
                            f"document {doc_id} of task {task!r} has fewer answers in {self.path} than the "
                            "task asks for (repeats:); score it with the task of that run"
                        )


class KeptAnswers:
    """Gives every cell of a document the document's first answer.

    Args:
        primed: the tasks.
        kept: the record, of what the model said to cells that are not scored yet.
        given: answers of a finished run; the model is asked for those of other documents only.
    """

    def __init__(self, primed: PrimedTasks, kept: Kept, given: Said) -> None:
        self._primed = primed
        self._kept = kept
        self._given = given

    def scorable(self, cells: Sequence[Asked]) -> list[Asked]:
        """Those whose document has its answer, which they are given, and the first one of every other."""
        found: list[Asked] = []
        first: dict[tuple[str, int], Asked] = {}
        for asked in sorted(cells, key=lambda asked: asked.epoch):
            said = self._given.get(asked.document) or self._primed.said(asked.task, asked.doc_id)
            if said is not None:
                self._kept.lend(asked, said)
                found.append(asked)
            elif first.setdefault(asked.document, asked) is asked:
                found.append(asked)
        return found
