"""One model of an audit: what it answered, and asking it for more."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from evalbudget.audits.store import Answer, Scale
from evalbudget.errors import InvalidInputError
from evalbudget.run import said_by
from evalbudget_lm_eval.arms.loaded_models import Entrant, Stable
from evalbudget_lm_eval.audits.answers import prompt_of, readable, score_of
from evalbudget_lm_eval.host.answers import Answered, Asked
from evalbudget_lm_eval.run.rounds import Rounds

ATTEMPTS = 2
"""So often a document may fail before it is taken as it is."""


class AuditArm:
    """Buys one model's answers, and keeps them.

    Args:
        stable: all models.
        entrant: this one.
        task: the host's object.
        metric: the judge's, the host's ``metric,filter``; None if nobody judges.
        scale: of the audit.
        seed: of the audit.

    Raises:
        InvalidInputError: a recorded score is not on the scale.
    """

    def __init__(
        self, stable: Stable, entrant: Entrant, task: Any, metric: str | None, scale: Scale, seed: int
    ) -> None:
        self._stable, self._entrant, self._task = stable, entrant, task
        self._metric, self._scale = metric, scale
        self._seed = f"{seed} {entrant.arm.name}"
        self._rounds: Rounds | None = None
        self._answers: dict[int, tuple[Answer, float]] = {}
        self._failures: Counter[int] = Counter()
        self._errors: dict[int, str] = {}
        for one in entrant.kept.bought:
            if one.answer is None:
                self._note_failure(one.asked.doc_id, one.error or "")
            else:
                self._take(one.answer)

    def answer(self, document: int) -> tuple[Answer, float] | None:
        """What people read, and the judge's score (nan: none); None if the model has yet to be asked."""
        if document in self._answers:
            return self._answers[document]
        if self._failures[document] < ATTEMPTS:
            return None
        prompt = prompt_of(self._task, self._task.eval_docs[document])
        return Answer(prompt, f"(no answer: {self._errors[document]})"), math.nan

    def ask(self, documents: Sequence[int]) -> None:
        """Have documents answered; each fails at most once.

        Raises:
            InvalidInputError: the model cannot be loaded or answers nothing, or a score is not on the scale.
        """
        name = self._entrant.arm.name
        primed = self._stable.ready(self._entrant)
        if self._rounds is None:
            self._rounds = Rounds(primed, self._entrant.kept, self, arm=name, seed=self._seed)
        cells = [Asked(self._stable.task, document, self._failures[document]) for document in documents]
        first = 0 if self._answers else 1  # the first alone shows whether scores are on the scale
        for part in (cells[:first], cells[first:]):
            self._rounds.ask(part)
        if not self._answers:
            self.down((), InvalidInputError(self._errors[documents[-1]]))

    # told by the rounds

    def answered(self, answers: Sequence[Answered]) -> None:
        """Keep what is recorded, as soon as it is on the scale."""
        for answer in answers:
            self._take(answer)

    def failed(self, asked: Asked, error: Exception, *, paid: bool) -> None:
        """Count it; what fails again is taken as it is."""
        self._entrant.kept.fail(asked, float(paid), said_by(error), alone=not paid)
        self._note_failure(asked.doc_id, said_by(error))

    def pays(self, calls: int) -> bool:
        """Always: an audit is bounded by its documents and labels."""
        return True

    def gives_up(self, cells: Sequence[Asked], calls: int) -> Sequence[Asked]:
        """None."""
        return cells

    def down(self, rest: Sequence[Asked], error: Exception) -> None:
        """End the audit: every model is needed for what it compares.

        Raises:
            InvalidInputError: always.
        """
        raise InvalidInputError(
            f"arm {self._entrant.arm.name} answers nothing ({said_by(error)}); mend it, then run the same "
            "command again: what was answered is kept"
        )

    def _take(self, answer: Answered) -> None:
        score = math.nan if self._metric is None else score_of(answer, self._metric, self._scale)
        self._answers[answer.doc_id] = (readable(self._task, answer), score)

    def _note_failure(self, document: int, error: str) -> None:
        self._failures[document] += 1
        self._errors[document] = error
