"""The rounds of runs and races: one that breaks off loses nothing, and who is down is not asked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.host_lm_eval.race_worlds import Racer, manager, racer
from tests.host_lm_eval.worlds import CoinModel, TextModel, chat_model, load, simple_evaluate, write_task

from evalbudget.outage import DOWN_AFTER, is_down
from evalbudget.races._verdict import Status
from evalbudget_lm_eval import budgeted
from evalbudget_lm_eval.host.answers import Answered, Asked
from evalbudget_lm_eval.host.host_evaluate import PrimedTasks
from evalbudget_lm_eval.races.api import race
from evalbudget_lm_eval.run.record import Record
from evalbudget_lm_eval.run.rounds import Rounds
from loopback import Server


class TemplateAPI(TextModel):  # the host's class is known by its name
    """Answers in order until it fails; keeps the calls of each round."""

    max_retries = 1
    amodel_call = None

    def __init__(self, concurrent: int = 1, fails: frozenset[int] = frozenset()) -> None:
        super().__init__()
        self._concurrent, self._batch_size = concurrent, 1
        self.fails = fails
        self.rounds: list[list[int]] = []

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        self.rounds.append([])
        return super().generate_until(requests)

    def _answer(self, prompt: str, kwargs: dict[str, Any]) -> str:
        said = self.model_call([prompt])
        self.cache_hook.add_partial("generate_until", (prompt, kwargs), said)
        return said

    def model_call(self, messages: list[str]) -> str:
        number = int(messages[0].rsplit("say ", 1)[1].split()[0])
        self.rounds[-1].append(number)
        if number in self.fails:
            raise ConnectionError("gone")
        return f"{number}"


class Purse:
    """Counts what it is told."""

    def __init__(self) -> None:
        self.had: list[int] = []
        self.paid: list[int] = []
        self.unpaid: list[int] = []
        self.rest: list[int] = []
        self.unanswered = 0

    def answered(self, answers: Sequence[Answered]) -> None:
        self.had += [answer.doc_id for answer in answers]

    def failed(self, asked: Asked, error: Exception, *, paid: bool) -> None:
        (self.paid if paid else self.unpaid).append(asked.doc_id)

    def pays(self, calls: int) -> bool:
        self.unanswered += calls
        return True

    def gives_up(self, cells: Sequence[Asked], calls: int) -> Sequence[Asked]:
        raise AssertionError("everything is paid")

    def down(self, rest: Sequence[Asked], error: Exception) -> None:
        self.rest += [asked.doc_id for asked in rest]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_task(tmp_path / "tasks", n=30)


def cells(*numbers: int, epoch: int = 0) -> list[Asked]:
    return [Asked("numbers", number, epoch) for number in numbers]


@pytest.mark.parametrize("concurrent", [1, 2, 4, 8])
def test_every_cell_is_settled_once_whatever_fails(folder: Path, concurrent: int) -> None:
    lm, purse = TemplateAPI(concurrent, frozenset({5})), Purse()
    with PrimedTasks(lm, load(folder)) as primed:
        rounds = Rounds(primed, Record.open(None, "run", {}).of(), purse)
        rounds.ask(cells(*range(12)))
        # five were had; the sixth may be billed each time, with the others and by itself
        assert (purse.unanswered, purse.paid, purse.unpaid) == (1, [5], [])
        assert sorted([*purse.had, *purse.paid, *purse.unpaid]) == list(range(12))
        assert rounds.count == len(lm.rounds) == 1 + 7  # together, and then one by one
        # the document that may break a round off again is asked by itself, before the others
        rounds.ask(cells(20, 5, 21))
        assert lm.rounds[-3:-1] == [[5], [20]]  # after a failure one goes before the rest
        assert lm.rounds[-1] == [21]
        assert purse.paid == [5, 5]


def test_who_is_down_is_not_asked_and_one_call_finds_out_whether_it_is_back(folder: Path) -> None:
    lm, purse = TemplateAPI(4, frozenset(range(30))), Purse()
    with PrimedTasks(lm, load(folder)) as primed:
        rounds = Rounds(primed, Record.open(None, "race", {}).of("a"), purse)
        rounds.ask(cells(*range(20)))
        assert purse.unanswered == 1
        assert purse.paid == list(range(8))
        assert purse.rest == list(range(8, 20))
        rounds.ask(cells(20, 21, 22))
        assert (purse.paid[8:], purse.rest[12:]) == ([20], [21, 22])
        lm.fails = frozenset()
        rounds.ask(cells(23, 24, 25))
        assert lm.rounds[-2:] == [[23], [24, 25]]
        assert purse.had == [23, 24, 25]


def test_repeats_of_one_document_that_fails_do_not_mean_that_the_model_is_down(folder: Path) -> None:
    lm, purse = TemplateAPI(4, frozenset({5})), Purse()
    with PrimedTasks(lm, load(folder)) as primed:
        rounds = Rounds(primed, Record.open(None, "run", {}).of(), purse)
        rounds.ask(cells(5, 6))
        again = [asked for epoch in range(1, 12) for asked in cells(5, epoch=epoch)]
        rounds.ask([*again, *cells(7, 8)])
        assert purse.paid == [5] * 12
        assert (purse.had, purse.rest) == ([6, 7, 8], [])
        lm.fails = frozenset(range(30))
        rounds.ask(cells(*range(10, 20)))
        assert purse.rest == [18, 19]


def test_responses_of_an_earlier_run_are_scored_without_asking(folder: Path, tmp_path: Path) -> None:
    record = Record.open(tmp_path / "r.db", "race", {})
    record.of("a").hear(*cells(3), 0, "3")
    record.of("a").hear(*cells(4, epoch=1), 0, "?")
    record.close()
    record = Record.open(tmp_path / "r.db", "race", {})
    lm, purse = TemplateAPI(), Purse()
    with PrimedTasks(lm, load(folder)) as primed:
        Rounds(primed, record.of("a"), purse).ask([*cells(3, 9), *cells(4, epoch=1)])
        assert lm.rounds == [[9]]
        assert purse.had == [3, 4, 9]
        assert primed.numbers("numbers")["exact_match,none"] == {(3, 0): 1.0, (9, 0): 1.0, (4, 1): 0.0}
    record.close()


@pytest.mark.parametrize(
    ("options", "rounds"),
    [
        # a phase goes together, and with it one answer to each document for the phase after it
        ({}, [32, 48 + 40, 40 + 40, 120 + 40, 40]),
        ({"until": "item±0.1"}, [32, 48, 40, 40, 40, 50, 62, 88]),
        ({"sampler": "uniform"}, [32, 256, 112]),
        ({"sampler": "robin-hood", "t0": 3}, [32, 88] + [32] * 8 + [24]),
    ],
    ids=lambda given: " ".join(map(str, given.values())) if isinstance(given, dict) else "",
)
def test_a_round_is_as_large_as_what_is_decided_and_never_larger(
    tmp_path: Path, options: dict[str, Any], rounds: list[int]
) -> None:
    sizes: list[int] = []

    class Model(CoinModel):
        def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
            sizes.append(len(requests))
            return super().generate_until(requests)

    with budgeted(budget=400, score_range="0..1", journal="none", **options):
        simple_evaluate(write_task(tmp_path / "tasks", n=40), Model())
    assert sizes == rounds


def test_the_rule_of_who_is_down() -> None:
    assert [n for n in range(20) if is_down(n)] == list(range(DOWN_AFTER, 20))
    assert not is_down(100, successes=1)


PROCESS = """
def process(doc, results):
    if doc["number"] == 5:
        raise ValueError("no such number")
    return {"exact_match": float(results[0] == doc["text"])}
