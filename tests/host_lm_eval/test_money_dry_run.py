"""``--dry_run``: everything that can be known before the first call, and no call."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

import lm_eval.tasks
import numpy as np
import pytest
import tests.host_lm_eval.worlds  # noqa: F401  (registers the model)
from click.testing import CliRunner
from tests.bills import changed
from tests.host_lm_eval.judged_worlds import write_judged
from tests.host_lm_eval.money_worlds import PaidServer, luck, price_file
from tests.host_lm_eval.worlds import write_task

from evalbudget.cli.main import cli
from evalbudget_lm_eval.log_folder import open_scores

N = 12


@pytest.fixture
def server() -> Iterator[PaidServer]:
    with PaidServer(answer=luck) as running:
        yield running


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    few = functools.partial(lm_eval.tasks.TaskManager, include_defaults=False)
    monkeypatch.setattr(lm_eval.tasks, "TaskManager", few)
    price_file(tmp_path)
    write_task(tmp_path / "tasks", n=N)


def _said(server: PaidServer, *more: str, tasks: str = "numbers", code: int = 0) -> str:
    result = CliRunner().invoke(
        cli,
        [
            *("lm-eval", "run", "--model", "local-chat-completions", "--model_args"),
            *(server.chat_args(num_concurrent=4), "--tasks", tasks, "--include_path", "tasks"),
            *("--apply_chat_template", "--gen_kwargs", "temperature=1,seed=None,max_gen_toks=20", *more),
        ],
    )
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


def test_money_is_foreseen_from_earlier_runs(server: PaidServer) -> None:
    asked = ("--budget", "$0.8", "--prices", "prices.yaml", "--sampler", "uniform")
    said = _said(server, *asked, "--dry_run")
    assert "Task numbers with m Items 12 Sampler uniform Budget $0.80 At least 12 readings" in said
    assert "A call $0.02" in said
    assert "Expected not known before the first readings" in said
    assert "At most $0.80, whatever happens No call was made." in said
    assert server.calls() == 0
    assert not Path("evalbudget-journals").exists()
    _said(server, *asked)
    calls = server.calls()
    said = _said(server, "--budget", "$1.6", *asked[2:], "--dry-run")
    assert f"A reading ${server.bill / calls:.4f} on average in earlier runs" in said
    assert "as fast as earlier runs" in said
    assert server.calls() == calls


def test_scores_are_foreseen_too(server: PaidServer) -> None:
    said = _said(server, "--budget", "5x", "--dry_run", "--sampler", "eb-bernstein")
    assert "Budget 60 scores" in said
    assert "Expected 60 readings" in said
    assert server.calls() == 0


def test_judges_without_a_budget(server: PaidServer) -> None:
    judges = f"{server.judge('j1')},{server.judge('j2')}"
    said = _said(server, "--judges", judges, "--dry_run", "--score_range", "1..5")
    assert "Budget none" in said
    assert "Items 12" in said
    assert server.calls() == 0


def test_what_is_refused_is_refused_here_too(server: PaidServer) -> None:
    Path("prices.yaml").write_text("j1: {input: 1, output: 1}\n")
    said = _said(server, "--budget", "$2", "--prices", "prices.yaml", "--dry_run", code=2)
    assert "no price is known for m" in said
    write_judged(Path("tasks"), [server.judge("j1"), server.judge("j2")])
    Path("prices.yaml").write_text("m: {input: 1, output: 1}\nj1: {input: 1, output: 1}\n")
    said = _said(server, "--budget", "$2", "--prices", "prices.yaml", "--dry_run", tasks="essays", code=2)
    assert "no price is known for j2" in said
    Path("prices.yaml").write_text("m: {input: 1, output: 1}\nj?: {input: 1, output: 1000}\n")
    said = _said(server, "--budget", "$0.5", "--prices", "prices.yaml", "--dry_run", tasks="essays", code=2)
    assert "a budget of $0.50 is below what one call of j1 can cost here: $1.02" in said
    said = _said(server, "--budget", "5", "--sampler", "auto", "--dry_run", code=2)
    assert "budget of 5 scores is below the minimum of" in said
    assert server.calls() == 0


def test_a_run_in_money_is_replayed_in_money(server: PaidServer) -> None:
    paid = ("--budget", "$0.8", "--prices", "prices.yaml", "--sampler", "uniform")
    _said(server, *paid, "--output_path", "out", "--log_samples")
    recorded = open_scores(Path("out"))
    assert recorded is not None
    assert recorded.costs is not None
    assert np.isfinite(recorded.costs[~np.isnan(recorded.scores)]).all()
    assert np.nansum(recorded.costs) == pytest.approx(server.bill)
    command = ["backtest", "repeats", "out", "--budget", "$0.4", "--sampler", "uniform", "--seeds", "2"]
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == 0, done.output
    for record in Path("out").rglob("*.db"):
        with changed(record) as bill:
            bill.executescript("DROP TRIGGER meta_no_delete; DELETE FROM meta WHERE key = 'bill'")
    recorded = open_scores(Path("out"))
    assert recorded is not None
    assert recorded.costs is None
