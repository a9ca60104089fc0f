"""The host's own ``evaluate`` run in rounds on one live model, with prompts of a full run.

The host's ``samples=`` drops duplicates and mislabels ids that are not ascending, and rebuilding the
requests per round would draw other few-shot examples. So all requests are built once, by the host, and each
round serves copies of those that were asked, through attributes set on the task *objects*;
:meth:`PrimedTasks.restore` takes them off again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import MappingProxyType, TracebackType
from typing import Any, Self

from lm_eval.api.instance import Instance
from lm_eval.api.metrics import mean
from lm_eval.api.task import Task
from lm_eval.evaluator import evaluate as _evaluate
from lm_eval.utils import handle_non_serializable, hash_string

from evalbudget.backtest import digest_of
from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.secrets import keep_out, said_by
from evalbudget.shown import shown_logger
from evalbudget_lm_eval.host.answers import (
    SCORED,
    Answered,
    Asked,
    JudgesBill,
    Sample,
    asked_now,
    logged,
    raw_metrics,
)
from evalbudget_lm_eval.host.driving_metric import is_mean, scores_per_answer
from evalbudget_lm_eval.host.feed import Feed
from evalbudget_lm_eval.host.owners import Owners
from evalbudget_lm_eval.host.patched import bars_of_a_round, compiled_once, said_once
from evalbudget_lm_eval.host.private import _handle_back_comp, _process_results, print_writeout
from evalbudget_lm_eval.host.responses import Hook, Memory, Received, Responses, listening, said_to
from evalbudget_lm_eval.host.seeds import OwnSeeds
from evalbudget_lm_eval.host.task_requests import Sent, ServedTask, most_documents

__all__ = ["Answered", "Asked", "PrimedTasks", "asked_now"]

log = shown_logger(__name__)

_NOTHING: Responses = MappingProxyType({})


class PrimedTasks:
    """One live model and the host's tasks, every request built once: prompts equal a full run's.

    Use it as a context manager, or call :meth:`restore` when done, whatever happened.

    Args:
        lm: the host's model object.
        tasks: what the host's ``TaskManager.load`` returned, or tasks by name.
        prompts_of: tasks of another model that are asked the same, so that no request need be built again.
        host_evaluate_kwargs: further arguments of the host's ``evaluate``.

    Raises:
        InvalidInputError: several processes share the model; or ``samples`` is unsorted, has duplicates, is
            empty, out of range, lacks a task, or is combined with the host's request cache.
    """

    def __init__(
        self,
        lm: Any,
        tasks: Mapping[Any, Any],
        *,
        prompts_of: PrimedTasks | None = None,
        **host_evaluate_kwargs: Any,
    ) -> None:
        if lm.world_size > 1:
            raise InvalidInputError(
                f"the model runs in {lm.world_size} processes, and a budget is kept by one; start lm-eval "
                "without accelerate or torchrun (one process; it may use several GPUs: parallelize=True)"
            )
        own = vars(getattr(lm, "lm", lm)).items()  # behind the host's cache
        keep_out({name: value for name, value in own if isinstance(value, str | dict)})
        self.lm = lm
        self._host = dict(host_evaluate_kwargs)
        self._groups, found = tasks_of(tasks)
        self._served: dict[str, ServedTask] = {}
        self.owners: Owners | None = None
        """Told whom the requests of a round are for; None where nobody asks."""
        self.seeds_of = ""
        """Whose seeds are sent to servers: those of another run are others."""
        self.hides_bars = False
        """Whether even large rounds draw none of the host's bars: somebody else shows how far they are."""
        self.judging: Callable[[], AbstractContextManager[None]] = nullcontext
        """Entered while filters run, who may ask judges: stands before their calls."""
        self._ran = False
        samples = self._host.get("samples")
        if samples is not None:
            _check_samples(samples, found, cached=bool(self._host.get("cache_requests")))
        for name, task in found.items():
            if prompts_of is None:
                self._served[name] = self._prime(name, task, samples)
            else:
                self._served[name] = prompts_of._of(name).of_another(task)

    # what is there

    @property
    def names(self) -> tuple[str, ...]:
        """The tasks, in the host's order."""
        return tuple(self._served)

    def task(self, name: str) -> Task:
        """The host's task object."""
        return self._of(name).task

    def documents(self, task: str) -> tuple[int, ...]:
        """Ids of the documents in the host's order, after ``limit`` and ``samples``."""
        return tuple(self._of(task).requests)

    def cost(self, task: str, doc_id: int) -> int:
        """How many calls of the model one answer of this document takes, or of judges if those are more."""
        return self._document(task, doc_id).cost[doc_id]

    def doc(self, task: str, doc_id: int) -> Any:
        """A document, as the task has it; most often a mapping."""
        return self._document(task, doc_id).docs[doc_id]

    def doc_hash(self, task: str, doc_id: int) -> str:
        """The host's hash of a document, as in ``samples_*.jsonl``."""
        doc = self._document(task, doc_id).docs[doc_id]
        told = json.dumps(doc, indent=2, default=handle_non_serializable, ensure_ascii=False)
        return str(hash_string(told))

    def question(self, task: str, doc_id: int) -> str:
        """A digest of a document and its target, as the reader of ``samples_*.jsonl`` has it."""
        target = self.task(task).doc_to_target(self.doc(task, doc_id))
        return digest_of(self.doc_hash(task, doc_id), str(hash_string(str(target))))

    def instances(self, task: str, doc_id: int) -> tuple[Instance, ...]:
        """The host's requests for this document."""
        return tuple(self._document(task, doc_id).requests[doc_id])

    # what happens

    def run(
        self,
        cells: Sequence[Asked],
        *,
        said: Responses = _NOTHING,
        received: Received | None = None,
        bill: JudgesBill | None = None,
    ) -> list[Answered]:
        """One round through the host's own ``evaluate``.

        Args:
            cells: documents to ask, in any order; repeats differ in their epoch.
            said: what the model said to some of their requests earlier; these are not asked again.
            received: told every response as soon as the model has it, where its class reports them to the
                host's cache hook (the API and the Hugging Face classes do).
            bill: who pays for calls of judges that bring nothing.

        Returns:
            One answer per cell, in the order of ``cells``. If this raises, :meth:`replay` scores those that
            were complete, from what ``received`` was told.

        Raises:
            UnknownNameError: no such task.
            InvalidInputError: no such document.
        """
        if not cells:
            return []
        with bars_of_a_round(len(cells), hidden=self.hides_bars):
            answered = self._evaluate(cells, said, received or _nobody, bill)
        self.adopt(answered)
        return answered

    def replay(
        self, said: Responses, *, received: Received | None = None, bill: JudgesBill | None = None
    ) -> list[Answered]:
        """Score what the model said earlier without asking it; what is incomplete is left out.

        Args:
            said: the model's responses, and what judges said of them.
            received: told what judges say who were not asked before.
            bill: who pays for their calls that bring nothing.
        """
        complete = [
            asked
            for asked, responses in said.items()
            if all(
                len(responses.get(number, ())) >= (instance.repeats or 1)
                for number, instance in enumerate(self.instances(asked.task, asked.doc_id))
            )
        ]
        if not complete:
            return []
        answered = self._evaluate(complete, said, received or _nobody, bill)
        self.adopt(answered)
        return answered

    def adopt(self, answers: Iterable[Answered]) -> None:
        """Count answers of an earlier run as this one's."""
        for answer in answers:
            self._document(answer.task, answer.doc_id).answers.setdefault(answer.doc_id, []).append(answer)

    def forget(self, answer: Answered) -> None:
        """Count one answer no more."""
        answers = self._document(answer.task, answer.doc_id).answers
        answers[answer.doc_id] = [other for other in answers[answer.doc_id] if other is not answer]
        if not answers[answer.doc_id]:
            del answers[answer.doc_id]

    def keep_only(self, cells: Collection[Asked]) -> None:
        """Forget answers to other cells."""
        for served in self._served.values():
            for doc_id, answers in tuple(served.answers.items()):
                served.answers[doc_id] = [answer for answer in answers if answer.asked in cells]
                if not served.answers[doc_id]:
                    del served.answers[doc_id]

    def values(self, task: str, score: str) -> list[Any]:
        """What the host aggregates of a metric: one value per answered document.

        Args:
            task: its name.
            score: the host's key ``metric,filter``.
        """
        metric, _, chosen = score.partition(",")
        return raw_metrics(self._of(task).answers).get((metric, chosen), [])

    def said(self, task: str, doc_id: int) -> Mapping[int, Sequence[Any]] | None:
        """What the model said in the first of a document's answers, by request; None without an answer."""
        answers = self._document(task, doc_id).answers.get(doc_id)
        if not answers:
            return None
        first = min(answers, key=lambda answer: answer.epoch)
        return dict(enumerate(first.records[0]["resps"]))

    def answered(self, task: str) -> tuple[int, ...]:
        """Ids of the documents that were answered, ascending."""
        return tuple(sorted(self._of(task).answers))

    def numbers(self, task: str) -> dict[str, dict[tuple[int, int], float]]:
        """Every metric that is a number: by the host's key ``metric,filter``, then document and epoch."""
        found: dict[str, dict[tuple[int, int], float]] = {}
        for doc_id, answers in self._of(task).answers.items():
            for answer in answers:
                for key, value in answer.metrics.items():
                    if math.isfinite(value):
                        found.setdefault(key, {})[doc_id, answer.epoch] = value
        return found

    @property
    def groups(self) -> Mapping[str, Any]:
        """The host's groups of tasks by name."""
        return self._groups

    def results(self) -> dict[str, Any]:
        """Everything answered so far, as the host's ``evaluate`` returns it.

        A document that was answered several times counts once, with the mean of its answers, so that the
        host's aggregations and its groups stay what they are. Metrics that are no numbers (the pairs of f1,
        bleu and the like) are those of the first answer. ``samples`` has every answer, with its ``epoch``.
        """
        accumulated = {
            name: {
                "task": served.task,
                "raw_metrics": _values(served),
                "logged_samples": logged(served.answers),
            }
            for name, served in self._served.items()
        }
        iterations = self._host.get("bootstrap_iters", 100000)
        try:
            result = _process_results(accumulated, self._groups, iterations)
        except Exception:  # the task's own, which may take long: one that works runs once
            for own in accumulated.values():
                own["raw_metrics"] = _without_failing(own["task"], own["raw_metrics"])
            result = _process_results(accumulated, self._groups, iterations)
        samples = result.samples if self._host.get("log_samples", True) else None
        return dict(result._to_eval_results(samples=samples))

    def restore(self) -> None:
        """Leave the host's tasks as a stock run would have left them; may be called again."""
        for served in self._served.values():
            served.restore()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.restore()

    # how

    def _prime(self, name: str, task: Task, samples: Mapping[str, Sequence[int]] | None) -> ServedTask:
        host, lm = self._host, self.lm
        chat = bool(host.get("apply_chat_template"))
        limit = most_documents(name, task, host.get("limit"))
        ids = None if samples is None else list(samples[name])
        task.build_all_requests(
            limit=limit,
            samples=ids,
            rank=lm.rank,
            world_size=lm.world_size,
            cache_requests=host.get("cache_requests", False),
            rewrite_requests_cache=host.get("rewrite_requests_cache", False),
            system_instruction=host.get("system_instruction"),
            apply_chat_template=chat,
            fewshot_as_multiturn=host.get("fewshot_as_multiturn", False),
            chat_template=getattr(lm, "apply_chat_template", None) if chat else None,
            tokenizer_name=getattr(lm, "tokenizer_name", "") if chat else "",
        )
        if host.get("write_out"):
            print_writeout(task)
        by_position: dict[int, list[Instance]] = {}
        for instance in task.instances:
            by_position.setdefault(instance.doc_id, []).append(instance)
        docs = task.doc_iterator(rank=lm.rank, limit=limit, world_size=lm.world_size, samples=ids)
        # with samples the host numbers the documents by their position among the chosen ones
        true_id = {position: ids[position] if ids else position for position in by_position}
        times = scores_per_answer(task)
        return ServedTask(
            task,
            requests={true_id[position]: instances for position, instances in by_position.items()},
            docs={true_id[position]: doc for position, doc in docs if position in true_id},
            all_docs=task.eval_docs,
            cost={
                true_id[position]: times * sum(instance.repeats or 1 for instance in instances)
                for position, instances in by_position.items()
            },
        )

    def _evaluate(
        self, asked: Sequence[Asked], said: Responses, received: Received, bill: JudgesBill | None
    ) -> list[Answered]:
        """The host's ``evaluate`` on these documents; the model is asked for what it did not say before."""
        rounds: dict[str, list[Asked]] = {}
        for one in asked:
            self._document(one.task, one.doc_id)
            rounds.setdefault(one.task, []).append(one)

        for name, own in rounds.items():
            running = self._served[name].running
            running.known = {one: tuple(said.get(one, {}).get(SCORED, ())) for one in own}
            running.keep = lambda one, text: received(one, SCORED, text)
            running.bill, running.judging = bill, self.judging
            running.seeds_of = f"{self.seeds_of} {name} "
        try:
            sent: list[Sent] = []
            seeds = OwnSeeds(self.lm, self.seeds_of)
            for name, own in rounds.items():
                sent += self._served[name].serve(own, seeds.in_request)
            lm = Memory(self.lm, said) if said else self.lm
            if isinstance(lm, Memory):
                lm.expect(sent)
            if all(len(said_to(one, said)) >= one.repeats for one in sent):
                found = self._ask_host(lm, rounds)  # other calls may be under way
            else:
                seeded = any(seeds.differs(one.instance) for one in sent)
                with self._asking(received, seeds, seeded=seeded) as hook:
                    hook.expect(sent, said)
                    found = self._ask_host(lm, rounds)
        finally:
            self.restore()
        self._ran = True
        answers = {name: iter(self._answers(own, found["samples"][name])) for name, own in rounds.items()}
        return [next(answers[one.task]) for one in asked]

    @contextmanager
    def _asking(self, received: Received, seeds: OwnSeeds, *, seeded: bool) -> Iterator[Hook]:
        """Within this block the model is asked for what the hook expects."""
        owners = self.owners or (Owners() if seeded else None)
        if owners is None:  # what they do takes its time
            with listening(self.lm, received) as hook:
                yield hook
            return
        owners.begin(self.lm)
        with (
            listening(self.lm, received, owners.expect) as hook,
            seeds.sending(owners) if seeded else nullcontext(),
        ):
            yield hook

    @contextmanager
    def fed(self, received: Received, stop: Callable[[], bool]) -> Iterator[Feed]:
        """Within this block the model is asked for what is sent, while :meth:`replay` scores what it said.

        Args:
            received: told every response, in a thread of the calls' own.
            stop: sends nothing more; whether what is under way is to be waited for.
        """
        seeds = OwnSeeds(self.lm, self.seeds_of)

        def requests(cells: Sequence[Asked]) -> list[Sent]:
            own = [(one, self._document(one.task, one.doc_id)) for one in cells]
            return [sent for one, served in own for sent in served.fresh([one], seeds.in_request)]

        with (
            bars_of_a_round(1),
            said_once,
            self._asking(received, seeds, seeded=True) as hook,
            Feed(self.lm, requests, hook, stop) as feed,
        ):
            yield feed

    def _ask_host(self, lm: Any, rounds: Mapping[str, Sequence[Asked]]) -> Mapping[str, Any]:
        with compiled_once, said_once if self._ran else nullcontext():
            return dict(
                _evaluate(
                    lm=lm,
                    task_dict={"tasks": {name: self._served[name].task for name in rounds}, "groups": {}},
                    **{
                        **self._host,
                        "limit": None,
                        # only tells the host which id each document has
                        "samples": {name: [one.doc_id for one in own] for name, own in rounds.items()},
                        "bootstrap_iters": 0,
                        "write_out": False,
                        "log_samples": True,
                    },
                )
            )

    def _answers(self, asked: Sequence[Asked], records: Sequence[Sample]) -> Iterator[Answered]:
        """The host's records, which come filter by filter in the order of the documents."""
        n = len(asked)
        for position, one in enumerate(asked):
            yield Answered.of(one, records[position::n], self._served[one.task].cost[one.doc_id])

    def _of(self, task: str) -> ServedTask:
        if task not in self._served:
            raise UnknownNameError("task", task, self._served)
        return self._served[task]

    def _document(self, task: str, doc_id: int) -> ServedTask:
        served = self._of(task)
        if doc_id not in served.requests:
            raise InvalidInputError(
                f"task {task!r} has no document {doc_id} in this run; see documents({task!r})"
            )
        return served


