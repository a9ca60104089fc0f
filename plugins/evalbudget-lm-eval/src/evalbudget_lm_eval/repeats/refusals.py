"""Runs that would waste money or mislead, refused with the flag that fixes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from lm_eval.api.model import CachingLM
from numpy.typing import NDArray

from evalbudget import Allocation
from evalbudget.errors import BudgetError, InvalidInputError
from evalbudget.repeats import Repeat, require_clusters
from evalbudget.repeats.estimates import strata_labels
from evalbudget.shown import shown_logger
from evalbudget_lm_eval.host.filters import keeps_first
from evalbudget_lm_eval.host.host_evaluate import PrimedTasks
from evalbudget_lm_eval.host.identity import is_api
from evalbudget_lm_eval.judges.filter import judged_at_random, panel_of
from evalbudget_lm_eval.repeats.config import Config

log = shown_logger(__name__)
ASK_ONCE = "; or ask each document once: --repeats 1"
"""The remedy where a race asks it several times."""
_GENERATES = "generate_until"


def drawn(config: Config, primed: PrimedTasks) -> Config:
    """The same, drawing a sample of the documents if nobody named a sampler and the budget asks for it.

    Raises:
        InvalidInputError: a sampler that draws one was named for a task that judges score in turn; or
            ``strata`` is no field of the documents.
    """
    judged = [name for name in primed.names if panel_of(primed.task(name)) is not None]
    if judged and config.draws:
        raise InvalidInputError(
            f"--sampler {config.sampler} reads documents once, and judges that take turns (task "
            f"{judged[0]!r}) are told apart by documents that they all score; drop the judges, or evaluate "
            "fewer documents with --limit"
        )
    documents = [(name, doc) for name in primed.names for doc in primed.documents(name)]
    labels = strata_of(config, primed)  # what it refuses
    if not config.in_scores or judged:
        return config
    found = config.for_items(len(documents), sum(primed.cost(*document) for document in documents))
    if labels is not None and not found.draws:
        log.warning(
            "evalbudget: --strata %s changes nothing: the budget pays for the first readings of all %d "
            "documents, so that no sample of them is drawn",
            config.strata,
            len(documents),
        )
    if found.draws and not config.draws and same_again(primed) is not None:
        return replace(found, options={"once": True})
    return found


def strata_of(config: Config, primed: PrimedTasks) -> dict[str, tuple[str, ...]] | None:
    """What ``--strata`` says of the documents of each task, in their order; None where it was not given.

    Raises:
        InvalidInputError: no document has the field, or no two have the same.
    """
    if config.strata is None:
        return None
    docs = [(name, primed.doc(name, doc)) for name in primed.names for doc in primed.documents(name)]
    fields = [doc if isinstance(doc, Mapping) else {} for _, doc in docs]
    known = {str(name) for each in fields for name in each}
    labels = strata_labels([each.get(config.strata) for each in fields], config.strata, known)
    found: dict[str, list[str]] = {name: [] for name in primed.names}
    for (name, _), label in zip(docs, labels, strict=True):
        found[name].append(label)
    return {name: tuple(own) for name, own in found.items()}


def clusters_of(config: Config, primed: PrimedTasks) -> dict[str, NDArray[np.int64]] | None:
    """Clusters of the documents of each task, in their order, by ``--cluster``; None where it was not given.

    Raises:
        InvalidInputError: a document lacks the field.
    """
    if config.cluster is None:
        return None
    found = {}
    for name in primed.names:
        documents = primed.documents(name)
        docs = [doc if isinstance(doc := primed.doc(name, i), Mapping) else {} for i in documents]
        found[name] = require_clusters(
            [doc.get(config.cluster) for doc in docs],
            config.cluster,
            [f"{name}:{i}" for i in documents],
            known={str(field) for doc in docs for field in doc},
            what="document",
        )
    return found


def check_shared(primed: PrimedTasks) -> None:
    """Refuse what processes that share a budget cannot do.

    Raises:
        InvalidInputError: several tasks, or judges in the task's filters.
    """
    why = None
    if len(primed.names) > 1:
        why = f"one task at a time, and this is {len(primed.names)}"
    elif panel_of(primed.task(primed.names[0])) is not None:
        why = f"no judges that take turns, and the task {primed.names[0]!r} has them"
    if why is not None:
        raise InvalidInputError(f"processes that share a budget (--store) take {why}; run it in one process")


def check_budget(config: Config, primed: PrimedTasks) -> bool:
    """Refuse a budget that does not cover the first readings.

    Returns:
        Whether the budget pays for repeats.

    Raises:
        BudgetError: it is too small.
    """
    if not config.in_scores:
        return True  # what answers cost is known when they are there
    costs = [primed.cost(name, doc) for name in primed.names for doc in primed.documents(name)]
    first = max(1, config.fixed_repeats)
    minimum = max(costs) if config.draws else sum(costs) * first
    budget = config.resolve_budget(sum(costs))
    if budget.amount < minimum and config.draws:
        raise BudgetError(
            f"budget of {budget} is below the {minimum:,} calls that one answer takes; raise --budget to "
            "that or more"
        )
    each = f"{first} times" if first > 1 else "once"
    why = f"{config.sampler} reads each of the {len(costs):,} documents {each} before it chooses"
    if max(costs) > 1:
        why += f", at up to {max(costs)} calls of the model each"
    judged = any(panel_of(primed.task(name)) is not None for name in primed.names)
    fewer = "fewer documents with --limit or --samples"
    config.check_minimum(budget, minimum, why, fewer, judged=judged)
    return bool(budget.amount > sum(costs))


def calls_of_readings(primed: PrimedTasks) -> list[str]:
    """What to say of tasks that ask for several answers at a time, with the remedy where one is scored."""
    return [told for name in primed.names if (told := _calls_of_reading(primed, name))]


def _calls_of_reading(primed: PrimedTasks, name: str) -> str:
    first, task = primed.documents(name)[0], primed.task(name)
    repeats = primed.instances(name, first)[0].repeats or 1
    if repeats < 2 or panel_of(task) is not None:
        return ""
    told = f"a reading of {name} takes {primed.cost(name, first):,} calls, by its repeats: {repeats}"
    if not keeps_first(task):
        return told
    return (
        f"{told}. Its filters keep the first answer alone (take_first): with repeats: 1 the same budget "
        f"buys {repeats} times as many readings"
    )


def check_repeats(config: Config, primed: PrimedTasks) -> None:
    """Refuse repeats that would all be the same.

    Raises:
        InvalidInputError: greedy decoding, a deterministic score, a fixed seed or cached responses; or, where
            judging is repeated, a task without judges, or judges that only say the same again.
    """
    if config.repeat is Repeat.JUDGE:
        _check_judging(config, primed)
        return
    why = same_again(primed)
    if why is not None and not (config.draws and config.options.get("once")):
        raise InvalidInputError(f"{why}; or read every document once: --sampler uniform --budget 1x")


def same_again(primed: PrimedTasks) -> str | None:
    """Why a repeat would say the same; None if it would not."""
    for name in primed.names:
        if judged_at_random(primed.task(name)):
            continue  # the same answer scored anew
        why = next(_reasons(primed, name), None)
        if why is not None:
            return why
    return None


def check_answers_vary(tasks: Mapping[str, Any]) -> None:
    """Refuse several answers of each document where no model need be loaded to know that all are the same.

    Raises:
        InvalidInputError: a task does not generate text.
    """
    for name, task in tasks.items():
        if task.OUTPUT_TYPE not in (None, _GENERATES) and not judged_at_random(task):
            raise InvalidInputError(f"{_log_likelihoods(name, task.OUTPUT_TYPE)}{ASK_ONCE}")


def _log_likelihoods(name: str, kind: str | None) -> str:
    return (
        f"task {name!r} scores log-likelihoods ({kind}), which are the same every time, so repeats would be "
        "identical: choose a task that generates text"
    )


def _check_judging(config: Config, primed: PrimedTasks) -> None:
    documents = {name: primed.documents(name) for name in primed.names}
    once = sum(primed.cost(name, doc) for name, own in documents.items() for doc in own)
    for name in primed.names:
        panel = panel_of(primed.task(name))
        if panel is None:
            raise InvalidInputError(
                f"--repeat judge scores the same answer again, and no judge scores task {name!r}: its "
                "metrics would say the same each time. Name judges with --judges, or drop --repeat judge"
            )
        cold = [judge.name for judge in panel.specs if judge.temperature == 0]
        # in turn, on one response per document, no judge meets an answer twice before all have met it
        turns = (
            panel.rotation == "cyclic" and (primed.instances(name, documents[name][0])[0].repeats or 1) == 1
        )
        most = len(panel.judges) if turns and config.allocation is Allocation.FIXED else 1
        if not cold or (config.in_scores and config.resolve_budget(once).amount <= most * once):
            continue
        raise InvalidInputError(
            f"{', '.join(cold)} of the judges of task {name!r} run at temperature 0, and --repeat judge "
            "scores the same answer again: they would say the same each time. Give the judges gen_kwargs: "
            "{temperature: 1}, or use --rotation cyclic and --sampler uniform with a --budget of "
            f"{len(panel.judges)}x or less"
        )


def _reasons(primed: PrimedTasks, name: str) -> Iterator[str]:
    lm = primed.lm
    if isinstance(lm, CachingLM):
        yield "--use_cache repeats the first answer, so repeats would be identical: drop --use_cache"
    first = primed.instances(name, primed.documents(name)[0])[0]
    if first.request_type != _GENERATES:
        yield _log_likelihoods(name, primed.task(name).OUTPUT_TYPE)
        return
    api = is_api(lm)
    sampling = first.args[1] if len(first.args) > 1 and isinstance(first.args[1], dict) else {}
    temperature = sampling.get("temperature") or 0.0
    if not float(temperature) > 0.0 or (sampling.get("do_sample") is False and not api):
        yield (
            f"task {name!r} decodes greedily (temperature={temperature}, "
            f"do_sample={sampling.get('do_sample')}), so repeats would be identical: add --gen_kwargs "
            + ("temperature=1.0" if api else "do_sample=True,temperature=1.0")
        )
    if api and sampling.get("seed") is not None:
        yield (
            f"--gen_kwargs or the YAML of task {name!r} sends seed {sampling['seed']} with every request, so "
            "repeats would be identical on a server that honours it: leave it out, and every repeat sends "
            "another one"
        )
