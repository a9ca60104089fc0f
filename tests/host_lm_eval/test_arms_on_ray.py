"""Arms on Ray: the same race, every model in a process of its own."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lm_eval.api.registry import register_model
from tests.host_lm_eval.race_worlds import KIND, Racer, manager, racer
from tests.host_lm_eval.worlds import TextModel

from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.races._verdict import Status
from evalbudget_lm_eval.races.api import race

# Ray leaves its own processes to the garbage collector
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

N = 40


@register_model("evalbudget-test-sampler")
class SamplingModel(TextModel):
    """Right with a chance, by the numbers that the host seeds; says where it runs, where that is asked."""

    def __init__(self, skill: float = 0.5, breaks: str = "", **_: Any) -> None:
        super().__init__()
        if breaks:
            raise RuntimeError(breaks)
        self._skill = float(skill)
        self.pretrained = f"process {os.getpid()}"

    def _answer(self, prompt: str, kwargs: dict[str, Any]) -> str:
        number = int(prompt.rsplit("say ", 1)[1].split()[0])
        answer = f"{number}" if random.random() < self._skill else "?"
        self.cache_hook.add_partial("generate_until", (prompt, kwargs), answer)
        return answer


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=4, num_gpus=3, log_to_driver=False, include_dashboard=False)
    yield
    ray.shutdown()


@pytest.fixture
def tasks(tmp_path: Path) -> Any:
    return manager(tmp_path / "tasks", n=N)


def arms(**more: Any) -> dict[str, Any]:
    skills = {"a": 0.9, "b": 0.7, "c": 0.3}
    return {name: ("evalbudget-test-sampler", {"skill": skill, **more}) for name, skill in skills.items()}


@pytest.mark.usefixtures("cluster")
def test_the_race_is_the_same_though_models_sample(tasks: Any, tmp_path: Path) -> None:
    options: dict[str, Any] = {"budget": 100, "batch": 16, "task_manager": tasks}
    here = race(arms(), "numbers", **options)
    there = race(arms(), "numbers", arms_on="ray:num_gpus=1", journal=tmp_path / "j", **options)
    boards = [dict(found.leaderboard.as_json) for found in (here, there)]
    assert boards[0].pop("notes") is not boards[1].pop("notes")
    assert boards[0] == boards[1]
    assert [r["samples"] for r in here.results.values()] == [r["samples"] for r in there.results.values()]
    assert there.results["a"]["config"]["model"] == "evalbudget-test-sampler"
    assert there.results["a"]["config"]["model_args"] == {"skill": 0.9}
    assert dict(there.loads) == dict.fromkeys("abc", 1)
    again = race(arms(), "numbers", arms_on="ray:num_gpus=1", journal=tmp_path / "j", **options)
    assert dict(again.loads) == dict.fromkeys("abc", 0)  # all of it was on record


@pytest.mark.usefixtures("cluster")
def test_what_fails_there_is_told_as_if_it_failed_here(tasks: Any) -> None:
    broken = {**arms(), "broken": ("evalbudget-test-sampler", {"breaks": "no such weights"})}
    board = race(broken, "numbers", budget=100, batch=16, arms_on="ray", task_manager=tasks).leaderboard
    assert board.of("broken").status is Status.LOST
    assert board.of("broken").left == "it could not be loaded (RuntimeError: no such weights)"
    assert board.standings[0].name == "a"


@pytest.mark.usefixtures("cluster")
def test_models_must_fit_on_the_cluster(tasks: Any) -> None:
    options: dict[str, Any] = {"budget": 100, "batch": 16, "task_manager": tasks}
    with pytest.raises(InvalidInputError, match=r"has no num_gpus=4 \(it has CPU 4, GPU 3"):
        race(arms(), "numbers", arms_on="ray:num_gpus=4", **options)
    with pytest.raises(InvalidInputError, match="has no tpu=1"):
        race(arms(), "numbers", arms_on="ray:num_cpus=1,tpu=1", **options)
    with pytest.raises(InvalidInputError, match="--arms_at_once is 3, and Ray's cluster has room for 1"):
        race(arms(), "numbers", arms_on="ray:num_gpus=2", arms_at_once=3, **options)


@pytest.mark.usefixtures("cluster")
def test_no_more_are_kept_than_fit(tasks: Any) -> None:
    with pytest.raises(InvalidInputError, match="--keep is 2, and Ray's cluster has room for 1"):
        race(arms(), "numbers", budget=100, batch=16, arms_on="ray:num_gpus=2", keep=2, task_manager=tasks)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"arms_on": "ray:num_gpus"}, "'num_gpus' is no resource and an amount above 0"),
        ({"arms_on": "ray:num_gpus=0"}, "'num_gpus=0' is no resource and an amount above 0"),
        ({"arms_on": "ray:=1"}, "'=1' is no resource and an amount above 0"),
        ({"arms_on": "ray", "devices": "x:0"}, "Ray chooses devices by itself"),
        ({"arms_on": "ray", "arms_at_once": 0}, "--arms_at_once is 0"),
        ({"arms_on": "ray", "live": True}, "no arm's is; drop it"),
        ({"arms_on": "ray:num_gpus=1"}, r"needs Ray: pip install 'evalbudget-lm-eval\[ray\]'"),
    ],
)
def test_refusals(given: dict[str, Any], told: str, tasks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # not installed
    arms = {"p": Racer(0.5, 1), "q": Racer(0.5, 2)} if given.pop("live", False) else {"a": racer(0.5, 1)}
    arms |= {} if isinstance(arms.get("p"), Racer) else {"b": (KIND, {"seed": 2})}
    with pytest.raises(InvalidInputError, match=told):
        race(arms, "numbers", budget=90, task_manager=tasks, **given)
    assert not Racer.asked


def test_another_engine_is_not_known(tasks: Any) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'ray'"):
        race(arms(), "numbers", budget=90, task_manager=tasks, arms_on="rays:num_gpus=1")
