"""A local model that goes on draws other random numbers; a round of copies is noticed."""

from __future__ import annotations

import logging
import math
import random
from pathlib import Path
from typing import Any

import pytest
from lm_eval.api.model import LM
from tests.host_lm_eval.worlds import journal_of, simple_evaluate, write_task

from evalbudget.errors import InvalidInputError
from evalbudget_lm_eval import budgeted
from evalbudget_lm_eval.host.answers import Answered
from evalbudget_lm_eval.run.copies import CHANCE, FEWEST, Copies

DOCUMENTS = 16


class Sampling(LM):  # type: ignore[misc]
    """Says a random number after the one it was asked for.

    Args:
        draw: of the random numbers; by default Python's own, which the host seeds at every start.
        stops_at: the call at which the user presses Ctrl-C; 0 for never.
        digits: of the random number.
    """

    def __init__(self, draw: random.Random | None = None, stops_at: int = 0, digits: int = 9) -> None:
        super().__init__()
        self._draw: Any = draw or random
        self._stops_at = stops_at
        self._digits = digits
        self.said: list[str] = []

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        return [self._answer(*request.args) for request in requests]

    def _answer(self, prompt: str, kwargs: dict[str, Any]) -> str:
        if self._stops_at and len(self.said) == self._stops_at:
            raise KeyboardInterrupt
        number = prompt.rsplit("say ", 1)[1].split()[0]
        self.said.append(f"{number} {round(self._draw.random(), self._digits)}")
        self.cache_hook.add_partial("generate_until", (prompt, kwargs), self.said[-1])
        return self.said[-1]

    def loglikelihood(self, requests: list[Any]) -> Any:
        raise NotImplementedError

    def loglikelihood_rolling(self, requests: list[Any]) -> Any:
        raise NotImplementedError


def _run(folder: Path, model: Sampling, repeats: int = 5) -> dict[str, Any]:
    with budgeted(sampler="uniform", budget=repeats * DOCUMENTS, in_flight=DOCUMENTS, journal="j.jsonl"):
        return simple_evaluate(folder, model)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_task(tmp_path / "tasks", n=DOCUMENTS)


@pytest.mark.parametrize("stops_at", [DOCUMENTS, DOCUMENTS + 3, 3 * DOCUMENTS])
def test_a_run_that_goes_on_replays_no_random_numbers(folder: Path, stops_at: int) -> None:
    first = Sampling(stops_at=stops_at)
    with pytest.raises(KeyboardInterrupt):
        _run(folder, first)
    second = Sampling()
    block = _run(folder, second)["evalbudget"]
    assert block["spent"] == len(first.said) + len(second.said) == 5 * DOCUMENTS
    assert not set(first.said) & set(second.said)


def test_a_run_is_the_same_every_time(folder: Path) -> None:
    one, two = Sampling(), Sampling()
    _run(folder, one)
    Path("j.jsonl").unlink()
    _run(folder, two)
    assert one.said == two.said


def test_a_model_that_replays_its_own_numbers_is_refused(folder: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        _run(folder, Sampling(random.Random(7), stops_at=3 * DOCUMENTS))
    again = Sampling(random.Random(7))
    with pytest.raises(InvalidInputError, match=r"all 16 answers .* draws the same random numbers"):
        _run(folder, again)
    assert len(again.said) == DOCUMENTS
    readings = journal_of("j.jsonl").readings
    assert sum(r.value is None for r in readings) == DOCUMENTS  # they are no repeats, and not bought again
    other = Sampling(random.Random(8))
    assert _run(folder, other)["evalbudget"]["spent"] == 5 * DOCUMENTS
    assert len(other.said) == DOCUMENTS


def test_answers_that_are_always_the_same_are_said_once(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        _run(folder, Sampling(draw=_Half()))
    assert sum("letter for letter" in record.message for record in caplog.records) == 1


class _Half(random.Random):
    def random(self) -> float:
        return 0.5


def test_the_hosts_seed_and_a_fresh_record_give_other_samples(folder: Path) -> None:
    def said(host: dict[str, Any], **options: Any) -> tuple[str, ...]:
        model = Sampling()
        with budgeted(sampler="uniform", budget=2 * DOCUMENTS, **options):
            simple_evaluate(folder, model, **host)
        return tuple(model.said)

    found = [said({}), said({}, fresh=True), said({"random_seed": 5}, journal="5.jsonl")]
    found += [said({"numpy_random_seed": 5}, journal="n.jsonl"), said({}, journal="j.jsonl")]
    assert len(set(found)) == len(found)


def _answers(epoch: int, said: str, first: int = 0, value: float = 1.0) -> list[Answered]:
    return [
        Answered("t", first + i, epoch, {"m": value}, 1, ({"resps": [[text]]},))
        for i, text in enumerate(said)
    ]


def test_how_probable_copies_are() -> None:
    copies, n = Copies([]), FEWEST
    assert copies.among(_answers(0, "a" * n)) == ([], 1.0)  # nothing to compare with
    assert copies.among(_answers(1, "a" * (n - 1))) == ([], 1.0)  # too few
    again = _answers(2, "a" * n)
    # whoever says the same twice says it three times; of the last document one answer tells nothing
    assert copies.among(again) == (again, 1.0)

    varied = Copies([])
    varied.among(_answers(0, "abcdefgh"))
    assert varied.among(_answers(1, "ijklmnop")) == ([], 1.0)
    assert varied.among(_answers(2, "abcdefgz")) == ([], 1.0)  # one is new
    again = _answers(3, "abcdefgz")
    # of 24 pairs 7 are the same; one of three answers again, at most three times as probable
    same = 8.0 / 26.0
    found, chance = varied.among([*again, *_answers(0, "new", first=50)])
    assert found == again  # and not what was asked for the first time
    assert chance == pytest.approx((3 * same) ** 8)
    assert same**FEWEST > CHANCE > 0.1**FEWEST  # a model that varies this little is not refused


def test_what_other_documents_said_tells_nothing_of_these() -> None:
    copies = Copies([])
    for epoch, said in enumerate(("abcdefghijklmnopqrst", "ABCDEFGHIJKLMNOPQRST")):
        copies.among(_answers(epoch, said))
        copies.among(_answers(epoch, "y" * FEWEST, first=50))
    found, chance = copies.among(_answers(2, "y" * FEWEST, first=50))
    assert len(found) == FEWEST
    assert chance > CHANCE  # these always say the same


def test_what_has_no_score_is_rightly_asked_again() -> None:
    copies = Copies([])
    copies.among(_answers(0, "x" * FEWEST, value=math.nan))
    assert copies.among(_answers(1, "x" * FEWEST, value=math.nan)) == ([], 1.0)
