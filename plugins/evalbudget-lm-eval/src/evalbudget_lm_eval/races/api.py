"""``race``: several models of the host on one task, and which is best, for a part of all evaluations."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from lm_eval.evaluator import simple_evaluate
from lm_eval.tasks import TaskManager

from evalbudget.comparisons import GateConfig, gate_of
from evalbudget.comparisons.flags import FLAGS as GATE_FLAGS
from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.flags import said_in
from evalbudget.hosts import BaselineArm, baseline_of, forecast_of_race
from evalbudget.races import RaceConfig, RacePurchase, leaderboard_of
from evalbudget.races.flags import FLAGS as RACE_FLAGS
from evalbudget_lm_eval.arms.arm import Arm, arms_of, check_arms, check_known, folder_of
from evalbudget_lm_eval.arms.compared import Compared
from evalbudget_lm_eval.arms.loaded_models import Stable
from evalbudget_lm_eval.arms.metric import check_direction, choose_metric
from evalbudget_lm_eval.arms.one_task import own_tasks, settings_of
from evalbudget_lm_eval.arms.paid_arms import check_prices
from evalbudget_lm_eval.arms.places import Places
from evalbudget_lm_eval.arms.settings import TASK, checked, every_pair
from evalbudget_lm_eval.judges.filter import check_judges
from evalbudget_lm_eval.races.history import earlier_scores
from evalbudget_lm_eval.races.money import RaceMoney
from evalbudget_lm_eval.races.output import RaceResult, results_of, write_results
from evalbudget_lm_eval.races.run import Progress, RaceRun
from evalbudget_lm_eval.repeats.budgeted import blocks_ignored
from evalbudget_lm_eval.repeats.config import NO_JOURNAL
from evalbudget_lm_eval.repeats.forecast import Foreseen
from evalbudget_lm_eval.repeats.refusals import check_answers_vary
from evalbudget_lm_eval.run.record import END, FOLDER, RACE, Record, digest_of, path_named

_NOT_HOST = (
    "model",
    "model_args",
    "tasks",
    "evaluation_tracker",
    "task_manager",
    "predict_only",
    "verbosity",
)


BASELINE = "baseline"
"""Name of a gate's baseline that is asked."""


@dataclass(frozen=True)
class Order:
    """Everything a race needs to know.

    Attributes:
        arms: who races.
        spec: the task or the group, as the host's task manager takes it.
        config: of the sampler; its ``score`` is ``metric`` or ``metric,filter``.
        keep: models loaded at once.
        journal: path of the record; None for one in the output folder or the current one, ``none`` for
            none.
        host: options of ``simple_evaluate``.
        tracker: arguments of the host's ``EvaluationTracker``.
        dry_run: say what would be bought, and ask nobody.
        devices: of arms whose models are loaded here.
    """

    arms: Sequence[Arm]
    spec: Any
    config: RaceConfig
    keep: int | None = None
    journal: str | None = None
    host: Mapping[str, Any] = field(default_factory=dict)
    tracker: Mapping[str, Any] = field(default_factory=dict)
    dry_run: bool = False
    devices: str | Sequence[str] | None = None


