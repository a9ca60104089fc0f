"""``evalbudget lm-eval``: lm-eval's own command line and files, with our flags and rows."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import lm_eval.evaluator
import pytest
import tests.host_lm_eval.worlds  # noqa: F401  (registers the model)
from click.testing import CliRunner
from lm_eval.__main__ import cli_evaluate
from tests.host_lm_eval.worlds import write_task

from evalbudget.cli.main import cli
from evalbudget.errors import JournalError
from evalbudget_lm_eval.repeats.host_cli import run_host

pytestmark = pytest.mark.usefixtures("own_tasks_only")
STOCK = lm_eval.evaluator.evaluate
TIMED = ("date", "total_evaluation_time_seconds", "start_time", "end_time")


def _command(out: str, *more: str, noise: bool = True) -> list[str]:
    return [
        *("run", "--model", "evalbudget-test-coin", "--model_args", f"noise={noise}"),
        *("--tasks", "numbers", "--include_path", "tasks", "--output_path", out, "--log_samples", *more),
    ]


def _results(out: str) -> dict[str, Any]:
    (path,) = Path(out).glob("*/results_*.json")
    return dict(json.loads(path.read_text()))


def _samples(out: str) -> str:
    (path,) = Path(out).glob("*/samples_numbers_*.jsonl")
    return path.read_text()


def test_tables_and_files_are_the_hosts(capsys: pytest.CaptureFixture[str]) -> None:
    write_task(Path("tasks"), n=12)
    flags = ["--sampler", "eb-bernstein", "--budget", "8x", "--score-range=0..1", "--sampler_seed", "3"]
    assert run_host(_command("out", *flags, "--sampler-option", "objective=mse")) == 0
    assert lm_eval.evaluator.evaluate is STOCK

    table = capsys.readouterr().out
    results = _results("out")
    row = results["results"]["numbers"]
    for name in ("exact_match", "exact_match_repeats"):
        line = next(line for line in table.splitlines() if f"|{name} " in line)
        assert f"|{row[f'{name},none']:.4f}|±  |{row[f'{name}_stderr,none']:.4f}|" in line
    for name in ("exact_match_lower", "exact_match_plain_mean", "exact_match_repeats_upper"):
        assert re.search(rf"\|{name} *\| *\|{row[f'{name},none']:.4f}\|", table)

    lines = [line for line in table.splitlines() if line.startswith("|")]
    assert "|exact_match  " in lines[2]  # the first row is the estimate
    assert next(name for name in row if "," in name) == "exact_match,none"
    block = results["evalbudget"]
    assert block["estimates"]["numbers"]["exact_match,none"]["estimate"] == row["exact_match,none"]
    summary = table.split("|\n\n", 1)[1]
    assert summary.startswith("numbers with ")
    assert f"Estimate {row['exact_match,none']:.3f}" in summary
    assert "Spent     96 of 96 calls" in summary
    assert "document " in summary
    assert max(map(len, summary.splitlines())) <= 80
    assert (block["budget"], block["spent"], block["seed"]) == ("8x", 96, 3)
    assert block["options"] == {"objective": "mse"}
    assert (block["fixed_repeats"], block["score_range"]) == (2, [0, 1])
    assert Path(block["journal"]).parent == Path("out/evalbudget-journals")
    samples = [json.loads(line) for line in _samples("out").splitlines()]
    assert len(samples) == 96
    assert sorted({(s["doc_id"], s["epoch"]) for s in samples}) == [
        (s["doc_id"], s["epoch"]) for s in samples
    ]
    assert set(results["task_hashes"]) == {"numbers"}
    anytime = block["tasks"]["numbers"]
    assert all(
        0 <= low <= high <= 1
        for low, high in zip(anytime["anytime_lower"], anytime["anytime_upper"], strict=True)
    )


def test_the_same_command_tells_a_run_that_ended_again() -> None:
    write_task(Path("tasks"), n=6)
    for number in (1, 2):
        assert run_host(_command(f"out{number}", "--budget", "40", "--journal", "kept.db")) == 0
    # a journal by name is continued: nothing is left to buy
    assert _results("out2")["evalbudget"]["spent"] == 40
    assert _results("out2")["evalbudget"]["rounds"] == 0
    assert _samples("out2") == _samples("out1")
    assert _results("out2")["results"] == _results("out1")["results"]
    # and with a higher budget it goes on
    assert run_host(_command("out3", "--budget", "60", "--journal", "kept.db")) == 0
    assert _results("out3")["evalbudget"]["spent"] == 60
    assert set(_samples("out1").splitlines()) < set(_samples("out3").splitlines())
    # without a name it is found too
    for _ in range(2):
        assert run_host(_command("same", "--budget", "40")) == 0
        assert len(list(Path("same/evalbudget-journals").glob("*.db"))) == 1


def test_without_our_flags_the_host_is_stock(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_task(Path("tasks"), n=8, num_fewshot=1)
    monkeypatch.setattr(sys, "argv", ["lm-eval", *_command("out", "--limit", "5", noise=False)])
    cli_evaluate()
    stock, stock_results, stock_samples = capfd.readouterr().out, _results("out"), _samples("out")
    for path in Path("out").rglob("*.json*"):
        path.unlink()

    assert run_host(_command("out", "--limit", "5", noise=False)) == 0
    assert capfd.readouterr().out == stock
    assert _samples("out") == stock_samples
    ours = _results("out")
    for timed in TIMED:
        ours.pop(timed, None)
        stock_results.pop(timed, None)
    assert json.dumps(ours) == json.dumps(stock_results)
    assert not list(Path().rglob("evalbudget-journals"))


def test_help_has_both(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_host(["run", "--help"]) == 0
    text = capsys.readouterr().out
    for flag in ("--budget", "--sampler NAME", "--journal", "--tasks", "--apply_chat_template"):
        assert flag in text
    assert text.index("advanced options") < text.index("evalbudget:")
    shown = CliRunner().invoke(cli, ["lm-eval", "--help"])
    assert shown.exit_code == 0
    assert "evalbudget lm-eval race --arm" in shown.output
    assert max(map(len, shown.output.splitlines())) <= 90


def test_other_commands_are_the_hosts(capsys: pytest.CaptureFixture[str]) -> None:
    write_task(Path("tasks"), n=3)
    result = CliRunner().invoke(cli, ["lm-eval", "validate", "--tasks", "numbers", "--include_path", "tasks"])
    assert result.exit_code == 0, result.output
    result = CliRunner().invoke(cli, ["lm-eval", "rum"])
    assert result.exit_code == 2
    assert "lm-eval has no command 'rum'. Did you mean 'run'" in result.output


def test_flags_alone_are_those_of_run() -> None:
    write_task(Path("tasks"), n=6)
    result = CliRunner().invoke(cli, ["lm-eval", *_command("out", "--budget", "20")[1:]])
    assert result.exit_code == 0, result.output
    assert _results("out")["evalbudget"]["spent"] == 20


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--sampler", "uniform"], "--sampler needs a --budget"),
        (["--budget", "many"], "budget 'many' is not an amount"),
        (["--budget", "$0"], "budget 0 must be above zero"),
        (["--budget", "$20", "--prices", "none.yaml"], "price file none.yaml cannot be read"),
        (["--budget", "20", "--risk", "0.1"], "--risk is for a budget in money or tokens"),
        (["--budget", "$20", "--risk", "2"], "--risk is 2; write a chance"),
        (["--budget", "9", "--sampler", "unifrom"], "unknown sampler 'unifrom'. Did you mean 'uniform'"),
        (["--budget", "9", "--sampler", "pulse"], "races models.*evalbudget lm-eval race --arm"),
        (["--budget", "9", "--sampler_option", "objektive=mse"], "unknown option of sampler.*'objective'"),
        (["--budget", "9", "--sampler_option", "mse"], "--sampler_option 'mse' is not NAME=VALUE"),
        (["--budget", "9", "--sampler_option", "objective=best"], "objective 'best'"),
        (["--budget", "9", "--score_range", "1..0"], "not a range"),
        (["--budget", "9", "--until_proved"], "--until_proved is of evalbudget lm-eval race"),
    ],
)
def test_refused_before_the_host_starts(flags: list[str], message: str) -> None:
    result = CliRunner().invoke(cli, ["lm-eval", *_command("out", *flags)])
    assert result.exit_code == 2
    assert re.search(message, result.output), result.output
    assert "Traceback" not in result.output
    assert not Path("out").exists()
    assert lm_eval.evaluator.evaluate is STOCK


def test_answers_of_another_model_are_not_continued() -> None:
    write_task(Path("tasks"), n=6)
    flags = ["--budget", "3x", "--sampler", "uniform", "--journal", "j.db"]
    assert run_host(_command("out", *flags)) == 0
    # the class remembers none of its arguments; how fast it is asked is no matter
    again = [a.replace("noise=True", "noise=True,num_concurrent=2") for a in _command("again", *flags)]
    assert run_host(again) == 0
    with pytest.raises(JournalError, match="model_args = "):
        run_host(_command("other", *flags, noise=False))
