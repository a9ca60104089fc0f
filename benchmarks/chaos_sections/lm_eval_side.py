"""Runs, races, judges and audits on lm-eval: its own command, over HTTP."""

from __future__ import annotations

import json
import random
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from chaos_sections.bill import JUST_ARRIVED, stamped
from chaos_sections.faults import TIMEOUT
from chaos_sections.plan import Capability, Plan
from loopback import Asked, Server, number, rating

# without the host's own thousands of tasks, whose index takes seconds
EVALBUDGET = """
import sys
from lm_eval.tasks import TaskManager
init = TaskManager.__init__
TaskManager.__init__ = lambda self, *args, **more: init(self, *args, **more | {"include_defaults": False})
from evalbudget.cli.main import main
sys.argv[0] = "evalbudget"
main()
"""
ENVIRONMENT = {
    "EVALBUDGET_DISABLE_PLUGINS": "inspect",  # the other host takes seconds to import
    "OPENAI_API_KEY": "unused",
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
}
JUDGES = ("ann", "bob", "eve")
SKILLS = {"weak": 0.3, "fine": 0.6, "best": 0.8}
PANEL = """\
filter_list:
  - name: panel
    filter:
      - function: !function evalbudget_lm_eval.CyclicJudgeFilter
        judges: {judges}
        scale: [1, 5]
        gen_kwargs: {{temperature: 1}}
metric_list:
  - metric: !function evalbudget_lm_eval.judged
    aggregation: !function evalbudget_lm_eval.panel
    higher_is_better: true
"""
FIRST_NUMBER = """\
filter_list:
  - name: first
    filter:
      - {function: regex, regex_pattern: "Answer: (\\\\d+)"}
      - {function: take_first}
metric_list:
  - {metric: exact_match, aggregation: mean, higher_is_better: true}
"""


def _task(folder: Path, name: str, n: int, scoring: str) -> Path:
    tasks = folder / "tasks"
    tasks.mkdir()
    data = tasks / f"{name}.jsonl"
    data.write_text("".join(json.dumps({"number": i, "digit": f"{i % 10}"}) + "\n" for i in range(n)))
    config: dict[str, Any] = {
        "task": name,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(data)}},
        "test_split": "test",
        "output_type": "generate_until",
        "doc_to_text": "Question {{number}}.",
        "doc_to_target": "{{digit}}",
        "generation_kwargs": {"until": ["\n"], "do_sample": True, "temperature": 1.0},
        "num_fewshot": 0,
        "metadata": {"version": 1.0},
    }
    lines = [f"{key}: {json.dumps(value)}\n" for key, value in config.items()]
    (tasks / f"{name}.yaml").write_text("".join(lines) + scoring)
    return tasks


def _args(server: Server, model: str, concurrent: int) -> str:
    return server.chat_args(model, max_retries=3, timeout=TIMEOUT, num_concurrent=concurrent)


def _read(folder: Path) -> str:
    files = (path for path in sorted(folder.rglob("*")) if path.suffix in (".jsonl", ".json"))
    rows = (row for path in sorted(folder.rglob("*.db")) for row in _rows(path))
    return "\n".join([*(path.read_text(encoding="utf-8") for path in files), *rows])


def _rows(path: Path) -> list[str]:
    """Of a record; a store of several processes has none."""
    with closing(sqlite3.connect(path)) as db:
        if not db.execute("select 1 from sqlite_master where name = 'answers'").fetchall():
            return []
        return [str(what) for (what,) in db.execute("select what from answers")]


def _spent(folder: Path) -> float | None:
    results = sorted(folder.rglob("results_*.json"))
    return float(json.loads(results[-1].read_text())["evalbudget"]["spent"]) if results else None


def _plan(folder: Path, flags: list[str], **more: Any) -> Plan:
    out = folder / "out"
    common = ["--apply_chat_template", "--output_path", str(out), "--log_samples"]
    command = [sys.executable, "-c", EVALBUDGET, "lm-eval", *flags, *common]
    given: dict[str, Any] = {
        "again": lambda: command,
        "done": lambda code: code == 0,
        "kept": lambda: _read(out),
        "spent": lambda: _spent(out),
        "drains": True,
        "window": JUST_ARRIVED,
        "environment": ENVIRONMENT,
    }
    return Plan(command=command, **given | more)


def _flags(server: Server, tasks: Path, name: str, budget: int, concurrent: int, sampler: str) -> list[str]:
    return [
        *("run", "--model", "local-chat-completions", "--model_args", _args(server, "m", concurrent)),
        *("--tasks", name, "--include_path", str(tasks), "--budget", str(budget), "--sampler", sampler),
        *("--gen_kwargs", "temperature=1.0"),
    ]


def run(folder: Path, server: Server, rng: random.Random, items: int = 12, budget: int = 48) -> Plan:
    """Repeats of a dozen documents."""
    concurrent = rng.choice((1, 3, 8))
    server.answer = stamped(number)
    tasks = _task(folder, "quiz", items, FIRST_NUMBER)
    sampler = rng.choice(("uniform", "eb-bernstein"))
    return _plan(
        folder,
        _flags(server, tasks, "quiz", budget, concurrent, sampler),
        billed={("m",): budget},
        recorded=("m",),
        caught=concurrent,
    )


