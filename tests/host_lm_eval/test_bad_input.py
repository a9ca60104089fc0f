"""Runs that would waste money or mislead are refused before anything is spent, with the flag to fix it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lm_eval.evaluator
import pytest
from tests.host_lm_eval.worlds import (
    CoinModel,
    averaged,
    chat_model,
    choice,
    load,
    simple_evaluate,
    write_task,
)

from evalbudget.errors import BudgetError, EvalbudgetError, InvalidInputError, UnknownNameError
from evalbudget_lm_eval import budgeted
from evalbudget_lm_eval.arms.one_task import documents_of
from evalbudget_lm_eval.repeats.config import Config
from loopback import Server

STOCK = lm_eval.evaluator.evaluate
F1, BLEU = ({"metric": m, "aggregation": m, "higher_is_better": True} for m in ("f1", "bleu"))
CHOICE = choice("one", "two", "three", target=1)
GREEDY = {"generation_kwargs": {"until": ["\n"], "do_sample": False, "temperature": 0.0}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write_task(tmp_path_factory.mktemp("tasks"), n=10)
    write_task(path, "greedy", n=10, **GREEDY)
    write_task(path, "cold", n=10, generation_kwargs={"until": ["\n"]})
    write_task(path, "choice", n=10, **CHOICE | {"metric_list": [*averaged("acc"), F1]})
    write_task(path, "bleu", n=10, metric_list=[BLEU])
    return path


@pytest.fixture
def refused(folder: Path) -> Callable[..., str]:
    """Run it, and see that nothing was asked and nothing is left behind."""

    def run(
        *names: str,
        lm: Any = None,
        kind: type[EvalbudgetError] = InvalidInputError,
        host: dict[str, Any] | None = None,
        **ours: Any,
    ) -> str:
        lm = lm or CoinModel()
        with pytest.raises(kind) as error, budgeted(**{"budget": 100, **ours}):
            simple_evaluate(folder, lm, *names, **(host or {}))
        assert getattr(lm, "calls", []) == []
        assert lm_eval.evaluator.evaluate is STOCK
        assert not Path("evalbudget-journals").exists()
        return str(error.value)

    return run


def test_repeats_that_would_be_identical(refused: Callable[..., str], tmp_path: Path) -> None:
    greedy = refused("greedy")
    assert "decodes greedily" in greedy
    assert "add --gen_kwargs do_sample=True,temperature=1.0" in greedy
    assert "--sampler uniform --budget 1x" in greedy
    assert "decodes greedily (temperature=0.0, do_sample=None)" in refused("cold")
    assert "scores log-likelihoods (multiple_choice)" in refused("choice")
    # at once, not after the budget was raised
    assert "scores log-likelihoods (multiple_choice)" in refused("choice", budget=20, sampler="auto")
    assert "drop --use_cache" in refused("numbers", host={"use_cache": str(tmp_path / "cache")})
    # one of two is enough
    assert "task 'greedy'" in refused("numbers", "greedy")


def test_a_seed_in_every_payload(refused: Callable[..., str], folder: Path, server: Server) -> None:
    chat: dict[str, Any] = {"apply_chat_template": True}
    message = refused("numbers", lm=chat_model(server), host={**chat, "gen_kwargs": {"seed": 7}})
    assert "sends seed 7 with every request" in message
    assert "leave it out, and every repeat sends another one" in message
    message = refused("cold", lm=chat_model(server), host=chat)
    assert "add --gen_kwargs temperature=1.0;" in message
    assert server.served == []

    with budgeted(sampler="uniform", budget=30):
        simple_evaluate(folder, chat_model(server), **chat, gen_kwargs={"seed": None})
    assert [one.body["seed"] for one in server.served] == [None] * 30


def test_one_reading_of_each_document_is_never_refused(folder: Path) -> None:
    for name in ("greedy", "choice"):
        with budgeted(sampler="uniform", budget="1x"):
            results = simple_evaluate(folder, CoinModel(), name)
        # a document of multiple choice takes a call per choice
        assert results["evalbudget"]["spent"] == (30 if name == "choice" else 10)
        assert results["evalbudget"]["readings"] == 10


def test_scores_that_are_no_mean_of_numbers(refused: Callable[..., str]) -> None:
    assert "no metric that is a number per document and averaged (bleu: bleu)" in refused("bleu")
    message = refused("choice", score="f1")
    assert "'f1' of task 'choice' is aggregated by f1" in message
    assert "use --score acc" in message
    assert "drop it" in refused("numbers", host={"predict_only": True})
    assert "'exact_match'" in refused("numbers", score="exact", kind=UnknownNameError)
    assert "unknown filter" in refused("numbers", score="exact_match,strict", kind=UnknownNameError)


def test_a_score_that_turns_out_to_be_no_number(tmp_path: Path) -> None:
    own = "def process(doc, results):\n    return {'pair': (1, 2), 'length': len(results[0])}\n"
    folder = write_task(tmp_path / "tasks", n=200, own=own, metric_list=averaged("pair", "length"))
    lm = CoinModel()
    with (
        pytest.raises(InvalidInputError, match=r"no number as 'pair,none' .* use --score length,none"),
        budgeted(budget=1000),
    ):
        simple_evaluate(folder, lm)
    assert len(lm.calls) == 1


def test_budgets_below_the_first_readings(refused: Callable[..., str]) -> None:
    message = refused("numbers", budget=19, sampler="auto", kind=BudgetError)
    assert "below the minimum of 20" in message
    assert "auto reads each of the 10 documents 2 times" in message
    assert "Raise --budget to 20 or more" in message
    assert "at up to 3 calls" in refused("choice", budget=29, sampler="uniform", kind=BudgetError)
    assert "needs" not in refused("numbers", budget="0.5x", sampler="uniform", kind=BudgetError)


def test_samples_and_processes(refused: Callable[..., str]) -> None:
    assert "not ascending" in refused("numbers", host={"samples": {"numbers": [2, 1]}})
    assert "twice" in refused("numbers", host={"samples": {"numbers": [2, 2]}})
    assert "no entry for task 'greedy'" in refused("numbers", "greedy", host={"samples": {"numbers": [1]}})
    lm = CoinModel()
    lm._world_size = 4
    assert "4 processes" in refused("numbers", lm=lm)


@pytest.mark.parametrize("limit", [0, -1, -0.5])
def test_a_limit_that_leaves_nothing(refused: Callable[..., str], folder: Path, limit: float) -> None:
    told = f"--limit {limit:g} leaves no document of task 'numbers'; give how many"
    assert told in refused("numbers", host={"limit": limit})
    with pytest.raises(InvalidInputError, match=told):
        documents_of("numbers", load(folder, "numbers")["tasks"]["numbers"], {"limit": limit})


def test_a_journal_that_cannot_be_written(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    lm = CoinModel()
    with pytest.raises(EvalbudgetError, match="cannot be"), budgeted(budget=100, journal="file/j.db"):
        simple_evaluate(folder, lm)
    assert lm.calls == []


def test_a_journal_may_be_called_by_a_number() -> None:
    config = Config.of_block({"budget": 30, "journal": 2024, "score-range": "0..1"}, "task")
    assert (config.journal, config.score_range) == ("2024", (0.0, 1.0))
