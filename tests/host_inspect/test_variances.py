"""Known variances: ROBIN goes by an earlier log's, or by a file's."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import ChatMessageSystem, ChatMessageUser
from inspect_ai.scorer import mean
from tests.host_inspect.worlds import entry_of, scoring, solving

from evalbudget.errors import InvalidInputError
from evalbudget_inspect import budgeted
from evalbudget_inspect.host.questions import digests_to_be
from evalbudget_inspect.reading.open_logs import open_scores

N = 6


def spread(number: int) -> float:
    """Standard deviation of an item's scores."""
    return 2.0**number / 8.0


def value(state: Any) -> float:
    item = int(state.sample_id[1:])
    return 5.0 + random.Random(f"{item} {state.epoch}").gauss(0.0, spread(item))


noisy = scoring("noisy", value, [mean()])


def world(name: str = "noise", asked: str = "item {}", first: int = 0) -> Task:
    samples = [
        Sample(id=f"q{i}", input=asked.format((i + first) % N), target=asked.format((i + first) % N))
        for i in range(N)
    ]
    return Task(
        dataset=MemoryDataset(samples, name="noise"),
        scorer=noisy(),
        name=name,
        solver=solving(lambda state: None),
    )


def asked(log: EvalLog) -> list[int]:
    counts = Counter(sample.id for sample in log.samples or [])
    return [counts[f"q{i}"] for i in range(N)]


def test_an_earlier_log_says_how_much_items_vary(run: Any, caplog: pytest.LogCaptureFixture) -> None:
    earlier = run(budgeted(world(), budget="5x", sampler="uniform"))
    log = run(budgeted(world(), budget="12x", variances=earlier.location))
    assert "--variances" not in caplog.text
    counts = asked(log)
    assert (entry_of(log)["sampler"], entry_of(log)["spent"]) == ("robin", 72)
    assert max(counts[:4]) < 12 < min(counts[4:])
    assert entry_of(log)["allocation"] == "fixed"


def test_a_log_of_another_task_is_said(run: Any, caplog: pytest.LogCaptureFixture) -> None:
    earlier = run(budgeted(world(), budget="5x", sampler="uniform"))
    run(budgeted(world("other"), budget="3x", variances=earlier.location))
    told = "is of noise, and this is other: items are taken for the same by what they ask"
    assert sum(told in record.getMessage() for record in caplog.records) == 1


def test_variances_of_a_log_go_by_what_items_ask(run: Any, caplog: pytest.LogCaptureFixture) -> None:
    earlier = run(budgeted(world(), budget="5x", sampler="uniform"))
    counts = asked(run(budgeted(world(first=2), budget="12x", variances=earlier.location)))
    assert "6 of 6 ids of this run hold another question than elsewhere: paired by question." in caplog.text
    assert max(*counts[:2], *counts[4:]) < 12 < min(counts[2:4])
    strange = run(budgeted(world(asked="another {}"), budget="12x", variances=earlier.location))
    told = "has no variance of 6 of 6 items (q0, q1, q2, ...); add them"
    assert told in strange.error.message
    assert "6 of 6 ids of this run hold another question" in strange.error.message
    assert all(sample.error for sample in strange.samples)  # refused before the first was answered


@pytest.mark.parametrize(
    "given",
    [
        {"input": "long " * 3000, "target": ["yes", "no"]},
        {"input": [ChatMessageSystem(content="Be brief."), ChatMessageUser(content="long " * 3000)]},
        {"input": "which?", "choices": ["one", "two"], "target": "B"},
    ],
    ids=["long", "messages", "choices"],
)
def test_a_question_of_a_task_is_the_one_in_its_log(run: Any, given: dict[str, Any]) -> None:
    sample = Sample(id="q0", **given)
    log = run(Task(dataset=MemoryDataset([sample]), scorer=noisy(), solver=solving(lambda state: None)))
    found = open_scores(Path(log.location))
    assert found.declared.digests == (digests_to_be([sample])["q0"],)


def test_a_file_may_say_that_nothing_varies_and_must_name_every_item(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "variances.yaml"
    path.write_text("".join(f"q{i}: {i % 2}\n" for i in range(N)))
    assert asked(run(budgeted(world(), budget=30, variances=path))) == [1, 9] * 3
    path.write_text("q0: 1\n")
    log = run(budgeted(world(), budget=30, variances=path))
    assert "has no variance of 5 of 6 items (q1, q2, q3, ...)" in log.error.message
    assert all(sample.error for sample in log.samples)  # refused before the first was answered
    path.write_text("q0: -1\n")
    with pytest.raises(InvalidInputError, match="q0: -1 is no variance"):
        budgeted(world(), budget=30, variances=path)
