"""What is seen while a run goes on: how much of its budget is spent, and none of the bars of its rounds."""

from __future__ import annotations

import io
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.host_lm_eval.judged_worlds import evaluate, write_judged
from tests.host_lm_eval.worlds import CoinModel, simple_evaluate, write_task
from tqdm import tqdm

from evalbudget.budget import Budget
from evalbudget.prices import Price, Tariff, Usage
from evalbudget.run import Bill
from evalbudget_lm_eval import budgeted
from evalbudget_lm_eval.host.patched import WORTH_A_BAR, bars_of_a_round
from evalbudget_lm_eval.repeats.progress import MoneyProgress, Progress
from loopback import Server, rating

STOCK = vars(tqdm)["__init__"]


@pytest.mark.parametrize(("documents", "hidden"), [(1, True), (WORTH_A_BAR - 1, True), (WORTH_A_BAR, False)])
def test_bars_of_small_rounds_are_hidden(documents: int, hidden: bool) -> None:
    with bars_of_a_round(documents), tqdm(total=3, disable=False) as bar:
        assert bar.disable is hidden
    assert vars(tqdm)["__init__"] is STOCK


def test_bars_of_large_rounds_are_hidden_where_something_better_is_shown() -> None:
    with bars_of_a_round(WORTH_A_BAR, hidden=True), tqdm(total=3, disable=False) as bar:
        assert bar.disable is True
    assert vars(tqdm)["__init__"] is STOCK


def test_the_host_has_its_bars_back_after_an_error() -> None:
    with pytest.raises(KeyboardInterrupt), bars_of_a_round(1):
        raise KeyboardInterrupt
    assert vars(tqdm)["__init__"] is STOCK


@pytest.fixture
def said() -> Iterator[list[str]]:
    """What a run logs of its progress, once: how many of pytest's handlers hear it depends on what ran."""
    messages: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    logger, handler = logging.getLogger("lm_eval.evalbudget"), Keep()
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield messages
    logger.setLevel(before)
    logger.removeHandler(handler)


def test_a_run_says_how_far_it_is(tmp_path: Path, said: list[str]) -> None:
    folder = write_task(tmp_path / "tasks", n=20)
    with budgeted(budget=400):
        simple_evaluate(folder, CoinModel())
    assert said[0] == "20 of 400 calls are spent"
    assert said[-1] == "400 of 400 calls are spent"
    assert len(said) == 20


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_has_one_bar_in_whole_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = _Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "80")
    progress = Progress(2000.0)
    progress.start(320.0)
    for _ in range(1700):  # more than is left
        progress.heard()
    progress.spent(1990.0)
    progress.close()
    shown = [text.strip() for text in screen.getvalue().split("\r") if text.strip()]
    assert shown[0].startswith("evalbudget: 320 of 2,000 calls |")
    assert shown[-1].startswith("evalbudget: 1,990 of 2,000 calls |")
    counts = [int(re.findall(r"([\d,]+) of 2,000", text)[0].replace(",", "")) for text in shown]
    assert max(counts) <= 2000
    assert all(len(text) <= 80 for text in shown)


def test_judged_calls_count_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    """The budget of a judged task counts judges' scores: the model's own answers do not move the bar."""
    screen = _Terminal()
    judges = [server.judge(name, num_concurrent=4) for name in "ab"]
    server.answers |= {"a": rating(), "b": rating()}
    folder = write_judged(tmp_path, judges, n=10, gen_kwargs={"temperature": 1})
    monkeypatch.setattr(sys, "stderr", screen)
    seen: list[int] = []
    stock = Progress.spent

    def spent(self: Progress, amount: float) -> None:
        seen.append(int(amount))
        stock(self, amount)

    monkeypatch.setattr(Progress, "spent", spent)
    with budgeted(budget=60):
        evaluate(folder, server.chat_args("writer", num_concurrent=4))
    assert seen == sorted(seen)
    assert seen[-1] == 60
    assert len(set(seen)) == 60


def test_money_is_told_with_what_is_promised_and_how_fast() -> None:
    now = [100.0]
    cap = Budget.parse("$10")
    bill = Bill(cap, Tariff(cap.unit, {"m": Price(output=1e6)}))
    progress = MoneyProgress(bill, lambda: now[0])
    progress.start(0.0)
    hold = bill.reserve("m", 0, 4)
    assert hold is not None
    assert str(progress) == "$0.00 of $10.00 is spent, $4.00 promised"
    bill.settle(hold, Usage(output=2))
    now[0] += 60.0
    assert str(progress) == "$2.00 of $10.00 is spent, $2.00 a minute, about 4 min left"
