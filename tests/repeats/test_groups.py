"""Groups of tasks, and the summary of tasks that share one budget."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from tests.repeats.estimates.worlds import of

from evalbudget import Allocation
from evalbudget.errors import InvalidInputError
from evalbudget.repeats._groups import describe_group
from evalbudget.repeats._item_columns import item_columns
from evalbudget.repeats._mean_rows import BenchmarkMean, describe_mean, whole_counts
from evalbudget.repeats._several_tasks import SharedSummary, joined, share_budget
from evalbudget.repeats._summary import Outcome
from evalbudget.repeats.estimates import Strata

HOW = {"allocation": Allocation.FIXED, "fixed_repeats": 1}


def mean_of(rows: list[list[float]], bounds: tuple[float, float] | None = None) -> BenchmarkMean:
    return describe_mean(of(rows), bounds=bounds, **HOW)


def passes(seed: int, n: int, repeats: int = 4) -> list[list[float]]:
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 1, size=(n, 1))
    return (rng.random((n, repeats)) < p).astype(float).tolist()


def test_a_group_by_hand() -> None:
    tasks = {"a": [[0.0, 0.1], [0.9, 1.0], [0.5, 0.6]], "b": [[0.2, 0.3], [0.8, 0.7], [0.5, 0.4], [0.9, 1.0]]}
    means = {name: mean_of(rows) for name, rows in tasks.items()}
    found = describe_group(means, {"a": 3.0, "b": 4.0})
    item_means = {name: [np.mean(row) for row in rows] for name, rows in tasks.items()}
    share = {"a": 3 / 7, "b": 4 / 7}
    parts = {name: share[name] ** 2 * np.var(own, ddof=1) / len(own) for name, own in item_means.items()}
    error = math.sqrt(sum(parts.values()))
    freedom = error**4 / (parts["a"] ** 2 / 2 + parts["b"] ** 2 / 3)
    assert found.rows["estimate"] == pytest.approx(sum(share[n] * np.mean(m) for n, m in item_means.items()))
    assert found.rows["stderr"] == pytest.approx(error)
    half = float(stats.t.ppf(0.975, freedom)) * error
    assert found.rows["upper"] - found.rows["estimate"] == pytest.approx(half)
    assert found.rows["estimate"] - found.rows["lower"] == pytest.approx(half)
    again = [share[n] * means[n].rows["repeats_stderr"] for n in tasks]
    assert found.rows["repeats_stderr"] == pytest.approx(math.hypot(*again))
    assert (found.rows["items"], found.rows["readings"], found.counted) == (7, 14, 14)
    assert found.no_interval is None


def test_the_error_is_made_of_the_errors_that_tasks_print() -> None:
    # equal item means by chance: the repeats' own error is the larger one
    noisy = [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    means = {"noisy": mean_of(noisy), "other": mean_of(passes(1, 6))}
    assert means["noisy"].rows["stderr"] == means["noisy"].rows["repeats_stderr"] > 0
    found = describe_group(means, dict.fromkeys(means, 1.0))
    assert found.rows["stderr"] == pytest.approx(math.hypot(*(m.rows["stderr"] / 2 for m in means.values())))
    assert found.rows["stderr"] >= found.rows["repeats_stderr"]


def test_the_range_of_a_group_is_the_weighted_range() -> None:
    high = mean_of([[9.0, 10.0], [10.0, 10.0], [10.0, 9.5]], (0.0, 10.0))
    ones = mean_of([[1.0, 1.0], [1.0, 0.0], [1.0, 1.0]], (0.0, 1.0))
    found = describe_group({"a": high, "b": ones}, {"a": 1.0, "b": 3.0})
    assert found.bounds == (0.0, 3.25)
    assert found.rows["upper"] == 3.25
    unknown = describe_group(
        {"a": high, "b": mean_of([[1.0, 1.0], [1.0, 0.0], [1.0, 1.0]])}, {"a": 1, "b": 3}
    )
    assert unknown.bounds is None
    assert unknown.rows["upper"] > 3.25


def test_groups_that_know_too_little_say_why() -> None:
    many, one = mean_of(passes(2, 8)), mean_of([[0.0, 1.0]])
    found = describe_group({"many": many, "one": one}, {"many": 8, "one": 1})
    assert found.no_interval == "too few items were scored in one to know an error"
    assert set(found.rows) == {
        "estimate",
        "repeats_stderr",
        "repeats_lower",
        "repeats_upper",
        "items",
        "readings",
    }
    alone = {"many": many, "one": mean_of([[0.0, 1.0]], (0.0, 1.0))}
    for weights in ({"many": 8, "one": 1}, {"many": 1, "one": 1}):
        rows = describe_group(alone, weights).rows
        narrow = describe_group({"many": many, "one": mean_of(passes(3, 8))}, weights).rows
        assert rows["upper"] - rows["lower"] > narrow["upper"] - narrow["lower"]
        assert rows["lower"] < rows["estimate"] < rows["upper"]
    nothing = BenchmarkMean({"items": 0.0, "readings": 0.0}, "nothing was scored")
    found = describe_group({"many": many, "none": nothing}, {"many": 8, "none": 2})
    assert found.no_interval == "nothing was scored in none"
    assert "estimate" not in found.rows
    crowd = {f"t{i}": one for i in range(6)}
    found = describe_group(crowd, dict.fromkeys(crowd, 1.0))
    assert found.no_interval == "too few items were scored in t0, t1, t2 and 3 more to know an error"
    three = dict.fromkeys(("t0", "t1", "t2"), one)
    found = describe_group(three, dict.fromkeys(three, 1.0))
    assert found.no_interval == "too few items were scored in t0, t1, t2 to know an error"


def outcome(task: str, rows: list[list[float]], bounds: tuple[float, float] | None = (0.0, 1.0)) -> Outcome:
    table = of(rows)
    return Outcome(
        task=task,
        model="some/model",
        names=[f"document {i} of {task}" for i in range(len(rows))],
        table=table,
        columns=item_columns(table, bounds=bounds, **HOW),
        mean=mean_of(rows, bounds),
        budget=200.0,
        spent=180.0,
        stop_reason="budget used up",
        bounds=bounds,
        unit="calls",
        range_flag="--score_range",
    )


def shared(*outcomes: Outcome, groups: dict[str, BenchmarkMean] | None = None) -> SharedSummary:
    failures = {"timeout": 2, "no score": 3}
    return share_budget(outcomes, groups=groups or {}, spent=180.0, failures=failures, closed=["b:3"])


def test_tasks_that_share_a_budget_have_one_summary() -> None:
    own = [outcome("arithmetic", passes(3, 10)), outcome("spelling", passes(4, 5, 12))]
    group = describe_group({one.task: one.mean for one in own}, {"arithmetic": 10, "spelling": 5})
    found = shared(*own, groups={"both": group})
    text = str(found)
    lines = text.splitlines()
    assert lines[0] == "2 tasks with some/model, which share one budget"
    assert [line.split()[0] for line in lines[2:5]] == ["both", "arithmetic", "spelling"]
    assert lines[2].startswith("both (group)")
    assert f"{group.rows['estimate']:.2f}" in lines[2]
    assert f"{own[1].mean.rows['lower']:.2f} to {own[1].mean.rows['upper']:.2f}" in lines[4]
    assert lines[4].split()[-2:] == ["5", "60"]
    for fact in (
        "Spent     180 of 200 calls",
        "Readings  100 of 15 items; all count for the estimate",
        "Failed    5 calls: 3 x no score, 2 x timeout",
        "Given up  b:3",
    ):
        assert fact in lines
    assert text.count("Spent") == 1
    assert max(map(len, lines)) <= 80
    # of all tasks, the widest first
    widths = [line.half_width for line in found.least_known]
    assert widths == sorted(widths, reverse=True)
    assert (
        widths[0]
        == max(
            high - low
            for one in own
            for low, high in zip(one.columns["lower"], one.columns["upper"], strict=True)
        )
        / 2
    )
    told = json.loads(json.dumps(found.as_json()))
    assert [part["name"] for part in told["parts"]] == ["both", "arithmetic", "spelling"]
    assert told["parts"][1]["rows"]["items"] == 10
    assert told["items"] == 15


def test_many_tasks_and_long_names_fit_the_terminal() -> None:
    own = [outcome(f"a_very_long_name_of_a_task_about_{'x' * 30}_{i}", passes(i, 4)) for i in range(30)]
    lines = str(shared(*own)).splitlines()
    assert max(map(len, lines)) <= 80
    assert "18 further tasks in the table above" in lines
    assert len(lines) < 45


def test_tasks_without_an_interval_say_why() -> None:
    small = [outcome(f"t{i}", [[0.0, 1.0], [1.0, 1.0]]) for i in range(5)]
    text = str(shared(*small, outcome("large", passes(5, 9))))
    assert "t0 without an interval: an interval needs at least 3 items, and 2 items were" in text
    assert "2 further tasks without an interval." in text
    mixed = shared(outcome("known", passes(6, 5)), outcome("unknown", passes(7, 5), bounds=None))
    assert any("--score_range LOW..HIGH" in step for step in mixed.next_steps)
    known = shared(outcome("known", passes(6, 5)), outcome("known too", passes(7, 5)))
    assert not any("--score_range" in step for step in known.next_steps)
    assert "further" not in str(shared(*small[:3], outcome("large", passes(5, 9))))


def test_one_task_shares_nothing() -> None:
    with pytest.raises(InvalidInputError, match="use summarize"):
        shared(outcome("alone", passes(8, 4)))


def test_tables_are_joined_in_order() -> None:
    one, other = of([[0.1, 0.2], [0.3]]), of([[], [0.4, 0.5]])
    both = joined([one, other])
    assert both.n_items == 4
    assert both.item.tolist() == [0, 0, 1, 3, 3]
    assert both.epoch.tolist() == [0, 1, 0, 0, 1]
    assert both.value.tolist() == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert both.cost == one.cost + other.cost


def test_counts_are_whole() -> None:
    rows = whole_counts({"estimate": 0.5, "items": 3.0, "readings": 12.0})
    assert rows == {"estimate": 0.5, "items": 3, "readings": 12}
    assert [type(value) for value in rows.values()] == [float, int, int]


def sampled(rows: list[list[float]], bounds: tuple[float, float] | None = (0.0, 1.0)) -> BenchmarkMean:
    return describe_mean(of(rows), bounds=bounds, strata=Strata.of(None, len(rows)), **HOW)


def test_a_group_ends_where_its_unread_items_leave_no_room() -> None:
    ones, mixed = sampled([[1.0], [0.0], [1.0], [1.0], []]), sampled([[1.0], [0.0], [0.0], [0.0]])
    found = describe_group({"a": ones, "b": mixed}, {"a": 5, "b": 4})
    # of nine items one is unread
    assert found.rows["full_lower"] == pytest.approx(4 / 9)
    assert found.rows["full_upper"] == pytest.approx(5 / 9)
    unknown = sampled([[1.0], [0.0], [1.0], [1.0], []], bounds=None)
    found = describe_group({"a": unknown, "b": mixed}, {"a": 5, "b": 4})
    assert found.rows["full_lower"] < 4 / 9
    whole = describe_group({"a": mixed, "b": sampled([[1.0], [0.0]], bounds=None)}, {"a": 4, "b": 2})
    assert whole.is_full_run
    assert "full_lower" not in whole.rows
    assert not found.is_full_run


def test_a_task_of_which_all_was_read_is_known() -> None:
    rows = {"part": [[1.0], [0.0], [1.0], []], "whole": [[1.0], [0.0], [0.0], [0.0]], "few": [[1.0], [], []]}
    own = [replace(outcome(task, own), mean=sampled(own), drawn=True) for task, own in rows.items()]
    own[2] = replace(own[2], in_vain=1)
    found = shared(*own)
    lines = {line.split()[0]: " ".join(line.split()) for line in str(found).splitlines()[:7] if line}
    assert "0.25, all read 4 4" in lines["whole"]
    assert " to " in lines["part"]
    assert "- 1 1" in lines["few"]
    said = "what one score of each item that can be scored, kinds weighted as drawn, would have averaged"
    assert said in " ".join(str(found).split())
    lacking = (
        "few: 1 item of 3 without a score: not in the estimate, which would be 0.500 to 1.000 with them."
    )
    assert lacking in " ".join(str(found).split())
    assert [part.known for part in found.parts] == [False, True, False]
    # a run that draws nothing has no such thing
    assert "all read" not in str(shared(outcome("a", passes(1, 4)), outcome("b", passes(2, 4))))
