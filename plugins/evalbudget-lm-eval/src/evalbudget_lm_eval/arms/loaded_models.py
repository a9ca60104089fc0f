"""Arms as the host runs them: loaded when first asked, a few alive at a time."""

from __future__ import annotations

import gc
import json
import logging
import sys
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any

import lm_eval.evaluator
from lm_eval.api.model import CachingLM
from lm_eval.api.registry import get_model
from lm_eval.loggers import EvaluationTracker
from lm_eval.models.api_models import TemplateAPI

from evalbudget.errors import EvalbudgetError, InvalidInputError
from evalbudget.run import cleaned
from evalbudget_lm_eval.arms.arm import Arm
from evalbudget_lm_eval.arms.settings import with_setting
from evalbudget_lm_eval.host.fingerprint import fingerprint_of
from evalbudget_lm_eval.host.host_evaluate import PrimedTasks
from evalbudget_lm_eval.host.unloaded import Unloaded
from evalbudget_lm_eval.run.record import Kept, Record
from evalbudget_lm_eval.run.resume import take_over_answers

log = logging.getLogger(__name__)


@dataclass
class Entrant:
    """One arm and what the host has of it.

    Attributes:
        arm: who it is.
        task: name of its task, or of the group.
        spec: by which the host loads that.
        tracker: the host's, which writes its files.
        kept: what is recorded of it.
        primed: its tasks; None before it was opened.
        frame: what the host adds to the results of ``evaluate``; None before it was opened.
        loads: how often its model was loaded.
    """

    arm: Arm
    task: str
    spec: Any
    tracker: EvaluationTracker
    kept: Kept
    primed: PrimedTasks | None = None
    frame: dict[str, Any] | None = None
    loads: int = 0

    @property
    def is_alive(self) -> bool:
        """Whether its model is loaded."""
        return self.primed is not None and self.primed.lm is not None


