"""A run's bookkeeping between sampler and host: who asked what, what it cost, what is written where."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from evalbudget import Design, Reading, Request, Sampler, __version__, resume
from evalbudget.errors import JournalError
from evalbudget.journal import Header
from evalbudget.run import JournalFile, Purchase
from evalbudget_lm_eval.host.answers import Answered, Asked
from evalbudget_lm_eval.host.host_evaluate import PrimedTasks
from evalbudget_lm_eval.judges.filter import revived
from evalbudget_lm_eval.judges.readings import why_missing
from evalbudget_lm_eval.repeats.answers_file import AnswersFile
from evalbudget_lm_eval.repeats.config import Config

Document = tuple[str, int]
"""Task and document."""


class Book:
    """One sampler over the documents of all tasks, its budget and its journal.

    Args:
        config: what the user asked for.
        primed: the tasks.
        scores: the key ``metric,filter`` that drives the sampler, by task.
        path: of the journal; it is continued if it exists. None to keep none.
        run: what else must be the same for a journal to be continued.

    Raises:
        JournalError: the journal is of another run, or cannot be read or written.
    """

    def __init__(
        self,
        config: Config,
        primed: PrimedTasks,
        *,
        scores: dict[str, str],
        path: Path | None,
        run: dict[str, Any],
    ) -> None:
        self.config = config
        self.scores = scores
        self.primed = primed
        self.path = path
        self.documents: list[Document] = [
            (name, doc) for name in primed.names for doc in primed.documents(name)
        ]
        self._costs = [float(primed.cost(*document)) for document in self.documents]
        budget = config.resolve_budget(int(sum(self._costs)))
        self.sampler: Sampler = config.make_sampler(
            Design(items=tuple(f"{name}:{doc}" for name, doc in self.documents)),
            budget=int(budget.amount * len(self._costs) / sum(self._costs)),
        )
        self._requests: dict[Asked, Request] = {}
        self._file: JournalFile | None = None
        self._answers: AnswersFile | None = None
        if path is not None:
            self._open(path, run)
        self.purchase = Purchase(self.sampler, budget, cost=max(self._costs), journal=self._file)
        for request in self.sampler.pending:
            self.purchase.promise(request, self.cost(request))
        for event in self.purchase.journal:
            self._requests[self.asked(event.request)] = event.request

    # the files

    def _open(self, path: Path, run: dict[str, Any]) -> None:
        answers = path.with_suffix(".answers.jsonl")
        try:
            if path.exists():
                self._file = JournalFile.open(path)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._file = JournalFile.create(path, Header.of(self.sampler, __version__))
            journal = self._file.journal
            if answers.exists():
                self._answers = AnswersFile.open(answers, run)
            elif not len(journal):
                self._answers = AnswersFile.create(answers, run)
            else:
                raise JournalError(
                    f"{path} has the scores alone: {answers.name} is missing beside it, which has what the "
                    "model said. Put it back, or start a new --journal"
                )
            resume(self.sampler, journal)
        except OSError as ex:
            self.close()
            raise JournalError(f"{path} cannot be written: {ex.strerror}") from ex
        except BaseException:
            self.close()
            raise

    def catch_up(self) -> None:
        """Take over what an earlier run paid for: what was scored, and what the model said."""
        if self._answers is None:
            return
        pending = {request.id for request in self.sampler.pending}
        by_id = {request.id: asked for asked, request in self._requests.items()}
        known = [
            Answered.of(
                by_id[number],
                [revived(self.primed.task(by_id[number].task), record) for record in records],
                self.primed.cost(*by_id[number][:2]),
            )
            for number, records in sorted(self._answers.content.records.items())
            if number in by_id
        ]
        self.primed.adopt(known)
        self.tell([a for a in known if self._requests[_asked(a)].id in pending], record=False)
        told = {self._requests[_asked(answer)].id for answer in known}
        said = {
            by_id[number]: responses
            for number, responses in self._answers.content.said.items()
            if number in pending - told
        }
        self.tell(self.primed.replay(said, received=self.received))

    def count_cut_off(self, n: int) -> None:
        """Up to n calls may have been under way when an earlier run was killed: count them as paid."""
        if self._answers is None or self._answers.content.stopped:
            return
        failed = Counter(r.request.cell.item for r in self.purchase.journal.readings if r.value is None)
        pending = sorted(self.sampler.pending, key=lambda request: failed[request.cell.item])
        self.fail(pending[:n], "under way when the run was broken off")

    def stop(self, reason: str) -> None:
        """An error ends the run; nothing is under way."""
        if self._answers is not None:
            self._answers.stop(reason)

    def close(self, reason: str | None = None) -> None:
        """Let the files go; with a reason the run is over."""
        if self._answers is not None:
            if reason is not None and self._answers.content.finished is None:
                self._answers.finish(reason)
            self._answers.close()
        if self._file is not None:
            self._file.close()

    # what happens

    def ask(self, n: int) -> list[Request]:
        """Up to n requests the budget pays for; none if it is used up or the sampler stops."""
        requests = self.purchase.ask(min(n, self.purchase.affordable))
        free = self.purchase.ledger.free
        if not requests and free and not self.purchase.affordable:  # what is cheaper may still fit
            requests = self.purchase.ask(1, eligible=lambda cell: self._costs[cell.item] <= free + 1e-9)
        for request in requests:
            self.purchase.promise(request, self.cost(request))
            self._requests[self.asked(request)] = request
        return list(requests)

    def received(self, asked: Asked, number: int, response: Any) -> None:
        """The model answered one of a document's requests."""
        if self._answers is not None:
            self._answers.add_response(self._requests[asked].id, number, response)

    def tell(self, answers: Iterable[Answered], *, record: bool = True) -> None:
        """Documents were scored."""
        for answer in answers:
            request = self._requests[_asked(answer)]
            if record and self._answers is not None:
                self._answers.add_records(request.id, list(answer.records))
            value = answer.metrics.get(self.scores[answer.task])
            error = None
            if value is None or math.isnan(value):
                replies = (reply for record in answer.records for reply in record["filtered_resps"])
                value, error = None, why_missing(replies) or f"no score {self.scores[answer.task]}"
            elif self.config.score_range is not None:
                low, high = self.config.score_range
                if not low <= value <= high:
                    value, error = None, f"score {value:g} is outside {low:g}..{high:g}"
            self.purchase.tell(Reading(request, value, float(answer.requests), error))

    def fail(self, requests: Sequence[Request], error: str) -> None:
        """These could not be answered; the calls may have been paid for."""
        for request in requests:
            self.purchase.tell(Reading(request, None, self.cost(request), error))

    # what is known

    @property
    def outstanding(self) -> list[Request]:
        """Asked by an earlier run and not answered; only what this run's budget pays."""
        return [request for request in self.sampler.pending if request.id in self.purchase.flights]

    def cost(self, request: Request) -> float:
        """Calls of the model this request takes."""
        return self._costs[request.cell.item]

    def asked(self, request: Request) -> Asked:
        """The request in the host's terms."""
        return Asked(*self.documents[request.cell.item], request.cell.epoch)

    @property
    def weights(self) -> dict[Asked, float]:
        """Of all readings, fixed before they were seen; nan if it was held out, or if none was fixed."""
        return {
            asked: math.nan if request.weight is None else request.weight
            for asked, request in self._requests.items()
        }

    @property
    def stop_reason(self) -> str:
        """Why nothing more is asked."""
        return self.sampler.stop_reason or "budget used up"


def _asked(answer: Answered) -> Asked:
    return Asked(answer.task, answer.doc_id, answer.epoch)


def fingerprint_of(primed: PrimedTasks) -> str:
    """Short hash of everything the model is asked, to tell whether a journal belongs to these prompts."""
    digest = hashlib.sha256()
    for name in primed.names:
        for doc in primed.documents(name):
            for instance in primed.instances(name, doc):
                digest.update(repr((name, doc, instance.request_type, instance.repeats)).encode())
                digest.update(json.dumps(instance.args, default=_kind, sort_keys=True).encode())
    return digest.hexdigest()[:16]


def _kind(value: object) -> str:
    return type(value).__name__  # pictures and sounds: what they are is in the document
