"""What the rows claim where there is little to go by: few documents, equal scores, ranges, groups."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lm_eval.loggers import EvaluationTracker
from lm_eval.utils import make_table
from tests.host_lm_eval.worlds import (
    CoinModel,
    choice,
    load,
    simple_evaluate,
    write_group,
    write_scored,
    write_task,
)

import evalbudget
from evalbudget.errors import InvalidInputError
from evalbudget_lm_eval import budgeted
from evalbudget_lm_eval.host.rows import lead_with, named_rows
from evalbudget_lm_eval.repeats.ranges import known_range
from evalbudget_lm_eval.repeats.task_estimates import Scored, readings_of

KEY = "exact_match,none"


class SureModel(CoinModel):
    """Always right, or always wrong."""

    def __init__(self, right: bool = True) -> None:
        super().__init__()
        self._right = right

    def _answer(self, prompt: str, kwargs: dict[str, Any]) -> str:
        self.calls.append(prompt)
        number = int(prompt.rsplit("say ", 1)[1].split()[0])
        return f"{number}" if self._right else f"{number + 1}"


def run(folder: Path, lm: Any = None, *names: str, budget: str = "4x", **options: Any) -> dict[str, Any]:
    with budgeted(sampler="uniform", budget=budget, journal="none", **options):
        return simple_evaluate(folder, lm or CoinModel(), *names)


@pytest.mark.parametrize(("n", "scored"), [(1, "1 item was"), (2, "2 items were")])
def test_fewer_than_three_documents_have_no_interval(tmp_path: Path, n: int, scored: str) -> None:
    code = "(doc['number'] + len(results[0]) + __import__('random').random()) / 10"
    results = run(write_scored(tmp_path / "tasks", "score", code, n=n), score_range="0..1")
    row, said = results["results"]["numbers"], results["evalbudget"]["estimates"]["numbers"]["score,none"]
    assert 0 < row["score,none"] < 1
    assert row["score_stderr,none"] == "N/A"
    assert row["score_repeats_stderr,none"] > 0  # that much is known
    assert not [name for name in row if "lower" in name or "upper" in name]
    assert said["no_interval"] == f"an interval needs at least 3 items, and {scored} scored"
    assert results["evalbudget"]["summary"]["no_interval"] == said["no_interval"]
    assert "|score " in make_table(results)


def test_equal_scores_have_an_interval_only_within_a_known_range(tmp_path: Path) -> None:
    # right or wrong, computed by the host: the range is known
    write_task(tmp_path / "tasks", n=8)
    row = run(tmp_path / "tasks", SureModel())["results"]["numbers"]
    assert row[KEY] == 1.0
    assert row["exact_match_stderr,none"] == "N/A"
    assert 0.3 < row["exact_match_lower,none"] < row["exact_match_upper,none"] == 1.0
    # a number of the task's own code: nothing is known of its range
    tasks = write_scored(tmp_path / "own", "points", "7", n=8)
    results = run(tasks)
    row = results["results"]["numbers"]
    assert row["points,none"] == 7.0
    assert "points_lower,none" not in row
    why = results["evalbudget"]["estimates"]["numbers"]["points,none"]["no_interval"]
    assert why == "all items have the same score, and the range of the scores is not declared"
    row = run(tasks, score_range="0..10")["results"]["numbers"]
    assert 0 < row["points_lower,none"] < 7.0 < row["points_upper,none"] <= 10


def test_intervals_stay_inside_a_known_range(tmp_path: Path) -> None:
    write_task(tmp_path / "tasks", n=3)  # 0 is always said rightly, 1 and 2 nearly always
    row = run(tmp_path / "tasks", CoinModel(seed=3), budget="6x")["results"]["numbers"]
    assert 0.8 < row[KEY] < 1.0
    assert row["exact_match_lower,none"] < row[KEY] < row["exact_match_upper,none"] == 1.0


def test_scores_that_leave_the_range_refute_it(tmp_path: Path) -> None:
    # the name of a share, but percentages: the mean is far above 1, and so is its interval
    code = "100.0 * (doc['number'] % 3 > 0)"
    results = run(write_scored(tmp_path / "tasks", "acc", code, n=9))
    row, block = results["results"]["numbers"], results["evalbudget"]
    assert row["acc,none"] == pytest.approx(200 / 3)
    assert row["acc_upper,none"] > 100
    assert block["tasks"]["numbers"]["range"] is None
    assert "anytime_lower" not in block["tasks"]["numbers"]


@pytest.fixture
def tasks(tmp_path: Path) -> Callable[..., Any]:
    def make(name: str, **changes: Any) -> Any:
        write_task(tmp_path / name, name, n=2, **changes)
        return load(tmp_path / name, name)["tasks"][name]

    return make


def test_which_ranges_are_known(tasks: Callable[..., Any]) -> None:
    generated = tasks("generated")
    assert known_range(generated, "exact_match", [0.0, 1.0]) == (0.0, 1.0)
    assert known_range(generated, "exact_match", []) == (0.0, 1.0)
    assert known_range(generated, "exact_match", [0.0, 1.5]) is None
    assert known_range(generated, "bleu", [0.0, 0.4]) is None
    chosen = tasks("choice", **choice("one", "two", target=1, metrics=("acc", "acc_norm")))
    assert known_range(chosen, "acc_norm", [0.0]) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("metric", "seen", "known"),
    [
        ("acc", [0.0, 1.0], True),
        ("pass@1", [0.0, 0.4], True),
        ("acc", [0.0, 0.0], False),  # may be percentages
        ("acc", [0.0, 100.0], False),
        ("acc", [-1.0, 1.0], False),
        ("f1", [0.0, 1.0, 0.4], False),
        ("f1", [0.0, 1.0], True),  # as reports of its log say
    ],
)
def test_ranges_of_a_tasks_own_code(metric: str, seen: list[float], known: bool) -> None:
    task = SimpleNamespace(config=SimpleNamespace(process_results=lambda doc, results: {}))
    assert known_range(task, metric, seen) == ((0.0, 1.0) if known else None)


def test_every_averaged_metric_has_its_estimate(tmp_path: Path) -> None:
    """The host's mean of another metric is as biased as that of the one that drove the sampler."""
    filters = [{"name": name, "filter": [{"function": "take_first"}]} for name in ("one", "two")]
    write_task(tmp_path / "tasks", n=12, filter_list=filters)
    with budgeted(sampler="eb-bernstein", budget="8x", journal="none"):
        results = simple_evaluate(tmp_path / "tasks", CoinModel())
    row = results["results"]["numbers"]
    assert row["exact_match,one"] == row["exact_match,two"]
    for chosen in ("one", "two"):
        scored = [
            Scored(r["doc_id"], r["epoch"], float(r["exact_match"]), r["phase"])
            for r in results["samples"]["numbers"]
            if r["filter"] == chosen
        ]
        mean = readings_of(scored, range(12), ()).item_means.mean()
        assert row[f"exact_match,{chosen}"] == pytest.approx(mean, abs=1e-12)
    assert row["exact_match_stderr,one"] == row["exact_match_stderr,two"]
    assert "exact_match_plain_mean,one" in row
    assert "exact_match_lower,two" not in row  # the table stays short
    assert "lower" in results["evalbudget"]["estimates"]["numbers"]["exact_match,two"]


