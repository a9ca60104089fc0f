"""Small tasks on offline models, run by the real host in this process."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from traceback import format_exception
from typing import Any

import pytest
from anyio.streams.memory import MemoryObjectReceiveStream
from inspect_ai import Task
from inspect_ai import eval as host_eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import get_model
from inspect_ai.scorer import Scorer
from inspect_ai.solver import Solver, generate

import warm
from evalbudget_inspect.demo.story_rating import judge_rating
from evalbudget_inspect.host.refusals import take_refusals

TOKENS_PER_CALL = 110  # what an offline model says of every reply

# the host otherwise traces every step of every sample in a file; also in processes that tests start
os.environ.setdefault("INSPECT_TRACE_LEVEL", "WARNING")

# the host's retry policy still names it as tenacity 8 did
HOST_WARNING = "ignore:The 'initial' parameter is deprecated:DeprecationWarning"

Readings = list[tuple[str, int, float]]
MakeTask = Callable[..., Task]
Run = Callable[..., EvalLog]


_PURE = ("test_purchase.py", "test_rewrite.py", "test_race_purchase.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = f"{Path(__file__).parent}{os.sep}"
    for item in items:
        if str(item.path).startswith(here) and item.path.name not in _PURE:
            item.add_marker(pytest.mark.host)
            item.add_marker(pytest.mark.filterwarnings(HOST_WARNING))


@pytest.fixture(autouse=True, scope="session")
def _state_of_this_machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Books of logs that are elsewhere, also those of processes that tests start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True, scope="session")
def _streams_of_the_host() -> Iterator[None]:
    # the host leaves the receiving end of each sample's event stream to the garbage collector, which warns
    # whenever it happens to run, in whichever test that is
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(
            MemoryObjectReceiveStream, "__del__", raising=False
        )  # another folder may use this fixture too
        yield
        gc.collect()


@pytest.fixture(autouse=True, scope="session")
def _nothing_is_drawn() -> Iterator[None]:
    # with --display none the host still lays out its table of results (a minute for fifty models) and colours
    # the traceback of every call and sample that fails (a quarter of a second each); what users see is tested
    # in processes of their own
    from inspect_ai._display.rich import display
    from inspect_ai.log import _log
    from inspect_ai.model import _model

    def plain(*exception: Any) -> tuple[str, str]:
        text = "".join(format_exception(*exception))
        return text, text

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(display, "tasks_results", lambda tasks: "", raising=False)
        for module in (_log, _model):
            patch.setattr(module, "format_traceback", plain, raising=False)
        yield


@pytest.fixture(autouse=True, scope="session")
def _nothing_is_done_for_nobody() -> Iterator[None]:
    from inspect_ai._util import trace

    with pytest.MonkeyPatch.context() as patch:
        for module, name, instead in warm.done_for_nobody():
            patch.setattr(module, name, instead)
        patch.setattr(trace, "TRACE", 1, raising=False)  # pytest would keep every step
        yield


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("INSPECT_DISPLAY", "none")
    monkeypatch.setenv("INSPECT_LOG_DIR", str(tmp_path / "logs"))
    take_refusals()
    yield
    take_refusals()


@pytest.fixture
def make_task() -> MakeTask:
    """An unmodified task: every third item splits the judge."""

    def make(
        items: int = 8,
        *,
        solver: Solver | list[Solver] | None = None,
        scorer: Scorer | list[Scorer] | None = None,
        ids: list[str | int] | None = None,
        **task: Any,
    ) -> Task:
        names = ids or [f"item-{i}" for i in range(items)]
        samples = [
            Sample(
                id=name,
                input=f"Write story {name}.",
                target="yes",
                metadata={"simulated_mean": 3.0 + i, "simulated_sd": 2.5 if i % 3 == 0 else 0.3},
            )
            for i, name in enumerate(names)
        ]
        return Task(
            dataset=MemoryDataset(samples, name="stories", location="stories.csv"),
            solver=solver or generate(),
            scorer=scorer or judge_rating(),
            name="rating",
            **task,
        )

    return make


TASK_FILE = """\
from inspect_ai import Task, task
from evalbudget_inspect import budgeted
from evalbudget_inspect.demo.story_rating import story_rating

@task
def rating(stories: int = 6) -> Task:
    return story_rating(stories)