def race(
    arms: Mapping[str, Any],
    task: Any,
    *,
    budget: str | int | None = None,
    prices: str | Path | None = None,
    risk: float | None = None,
    until_proved: bool = False,
    until: str | None = None,
    sampler: str | None = None,
    score: str | None = None,
    seed: int | None = None,
    score_range: str | Sequence[float] | None = None,
    history: str | Path | None = None,
    lower_is_better: bool = False,
    missing: str | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    batch: int | None = None,
    margin: float | None = None,
    sampler_options: Mapping[str, Any] | None = None,
    store: str | Path | None = None,
    all_arms: int | None = None,
    keep: int | None = None,
    devices: str | Sequence[str] | None = None,
    output_path: str | Path | None = None,
    journal: str | Path | None = None,
    include_path: str | Path | None = None,
    task_manager: TaskManager | None = None,
    progress: Progress | None = None,
    **host: Any,
) -> RaceResult:
    """Which of several models is best on a task, for a part of all evaluations.

    Each model is asked each document once at most, and the sampler decides who is asked next. Models are
    loaded when they are first asked. One that cannot be loaded, or keeps failing, leaves the race.

    Args:
        arms: by name: ``"model:args"`` as on the command line, ``(model, args)`` or a model object.
        task: the host's name of a task or a group, a task's configuration or a task object.
        budget: evaluations to buy, of all models together: ``5000``, ``"20x"`` for 20 per document, ``"5%"``;
            or ``"$5"`` or ``"2Mtok"``, judges included.
        prices: file of prices, for a budget in money.
        risk: the accepted chance that the last calls exceed a budget in money or tokens.
        until_proved: go on until the best model is proved; the budget is then a cap, by default the whole
            grid.
        until: ``"±0.02"``, to go on until every model's mean is known that well; a single model will do.
        sampler: registered name of a sampler of models; default ``race``.
        score: that decides, ``metric`` or ``metric,filter``; needed where the task has several.
        seed: of the sampler.
        score_range: the smallest and the largest possible score, ``"1..10"``; default 0 to 1.
        history: a folder of earlier output of the host, a file of recorded scores or of factors, of other
            models on the same documents.
        lower_is_better: lower scores are better; not needed where the task says so.
        missing: what a document counts as that was given up for a model: ``worst`` (the default) for what is
            said, ``zero`` (a wrong answer) or ``drop`` (only documents that two models both answered).
        settings: options of the host that race each other, by name: ``{"none": {"num_fewshot": 0}, "five":
            {"num_fewshot": 5}}``; every model has each of them.
        batch: documents a model is given at a time; with ``race``, evaluations of all models together in a
            round, at least, and nothing with ``until_proved``. Large for local models, which are loaded anew
            each time.
        margin: with ``lucb``, models this close count as equivalent.
        sampler_options: further options of the sampler, for example ``{"delta": .01}``.
        store: where processes that run some arms each meet: the path of a file, or
            ``postgresql://user@host/database#name``. They share budget and race.
        all_arms: with ``store``, how many arms race, over all these processes.
        keep: models loaded here at once; default one, or one for each of ``devices``.
        devices: of arms whose models are loaded here, which are then asked side by side, one on each:
            ``"cuda:0,cuda:1"`` or a list; an arm with a ``device`` among its arguments keeps that. Without
            them one is asked after the other, and so are model objects that compute here. Arms that ask
            servers are always asked side by side. The race decides the same.
        output_path: folder for each arm's ``results_*.json`` and ``samples_*.jsonl``.
        journal: file that records every answer, by which a race goes on; default one in
            ``output_path``, if that is given; ``"none"`` for none.
        include_path: folder of further tasks.
        task_manager: of the host, if there is one already.
        progress: told how the race goes, before it begins and after each round.
        host: options of the host's ``simple_evaluate``: ``limit``, ``num_fewshot``, ``batch_size`` ...

    Returns:
        The leaderboard, and each arm's results as the host gives them.

    Raises:
        EvalbudgetError: an argument is no good; the message says the remedy.

    Example::

        race({"a": "hf:pretrained=a", "b": "hf:pretrained=b"}, "arc_easy", score="acc", budget=2000)
    """
    said = said_in(locals(), RACE_FLAGS)
    config = RaceConfig.of(**said, **(sampler_options or {}))
    racing = every_pair(
        arms_of(arms),
        [(name, checked(given, f"setting {name!r}")) for name, given in (settings or {}).items()],
    )
    order = _order(racing, task, config, host, output_path, journal, keep=keep, devices=devices)
    return run_order(order, task_manager or _manager(include_path, host), progress)


def gate(
    model: Any,
    task: Any,
    *,
    margin: float,
    baseline: str | Path | None = None,
    baseline_model: Any = None,
    level: float | None = None,
    these_items: bool = False,
    cluster: str | None = None,
    repeats: int | None = None,
    budget: str | int | None = None,
    prices: str | Path | None = None,
    risk: float | None = None,
    score: str | None = None,
    seed: int | None = None,
    score_range: str | Sequence[float] | None = None,
    lower_is_better: bool = False,
    missing: str | None = None,
    batch: int | None = None,
    name: str = "candidate",
    devices: str | Sequence[str] | None = None,
    output_path: str | Path | None = None,
    journal: str | Path | None = None,
    include_path: str | Path | None = None,
    task_manager: TaskManager | None = None,
    progress: Progress | None = None,
    **host: Any,
) -> RaceResult:
    """Whether a model is worse than a baseline: it is asked documents until that is decided.

    Args:
        model: ``"model:args"`` as on the command line, ``(model, args)`` or a model object.
        task: as in :func:`race`.
        baseline: the host's output, or a table of scores, of what the model is compared with.
        baseline_model: asked on documents that the baseline has no score on, written like ``model``.
        margin: what the model may be worse by, in the units of the score, above 0.
        level: confidence that a verdict is right; default .95.
        these_items: the verdict is about these documents as scored once each.
        cluster: field of the documents that says which belong together.
        repeats: answers of each document; default 1, and more if a baseline with several to each shows that
            one cannot decide.
        budget: evaluations at most, or ``"$5"``, or ``"2Mtok"``; default all documents.
        prices: as in :func:`race`.
        risk: as in :func:`race`.
        score: as in :func:`race`.
        seed: of the order of documents; by default every gate has one of its own.
        score_range: the smallest and the largest possible score, ``"1..10"``; default 0 to 1.
        lower_is_better: lower scores are better.
        missing: as in :func:`race`.
        batch: documents in the first round; later ones go by what a verdict lacks.
        name: of the model.
        devices: as in :func:`race`.
        output_path: as in :func:`race`.
        journal: as in :func:`race`.
        include_path: as in :func:`race`.
        task_manager: as in :func:`race`.
        progress: as in :func:`race`.
        host: options of the host's ``simple_evaluate``.

    Returns:
        The verdict as ``gate``, and the model's results as the host gives them.

    Raises:
        EvalbudgetError: an argument is no good; the message says the remedy.

    Example::

        gate("hf:pretrained=new", "arc_easy", score="acc", baseline="results/old", margin=0.02).gate.verdict
    """
    said = said_in(locals(), GATE_FLAGS)
    said["baseline_model"] = None if baseline_model is None else BASELINE
    config = GateConfig.of(**said)
    if name == BASELINE:
        raise InvalidInputError(
            f"name is {name!r}, which the baseline goes by; give the candidate another one"
        )
    arms = {name: model} if baseline_model is None else {BASELINE: baseline_model, name: model}
    order = _order(arms_of(arms), task, config, host, output_path, journal, devices=devices)
    return run_order(order, task_manager or _manager(include_path, host), progress)


