"""Runs, races, judges and audits on inspect: its own command, and the client of OpenAI."""

from __future__ import annotations

import random
import sqlite3
import sys
from contextlib import closing, suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from chaos_sections.bill import stamped
from chaos_sections.faults import TIMEOUT
from chaos_sections.lm_eval_side import JUDGES, SKILLS, skilled
from chaos_sections.plan import Capability, Plan
from loopback import Server, number, rating

TASKS = Path(__file__).with_name("inspect_tasks.py")
EVALBUDGET = "import sys; from evalbudget.cli.main import main; sys.argv[0] = 'evalbudget'; main()"
LONGEST_SAMPLE = 30.0
"""Seconds. The host keeps a sample when all of its calls are answered, however often they are sent again."""
QUIET = ("--display", "none", "--log-buffer", "1", "--no-fail-on-error")


def missing_client() -> str | None:
    """Why nothing can be measured here; None if it can."""
    if find_spec("openai") is None:
        return "inspect asks servers through the package openai, which is not installed: pip install openai"
    return None


def name_of(name: str) -> str:
    return f"openai-api/chaos/{name}"


def _all_logs(folder: Path) -> list[Any]:
    from inspect_ai.log import list_eval_logs, read_eval_log

    found = []
    for info in list_eval_logs(str(folder), descending=False):
        with suppress(Exception):  # it was being begun
            found.append(read_eval_log(info))
    return found


def _logs(folder: Path) -> list[Any]:
    """The newest log of each model: what a run or a race says in the end."""
    return list({log.eval.model: log for log in _all_logs(folder)}.values())


def _text(logs: list[Any]) -> str:
    return "\n".join(log.model_dump_json() for log in logs)


def _done(folder: Path) -> bool:
    logs = _logs(folder)
    return bool(logs) and all(log.status == "success" for log in logs)


def _spent(folder: Path) -> float | None:
    for log in _logs(folder):
        for score in log.results.scores if log.results else []:
            entry = (score.metadata or {}).get("evalbudget") or {}
            if "race" in entry:
                return float(entry["race"]["spent"])
            if "spent" in entry:
                return float(entry["spent"])
    return None


def _plan(folder: Path, server: Server, arguments: list[str], samples: int, **more: Any) -> Plan:
    logs = folder / "logs"
    start = [sys.executable, "-c", EVALBUDGET, "inspect"]
    flags = [
        *("--log-dir", str(logs), "--max-samples", str(samples), "--max-connections", str(samples)),
        *("-M", f"client_timeout={TIMEOUT:g}", *QUIET),
    ]
    command = [*start, *arguments, *flags]
    given: dict[str, Any] = {
        "again": lambda: command,
        "done": lambda code: code == 0 and _done(logs),
        "kept": lambda: _text(_logs(logs)),
        "spent": lambda: _spent(logs),
        "drains": True,
        "window": LONGEST_SAMPLE,
        "environment": {
            "EVALBUDGET_DISABLE_PLUGINS": "lm-eval",  # the other host takes seconds to import
            "CHAOS_BASE_URL": f"{server.url}/v1",
            "CHAOS_API_KEY": "unused",
            "INSPECT_TRACE_LEVEL": "WARNING",
        },
    }
    return Plan(command=command, **given | more)


def retry(folder: Path, command: list[str]) -> list[str]:
    """The host's own way to go on with the newest log; the same command if there is none."""
    logs = sorted((folder / "logs").glob("*.eval"))
    start = [sys.executable, "-c", EVALBUDGET, "inspect", "eval-retry"]
    return [*start, str(logs[-1]), "--log-dir", str(folder / "logs"), *QUIET] if logs else command


def run(folder: Path, server: Server, rng: random.Random, items: int = 12, budget: int = 48) -> Plan:
    """Repeats of a dozen items."""
    samples = rng.choice((1, 3, 8))
    server.answer = stamped(number)
    sampler = rng.choice(("uniform", "eb-bernstein"))
    arguments = [
        *("eval", f"{TASKS}@quiz", "-T", f"items={items}", "--model", name_of("m")),
        *("--budget", str(budget), "--sampler", sampler),
    ]
    plan = _plan(
        folder,
        server,
        arguments,
        samples,
        billed={("m",): budget},
        recorded=("m",),
        caught=samples,
    )
    return replace(plan, again=lambda: retry(folder, plan.command))


def judges(folder: Path, server: Server, rng: random.Random, items: int = 8, budget: int = 32) -> Plan:
    """Judges that take turns; each answer and its score are a unit."""
    samples = rng.choice((1, 3, 8))
    panel = JUDGES[: rng.choice((2, 3))]
    judged = rating()
    server.answer = stamped(lambda asked: number(asked) if asked.model == "m" else judged(asked))
    arguments = [
        *("eval", f"{TASKS}@essays", "-T", f"items={items}", "--model", name_of("m")),
        *("--budget", str(budget), "--judges", ",".join(map(name_of, panel))),
    ]
    plan = _plan(
        folder,
        server,
        arguments,
        samples,
        billed={panel: budget, ("m",): budget},
        recorded=("m", *panel),
        caught=2 * samples,
    )
    return replace(plan, again=lambda: retry(folder, plan.command))


def race(folder: Path, server: Server, rng: random.Random, items: int = 20, budget: int = 40) -> Plan:
    """Three models, each of which is asked each item once at most."""
    samples = rng.choice((1, 3, 8))
    server.answer = stamped(skilled)
    arguments = [
        *("race", "--eval-set", f"{TASKS}@quiz", "-T", f"items={items}"),
        *("--model", ",".join(map(name_of, SKILLS)), "--budget", str(budget), "--batch", "4"),
        *("--sampler", rng.choice(("race", "ucb-e", "uniform"))),
    ]
    return _plan(
        folder,
        server,
        arguments,
        samples,
        billed={tuple(SKILLS): budget},
        recorded=tuple(SKILLS),
        caught=samples * len(SKILLS),
    )


def _dump(store: Path) -> str:
    with closing(sqlite3.connect(store)) as connection:
        return "\n".join(connection.iterdump())


def audit(folder: Path, server: Server, rng: random.Random, items: int = 12, labels: int = 12) -> Plan:
    """Two models, a judge, and a better one that labels what the coins pick."""
    samples = rng.choice((1, 3, 8))
    judged = rating()
    server.answer = stamped(lambda asked: number(asked) if asked.model in ("a", "b") else judged(asked))
    arguments = [
        *("audit", str(folder / "audit.sqlite"), f"{TASKS}@audited", "-T", f"items={items}"),
        *("--model", f"{name_of('a')},{name_of('b')}", "--score-range", "1..5", "--labels-from", "labelled"),
        *("--model-role", f"grader={name_of('judge')}", "--model-role", f"auditor={name_of('auditor')}"),
        *("--sampler-option", "pilot=4", "--labels-per-batch", "6", "--max-labels", str(labels)),
    ]
    logs = folder / "logs"
    return _plan(
        folder,
        server,
        arguments,
        samples,
        done=lambda code: code in (0, 1, 3),  # over without a verdict; the rest is for people to label
        kept=lambda: _text(_all_logs(logs)) + _dump(folder / "audit.sqlite"),  # it goes on with all of them
        spent=lambda: None,
        billed={("auditor",): labels},
        recorded=("a", "b", "judge", "auditor"),
        caught=4 * samples,  # an answer and its score, of each model
    )


INSPECT = (
    Capability("inspect", "run", run),
    Capability("inspect", "race", race),
    Capability("inspect", "judges", judges),
    Capability("inspect", "audit", audit),
)
