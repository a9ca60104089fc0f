"""Judges with arguments, from Python, the command line and files; whole commands as users type them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from inspect_ai import score as host_score
from inspect_ai.log import read_eval_log
from tests.host_inspect.worlds import UNWATCHED, entry_of, told_by

from evalbudget.cli.main import cli
from evalbudget_inspect import cyclic_judge
from evalbudget_inspect.judges.judge_names import judges_argument, read_judges

COLD = {"model": "simulated/a", "temperature": 0, "model_args": {"x": 1, "y": [2, 3]}}
COLD_YAML = "{model: simulated/a, temperature: 0, model_args: {x: 1, y: [2, 3]}}"
FILE = """\
- {name: cold, model: simulated/a, temperature: 0, model_args: {mean: 3, sd: 0.1}}
- name: warm
  model: simulated/a
  temperature: 1.5
  model_args: {mean: 6, sd: 0.1}
"""


@pytest.mark.parametrize(
    "given",
    [
        f"cold={COLD_YAML},simulated/b",
        f"{{cold: {COLD_YAML}, simulated/b: simulated/b}}",
        json.dumps([{"name": "cold", **COLD}, "simulated/b"]),
        [{"cold": COLD}, "simulated/b"],
    ],
)
def test_forms_of_one_panel(given: Any) -> None:
    cold, plain = read_judges(given)
    assert cold.spec() == {"name": "cold", **COLD}
    assert plain.is_plain
    again = read_judges(judges_argument([cold, plain]))
    assert [judge.spec() for judge in again] == [cold.spec(), "simulated/b"]
    judge = cold.instance("grader")
    assert judge.config.temperature == 0
    assert judge.role == "grader"


def test_names_stay_as_they_were_typed() -> None:
    assert judges_argument(read_judges("a/x, b/y")) == "a/x,b/y"
    assert [judge.name for judge in read_judges("strict=a/x,b/y")] == ["strict", "b/y"]


@pytest.mark.parametrize(
    ("secret", "name"),
    [
        ({"model_args": {"api_key": "marked"}}, "api_key"),
        ({"model_args": {"default_headers": {"X-Api-Key": "marked"}}}, "X-Api-Key"),
        ({"extra_headers": {"Authorization": "Bearer marked"}}, "Authorization"),
        ({"base_url": "https://me:marked@host/v1"}, "base_url"),
    ],
)
def test_a_key_is_refused_before_anything_is_asked(
    secret: dict[str, Any], name: str, task_file: Path
) -> None:
    judges = json.dumps([{"name": "strict", "model": "simulated/judge", **secret}])
    words = ["inspect", "eval", f"{task_file}@rating", "--model", "simulated/writer", "--budget", "9"]
    told = CliRunner().invoke(cli, [*words, "--judges", judges])
    said = " ".join(told.output.split())
    assert told.exit_code == 2
    assert f"judge 'strict' has a secret in {name}, and would be written into logs" in said
    assert "set the variable that is read in its place, such as OPENAI_API_KEY" in said
    assert "marked" not in said
    assert not list(task_file.parent.rglob("*.eval"))


def command(line: str, *more: str) -> Result:
    found = CliRunner(env=UNWATCHED).invoke(cli, ["inspect", *shlex.split(line), *more])
    assert found.exit_code == 0, found.output
    return found


def test_from_the_command_line_to_a_refused_plan(
    task_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Judges of a file on an unmodified task; the log judged again by others; a pilot without variation."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "judges.yaml").write_text(FILE)
    ran = command(
        "eval my_task.py --model simulated/writer --budget 2x -T stories=8 "
        "--judges judges.yaml --judge-prices cold=1,warm=3"
    )
    assert '"name": "cold"' in ran.stderr  # inspect is given the judges themselves: the file may change
    file = next((tmp_path / "logs").glob("*.eval"))
    log = read_eval_log(str(file))
    per_judge = entry_of(log, "panel")["panel"]["per_judge"]
    assert [(per_judge[name]["calls"], per_judge[name]["price"]) for name in ("cold", "warm")] == [
        (8, 8),
        (8, 24),
    ]
    assert "bias_cold" in told_by(log)
    seen = {
        (event.model, event.config.temperature)
        for sample in log.samples or []
        for event in sample.events
        if event.event == "model" and event.role == "grader"
    }
    assert seen == {("simulated/a", 0), ("simulated/a", 1.5)}
    assert entry_of(log, "judge_models")["judge_models"]["warm"]["temperature"] == 1.5

    grades = {"bernoulli": True, "template": "GRADE: {grade}"}
    judges = [
        {"name": name, "model": f"simulated/{name}", "model_args": {"mean": mean, **grades}}
        for name, mean in (("strict", 0.3), ("kind", 0.8))
    ]
    command(
        "score --scorer evalbudget_inspect/cyclic_judge -S rotation=all "
        "-S 'template=Well, is {answer} good? {instructions}' "
        "--action overwrite --output-file again.eval --stream 3",
        *("-S", f"judges={json.dumps(judges)}", str(file)),
    )
    again = read_eval_log(str(tmp_path / "again.eval"))
    panel = entry_of(again, "panel")["panel"]
    assert {name: entry["calls"] for name, entry in panel["per_judge"].items()} == {"strict": 16, "kind": 16}
    assert panel["counts"] == {"judges": 2, "items": 8, "readings": 32}
    assert "Well, is" in str((again.samples or [])[0].scores)
    # every story is good enough for both, by its own simulated rating: nothing to plan with, and it says so
    planned = CliRunner().invoke(cli, ["plan", str(tmp_path / "again.eval"), "--half-width", "0.2"])
    assert planned.exit_code == 2
    assert "scores never differ" in planned.output


def test_a_streamed_log_is_dealt_as_a_whole_one(make_task: Any, run: Any, tmp_path: Path) -> None:
    log = run(make_task(9))
    line = (
        "inspect score --scorer evalbudget_inspect/cyclic_judge --action append --stream 2 "
        f"-S judges=simulated/a,simulated/b,simulated/c --output-file {tmp_path / 'scored.eval'}"
    )
    done = CliRunner().invoke(cli, [*shlex.split(line), log.location])
    assert done.exit_code == 0, done.output
    whole = host_score(log, cyclic_judge("simulated/a,simulated/b,simulated/c"), display="none")
    found = [
        {str(s.id): (s.scores or {})["cyclic_judge"].metadata["evalbudget"]["judge"] for s in log.samples}
        for log in (read_eval_log(str(tmp_path / "scored.eval")), whole)
    ]
    assert found[0] == found[1]
    assert sorted(list(found[0].values()).count(f"simulated/{name}") for name in "abc") == [3, 3, 3]