def _values(served: ServedTask) -> dict[tuple[str, str], list[Any]]:
    """What the host aggregates; its mean takes no None."""
    aggregations = served.task.aggregation()
    return {
        key: [math.nan if value is None else value for value in values]
        if is_mean(aggregations.get(key[0]))
        else values
        for key, values in raw_metrics(served.answers).items()
    }


def _without_failing(
    task: Task, values: Mapping[tuple[str, str], list[Any]]
) -> dict[tuple[str, str], list[Any]]:
    """The same but for what would end a run that was paid for, since its aggregation fails."""
    aggregations, found = task.aggregation(), {}
    for (metric, chosen), own in values.items():
        try:
            aggregations.get(metric, mean)(own)
        except Exception as ex:  # the task's own
            log.warning(
                "evalbudget: metric %s of task %s has no row, since what aggregates it failed (%s)",
                *(metric, task.config.task, said_by(ex)),
            )
            continue
        found[metric, chosen] = own
    return found


def _nobody(asked: Asked, number: int, response: Any) -> None:
    """Where nobody wants to know what is said."""


def tasks_of(tasks: Mapping[Any, Any]) -> tuple[Mapping[str, Any], Mapping[str, Task]]:
    """Groups and tasks by name, of whatever the host's ``evaluate`` takes."""
    if "tasks" in tasks and not isinstance(tasks["tasks"], Task):
        return tasks.get("groups", {}), tasks["tasks"]
    groups, found = _handle_back_comp(dict(tasks))
    return groups, found