@pytest.mark.parametrize("by_size", [True, False])
def test_groups_of_groups(tmp_path: Path, by_size: bool) -> None:
    folder = tmp_path / "tasks"
    for name, n in {"small": 8, "large": 16, "sure": 6}.items():
        # documents of the last are divisible by 10, which are always said rightly
        changes = {"doc_to_text": "say {{number * 10}} please", "doc_to_target": "{{number * 10}}"}
        write_task(folder, name, n=n, **(changes if name == "sure" else {}))
    for name, members in {"inner": ["small", "large"], "outer": ["inner", "sure"]}.items():
        write_group(folder, name, members, by_size=by_size)
    results = run(folder, None, "outer")
    table, sizes = results["results"], {"small": 8, "large": 16, "sure": 6}
    for group, leaves in {"inner": ["small", "large"], "outer": ["small", "large", "sure"]}.items():
        row = results["groups"][group]
        weights = {name: sizes[name] if by_size else 1 for name in leaves}
        share = {name: weight / sum(weights.values()) for name, weight in weights.items()}
        errors = [share[name] * table[name]["exact_match_stderr,none"] for name in leaves if name != "sure"]
        assert table["sure"]["exact_match_stderr,none"] == "N/A"
        if "sure" in leaves:  # what its own interval leaves open, as the half of it over the normal quantile
            left = share["sure"] * (1.0 - table["sure"]["exact_match_lower,none"])
            errors.append(left / 2 / 1.959964)
        assert row[KEY] == pytest.approx(sum(share[name] * table[name][KEY] for name in leaves))
        assert row["exact_match_stderr,none"] == pytest.approx(math.hypot(*errors), rel=1e-6)
        assert row["exact_match_lower,none"] < row[KEY] < row["exact_match_upper,none"] <= 1.0
        assert row["exact_match_repeats_stderr,none"] <= row["exact_match_stderr,none"]
    assert "exact_match_lower" in make_table(results, "groups")
    summary = results["evalbudget"]["summary"]
    assert [part["name"] for part in summary["parts"]] == ["outer", "inner", "large", "small", "sure"]
    assert summary["items"] == 30