class Stable:
    """The arms; at most ``keep`` models are loaded at any time.

    Args:
        arms: the models.
        task: name of the task, or of the group.
        spec: by which the host loads it.
        documents: ids that every arm must have, by task.
        options: of the host's ``simple_evaluate``, without models and tasks.
        tracker: arguments of the host's ``EvaluationTracker``.
        record: of the race or the audit.
        keep: models alive at once; None: all of them if all are APIs, otherwise one.
        own: name and specification of the task of arms that have one of their own, by arm.

    Raises:
        InvalidInputError: ``keep`` is below 1.
    """

    def __init__(
        self,
        arms: list[Arm],
        task: str,
        spec: Any,
        documents: Mapping[str, tuple[int, ...]],
        options: Mapping[str, Any],
        tracker: Mapping[str, Any],
        record: Record,
        keep: int | None,
        own: Mapping[str, tuple[str, Any]] = MappingProxyType({}),
    ) -> None:
        if keep is not None and keep < 1:
            raise InvalidInputError(f"--keep is {keep}; at least 1 model must be loaded to be asked")
        self.documents = documents
        self.record = record
        self.entrants = [
            Entrant(arm, *own.get(arm.name, (task, spec)), EvaluationTracker(**tracker), record.of(arm.name))
            for arm in arms
        ]
        self.keep = keep if keep is not None else len(arms) if all(map(_is_api, arms)) else 1
        self._options = dict(options)
        self._prompts: dict[str, PrimedTasks] = {}  # by setting
        self._alive: list[Entrant] = []  # the one asked last comes last

    def ready(self, entrant: Entrant) -> PrimedTasks:
        """The tasks of an arm, its model loaded; another model may be dropped for it.

        Raises:
            InvalidInputError: the arm has other documents than the others, or runs in several processes.
            Exception: whatever the host raises on loading it.
        """
        if entrant.is_alive:
            self._alive.remove(entrant)
        else:
            twin = self._twin(entrant.arm)
            while twin is None and len({id(_bare(each)) for each in self._alive}) >= self.keep:
                self._drop(self._alive[0])
            self._load(entrant, twin)
        self._alive.append(entrant)
        assert entrant.primed is not None
        return entrant.primed

    def is_loaded(self, entrant: Entrant) -> bool:
        """Whether its model is, for itself or for an arm that differs in settings only."""
        return entrant.is_alive or self._twin(entrant.arm) is not None

    def opened(self, entrant: Entrant) -> PrimedTasks:
        """The tasks of an arm, to write its results; its model is not loaded for that."""
        if entrant.primed is None:
            self._open(entrant, replace(entrant.arm, model=Unloaded(), args={}))
            known = entrant.kept.opened
            entrant.frame = dict(known["frame"])
            for name, value in known["tracker"].items():
                setattr(entrant.tracker.general_config_tracker, name, value)
        assert entrant.primed is not None
        return entrant.primed

    def close(self) -> None:
        """Drop all models and leave the host's tasks as they were."""
        while self._alive:
            self._drop(self._alive[0])
        for entrant in self.entrants:
            if entrant.primed is not None:
                entrant.primed.restore()

    def _twin(self, arm: Arm) -> Any:
        """The loaded model of an arm that differs in settings only; None if there is none."""
        for each in self._alive:
            if not arm.is_live and _differ_in_settings_only(each.arm, arm):
                return _bare(each)
        return None

    def _load(self, entrant: Entrant, twin: Any) -> None:
        if entrant.primed is None:
            self._begin(entrant, twin)
            begun = [entrant, *self._begin_others(entrant)]
            self._check_settings(entrant)
            for each in begun:
                facts = asdict(each.tracker.general_config_tracker)
                each.kept.open(each.arm.description, {"frame": each.frame, "tracker": facts})
        else:
            entrant.primed.lm = self._model(entrant.arm) if twin is None else self._cached(twin)
        entrant.loads += twin is None

    def _begin(self, entrant: Entrant, twin: Any) -> None:
        """Open an arm for the first time."""
        self._open(entrant, entrant.arm if twin is None else replace(entrant.arm, model=twin))
        if twin is not None and not entrant.arm.is_live and entrant.frame is not None:
            entrant.frame["config"]["model"] = entrant.arm.model  # the host knows its class only
            entrant.tracker.general_config_tracker.model_source = entrant.arm.model

    def _begin_others(self, entrant: Entrant) -> list[Entrant]:
        """Open the arms that differ in settings only, before anything is asked; those are returned.

        One that the host refuses is left out: it says so itself when it is asked.
        """
        begun: list[Entrant] = []
        for each in [each for each in self._like(entrant) if each.primed is None]:
            try:
                self._begin(each, _bare(entrant))
            except EvalbudgetError:
                raise
            except Exception:  # the host's
                log.info("arm %s could not be opened", each.arm.name, exc_info=True)
                continue
            if each.primed is not None:
                each.primed.lm = None
            begun.append(each)
        return begun

    def _check_settings(self, entrant: Entrant) -> None:
        """Refuse settings that change nothing.

        Raises:
            InvalidInputError: two arms of a model ask the same of the same task.
        """
        asked: dict[str, str] = {}
        for each in (entrant, *self._like(entrant)):
            if each.primed is None:
                continue
            prompts = fingerprint_of(each.primed)
            if prompts in asked:
                raise InvalidInputError(
                    f"arms {asked[prompts]} and {each.arm.name} ask the same in the same way: lm-eval does "
                    "not heed what they differ in (num_fewshot where the task's YAML says 0, gen_kwargs "
                    "where nothing is generated, fewshot_as_multiturn without a chat template); drop one"
                )
            asked[prompts] = each.arm.name

    def _like(self, entrant: Entrant) -> list[Entrant]:
        """The other arms that differ from this one in settings only."""
        return [
            each
            for each in self.entrants
            if each is not entrant and _differ_in_settings_only(each.arm, entrant.arm)
        ]

    def _open(self, entrant: Entrant, arm: Arm) -> None:
        """Run the host's ``simple_evaluate`` up to the point where it would ask its first question."""
        primed: list[PrimedTasks] = []
        asked = json.dumps(entrant.arm.settings, sort_keys=True, default=str)

        def stop_here(lm: Any, task_dict: Any, **host: Any) -> dict[str, Any]:
            # without a chat template no prompt depends on the model, and building them takes the host long
            same = None if host.get("apply_chat_template") else self._prompts.get(asked)
            primed.append(PrimedTasks(lm, task_dict, prompts_of=same, **host))
            return {}

        with _instead_of_evaluate(stop_here):
            frame = lm_eval.evaluator.simple_evaluate(
                model=arm.model,
                model_args=dict(arm.args),
                tasks=[entrant.spec],
                evaluation_tracker=entrant.tracker,
                **with_setting(self._options, entrant.arm.settings),
            )
        if frame is None:
            raise InvalidInputError("arms run in one process; start it without accelerate or torchrun")
        for task, documents in self.documents.items():
            task = task if task in primed[0].names else entrant.task  # an arm may have one of its own
            own = frozenset(primed[0].documents(task))
            if own != set(documents):
                raise InvalidInputError(
                    f"arm {entrant.arm.name} has {len(own):,} documents of task {task!r}, and the others "
                    f"have {len(documents):,}; models are compared on the same documents"
                )
        take_over_answers(primed[0], entrant.kept)
        entrant.primed, entrant.frame = primed[0], cleaned(frame)  # it has the model's arguments
        self._prompts.setdefault(asked, entrant.primed)

    def _model(self, arm: Arm) -> Any:
        """The model alone, as ``simple_evaluate`` makes it."""
        if arm.is_live:
            return self._cached(arm.model)
        more = {name: self._options.get(name) for name in ("batch_size", "max_batch_size", "device")}
        return self._cached(get_model(arm.model).create_from_arg_obj(dict(arm.args), more))

    def _cached(self, lm: Any) -> Any:
        cache = self._options.get("use_cache")
        return lm if cache is None else CachingLM(lm, f"{cache}_rank{lm.rank}.db")

    def _drop(self, entrant: Entrant) -> None:
        loaded = _bare(entrant)
        for each in [each for each in self._alive if _bare(each) is loaded]:
            self._alive.remove(each)
            assert each.primed is not None
            each.primed.lm = None
        model = weakref.ref(loaded)
        del loaded
        if model() is None or entrant.arm.is_live:
            return
        gc.collect()  # models hold themselves in circles, and the next one needs the room
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_available():
            torch.cuda.empty_cache()


def _differ_in_settings_only(arm: Arm, other: Arm) -> bool:
    if arm.is_live or other.is_live:
        return arm.model is other.model
    return (arm.model, arm.args) == (other.model, other.args)


def _bare(entrant: Entrant) -> Any:
    """Its model, without the host's cache before it."""
    assert entrant.primed is not None
    lm = entrant.primed.lm
    return lm.lm if isinstance(lm, CachingLM) else lm


@contextmanager
def _instead_of_evaluate(function: Any) -> Iterator[None]:
    before = lm_eval.evaluator.evaluate
    lm_eval.evaluator.evaluate = function
    try:
        yield
    finally:
        lm_eval.evaluator.evaluate = before


def _is_api(arm: Arm) -> bool:
    if arm.is_live:
        return True
    try:
        return issubclass(get_model(arm.model), TemplateAPI)
    except Exception:  # of a package that is missing: loading the model will say so
        return False
