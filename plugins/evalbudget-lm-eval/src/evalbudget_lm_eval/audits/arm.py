"""One model of an audit: what it answered, and asking it for more."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from evalbudget.audits.store import Answer, Scale
from evalbudget.errors import EvalbudgetError, InvalidInputError
from evalbudget.secrets import said_by
from evalbudget_lm_eval.arms.loaded_models import Entrant, Stable
from evalbudget_lm_eval.audits.answers import prompt_of, readable, response_of, score_of
from evalbudget_lm_eval.audits.money import AuditMoney
from evalbudget_lm_eval.host.answers import Answered, Asked
from evalbudget_lm_eval.run.record import AUDIT
from evalbudget_lm_eval.run.resume import CUT_OFF, count_cut_off
from evalbudget_lm_eval.run.rounds import Rounds

ATTEMPTS = 2
"""So often a document may fail, while the model answers others, before it is taken as it is."""
IN_ALL = 4
"""So often it may fail though nothing came after it, as where a server is gone."""
_IDLE = 2  # passes without a single answer, after which the model is taken to be gone


class AuditArm:
    """Buys one model's answers, and keeps them.

    A failure counts for its document if the model answers another one afterwards, or if the document failed
    before: an outage costs no document its answer. An answer without a judge's score is scored once more; its
    model is not asked again.

    Args:
        stable: all models.
        entrant: this one.
        task: the host's object.
        metric: the judge's, the host's ``metric,filter``; None if nobody judges.
        scale: of the audit.
        seeds_of: which audit it is: another one draws other answers and judgements.
        money: pays for the calls, where they have a budget.

    Raises:
        InvalidInputError: a recorded score is not on the scale.
    """

    def __init__(
        self,
        stable: Stable,
        entrant: Entrant,
        task: Any,
        metric: str | None,
        scale: Scale,
        seeds_of: str,
        money: AuditMoney | None = None,
    ) -> None:
        self._money = money
        self._stable, self._entrant, self._task = stable, entrant, task
        self._metric, self._scale = metric, scale
        self._seeds_of = f"{seeds_of} {entrant.arm.name}"
        self._rounds: Rounds | None = None
        self._answers: dict[int, tuple[Answer, float]] = {}
        self._again: dict[int, Asked] = {}  # answers whose judge failed, to be scored once more
        self._failures: Counter[int] = Counter()  # that count
        self._in_all: Counter[int] = Counter()
        self._last: list[int] = []  # documents that failed since the model last answered
        self._errors: dict[int, str] = {}
        self._idle = 0
        kept = entrant.kept
        if money is None:
            count_cut_off(kept, partial(kept.fail, cost=1.0, error=CUT_OFF[AUDIT]))
        elif kept.under_way:  # the bill has what was cut off
            kept.stop()
        for one in kept.bought:
            if one.answer is None:
                self._note_failure(one.asked.doc_id, one.error or "")
            else:
                self._take(one.answer)

    @property
    def name(self) -> str:
        """Of the arm."""
        return self._entrant.arm.name

    @property
    def is_alive(self) -> bool:
        """Whether its model is loaded."""
        return self._entrant.is_alive

    @property
    def unanswered(self) -> int:
        """Documents that were given up."""
        return sum(self._is_given_up(document) for document in self._in_all)

    @property
    def judged(self) -> int:
        """Answers that have a score."""
        return sum(not math.isnan(score) for _, score in self._answers.values())

    @property
    def unjudged(self) -> int:
        """Answers that have no score, though a judge was to give one."""
        if self._metric is None:
            return 0
        return sum(math.isnan(score) for _, score in self._answers.values())

    def answer(self, document: int) -> tuple[Answer, float] | None:
        """What people read, and the judge's score (nan: none); None if the model has yet to be asked."""
        if document in self._answers:
            return self._answers[document]
        if not self._is_given_up(document):
            return None
        prompt = prompt_of(self._task, document)
        return Answer(prompt, f"(no answer: {self._errors[document]})"), math.nan

    def ask(self, documents: Sequence[int]) -> None:
        """Have documents answered; each fails at most once.

        Raises:
            InvalidInputError: the model cannot be loaded or answers nothing, the task cannot score what it
                said, or a score is not on the scale.
        """
        try:
            primed = self._stable.ready(self._entrant)
        except EvalbudgetError:
            raise
        except Exception as ex:  # the host's: weights or a package that are not there
            raise self._gone("cannot be loaded", said_by(ex)) from ex
        primed.seeds_of = self._seeds_of
        if self._rounds is None:
            paid = None if self._money is None else self._money.paid(self.name)
            self._rounds = Rounds(primed, self._entrant.kept, self, seed=self._seeds_of, paid=paid)
        cells = [
            self._again.get(document) or Asked(self._entrant.task, document, self._in_all[document])
            for document in documents
        ]
        before = len(self._answers)
        first = 0 if self._answers else 1  # the first alone shows whether scores are on the scale
        try:
            for part in (cells[:first], cells[first:]):
                if self._money is None:
                    self._rounds.ask(part)
                elif not self._money.short:
                    self._money.ask(self.name, primed, self._rounds, part)
        except EvalbudgetError:
            raise
        except Exception as ex:  # whatever the task's own code raises on the first answers
            raise InvalidInputError(
                f"the task cannot score what {self.name} said ({said_by(ex)}); mend the task, then run the "
                "same command again: what was said is kept"
            ) from ex
        if self._money is not None and self._money.short:
            return
        self._idle = 0 if len(self._answers) > before or self._again else self._idle + 1
        if self._idle >= _IDLE:
            raise self._gone("answers nothing", self._errors[documents[-1]])

    # told by the rounds

    def answered(self, answers: Sequence[Answered]) -> None:
        """Keep what is recorded, as soon as it is on the scale."""
        for answer in answers:
            self._take(answer)

    def failed(self, asked: Asked, error: Exception, *, paid: bool) -> None:
        """Count it; an answer that the task cannot score is kept without a score."""
        kept = self._entrant.kept
        said = kept.said.get(asked, {}).get(0)
        if paid and said:
            document = self._task.eval_docs[asked.doc_id]
            record = {"doc": document, "resps": [said], "filter": "none", "metrics": []}
            answer = Answered.of(asked, [record], 1)
            kept.answer(answer)
            self._keep(answer, math.nan)
            return
        kept.fail(asked, float(paid), said_by(error), alone=not paid)
        self._note_failure(asked.doc_id, said_by(error))

    def pays(self, calls: int) -> bool:
        """Always: an audit is bounded by its documents and labels, or by its bill."""
        return True

    def gives_up(self, cells: Sequence[Asked], calls: int) -> Sequence[Asked]:
        """None."""
        return cells

    def unaffordable(self, cells: Sequence[Asked]) -> None:
        """Ask nothing more: what was drawn first comes first."""
        if self._money is not None:
            self._money.short = True

    def down(self, rest: Sequence[Asked], error: Exception) -> None:
        """End the audit: every model is needed for what it compares.

        Raises:
            InvalidInputError: always.
        """
        raise self._gone("answers nothing", said_by(error))

    def _gone(self, what: str, why: str) -> InvalidInputError:
        return InvalidInputError(
            f"arm {self.name} {what} ({why}); mend it, then run the same command again: what was "
            "answered is kept"
        )

    def _take(self, answer: Answered) -> None:
        score = math.nan if self._metric is None else score_of(answer, self._metric, self._scale)
        unjudged = self._metric is not None and math.isnan(score) and bool(answer.records[0]["metrics"])
        if unjudged and answer.doc_id not in self._again:
            again = answer.asked._replace(epoch=answer.epoch + 1)  # so that judges are sent another seed
            self._again[answer.doc_id] = again
            self._entrant.kept.lend(again, {0: [response_of(answer)]})
            return
        self._keep(answer, score)

    def _keep(self, answer: Answered, score: float) -> None:
        self._again.pop(answer.doc_id, None)
        self._answers[answer.doc_id] = (readable(self._task, answer), score)
        for document in self._last:
            self._failures[document] += 1
        self._last.clear()

    def _note_failure(self, document: int, error: str) -> None:
        self._errors[document] = error
        self._in_all[document] += 1
        if self._failures[document]:
            self._failures[document] += 1
        else:
            self._last.append(document)

    def _is_given_up(self, document: int) -> bool:
        failed = self._failures[document] >= ATTEMPTS or self._in_all[document] >= IN_ALL
        return failed and document not in self._answers