def test_a_group_with_a_task_of_one_document_has_an_interval_that_the_task_has_not(tmp_path: Path) -> None:
    folder = tmp_path / "tasks"
    write_task(folder, "one", n=1)
    write_task(folder, "many", n=10)
    write_group(folder, "both", ["one", "many"])
    results = run(folder, None, "both")
    assert "no_interval" in results["evalbudget"]["estimates"]["one"][KEY]
    assert results["results"]["one"]["exact_match_stderr,none"] == "N/A"
    row, many = results["groups"]["both"], results["results"]["many"]
    low, high = (row[f"exact_match_{end},none"] for end in ("lower", "upper"))
    assert low < row["exact_match,none"] < high
    assert high - low > 10 / 11 * (many["exact_match_upper,none"] - many["exact_match_lower,none"])


def test_rows_are_named_and_ordered() -> None:
    rows = {"estimate": 0.5, "lower": 0.4, "upper": 0.6, "repeats_stderr": 0.01, "items": 3, "readings": 9}
    named = named_rows("acc,none", rows)
    assert named == {
        "acc,none": 0.5,
        "acc_stderr,none": "N/A",
        "acc_lower,none": 0.4,
        "acc_upper,none": 0.6,
        "acc_repeats,none": 0.5,
        "acc_repeats_stderr,none": 0.01,
    }
    assert named_rows("acc,none", {"items": 0.0, "readings": 0.0}) == {}
    own = {"alias": "A", "bleu,none": 1.0, "acc,none": 0.7, "acc_stderr,none": 0.1, "sample_len": 3}
    assert list(lead_with(own, named)) == ["alias", "sample_len", *named, "bleu,none"]
    assert lead_with(own, named)["acc,none"] == 0.5


def test_further_estimators_have_rows(tmp_path: Path) -> None:
    pytest.importorskip("evalbudget_example")
    results = run(write_task(tmp_path / "tasks", n=12), estimators="median")
    rows = results["results"]["numbers"]
    names = [f"exact_match_median{end},none" for end in ("_lower", "", "_upper")]
    lower, middle, upper = (rows[name] for name in names)
    assert lower <= middle <= upper
    assert results["evalbudget"]["estimates"]["numbers"][KEY]["median"] == middle
    assert "exact_match_median" in make_table(results)
    with (
        pytest.raises(InvalidInputError, match="needs every item asked equally often, and sampler 'auto'"),
        budgeted(budget="4x", estimators="median"),
    ):
        pass


def test_a_metric_that_nobody_knows_has_the_rows_that_its_log_gives(tmp_path: Path) -> None:
    folder = write_scored(tmp_path, "mine", "float('7' in results[0])")
    tracker = EvaluationTracker(output_path=str(tmp_path / "out"))
    with budgeted(budget="4x", sampler="uniform", journal="none"):
        results = simple_evaluate(folder, CoinModel(), evaluation_tracker=tracker)
    tracker.save_results_aggregated(results=results, samples=results["samples"])
    for name, samples in results["samples"].items():
        tracker.save_results_samples(task_name=name, samples=samples)
    (row,) = results["results"].values()
    (read,) = evalbudget.read(tmp_path / "out").estimate().rows
    ours = [row[f"mine{end},none"] for end in ("", "_lower", "_upper")]
    assert [read.estimate, read.low, read.high] == pytest.approx(ours, abs=1e-12)
