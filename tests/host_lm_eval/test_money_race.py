"""Races in money: one bill for all arms and their judges."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from lm_eval.tasks import TaskManager
from tests.claims import variant
from tests.host_lm_eval.judged_worlds import write_judged
from tests.host_lm_eval.money_worlds import PaidServer, price_file
from tests.host_lm_eval.race_worlds import manager
from tests.host_lm_eval.worlds import CoinModel

from evalbudget.cli.main import cli
from evalbudget.errors import BudgetError, JournalError
from evalbudget.run import Bill
from evalbudget_lm_eval.races.api import race
from loopback import GARBLED, Asked, rating

N = 60


def _answer(asked: Asked) -> str:
    number = int(asked.prompt.rsplit("say ", 1)[1].split()[0])
    right = asked.luck < {"m": 0.9, "j1": 0.6, "j2": 0.5}[asked.model]
    return f"{number}" if right else "no idea"


@pytest.fixture
def server() -> Iterator[PaidServer]:
    with PaidServer(answer=_answer) as running:
        yield running


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    price_file(tmp_path)


def _race(
    server: PaidServer,
    tmp_path: Path,
    budget: str,
    concurrent: int = 8,
    names: Sequence[str] = ("m", "j1", "j2"),
    **more: Any,
) -> Any:
    arms = {
        name: ("local-chat-completions", server.args_of(name, num_concurrent=concurrent, max_retries=3))
        for name in names
    }
    options: dict[str, Any] = {
        "task_manager": manager(tmp_path / "own", n=N),
        "apply_chat_template": True,
        "gen_kwargs": {"max_gen_toks": 20},
        "output_path": tmp_path / "out",
        "prices": "prices.yaml",
    }
    return race(arms, **{"task": "numbers", "budget": budget, **options, **more})


@pytest.mark.parametrize("concurrent", [variant(1), 8])
def test_the_cap_holds_for_all_arms(server: PaidServer, tmp_path: Path, concurrent: int) -> None:
    server.fail(GARBLED, after=9)
    found = _race(server, tmp_path, "$0.15", concurrent, sampler="uniform")
    board = found.leaderboard
    assert server.bill <= 0.15
    assert board.paid > 0.8 * 0.15
    assert board.stop_reason == "budget used up"
    assert {"m", "j1", "j2"} == {standing.name for standing in board.standings}
    assert board.spent == sum(standing.readings for standing in board.standings)
    (paid,) = (note for note in board.notes if note.startswith("Paid "))
    assert "of $0.15: m $0." in paid
    assert "1 of them count at the most that they can cost" in paid
    calls = server.calls()
    more = _race(server, tmp_path, "$0.2", concurrent, sampler="uniform").leaderboard
    assert server.calls() > calls
    assert server.bill <= 0.2
    assert more.spent > board.spent


def _judged_race(server: PaidServer, tmp_path: Path, budget: str, concurrent: int = 8, **more: Any) -> Any:
    said = rating()
    server.answer = lambda asked: said(asked) if asked.model == "j1" else "an essay"
    judge = server.judge("j1", num_concurrent=4)
    sampling = {"temperature": 1, "max_gen_toks": 20}
    folder = write_judged(tmp_path / "essays", [judge], n=N, rotation="single", gen_kwargs=sampling, **more)
    return _race(
        *(server, tmp_path, budget, concurrent),
        names=("m", "j2"),
        task="essays",
        task_manager=TaskManager(include_path=str(folder), include_defaults=False),
        sampler="uniform",
        score_range=(1, 5),
    )


def test_an_answer_of_a_race_is_begun_only_if_its_judges_can_be_paid_too(
    server: PaidServer, tmp_path: Path
) -> None:
    found = _judged_race(server, tmp_path, "$0.3")
    assert server.bill == pytest.approx(found.leaderboard.paid)
    assert 0.24 < server.bill <= 0.3
    assert server.calls("j1") == server.calls("m") + server.calls("j2") == found.leaderboard.spent


def test_what_was_kept_for_judges_of_an_arm_that_is_down_is_free_again(
    server: PaidServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free, real = list[float](), Bill.close

    def close(bill: Bill) -> None:
        free.append(bill.free)
        real(bill)

    monkeypatch.setattr(Bill, "close", close)
    server.fail(500, model="m", times=math.inf)
    board = _judged_race(server, tmp_path, "$2", 16).leaderboard
    assert [standing.left for standing in board.standings] == [None, "it answered nothing"]
    assert free[-1] == pytest.approx(2 - server.bill)


def test_a_race_that_decides_pays_no_more_than_it_takes(server: PaidServer, tmp_path: Path) -> None:
    board = _race(server, tmp_path, "$5").leaderboard
    assert board.standings[0].name == "m"
    assert board.spent <= 3 * N
    assert server.bill < 1


def test_tokens_and_local_models(tmp_path: Path) -> None:
    class Counting(CoinModel):
        max_gen_toks = 16

        def tok_encode(self, text: str, **_: object) -> list[int]:
            return list(range(len(text.split())))

    arms = {"a": Counting(seed=1), "b": Counting(seed=2)}
    board = race(
        arms, "numbers", budget="400tok", task_manager=manager(tmp_path / "own", n=N), sampler="uniform"
    ).leaderboard
    calls = sum(len(lm.calls) for lm in arms.values())
    assert board.spent == calls
    assert 0.95 * 400 - 5 <= 5 * calls <= 400


def test_refusals(server: PaidServer, tmp_path: Path) -> None:
    with pytest.raises(BudgetError, match=r"below what one call of m can cost here: \$0\.02"):
        _race(server, tmp_path, "$0.001", names=("j2", "m"))  # it pays for one of j2
    assert server.calls() == 0
    price_file(tmp_path, "m", "j2")
    with pytest.raises(BudgetError, match="no price is known for j1"):
        _race(server, tmp_path, "$1")
    assert server.calls() == 0
    price_file(tmp_path)
    _race(server, tmp_path, "$0.1")
    with pytest.raises(JournalError, match="was begun with a budget in money"):
        _race(server, tmp_path, "30", prices=None)


def test_a_dry_run_makes_no_call(server: PaidServer, tmp_path: Path, own_tasks_only: None) -> None:
    manager(tmp_path / "own", n=N)
    arms = [f"--arm={name}=local-chat-completions:{server.chat_args(name)}" for name in ("m", "j1")]
    asked = [
        *("lm-eval", "race", *arms, "--tasks", "numbers", "--include_path", str(tmp_path / "own")),
        *("--apply_chat_template", "--dry_run", "--budget"),
    ]
    result = CliRunner().invoke(cli, [*asked, "$2", "--prices", "prices.yaml"])
    assert result.exit_code == 0, result.output
    said = " ".join(result.output.split())
    assert "Task numbers with m, j1 Items 60 Sampler race Budget $2.00" in said
    assert "No call was made." in said
    result = CliRunner().invoke(cli, [*asked, "50"])
    assert "Expected 50 readings" in " ".join(result.output.split())
    (tmp_path / "prices.yaml").write_text("m: {input: 1, output: 1}\n")
    result = CliRunner().invoke(cli, [*asked, "$2", "--prices", "prices.yaml"])
    assert result.exit_code == 2
    assert "no price is known for j1" in result.output
    assert server.calls() == 0
    assert math.isclose(server.bill, 0)
