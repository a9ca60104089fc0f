from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.commands import refused, typed

from evalbudget.backtest import RecordedScores

run = typed("backtest")


@pytest.fixture
def file(small: RecordedScores, tmp_path: Path) -> Path:
    path = tmp_path / "scores.npz"
    small.save(path)
    return path


def test_prints_a_table(file: Path) -> None:
    result = run(
        file, "--sampler", "uniform,robin", "--sampler", "eb-bernstein", "--budget", "5x,80", "--seeds", "3"
    )
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert max(len(line) for line in lines) <= 80
    assert [line.split()[:2] for line in lines[2:8]] == [
        [sampler, budget] for budget in ("5x", "80") for sampler in ("uniform", "robin", "eb-bernstein")
    ]
    assert "4 pools" in result.stdout
    assert "3 seeds" in result.stdout


def test_json_to_stdout_is_only_json(file: Path) -> None:
    result = run(file, "--seeds", "2", "--rater", "s", "--model", "b", "--budget", "5x", "--json", "-")
    assert result.exit_code == 0
    rows = json.loads(result.stdout)
    assert [(row["sampler"], row["pools"]) for row in rows] == [("uniform", 1), ("auto", 1)]


def test_json_to_a_file_and_table(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out" / "result.json"
    out.parent.mkdir()
    out.write_text("old")
    result = run(file, file, "--seeds", "2", "--budget", "5x", "--objective", "mean", "--json", out)
    assert result.exit_code == 0
    assert "ratio to" in result.stdout
    rows = json.loads(out.read_text())
    assert {(row["objective"], row["pools"]) for row in rows} == {("mean", 8)}
    assert [path.name for path in out.parent.iterdir()] == ["result.json"]
    assert out.stat().st_mode & 0o777 == file.stat().st_mode & 0o777


def test_reads_csv(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{item},{rng.integers(1, 6)}" for item in "abcdef" for _ in range(4)]
    (tmp_path / "long.csv").write_text("item,score\n" + "\n".join(rows))
    result = run(tmp_path / "long.csv", "--seeds", "2", "--budget", "4x")
    assert result.exit_code == 0, result.output


def test_the_same_command_prints_the_same_numbers(file: Path) -> None:
    def rows() -> object:
        found = json.loads(run(file, "--seeds", "2", "--budget", "5x", "--json", "-").stdout)
        return [{key: value for key, value in row.items() if key != "seconds"} for row in found]

    assert rows() == rows()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sampler", "eb-bernstien"], "unknown sampler 'eb-bernstien'. Did you mean 'eb-bernstein'"),
        (["--sampler", ""], "no samplers"),
        (["--objective", "wrost-item"], "unknown objective 'wrost-item'. Did you mean 'worst-item'"),
        (["--rater", "S"], "unknown rater 'S'. Did you mean 's'"),
        (["--model", "A"], "unknown model 'A'. Did you mean 'a'"),
        (["--budget", "9"], "too small for uniform on the 10 items of model 'a', rater 'r'"),
        (["--budget", "0"], "above zero"),
        (["--budget", "5Mtok"], "recorded scores tell what readings cost in dollars"),
        (["--budget", "$5"], "add a column cost with the dollars of each reading"),
        (["--budget", "lots"], "'lots' is not an amount"),
        (["--budget", ","], "no budgets"),
        (["--min-repeats", "7"], "no item has 7 recorded repeats"),
        (["--min-repeats", "0"], "--min-repeats"),
        (["--seeds", "0"], "--seeds"),
        (["--workers", "0"], "--workers"),
        (["--json", "no/such/folder.json"], "the folder no/such does not exist"),
        (["--json", "."], "is a folder"),
    ],
)
def test_bad_options_exit_with_2(file: Path, arguments: list[str], message: str) -> None:
    refused(run(file, *arguments), message)


def test_bad_files_exit_with_2_and_leave_nothing(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    broken = tmp_path / "broken.npz"
    broken.write_bytes(file.read_bytes()[:400])
    refused(run(broken, "--json", out), "broken.npz is damaged or truncated")
    refused(run(file, tmp_path / "none.npz", "--json", out), "none.npz does not exist")
    table = tmp_path / "table.csv"
    table.write_text("question,grade\n1,2\n")
    refused(run(table, "--json", out), "table.csv has no column item", "found: question, grade")
    text = tmp_path / "notes.txt"
    text.write_text("hello")
    refused(run(text, "--json", out), "not recorded scores that any installed plugin can read")
    refused(run(), "FILE")
    assert not out.exists()
    assert not list(tmp_path.glob(".result.json*"))


def test_single_repeats_cannot_be_replayed(data_dir: Path) -> None:
    refused(
        run(data_dir / "cruxeval_models.npz"), "no item has 2 recorded repeats", "the most in the file is 1"
    )


def test_real_file_without_scores(data_dir: Path) -> None:
    refused(run(data_dir / "leaderboard_factors.npz"), "has no array 'scores'", "U, V")


def test_help_has_examples() -> None:
    result = run("--help")
    assert result.exit_code == 0
    assert "evalbudget backtest scores.npz" in result.stdout
    assert max(len(line) for line in result.stdout.splitlines()) <= 85


@pytest.mark.parametrize(
    ("options", "command"),
    [
        (["--sampler", "ucb-e,uniform"], "races"),
        (["--sampler=race"], "races"),
        (["--rotation", "cyclic"], "judges"),
        (["--sampler", "uniform,audit-eprocess"], "audits"),
        (["--sampler", "uniform"], "repeats"),
    ],
)
def test_without_a_command_it_is_what_the_samplers_are_for(options: list[str], command: str) -> None:
    told = run("scores.npz", *options, "--help")
    assert told.exit_code == 0
    assert f"backtest {command}" in told.stdout


def test_misspelt_commands_and_files() -> None:
    refused(run("repaets", "scores.npz"), "no such command 'repaets'. Did you mean 'repeats'")
    refused(run("nowhere.npz"), "nowhere.npz does not exist")


def test_a_folder_may_be_called_like_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("repeats", "judges", "races", "audits"):
        (tmp_path / name).mkdir()
        refused(run(name, "nowhere.npz"), "nowhere.npz does not exist")


def test_the_example_with_costs_is_compared_at_equal_money() -> None:
    example = Path(__file__).parents[2] / "examples" / "trajectories.csv"
    result = run(example, "--budget", "$100", "--seeds", "2", "--json", "-")
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)
    assert [(row["sampler"], row["budget"], row["budget_asked"]) for row in rows] == [
        ("uniform", 100.0, "$100"),
        ("auto", 100.0, "$100"),
    ]
    assert all(90.0 < row["usd"] <= 104.0 for row in rows)
    assert rows[1]["readings"] > rows[0]["readings"]