def judges(folder: Path, server: Server, rng: random.Random, items: int = 8, budget: int = 32) -> Plan:
    """Judges that take turns; each of their scores is a unit."""
    concurrent = rng.choice((1, 3, 8))
    panel = JUDGES[: rng.choice((2, 3))]
    judged = rating()
    server.answer = stamped(lambda asked: number(asked) if asked.model == "m" else judged(asked))
    asked = [f"local-chat-completions:{_args(server, name, concurrent)}" for name in panel]
    tasks = _task(folder, "essays", items, PANEL.format(judges=json.dumps(asked)))
    return _plan(
        folder,
        _flags(server, tasks, "essays", budget, concurrent, "uniform"),
        billed={panel: budget, ("m",): budget},
        recorded=("m", *panel),
        caught=concurrent * (1 + len(panel)),
    )


def rejudge(folder: Path, server: Server, rng: random.Random, items: int = 8, budget: int = 32) -> Plan:
    """One answer of each document, scored again and again by judges that the task knows nothing of."""
    concurrent = rng.choice((1, 3, 8))
    panel = JUDGES[: rng.choice((2, 3))]
    judged = rating()
    server.answer = stamped(lambda asked: number(asked) if asked.model == "m" else judged(asked))
    asked = [f"local-chat-completions:{_args(server, name, concurrent)}" for name in panel]
    tasks = _task(folder, "essays", items, FIRST_NUMBER)
    judges = folder / "judges.json"
    judges.write_text(json.dumps({"judges": asked, "gen_kwargs": {"temperature": 1}}))
    sampler = rng.choice(("uniform", "eb-bernstein"))
    return _plan(
        folder,
        [
            *_flags(server, tasks, "essays", budget, concurrent, sampler),
            *("--judges", str(judges), "--repeat", "judge"),
        ],
        billed={panel: budget, ("m",): budget},
        recorded=("m", *panel),
        caught=concurrent * (1 + len(panel)),
    )


def race(folder: Path, server: Server, rng: random.Random, items: int = 20, budget: int = 40) -> Plan:
    """Three models, each of which is asked each document once at most."""
    concurrent = rng.choice((1, 3, 8))
    server.answer = stamped(skilled)
    tasks = _task(folder, "quiz", items, FIRST_NUMBER)
    board = folder / "board.json"
    arms = [f"--arm={name}=local-chat-completions:{_args(server, name, concurrent)}" for name in SKILLS]
    flags = [
        *("race", *arms, "--budget", str(budget), "--batch", str(rng.choice((4, 8)))),
        *("--tasks", "quiz", "--include_path", str(tasks), "--json", str(board)),
        *("--sampler", rng.choice(("race", "ucb-e", "uniform"))),
    ]

    def spent() -> float | None:
        return float(json.loads(board.read_text())["spent"]) if board.exists() else None

    return _plan(
        folder,
        flags,
        spent=spent,
        billed={tuple(SKILLS): budget},
        recorded=tuple(SKILLS),
        caught=concurrent * len(SKILLS),
    )


def audit(folder: Path, server: Server, rng: random.Random, items: int = 12) -> Plan:
    """Two models and a judge, until people have to label."""
    concurrent = rng.choice((1, 3, 8))
    judged = rating()
    server.answer = stamped(lambda asked: judged(asked) if asked.model == "judge" else number(asked))
    judge = f"local-chat-completions:{_args(server, 'judge', concurrent)}"
    tasks = _task(
        folder, "essays", items, PANEL.format(judges=f"{json.dumps([judge])}\n        rotation: single")
    )
    store = folder / "audit.sqlite"
    command = [
        *(sys.executable, "-c", EVALBUDGET, "lm-eval", "audit", str(store), "--apply_chat_template"),
        *(f"--arm={name}=local-chat-completions:{_args(server, name, concurrent)}" for name in ("a", "b")),
        *("--tasks", "essays", "--include_path", str(tasks), "--score_range", "1.0..5.0"),
        *("--sampler_option", "pilot=4"),
    ]
    plan = _plan(
        folder,
        [],
        billed={("a", "b", "judge"): 8 * items},  # two models answer, and are judged, twice at most
        recorded=("a", "b", "judge"),
        caught=2 * concurrent,
        done=lambda code: code in (0, 1, 3),  # a verdict, over without one, or labels are wanted
        kept=lambda: _read(folder),
        spent=lambda: None,
    )
    return replace(plan, command=command, again=lambda: command)


def skilled(asked: Asked) -> str:
    """The right answer, with a probability that depends on the model."""
    item = int(asked.prompt.rpartition("Question ")[2].split(".")[0])
    right = asked.luck < SKILLS.get(asked.model, 0.5)
    return f"Answer: {(item if right else item + 1) % 10}"


LM_EVAL = (
    Capability("lm-eval", "run", run),
    Capability("lm-eval", "race", race),
    Capability("lm-eval", "judges", judges),
    Capability("lm-eval", "rejudge", rejudge),
    Capability("lm-eval", "audit", audit),
)