def _check_samples(samples: Mapping[str, Sequence[int]], tasks: Mapping[str, Any], *, cached: bool) -> None:
    if cached:
        raise InvalidInputError(
            "--samples with --cache_requests: the host would pair the cached prompts of the first documents "
            "with the documents chosen; drop --cache_requests"
        )
    for name, task in tasks.items():
        if name not in samples:
            raise InvalidInputError(
                f"--samples has no entry for task {name!r} (it has {', '.join(map(repr, samples))}), and the "
                f'host would run all its documents; add "{name}": [...] or drop the task'
            )
        ids = list(samples[name])
        if not ids:
            raise InvalidInputError(
                f"--samples chooses no document of task {name!r}, which the host takes for all of them; "
                "name at least one, or drop the task"
            )
        if any(type(i) is not int or i < 0 for i in ids):
            raise InvalidInputError(f"--samples of task {name!r} has {ids[:8]}; write document ids from 0")
        shown = ", ".join(map(str, sorted(set(ids))[:8])) + (", ..." if len(set(ids)) > 8 else "")
        remedy = f'write "{name}": [{shown}]'
        if len(set(ids)) != len(ids):
            raise InvalidInputError(
                f"--samples names documents of task {name!r} twice, which the host would run once and count "
                f"wrong; {remedy}"
            )
        if ids != sorted(ids):
            raise InvalidInputError(
                f"--samples of task {name!r} is not ascending, and the host would put the scores to the "
                f"wrong documents; {remedy}"
            )
        n = len(task.eval_docs)
        if ids[-1] >= n:
            raise InvalidInputError(
                f"--samples of task {name!r} names document {ids[-1]}, but it has {n} (0..{n - 1})"
            )
