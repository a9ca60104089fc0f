"""Arms as the host runs them: loaded when first asked, a few alive at a time."""

from __future__ import annotations

import copy
import gc
import json
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
from lm_eval.api.task import Task
from lm_eval.loggers import EvaluationTracker

from evalbudget.errors import EvalbudgetError, InvalidInputError
from evalbudget.secrets import cleaned
from evalbudget.shown import shown_logger
from evalbudget_lm_eval.arms.arm import Arm, folder_of, is_api_arm
from evalbudget_lm_eval.arms.places import Place, Places
from evalbudget_lm_eval.arms.settings import with_setting
from evalbudget_lm_eval.host.fingerprint import fingerprint_of
from evalbudget_lm_eval.host.host_evaluate import PrimedTasks
from evalbudget_lm_eval.host.identity import is_api
from evalbudget_lm_eval.host.unloaded import Unloaded
from evalbudget_lm_eval.run.kept import Kept
from evalbudget_lm_eval.run.record import Record
from evalbudget_lm_eval.run.resume import take_over_answers

log = shown_logger(__name__)

_ONE = Places()


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
        place: where its model is; None for nowhere in particular.
    """

    arm: Arm
    task: str
    spec: Any
    tracker: EvaluationTracker
    kept: Kept
    primed: PrimedTasks | None = None
    frame: dict[str, Any] | None = None
    loads: int = 0
    place: Place | None = None

    @property
    def is_alive(self) -> bool:
        """Whether its model is loaded."""
        return self.primed is not None and self.primed.lm is not None


class Stable:
    """The arms; at most ``keep`` models are loaded here at any time.

    Args:
        arms: the models.
        task: name of the task, or of the group.
        spec: by which the host loads it.
        documents: ids that every arm must have, by task.
        options: of the host's ``simple_evaluate``, without models and tasks.
        tracker: arguments of the host's ``EvaluationTracker``.
        record: of the race or the audit.
        keep: models loaded here at once; None for one, or one for each device.
        own: name and specification of the task of arms that have one of their own, by arm.
        places: how many arms are asked at once, and where they may be.

    Raises:
        InvalidInputError: ``keep`` is below 1, or below what is asked here at once.
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
        places: Places = _ONE,
    ) -> None:
        if keep is not None and keep < 1:
            raise InvalidInputError(f"--keep is {keep}; at least 1 model must be loaded to be asked")
        several = max(1, len(places.free_to_use))
        if keep is not None and keep < several:
            raise InvalidInputError(
                f"--keep is {keep}, and --devices names {several}, each with a model of its own; give --keep "
                f"{several} or more, or leave it out"
            )
        self.documents = documents
        self.record = record
        self.entrants = [
            Entrant(arm, *named, EvaluationTracker(**tracker), record.of(arm.name))
            for arm in arms
            # a task object that the user gave serves one round at a time
            for named in [own.get(arm.name, (task, copy.copy(spec) if isinstance(spec, Task) else spec))]
        ]
        self.keep = several if keep is None else keep
        self._places = places
        self._in_use: list[Entrant] = []
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
            if twin is None:
                self._make_room(entrant)
            else:
                entrant.place = twin.place
            self._load(entrant, None if twin is None else _bare(twin))
        self._alive.append(entrant)
        assert entrant.primed is not None
        return entrant.primed

    def hold(self, entrant: Entrant) -> None:
        """It is being asked: its model stays, and its place is taken, until :meth:`release`."""
        self._in_use.append(entrant)

    def release(self, entrant: Entrant) -> None:
        """It was asked."""
        self._in_use.remove(entrant)

    def may_begin(self, entrant: Entrant) -> bool:
        """Whether it can be asked beside those that are: its model and a place for it are free."""
        if any(self._shares_model(each.arm, entrant.arm) for each in self._in_use):
            return False
        return not self._places.of_arm(entrant.arm) or bool(self._free_places(entrant))

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

    def _twin(self, arm: Arm) -> Entrant | None:
        """One whose loaded model is this arm's, too; None if there is none."""
        for each in self._alive:
            if not arm.is_live and self._shares_model(each.arm, arm):
                return each
        return None

    def _shares_model(self, arm: Arm, other: Arm) -> bool:
        """Whether they differ in settings only; each has an object of its own for a server."""
        if not arm.is_live and is_api_arm(arm):
            return arm is other
        return _differ_in_settings_only(arm, other)

    def _free_places(self, entrant: Entrant) -> list[Place]:
        """Where it may be asked now: where its model is, or else where there is most room."""
        taken = {each.place for each in self._in_use}
        loaded = entrant if entrant.is_alive else self._twin(entrant.arm)
        places = self._places.of_arm(entrant.arm) if loaded is None else (loaded.place,)
        used = [each.place for each in self._alive]  # the last one most recently

        def crowd(place: Place) -> tuple[int, int]:
            return used.count(place), used.index(place) if place in used else -1

        return sorted((place for place in places if place is not None and place not in taken), key=crowd)

    def _make_room(self, entrant: Entrant) -> None:
        """Choose a place for a model that will be loaded, and drop those that were asked longest ago."""
        entrant.place = next(iter(self._free_places(entrant)), None)
        if is_api_arm(entrant.arm):
            return
        at_one = max(1, self.keep // max(1, len(self._places.free_to_use)))
        in_use = {id(_bare(each)) for each in self._in_use}
        idle = [each for each in self._loaded if id(_bare(each)) not in in_use]
        for each in sorted(idle, key=lambda each: each.place != entrant.place):
            alive = {id(_bare(other)): other.place for other in self._loaded}
            crowded = entrant.place is not None and [*alive.values()].count(entrant.place) >= at_one
            if each.is_alive and (len(alive) >= self.keep or (crowded and each.place == entrant.place)):
                self._drop(each)

    @property
    def _loaded(self) -> list[Entrant]:
        """Those whose models take room here."""
        return [each for each in self._alive if not is_api_arm(each.arm)]

    def _load(self, entrant: Entrant, twin: Any) -> None:
        if entrant.primed is None:
            self._begin(entrant, twin)
            begun = [entrant, *self._begin_others(entrant)]
            self._check_settings(entrant)
            for each in begun:
                facts = asdict(each.tracker.general_config_tracker)
                each.kept.open(each.arm.description, {"frame": each.frame, "tracker": facts})
        else:
            entrant.primed.lm = self._model(entrant) if twin is None else self._cached(entrant, twin)
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
                **with_setting(self._options_of(entrant), entrant.arm.settings),
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

    def _options_of(self, entrant: Entrant) -> dict[str, Any]:
        """The host's, with the device that we choose, and a cache for each model: the host's names none."""
        options, place = dict(self._options), entrant.place
        if place is not None and place.device is not None and "device" not in entrant.arm.args:
            options["device"] = place.device
        same = [each for each in self.entrants if _differ_in_settings_only(each.arm, entrant.arm)]
        if options.get("use_cache") is not None and len(same) < len(self.entrants):
            options["use_cache"] = f"{options['use_cache']}_{folder_of(same[0].arm.name)}"
        return options

    def _model(self, entrant: Entrant) -> Any:
        """The model alone, as ``simple_evaluate`` makes it."""
        arm = entrant.arm
        if arm.is_live:
            return self._cached(entrant, arm.model)
        options = self._options_of(entrant)
        more = {name: options.get(name) for name in ("batch_size", "max_batch_size", "device")}
        return self._cached(entrant, get_model(arm.model).create_from_arg_obj(dict(arm.args), more))

    def _cached(self, entrant: Entrant, lm: Any) -> Any:
        cache = self._options_of(entrant).get("use_cache")
        return lm if cache is None else CachingLM(lm, f"{cache}_rank{lm.rank}.db")

    def _drop(self, entrant: Entrant) -> None:
        loaded = _bare(entrant)
        for each in [each for each in self._alive if _bare(each) is loaded]:
            self._alive.remove(each)
            assert each.primed is not None
            each.primed.lm = None
        takes_no_room = entrant.arm.is_live or is_api(loaded)
        model = weakref.ref(loaded)
        del loaded
        if model() is None or takes_no_room:
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
