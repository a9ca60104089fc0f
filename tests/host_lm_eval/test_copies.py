"""A local model that goes on draws other random numbers; a round of copies is noticed."""

from __future__ import annotations

import logging
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.host_lm_eval.worlds import TextModel, bought_in, simple_evaluate, write_task

from evalbudget.errors import InvalidInputError
from evalbudget_lm_eval import budgeted
from evalbudget_lm_eval.host.answers import Answered
from evalbudget_lm_eval.host.host_evaluate import PrimedTasks

DOCUMENTS = 16


class Sampling(TextModel):
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

    def _answer(self, prompt: str, kwargs: dict[str, Any]) -> str:
        if self._stops_at and len(self.said) == self._stops_at:
            raise KeyboardInterrupt
        number = prompt.rsplit("say ", 1)[1].split()[0]
        self.said.append(f"{number} {round(self._draw.random(), self._digits)}")
        self.cache_hook.add_partial("generate_until", (prompt, kwargs), self.said[-1])
        return self.said[-1]


def _run(folder: Path, model: Sampling, repeats: int = 5) -> dict[str, Any]:
    with budgeted(sampler="uniform", budget=repeats * DOCUMENTS, journal="j.db"):
        return simple_evaluate(folder, model, rounds=DOCUMENTS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
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
    Path("j.db").unlink()
    _run(folder, two)
    assert one.said == two.said


def test_a_model_that_replays_its_own_numbers_is_refused(folder: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        _run(folder, Sampling(random.Random(7), stops_at=3 * DOCUMENTS))
    again = Sampling(random.Random(7))
    with pytest.raises(InvalidInputError, match=r"all 16 answers .* draws the same random numbers"):
        _run(folder, again)
    assert len(again.said) == DOCUMENTS
    readings = bought_in("j.db").readings
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


def test_a_model_of_few_answers_that_varies_is_not_suspected(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        _run(folder, Sampling(draw=_Coin(1)), repeats=12)
    assert not any("letter for letter" in record.message for record in caplog.records)


class _Coin(random.Random):
    def random(self) -> float:
        return float(super().random() < 0.5)


class _Half(random.Random):
    def random(self) -> float:
        return 0.5


def test_the_seed_of_the_host_or_of_the_sampler_gives_other_samples(folder: Path) -> None:
    def said(host: dict[str, Any], **options: Any) -> tuple[str, ...]:
        model = Sampling()
        with budgeted(sampler="uniform", budget=2 * DOCUMENTS, **options):
            simple_evaluate(folder, model, **host)
        return tuple(model.said)

    found = [said({}), said({}, seed=1), said({"random_seed": 5}, journal="5.db")]
    found += [said({"numpy_random_seed": 5}, journal="n.db")]
    assert len(set(found)) == len(found)
    assert said({}, journal="j.db") == found[0]  # bought again elsewhere


def test_what_has_no_score_is_rightly_asked_again(
    folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell = PrimedTasks.run

    def mostly_without_numbers(self: PrimedTasks, *args: Any, **options: Any) -> list[Answered]:
        found = tell(self, *args, **options)
        return [replace(a, metrics={"exact_match,none": math.nan}) if a.doc_id >= 7 else a for a in found]

    monkeypatch.setattr(PrimedTasks, "run", mostly_without_numbers)
    with caplog.at_level(logging.WARNING):
        block = _run(folder, Sampling(draw=_Half()), repeats=2)["evalbudget"]
    assert block["failed"] > 9  # asked again
    assert not any("letter for letter" in record.message for record in caplog.records)