def _order(
    arms: Sequence[Arm],
    task: Any,
    config: RaceConfig,
    host: Mapping[str, Any],
    output_path: str | Path | None,
    journal: str | Path | None,
    **more: Any,
) -> Order:
    """What was asked for in Python, checked."""
    _check_host(host)
    check_arms(arms, 1 if config.takes_one else 2)
    kept = str(journal) if journal is not None else NO_JOURNAL if output_path is None else None
    tracker = {"output_path": None if output_path is None else str(output_path)}
    return Order(arms, task, config, journal=kept, host=host, tracker=tracker, **more)


def _manager(include_path: str | Path | None, host: Mapping[str, Any]) -> TaskManager:
    return TaskManager(
        include_path=None if include_path is None else str(include_path), metadata=host.get("metadata")
    )


@blocks_ignored()
def run_order(order: Order, task_manager: TaskManager, progress: Progress | None) -> RaceResult:
    """Run a race whose arguments were checked.

    Raises:
        EvalbudgetError: as :func:`race`.
        Foreseen: it was only to be foreseen.
    """
    device = order.host.get("device")
    places = Places.of(order.devices, order.arms, device)
    compared = Compared.of(task_manager, order.spec, order.config.score, order.host)
    lower = order.config.lower_is_better or bool(compared.lower_is_better)
    order = replace(order, config=replace(order.config, lower_is_better=lower))
    check_direction(
        [(task, each, compared.metrics[task]) for task, each in compared.tasks.items()], lower=lower
    )
    name, metric = compared.name, next(iter(compared.metrics.values()))
    baseline: BaselineArm | None = None
    if isinstance(order.config, GateConfig):
        series, told = [metric, metric.partition(",")[0]], compared.lower_is_better is not None
        baseline = baseline_of(order.config, series, compared.as_logged, list(compared.items), told=told)
    absent = isinstance(order.config, GateConfig) and order.config.baseline_model is None
    beside = [f"baseline {baseline.model}"] if baseline is not None and absent else []
    names = [*beside, *(arm.name for arm in order.arms)]
    items = list(compared.items) if baseline is None else baseline.items
    repeats = 1 if baseline is None else baseline.repeats
    if order.dry_run:
        _check_models(order, compared)
        if repeats > 1:
            check_answers_vary(compared.tasks)
        asked = len(order.arms)
        raise Foreseen(forecast_of_race(order.config, name, names, items, asked=asked, repeats=repeats))
    own = _own_tasks(order, compared, task_manager)
    metrics = [own[arm.name][2] if arm.name in own else metric for arm in order.arms]
    record = Record.open(_journal(order, name), RACE, {"task": name, **settings_of(order.host)})
    stable: Stable | None = None
    money: RaceMoney | None = None
    race: RacePurchase | None = None
    config, free = order.config, 0
    try:
        check_known(order.arms, record)
        if isinstance(config, GateConfig):
            candidate = record.of(order.arms[-1].name)
            before = 0 if absent else len(record.of(order.arms[0].name).bought)
            config = config.in_order_of(candidate.begin_gate(before))
            free = candidate.known
        prices: Mapping[str, str] = {}
        if not config.in_scores:
            tariff = config.tariff()
            prices = tariff.told_of(check_prices(tariff, order.arms, list(compared.tasks.values())))
        money = RaceMoney.of(order.config, order.arms, record)
        predictor, notes = None, []
        if order.config.history is not None:
            predictor, note = earlier_scores(order.config, items, compared.tasks, metric, record.path)
            notes.append(note)
        bill = None if money is None else money.bill
        shared = None
        if config.store is not None and bill is not None:
            from evalbudget.races import SharedBill  # it brings SQLAlchemy, which no other race needs

            shared = SharedBill(bill.cap, bill.tariff, risk=config.risk)
            shared.copy_to(bill)
            bill, money = shared, RaceMoney(shared, names)
        race = RacePurchase(
            config,
            names,
            items,
            widths=[len(items) * repeats] * len(names),
            predictor=predictor,
            cost_of=None if bill is None else bill.of_sample,
            categories=None if baseline is None else baseline.categories,
            repeats=repeats,
            about={"task": name, "score": metric},
        )
        stable = Stable(
            list(order.arms),
            name,
            order.spec,
            compared.documents,
            {**order.host, "task_manager": task_manager},
            order.tracker,
            record,
            order.keep,
            {arm: (its_name, spec) for arm, (its_name, spec, _) in own.items()},
            places,
        )
        with_own = {arm: (its_name, decides) for arm, (its_name, _, decides) in own.items()}
        known_of = [] if baseline is None else baseline.known
        run = RaceRun(
            *(race, stable, compared, with_own, progress, money, known_of),
            absent=absent,
            free=free,
            at_once=places.at_once,
            join=None if config.store is None else partial(race.join, prices=prices, bill=shared),
        )
        if race.evaluations and config.store is None:  # of which others have bought some
            known = f"{race.evaluations:,} evaluations were known"
            notes.append(f"{known} from {record.path}; delete it to ask anew.")
        run.until_done()
        if run.calls != run.answers:
            notes.append(
                f"{run.answers:,} documents were answered in {run.calls:,} calls, those of judges included."
            )
        board = leaderboard_of(race, notes=notes, bill=None if money is None else money.bill)
        verdict = None
        if isinstance(config, GateConfig):
            bill, said = None if money is None else money.bill, () if baseline is None else baseline.notes
            verdict = gate_of(race, config, metric, bill, said)
        results = results_of(stable, race, board, metrics, verdict)
        write_results(stable, results, log_samples=bool(order.host.get("log_samples", True)))
        loads = {entrant.arm.name: entrant.loads for entrant in stable.entrants}
        return RaceResult(board, results, loads, record.path, verdict)
    finally:
        if stable is not None:
            stable.close()
        if race is not None:
            race.close()
        if money is not None:
            money.bill.close()
        record.close()


