"""``CyclicJudgeFilter``: judges that take turns, written into a task's YAML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lm_eval.api.filter import Filter

from evalbudget.errors import EvalbudgetError, InvalidInputError, JournalError
from evalbudget.judges.schedules import Dealer
from evalbudget.shown import shown_logger
from evalbudget_lm_eval.host.answers import asked_now, task_now
from evalbudget_lm_eval.host.host_evaluate import PrimedTasks
from evalbudget_lm_eval.host.used_up import UsedUpError
from evalbudget_lm_eval.judges.asking import Answer, Asking
from evalbudget_lm_eval.judges.panel import JudgePanel
from evalbudget_lm_eval.judges.readings import Reading, Readings

log = shown_logger(__name__)


class CyclicJudgeFilter(Filter):  # type: ignore[misc]  # the host is untyped
    """Has every response scored by a judge: another one for each document and repeat.

    .. code-block:: yaml

        filter_list:
          - name: panel
            filter:
              - function: !function evalbudget_lm_eval.CyclicJudgeFilter
                judges:
                  - local-chat-completions:model=a,base_url=http://localhost:8000/v1/chat/completions
                  - local-chat-completions:model=b,base_url=http://localhost:8000/v1/chat/completions
                scale: [1, 5]
        metric_list:
          - metric: !function evalbudget_lm_eval.judged
            aggregation: !function evalbudget_lm_eval.panel
            higher_is_better: true

    Which judge scores what depends on the documents' order, the repeat and the seed alone; judges are
    balanced overall and within the documents' ``category``. A judge whose first eight calls all fail is asked
    no more, and its turns go to the others. A call that fails, or a reply without a number on the scale, is
    missing.

    The host makes filters when the answers are there and paid for. So options are not refused then: what
    cannot be used is logged as an error, the answers go into ``samples_*.jsonl`` without scores, and a run
    with a budget refuses before it starts (:func:`check_judges`).

    Args:
        judges: model strings of the host (its ``--model``, a colon, its ``--model_args``), or mappings with
            ``model`` and optionally ``name``, ``model_args``, ``gen_kwargs``, ``apply_chat_template``.
        rotation: ``cyclic``, ``random``, ``priced``, ``single``, or ``all``: every judge scores everything.
        prompt: Jinja template of what a judge is told, with the document's fields, ``response``, ``low`` and
            ``high``; or ``!function`` of (document, response).
        scale: its two ends; other numbers count as missing.
        pattern: regular expression whose one group is the number, where it matches last.
        gen_kwargs: of all judges; at ``temperature: 0`` a repeat says the same of the same answer.
        seed: of the rotation.
        category: field of the documents within which judges are balanced.
        prices: of one call of each judge, by name or in order, for the rotation ``priced``.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self._options = options

    @staticmethod
    def varies(**options: Any) -> bool:
        """Whether judges may score the same response differently another time."""
        return JudgePanel.of(options).is_stochastic

    @staticmethod
    def scores_per_answer(**options: Any) -> int:
        """How many judges score each response."""
        return JudgePanel.of(options).calls_per_generation

    def apply(self, resps: Iterable[Any], docs: Sequence[Mapping[str, Any]]) -> list[Readings]:
        """Readings of all documents, in their order."""
        responses = [[r] if isinstance(r, str) else list(r) for r in resps]
        try:
            panel = JudgePanel.of(self._options)
            return _judge(panel, responses, docs)
        except (
            JournalError,
            UsedUpError,
        ):  # what judges said is lost if the run goes on; or its money is gone
            raise
        except EvalbudgetError as ex:
            log.error(
                "%s. No judge was asked. The responses are kept where samples are logged; --use_cache keeps "
                "them for the next run",
                ex,
            )
            return [Readings() for _ in responses]


def filter_of(task: Any) -> Any:
    """What makes the filter of a host's task, its options as ``keywords``; None if no judge scores it."""
    for ensemble in getattr(task, "_filters", ()):
        for make in ensemble.filters:
            if getattr(make, "func", None) is CyclicJudgeFilter:
                return make
    return None


def judges_of(primed: PrimedTasks) -> list[Any]:
    """Models that judge, each once."""
    panels = [panel for name in primed.names if (panel := panel_of(primed.task(name)))]
    loaded = {id(lm): lm for panel in panels for lm in (judge.load() for judge in panel.specs)}
    return list(loaded.values())


def panel_of(task: Any) -> JudgePanel | None:
    """The panel of a host's task; None if no judge scores it.

    Raises:
        InvalidInputError: the filter's options cannot be used.
        UnknownNameError: one of them does not exist.
    """
    make = filter_of(task)
    return None if make is None else JudgePanel.of(make.keywords)


