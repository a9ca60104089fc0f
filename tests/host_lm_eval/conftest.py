"""What the tests on lm-eval share: they run the real host, offline, in this process."""

from __future__ import annotations

import copy
import logging
import os
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import datasets
import lm_eval.evaluator
import lm_eval.loggers.utils
import lm_eval.models.api_models
import lm_eval.utils
import pytest
import requests.adapters
import requests.api
import requests.sessions
import tenacity
from lm_eval.tasks import TaskManager
from tests.host_lm_eval.race_worlds import fresh_racers

from evalbudget_lm_eval.judges.judge_models import forget_judges
from loopback import Server, rating

if find_spec("inspect_ai") is None:  # the oldest lm-eval is tested in an environment of its own
    collect_ignore_glob = ["test_*two_hosts.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = f"{Path(__file__).parent}{os.sep}"
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.host)


@pytest.fixture(autouse=True, scope="session")
def _nothing_is_found_out_again_or_waited_for() -> Iterator[None]:
    # the host compiles a task's templates for every document, which takes a sixth of its time here, reads the
    # whole environment for proxies before every call, and a task's documents for every arm and run, looks
    # up its own version after each run, waits a second before it sends a call again, and makes a session and
    # a connection for each call that it sends alone
    load, loaded = datasets.load_dataset, dict[str, Any]()

    def load_once(**given: Any) -> Any:
        of, files = repr(sorted(given.items())), [file for file in _texts(given) if Path(file).is_file()]
        for file in files:
            of = of.replace(file, Path(file).read_text(encoding="utf-8"))
        if not files or of not in loaded:
            loaded[of] = load(**given)
        return copy.copy(loaded[of])

    with pytest.MonkeyPatch.context() as patch, requests.sessions.Session() as session:
        session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=100))
        patch.setattr(requests.api, "request", session.request)
        patch.setattr(datasets, "load_dataset", load_once)
        patch.setattr(lm_eval.evaluator, "get_git_commit_hash", cache(lm_eval.evaluator.get_git_commit_hash))
        patch.setattr(lm_eval.loggers.utils, "version", cache(lm_eval.loggers.utils.version))
        patch.setattr(lm_eval.utils.env, "from_string", cache(lm_eval.utils.env.from_string))
        patch.setattr(requests.sessions, "get_environ_proxies", lambda url, no_proxy=None: {})
        patch.setattr(lm_eval.models.api_models, "wait_exponential", lambda **_: tenacity.wait_none())
        yield


def _texts(value: Any) -> Iterator[str]:
    """All that is a text in what a task says of its data set."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


@pytest.fixture(autouse=True)
def _offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where runs leave their records
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    monkeypatch.setenv("OPENAI_API_KEY", "unused")


@pytest.fixture(autouse=True)
def _host_logs_to_a_closed_stream_no_more() -> Iterator[None]:
    """The host's command sets up its log once in a process: on the stderr of the test that ran it first."""
    host = logging.getLogger("lm_eval")
    handlers, level, passed_on = list(host.handlers), host.level, host.propagate
    yield
    host.handlers[:], host.propagate = handlers, passed_on
    host.setLevel(level)


@pytest.fixture(autouse=True)
def _nobody_was_asked() -> Iterator[None]:
    forget_judges()
    with fresh_racers():
        yield


@pytest.fixture
def own_tasks_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host's own thousands take seconds."""
    init = TaskManager.__init__
    monkeypatch.setattr(
        TaskManager, "__init__", lambda self, *a, **more: init(self, *a, **more | {"include_defaults": False})
    )


@pytest.fixture
def server() -> Iterator[Server]:
    """A running OpenAI-compatible server on loopback."""
    with Server() as running:
        yield running


@pytest.fixture
def judges(server: Server) -> list[str]:
    """Three judges of one server, a, b and c, the last one lenient."""
    for name in "abc":
        server.answers[name] = rating(bias={"c": 1.0})
    return [server.judge(name, num_concurrent=4, max_retries=1) for name in "abc"]
