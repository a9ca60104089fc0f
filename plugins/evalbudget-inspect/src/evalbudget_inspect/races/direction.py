"""Going on with a race for the lowest score as one for the highest is refused, and said to be that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from inspect_ai import Task
from inspect_ai.log import EvalLog, list_eval_logs, read_eval_log

from evalbudget.errors import InvalidInputError
from evalbudget.races import RaceConfig
from evalbudget.shown import shown_logger
from evalbudget_inspect.host.how_bought import RACE, step_of
from evalbudget_inspect.races.sample_source import RaceSource
from evalbudget_inspect.repeats.registry_entry import split_arguments

logger = shown_logger(__name__)


def refuse_other_direction(log_dir: str, tasks: Sequence[str], config: RaceConfig) -> None:
    """Refuse to go on with a race for the highest score as one for the lowest, or the other way round.

    The host refuses it too, as any command that is not the same, and does not say what differs. What cannot
    be read is left to it.

    Args:
        log_dir: of the logs that are gone on from.
        tasks: as our entry names them.
        config: of the race.

    Raises:
        InvalidInputError: there is a race of these tasks and this score in another direction.
    """
    for header, told in _races_in(log_dir):
        given = split_arguments(header.eval.task_args, ("task", "score"))[0]
        same = given.get("task") in tasks and given.get("score") == config.score
        if same and told["lower_is_better"] != config.lower_is_better:
            flag = "leave out" if config.lower_is_better else "give"
            raise InvalidInputError(_what_differs(log_dir, f"{flag} --lower-is-better", config))


def say_other_direction(log_dir: str, tasks: Sequence[Task]) -> None:
    """Say of an eval-set's races what the host's refusal does not.

    Args:
        log_dir: of the eval-set.
        tasks: that Python gave it.
    """
    sources = {task.name: task.sample_source for task in tasks}
    races = {name: source.group for name, source in sources.items() if isinstance(source, RaceSource)}
    for header, told in _races_in(log_dir) if races else ():
        group = races.get(header.eval.task)
        if group is None or told.get("score") != group.series:
            continue
        if told["lower_is_better"] != group.config.lower_is_better:
            given = f"give it lower_is_better={told['lower_is_better']}"
            logger.error("%s", _what_differs(log_dir, given, group.config))
            return


def _races_in(log_dir: str) -> Iterator[tuple[EvalLog, Mapping[str, Any]]]:
    for info in list_eval_logs(log_dir):
        try:
            header = read_eval_log(info, header_only=True)
        except Exception:  # whatever the host's zip and JSON readers raise
            continue
        told = step_of(header, RACE)
        if told is not None:
            yield header, told


def _what_differs(log_dir: str, remedy: str, config: RaceConfig) -> str:
    before, now = ("highest", "lowest") if config.lower_is_better else ("lowest", "highest")
    return (
        f"{log_dir} has a race for the {before} score, and this one is for the {now}: {remedy} to go on with "
        "it, or begin another race in another log folder (--log-dir)"
    )