"""


@pytest.fixture
def fragile(tmp_path: Path) -> Path:
    """A task that cannot score the answer to document 5."""
    return write_task(tmp_path / "fragile", n=8, own=PROCESS)


@pytest.mark.parametrize("concurrent", [1, 4])
def test_a_run_survives_an_answer_that_its_task_cannot_score(
    fragile: Path, tmp_path: Path, server: Server, concurrent: int
) -> None:
    model = chat_model(server, num_concurrent=concurrent, max_retries=1)
    with budgeted(budget=40, sampler="uniform", journal=tmp_path / "j.db"):
        block = simple_evaluate(
            fragile, model, rounds=8, apply_chat_template=True, gen_kwargs={"seed": None, "temperature": 1.0}
        )["evalbudget"]
    assert block["spent"] == len(server.served) == 40  # every call counts, and none twice
    assert block["closed_items"] == ["numbers:5"]
    (reason, times), *others = block["failures"].items()
    assert (reason, others) == ("its round failed: ValueError: no such number", [])
    assert times == 3 or (concurrent > 1 and 3 < times <= 5)  # with what was asked while a round was scored


def test_answers_that_a_broken_task_did_not_score_are_scored_once_it_is_mended(
    fragile: Path, tmp_path: Path
) -> None:
    own = fragile / "own.py"
    own.write_text(PROCESS.replace("== 5", ">= 0"))
    lm = CoinModel()
    arguments: dict[str, Any] = {"budget": 40, "sampler": "uniform", "journal": tmp_path / "j.db"}
    with pytest.raises(ValueError, match="no such number"), budgeted(**arguments):
        simple_evaluate(fragile, lm, rounds=8)
    assert len(lm.calls) == 1
    own.write_text(PROCESS.replace("== 5", "< 0"))
    with budgeted(**arguments):
        block = simple_evaluate(fragile, lm, rounds=8)["evalbudget"]
    assert len(lm.calls) == block["spent"] == block["readings"] == 40


def test_a_race_that_goes_on_asks_a_dead_model_once_to_see_whether_it_is_back(tmp_path: Path) -> None:
    tasks = manager(tmp_path / "tasks", n=40)
    arms = {"good": racer(0.9, 1), "poor": racer(0.2, 2), "dead": racer(0.5, 3, breaks="always")}
    options: dict[str, Any] = {"task_manager": tasks, "sampler": "uniform", "output_path": tmp_path / "out"}
    first = race(arms, "numbers", budget=60, **options).leaderboard
    assert (first.of("dead").status, first.of("dead").failed) == (Status.LOST, 8)
    assert first.of("dead").left == "it answered nothing"
    before = sum(seed == 3 for seed, _ in Racer.asked)
    again = race(arms, "numbers", budget=80, **options).leaderboard
    assert sum(seed == 3 for seed, _ in Racer.asked) == before + 1
    assert again.of("dead").failed == 9
    assert again.spent <= 80


def test_a_document_that_fails_is_not_asked_for_all_repeats_of_a_large_round(tmp_path: Path) -> None:
    class Model(CoinModel):
        def _answer(self, prompt: str, kwargs: dict[str, Any]) -> str:
            if "say 5 " in prompt:
                self.calls.append(prompt)
                raise ValueError("no")
            return super()._answer(prompt, kwargs)

    lm = Model()
    with budgeted(sampler="uniform", budget=600, journal="none"):
        block = simple_evaluate(write_task(tmp_path / "tasks", n=30), lm)["evalbudget"]
    assert block["closed_items"] == ["numbers:5"]
    assert sum("say 5 " in prompt for prompt in lm.calls) == 4
    assert block["readings"] == 600 - block["failed"]