def check_judges(task: Any) -> JudgePanel | None:
    """The same, with every judge loaded: before a run spends anything.

    Raises:
        InvalidInputError: options or a judge that cannot be used, or targets that hide the judges' scores.
        UnknownNameError: an option or rotation that does not exist.
    """
    panel = panel_of(task)
    if panel is None:
        return None
    if getattr(task, "multiple_target", 0) and task.config.process_results is None:
        raise InvalidInputError(
            f"task {task.config.task!r} has several targets per document, where the host turns metrics "
            "into 0 or 1; write process_results: !function evalbudget_lm_eval.process_judged and "
            "metric_list: !function evalbudget_lm_eval.JUDGED_METRICS, or one doc_to_target"
        )
    for judge in panel.specs:
        judge.load()
    return panel


def _judge(
    panel: JudgePanel, responses: Sequence[Sequence[str]], docs: Sequence[Mapping[str, Any]]
) -> list[Readings]:
    asked, task = asked_now.get(), task_now.get()
    epochs = max((len(own) for own in responses), default=1)
    if asked is None or task is None:
        dealer = Dealer(panel.schedule_of(docs, epochs))
        first = [(item, 0) for item in range(len(docs))]
    else:
        if panel.key not in task.memory:
            schedule = panel.schedule_of(list(task.docs.values()), epochs)
            task.memory[panel.key] = Dealer(schedule)
        dealer = task.memory[panel.key]
        place = {doc_id: item for item, doc_id in enumerate(task.docs)}
        first = [(place[one.doc_id], one.epoch * epochs) for one in asked]
    answers, owners = [], []
    for number, ((item, start), own, doc) in enumerate(zip(first, responses, docs, strict=True)):
        for epoch, response in enumerate(own, start):
            answers.append(Answer(item, epoch, panel.grading.render(doc, response)))
            owners.append(number)
    asking = Asking(panel, dealer, answers)
    if asked is not None and task is not None:
        asking.seeds_of = task.seeds_of
        asking.ill = task.memory.setdefault(f"{panel.key} ill", set())
        places = {
            (owner, answer.epoch): i for i, (owner, answer) in enumerate(zip(owners, answers, strict=True))
        }
        for number, one in enumerate(asked):
            for reading in filter(None, map(Reading.parse, task.known.get(one, ()))):
                asking.know(places.get((number, reading.epoch)), reading)
        keep, owner_of = task.keep, [asked[owner] for owner in owners]
        asking.told = lambda position, reading: keep(owner_of[position], str(reading))
        if (bill := task.bill) is not None:
            asking.begins = lambda position, judge: bill.begins(owner_of[position], judge)
            asking.will_ask = lambda calls: bill.will_ask((owner_of[p], *call) for p, *call in calls)
            asking.asks = lambda positions: bill.asks([owner_of[p] for p in positions])
            asking.pays = bill.pays
    found = iter(asking.run())
    return [_readings(panel, [next(found) for _ in own]) for own in responses]


def _readings(panel: JudgePanel, readings: Sequence[Sequence[Reading]]) -> Readings:
    every = (reading for one in readings for reading in one)
    return _of_panel(panel, every)


def _of_panel(panel: JudgePanel, readings: Iterable[Reading]) -> Readings:
    scale = (float(panel.grading.low), float(panel.grading.high))
    return Readings(readings, judges=panel.judges, weighs_judges=panel.weighs_judges, scale=scale)


def revived(task: Any, record: dict[str, Any]) -> dict[str, Any]:
    """A sample record from a file, with the readings that its row's total needs.

    Args:
        task: the host's.
        record: as it was written; it is returned as it is unless judges scored it.
    """
    panel = panel_of(task)
    said = record.get("filtered_resps") or [[]]
    texts = said[0] if isinstance(said[0], list) else []
    readings = [reading for reading in map(Reading.parse, texts) if reading is not None]
    if panel is None or len(readings) < len(texts):
        return record
    own = _of_panel(panel, readings)
    return {**record, "filtered_resps": [own], **task.process_results(record["doc"], [own])}


def judged_at_random(task: Any) -> bool:
    """Whether one of the task's filters scores the same response differently another time."""
    for ensemble in getattr(task, "_filters", ()):
        for make in ensemble.filters:
            varies = getattr(getattr(make, "func", make), "varies", None)
            if callable(varies) and varies(**getattr(make, "keywords", {})):
                return True
    return False