def _check_models(order: Order, compared: Compared) -> None:
    """Refuse what the race would refuse of its models and judges before it loads one."""
    tasks = list(compared.tasks.values())
    for task in tasks:
        check_judges(task)
    if not order.config.in_scores:
        check_prices(order.config.tariff(), order.arms, tasks)


def _own_tasks(order: Order, compared: Compared, manager: TaskManager) -> dict[str, tuple[str, Any, str]]:
    """Name, specification and deciding metric of tasks that arms have of their own, by arm."""
    if compared.is_group:
        for arm in order.arms:
            if TASK in arm.settings:
                raise InvalidInputError(
                    f"arm {arm.name} has a task of its own, and {compared.name!r} is {len(compared.tasks)} "
                    "tasks; settings with tasks of their own race on one"
                )
        return {}
    ((name, task),) = compared.tasks.items()
    found = own_tasks(manager, order.arms, name, task, compared.documents[name])
    own: dict[str, tuple[str, Any, str]] = {}
    for name, (its_name, spec, its_task) in found.items():
        metric = choose_metric(its_name, its_task, order.config.score, is_tried=True)
        told = (compared.name, task, compared.metrics[compared.name])
        check_direction([told, (its_name, its_task, metric)], lower=order.config.lower_is_better)
        own[name] = its_name, spec, metric
    return own


def _check_host(options: Mapping[str, Any]) -> None:
    known = [name for name in inspect.signature(simple_evaluate).parameters if name not in _NOT_HOST]
    for name in options:
        if name in _NOT_HOST:
            raise InvalidInputError(
                f"{name} is not for races; drop it (models are arms, and race() takes one task)"
            )
        if name not in known:
            raise UnknownNameError("option of lm-eval's simple_evaluate", name, known)


def _journal(order: Order, task: str) -> Path | None:
    if order.journal is not None:
        return None if order.journal == NO_JOURNAL else path_named(order.journal, order.config.store)
    path = Path(order.tracker.get("output_path") or "")
    folder = path.parent if path.suffix == ".json" else path
    # races of other arms, by other samplers or with other budgets may use what is known; other prompts not
    return folder / FOLDER / f"race-{folder_of(task)}-{digest_of(settings_of(order.host))}{END}"