"""


@pytest.fixture
def task_file(tmp_path: Path) -> Path:
    """A file with one unmodified task."""
    path = tmp_path / "my_task.py"
    path.write_text(TASK_FILE)
    return path


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run one task and return its log; ``judge`` and ``writer`` are arguments of the simulated models."""

    def one(
        task: Any,
        *,
        judge: dict[str, Any] | None = None,
        writer: dict[str, Any] | None = None,
        **options: Any,
    ) -> EvalLog:
        given = {
            "model": get_model("simulated/writer", memoize=False, **(writer or {})),
            "model_roles": {"grader": get_model("simulated/judge", memoize=False, **(judge or {}))},
            "display": "none",
            "log_dir": str(tmp_path / "logs"),
            "log_realtime": False,
            "ctl_server": False,
            "score_display": False,
            "log_buffer": 1000,
            **options,
        }
        logs = host_eval(task, **given)
        assert len(logs) == 1
        if logs[0].error is not None:
            print(logs[0].error.traceback)  # shown where a test fails
        return logs[0]

    return one


@pytest.fixture
def warnings_of_plugin() -> Iterator[list[str]]:
    """What the plugin logs at warning level, whatever the host does to the root logger."""
    messages: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    handler = Keep(logging.WARNING)
    logger = logging.getLogger("evalbudget_inspect")
    logger.addHandler(handler)
    yield messages
    logger.removeHandler(handler)


def _cells(log: EvalLog) -> list[tuple[str, int]]:
    return [(str(sample.id), sample.epoch) for sample in log.samples or []]


@pytest.fixture
def cells() -> Callable[[EvalLog], list[tuple[str, int]]]:
    """Every (id, epoch) of a log."""
    return _cells


@pytest.fixture
def readings() -> Callable[..., Readings]:
    """Every (id, epoch, value) that counts."""

    def of(log: EvalLog, scorer: str = "judge_rating") -> Readings:
        found: Readings = []
        for sample in log.samples or []:
            score = (sample.scores or {}).get(scorer)
            if sample.error is None and score is not None and score.value == score.value:
                found.append((str(sample.id), sample.epoch, score.as_float()))
        return found

    return of


@pytest.fixture
def calls() -> Callable[[EvalLog, str], int]:
    """How many replies a model gave, by its usage."""

    def of(log: EvalLog, model: str) -> int:
        usage = log.stats.model_usage.get(model)
        return 0 if usage is None else usage.total_tokens // TOKENS_PER_CALL

    return of


@pytest.fixture
def diagnostics() -> Callable[..., dict[str, Any]]:
    """Our entry in the log's score metadata."""

    def of(log: EvalLog, scorer: str = "judge_rating") -> dict[str, Any]:
        assert log.results is not None
        score = next(s for s in log.results.scores if s.name == scorer)
        assert score.metadata is not None
        return dict(score.metadata["evalbudget"])

    return of


@pytest.fixture
def metrics() -> Callable[..., dict[str, float]]:
    """All metrics of a scorer, by name, and the counts in its metadata: ``calls_<judge>`` and so on."""

    def of(log: EvalLog, scorer: str = "judge_rating") -> dict[str, float]:
        assert log.results is not None
        found: dict[str, float] = {}
        for score in log.results.scores:
            if score.name == scorer:
                found |= {name.removeprefix("eb/"): float(m.value) for name, m in score.metrics.items()}
                ours = (score.metadata or {}).get("evalbudget", {})
                panel = ours.get("panel", {})
                found |= {name: ours[name] for name in ("items", "readings") if name in ours}
                found |= panel.get("counts", {})
                for judge, entry in panel.get("per_judge", {}).items():
                    found[f"calls_{judge.rsplit('/')[-1]}"] = entry["calls"]
                    if "price" in entry:
                        found[f"cost_{judge.rsplit('/')[-1]}"] = entry["price"]
        return found

    return of


@pytest.fixture
def phases() -> Callable[..., dict[tuple[str, int], int]]:
    """The phase of every (id, epoch) that counts, as the log has it."""

    def of(log: EvalLog, scorer: str = "judge_rating") -> dict[tuple[str, int], int]:
        found: dict[tuple[str, int], int] = {}
        for sample in log.samples or []:
            score = (sample.scores or {}).get(scorer)
            if sample.error is None and score is not None and score.value == score.value:
                found[str(sample.id), sample.epoch] = (score.metadata or {})["evalbudget"]["phase"]
        return found

    return of
