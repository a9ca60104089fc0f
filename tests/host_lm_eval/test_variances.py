"""Known variances: ROBIN goes by an earlier run's samples, or by a file's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from lm_eval.loggers import EvaluationTracker
from tests.host_lm_eval.worlds import CoinModel, simple_evaluate, write_task

from evalbudget.errors import InvalidInputError
from evalbudget_lm_eval import budgeted

N = 10


def asked(results: dict[str, Any]) -> list[int]:
    table = results["evalbudget"]["tasks"]["numbers"]
    return [dict(zip(table["doc_id"], table["readings"], strict=True)).get(i, 0) for i in range(N)]


def save(results: dict[str, Any], out: Path) -> None:
    """As the host's command does."""
    tracker, samples = EvaluationTracker(output_path=str(out)), results.pop("samples")
    tracker.save_results_aggregated(results=results, samples=samples)
    for task, of_task in samples.items():
        tracker.save_results_samples(task_name=task, samples=of_task)


def test_earlier_samples_say_how_much_documents_vary(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder, out = write_task(tmp_path / "tasks", n=N), tmp_path / "out"
    write_task(folder, "others", n=N)
    with budgeted(budget="12x", sampler="uniform"):
        earlier = simple_evaluate(folder, CoinModel(), log_samples=True)
    save(earlier, out)
    with budgeted(budget="20x", variances=out):
        results = simple_evaluate(folder, CoinModel(seed=1))
    counts = asked(results)
    assert results["evalbudget"]["sampler"] == "robin"
    assert sum(counts) == 20 * N
    assert "--variances" not in caplog.text
    with budgeted(budget="6x", variances=out):
        simple_evaluate(folder, CoinModel(seed=1), "others")
    assert "is of numbers, and this is others: items are taken for the same by what they ask" in caplog.text
    # the further down, the nearer to a coin; what never varied earlier is taken to vary a little
    assert sum(counts[:3]) < sum(counts[-3:])


def test_variances_of_samples_go_by_what_documents_ask(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder, out = write_task(tmp_path / "tasks", n=N), tmp_path / "out"
    with budgeted(budget="12x", sampler="uniform"):
        earlier = simple_evaluate(folder, CoinModel(), log_samples=True)
    save(earlier, out)
    data = folder / "numbers.jsonl"
    lines = data.read_text().splitlines(keepends=True)
    data.write_text("".join(lines[5:] + lines[:5]))
    with budgeted(budget="20x", variances=out):
        counts = asked(simple_evaluate(folder, CoinModel(seed=1)))
    assert "10 of 10 ids of this run hold another question than elsewhere: paired by question." in caplog.text
    assert sum(counts[2:5]) > sum(counts[5:8])
    data.write_text("".join(f'{{"number": {i}, "text": "{i}"}}\n' for i in range(50, 60)))
    with (
        budgeted(budget="20x", variances=out),
        pytest.raises(InvalidInputError, match=r"of 10 of 10 items .* hold another question than elsewhere"),
    ):
        simple_evaluate(folder, CoinModel(seed=1))


def test_the_samples_of_a_group_are_of_its_tasks_alone_too(tmp_path: Path) -> None:
    folder, out = write_task(tmp_path / "tasks", n=N), tmp_path / "out"
    write_task(folder, "more", n=4)
    group = {
        "group": "both",
        "task": ["numbers", "more"],
        "aggregate_metric_list": [{"metric": "exact_match"}],
    }
    (folder / "both.yaml").write_text(json.dumps(group))
    with budgeted(budget="6x", sampler="uniform"):
        earlier = simple_evaluate(folder, CoinModel(), "both", log_samples=True)
    save(earlier, out)
    for names in (("both",), ("numbers",)):
        with budgeted(budget="3x", variances=out):
            assert simple_evaluate(folder, CoinModel(seed=1), *names)["evalbudget"]["sampler"] == "robin"


def test_a_file_must_name_every_document(tmp_path: Path) -> None:
    folder, path = write_task(tmp_path / "tasks", n=N), tmp_path / "variances.yaml"
    path.write_text("".join(f"numbers:{i}: {i % 2}\n" for i in range(N)))
    with budgeted(budget=50, variances=path):
        assert asked(simple_evaluate(folder, CoinModel())) == [1, 9] * 5
    path.write_text("numbers:0: 1\n")
    lm = CoinModel()
    with (
        budgeted(budget=50, variances=path),
        pytest.raises(InvalidInputError, match="no variance of 9"),
    ):
        simple_evaluate(folder, lm)
    assert not lm.calls
