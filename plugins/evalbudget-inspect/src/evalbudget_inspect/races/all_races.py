"""All races of this process: which are running, what came of those that ended, and who is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from evalbudget.comparisons import Gate, GateProgress
from evalbudget.errors import EvalbudgetError
from evalbudget.races import Leaderboard, RaceProgress, Standing
from evalbudget_inspect.host.current_run import Run, watch
from evalbudget_inspect.races.arm import Arm, Group


class RunningRace(Protocol):
    """A race as those see it who only want to know how it stands."""

    group: Group
    arms: dict[tuple[str, str], Arm]
    refusal: EvalbudgetError | None

    @property
    def names(self) -> list[str]:
        """Of the arms, in the order of the sampler's models."""

    def refuse(self, error: EvalbudgetError) -> EvalbudgetError:
        """End all tasks of the race with this error."""

    def end(self) -> None:
        """The run is over."""

    def gate(self) -> Gate | None:
        """The verdict; None in other races, and before it began."""

    def board(self) -> Leaderboard | None:
        """The leaderboard; None before it began."""


class AllRaces:
    """All races of this process, by run and group."""

    def __init__(self) -> None:
        self.running: dict[tuple[str, str], RunningRace] = {}
        self.task_names: dict[str, Counter[str]] = {}
        self.finished: list[Leaderboard] = []
        self.gates: list[Gate] = []
        self.progress: RaceProgress | GateProgress | None = None

    def run_starts(self, run_id: str, task_names: Sequence[str]) -> None:
        """Remember how many tasks of each name the run has."""
        self.task_names[run_id] = Counter(task_names)

    def run_ends(self, run_id: str) -> None:
        """Forget the run's races, keep their results."""
        self.task_names.pop(run_id, None)
        for key in [key for key in self.running if key[0] == run_id]:
            coordinator = self.running.pop(key)
            coordinator.end()
            if coordinator.refusal is not None:
                continue
            gate = coordinator.gate()
            if gate is not None:
                self.gates.append(gate)
                continue
            board = coordinator.board()
            if board is not None:
                self.finished.append(board)


all_races = AllRaces()
watch(all_races)


def standing_of(run: Run) -> Standing | None:
    """Where the arm of a run stands; None if it is in no race, or that has not begun."""
    for coordinator in all_races.running.values():
        for arm in coordinator.arms.values():
            if arm.run.spec.eval_id == run.spec.eval_id and arm.index >= 0:
                board = coordinator.board()
                return None if board is None else board.of(coordinator.names[arm.index])
    return None


def gate_of_run(run: Run) -> Gate | None:
    """The verdict as it stands, where the run is one side of a gate that has begun."""
    for coordinator in all_races.running.values():
        if any(arm.run.spec.eval_id == run.spec.eval_id for arm in coordinator.arms.values()):
            return coordinator.gate()
    return None


def report_to(progress: RaceProgress | GateProgress | None) -> None:
    """Have every race of this process tell how it goes, after each reading; None to stop that."""
    all_races.progress = progress


def take_gates() -> list[Gate]:
    """Verdicts of the gates that ended since the last call."""
    taken = list(all_races.gates)
    all_races.gates.clear()
    return taken


def take_boards() -> list[Leaderboard]:
    """Results of the races that ended since the last call."""
    taken = list(all_races.finished)
    all_races.finished.clear()
    return taken
