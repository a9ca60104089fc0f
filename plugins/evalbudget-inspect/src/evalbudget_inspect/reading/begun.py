"""Which samples a run that was cut short may have begun: how such a sample ended may depend on its score."""

from __future__ import annotations

from datetime import datetime
from importlib.metadata import version

from inspect_ai.log import EvalLog
from inspect_ai.util import AdaptiveConcurrency

from evalbudget_inspect.host.how_bought import BUDGET, is_race, step_of, to_be_asked
from evalbudget_inspect.reading.logs import Log

_HOST = "inspect_ai"
_SLACK = 5  # samples that the host lets run beside as many as there are connections


def may_be_begun(log: Log) -> set[str]:
    """Ids that a run may have asked; all of them where their order or how many run at once is not known.

    The host begins samples in the order of its list, epoch after epoch. So it had not come to one that is
    further behind the last one in the log than as many as run at once.
    """
    ids = to_be_asked(log.header)
    most = _at_once(log.header)
    if most is None or not _in_order(log):
        return set(ids)
    place = {id_: number for number, id_ in enumerate(ids)}
    places = [(s.epoch - 1) * len(ids) + place.get(str(s.id), len(log.all) + most) for s in log.all]
    reached = max(places, default=-1) + 1
    if reached > len(set(places)) + most:  # the list is not the order in which they were begun
        return set(ids)
    return set(ids[: reached + most])


def _in_order(log: Log) -> bool:
    """Whether samples were begun as they are listed, and the log has all but those that were under way.

    A killed run may have finished some that it did not write; one that failed and is tried again waits
    behind all others; and what an attempt had begun before this one went on with its samples is not known.
    """
    header, config = log.header, log.header.eval.config
    chosen = step_of(header, BUDGET) is not None or is_race(header)
    whole = header.status != "started" and config.log_samples is not False
    return whole and not chosen and not config.retry_on_error and not _goes_on(log)


def _goes_on(log: Log) -> bool:
    """Whether it has samples of an earlier attempt."""
    created = datetime.fromisoformat(log.header.eval.created)
    return any(s.started_at and datetime.fromisoformat(s.started_at) < created for s in log.all)


def _at_once(header: EvalLog) -> int | None:
    """How many samples may be under way at once; None if that is not known."""
    if header.eval.config.max_samples is not None:
        return header.eval.config.max_samples
    configs = (header.eval.model_generate_config, header.plan.config)
    told = [config.max_connections for config in configs if config.max_connections is not None]
    if told:
        return max(told)
    adaptive = [each for config in configs if (each := config.adaptive_connections) is not None]
    other = header.eval.packages.get(_HOST) != version("inspect-ai")  # whose own limit may be another
    if other or False in adaptive or any(config.batch for config in configs):
        return None
    return max(map(_most, adaptive or [True])) + _SLACK


def _most(adaptive: bool | int | AdaptiveConcurrency) -> int:
    if isinstance(adaptive, bool):
        return AdaptiveConcurrency().max
    return adaptive if isinstance(adaptive, int) else adaptive.max
