"""What a task declares is what is estimated: clusters, groups, metrics that apply to some documents."""

from __future__ import annotations

import json
import math
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from tests.host_lm_eval.worlds import TextModel, averaged, simple_evaluate, write_group, write_task

from evalbudget import Allocation
from evalbudget.errors import InvalidInputError
from evalbudget.repeats import cluster_numbers, describe_group, describe_mean
from evalbudget.repeats.estimates import ItemReadings
from evalbudget.statistics._exact_share import exact_share
from evalbudget.statistics._quasi_binomial import share_interval
from evalbudget_lm_eval import budgeted

KEY = "exact_match,none"
P = (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98)


class ChanceModel(TextModel):
    """Says what is right with the chance that the question names, else what is wrong."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self._random = random.Random(seed)
        self.calls = 0

    def _answer(self, prompt: str, kwargs: dict[str, Any]) -> str:
        self.calls += 1
        p, right, wrong = re.findall(r"p=(\S+) right=(\S+) wrong=(\S+)", prompt)[-1]
        return right if self._random.random() < float(p) else wrong


def write(folder: Path, name: str, docs: list[dict[str, Any]], **changes: Any) -> Path:
    """A task whose documents say how likely they are answered rightly."""
    write_task(folder, name, doc_to_text="{{q}}", doc_to_target="yes", **changes)
    rows = [{"q": f"Q{i} p={doc['p']} right=yes wrong=no", **doc} for i, doc in enumerate(docs)]
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def run(folder: Path, *names: str, lm: ChanceModel | None = None, **options: Any) -> dict[str, Any]:
    with budgeted(journal="none", **options):
        return simple_evaluate(folder, lm or ChanceModel(), *names)


def readings_in(results: dict[str, Any], task: str, key: str = KEY) -> tuple[ItemReadings, list[int]]:
    """What a run read of a task, from its samples; and the documents in their order."""
    metric, _, chosen = key.partition(",")
    own = [
        sample
        for sample in results["samples"][task]
        if sample["filter"] == chosen and not math.isnan(sample[metric])
    ]
    documents = sorted({sample["doc_id"] for sample in own})
    phases = [sample.get("phase") for sample in own]
    found = ItemReadings.of(
        [documents.index(sample["doc_id"]) for sample in own],
        [sample["epoch"] for sample in own],
        [float(sample[metric]) for sample in own],
        n_items=len(documents),
        phase=[math.nan if phase is None else phase for phase in phases],
        phase_sizes=results["evalbudget"].get("phase_sizes", ()),
    )
    return found, documents


def same(told: dict[str, Any], rows: dict[str, float]) -> None:
    """Rows in a block, as the core computes them."""
    assert {name: value for name, value in told.items() if name in rows} == pytest.approx(rows, abs=1e-12)


# equal scores


@pytest.mark.parametrize(("p", "low", "high"), [(0.0, 0.0, 0.116), (1.0, 0.884, 1.0)])
def test_thirty_equal_scores_have_an_exact_interval_and_no_error_of_0(
    tmp_path: Path, p: float, low: float, high: float
) -> None:
    results = run(write(tmp_path, "tz", [{"p": p}] * 30), "tz", budget="2x", sampler="uniform")
    row, said = results["results"]["tz"], results["evalbudget"]["estimates"]["tz"][KEY]
    assert (row["exact_match,none"], row["exact_match_stderr,none"]) == (p, "N/A")
    assert (round(row["exact_match_lower,none"], 3), round(row["exact_match_upper,none"], 3)) == (low, high)
    assert "stderr" not in said
    # asked again, sixty answers speak
    again = (row["exact_match_repeats_lower,none"], row["exact_match_repeats_upper,none"])
    assert again == pytest.approx(exact_share(60 * p, 60, 0.95))
    assert row["exact_match_repeats_stderr,none"] == "N/A"
    assert f"95% interval {low:.3f} to {high:.3f}" in results["evalbudget"]["summary"]["text"]


# groups


def test_a_small_task_of_equal_scores_adds_what_it_leaves_open(tmp_path: Path) -> None:
    write(tmp_path, "big", [{"p": float(i % 2)} for i in range(200)])
    write(tmp_path, "small", [{"p": 1.0}] * 10)
    write_group(tmp_path, "both", ["big", "small"], by_size=False)
    results = run(tmp_path, "both", budget="1x", sampler="uniform")
    row = results["results"]["both"]
    assert row[KEY] == 0.75
    t, error = 1.9719565, 0.5012547 / math.sqrt(200) / 2
    low, high = share_interval(0.75, error, t, (0.0, 1.0))
    left = (1 - exact_share(10, 10, 0.95)[0]) / 2
    assert row["exact_match_lower,none"] == pytest.approx(0.75 - math.hypot(0.75 - low, left), abs=1e-5)
    assert row["exact_match_upper,none"] == pytest.approx(high, abs=1e-5)
    # and not .018, as if ten equal scores were sure
    assert row["exact_match_stderr,none"] == pytest.approx(math.hypot(error, left / 3.919928))
    estimates = results["evalbudget"]["estimates"]
    means = {}
    for task in ("big", "small"):
        readings, _ = readings_in(results, task)
        means[task] = describe_mean(readings, allocation=Allocation.FIXED, fixed_repeats=1, bounds=(0.0, 1.0))
        same(estimates[task][KEY], dict(means[task].rows))
    same(estimates["both"][KEY], dict(describe_group(means, {"big": 1.0, "small": 1.0}).rows))


# metrics that do not apply to all documents

_NAN = """
def process(doc, results):
    ok = float(results[0].strip() == "yes")
    nan = float("nan")
    return {"acc_a": ok if doc["kind"] == "a" else nan, "acc_b": ok if doc["kind"] == "b" else nan, "acc": ok}
"""


def write_nan(folder: Path, *, acc: bool = True) -> Path:
    metrics = averaged("acc_a", "acc_b", *(["acc"] if acc else []))
    for each in metrics[:2]:
        each["aggregation"] = "nanmean"
    docs = [{"p": P[i % 7], "kind": "b" if i % 3 == 0 else "a"} for i in range(30)]
    return write(folder, "t5_nan", docs, own=_NAN, metric_list=metrics)


@pytest.mark.parametrize("sampler", ["auto", "uniform"])
def test_what_does_not_apply_is_neither_failed_nor_missing(tmp_path: Path, sampler: str) -> None:
    lm = ChanceModel(3)
    results = run(write_nan(tmp_path), "t5_nan", lm=lm, budget=150, sampler=sampler)
    block = results["evalbudget"]
    assert (lm.calls, block["readings"], block["failed"], block["closed_items"]) == (150, 150, 0, [])
    assert block["score"] == {"t5_nan": "acc,none"}
    estimates = block["estimates"]["t5_nan"]
    assert [estimates[f"{metric},none"]["items"] for metric in ("acc", "acc_a", "acc_b")] == [30, 20, 10]
    truth = float(np.mean([P[i % 7] for i in range(30)]))
    assert estimates["acc,none"]["repeats_lower"] <= truth <= estimates["acc,none"]["repeats_upper"]
    how = {"allocation": Allocation(block["allocation"]), "fixed_repeats": block["fixed_repeats"]}
    for metric in ("acc", "acc_a", "acc_b"):
        readings, _ = readings_in(results, "t5_nan", f"{metric},none")
        found = describe_mean(readings, bounds=(0.0, 1.0), **how)
        same(estimates[f"{metric},none"], dict(found.rows))
        assert results["results"]["t5_nan"][f"{metric},none"] == found.rows["estimate"]


def test_a_metric_that_need_not_apply_is_named_as_such_where_it_decides(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    results = run(write_nan(tmp_path, acc=False), "t5_nan", budget=150, sampler="uniform")
    assert "averaged by nanmean and need not apply to every document" in caplog.text
    assert list(results["evalbudget"]["failures"]) == [
        "acc_a does not apply to it (nan, and averaged by nanmean)"
    ]


# clusters


def passages(n: int = 36, of: int = 6) -> list[dict[str, Any]]:
    return [{"p": 0.95 if (i // of) % 2 else 0.1, "passage": f"p{i // of}"} for i in range(n)]


@pytest.mark.parametrize("sampler", ["auto", "uniform", "sample"])
def test_documents_of_a_cluster_are_not_independent(tmp_path: Path, sampler: str) -> None:
    write(tmp_path, "read", passages())
    budget = 24 if sampler == "sample" else 216
    results = run(tmp_path, "read", budget=budget, sampler=sampler, cluster="passage")
    plain = run(tmp_path, "read", budget=budget, sampler=sampler)
    block, row = results["evalbudget"], results["results"]["read"]
    told = block["estimates"]["read"][KEY]
    other = plain["evalbudget"]["estimates"]["read"][KEY]
    assert block["cluster"] == "passage"
    assert (row["exact_match_lower,none"], row["exact_match_upper,none"]) == (told["lower"], told["upper"])
    assert told["estimate"] == other["estimate"]
    assert told["stderr"] > 1.7 * other["stderr"]
    assert "in 6 clusters by 'passage'" in " ".join(block["summary"]["text"].split())
    assert (block["summary"]["cluster"], block["summary"]["clusters"]) == ("passage", 6)
    if sampler != "sample":
        readings, documents = readings_in(results, "read")
        found = describe_mean(
            readings,
            allocation=Allocation(block["allocation"]),
            fixed_repeats=block["fixed_repeats"],
            bounds=(0.0, 1.0),
            clusters=cluster_numbers([passages()[i]["passage"] for i in documents]),
        )
        same(told, dict(found.rows))


def test_a_cluster_that_some_documents_lack_is_refused_before_any_call(tmp_path: Path) -> None:
    docs = passages()
    for i in (3, 9):
        del docs[i]["passage"]
        docs[i]["source"] = "web"
    write(tmp_path, "read", docs)
    lm = ChanceModel()
    with pytest.raises(InvalidInputError) as refused:
        run(tmp_path, "read", lm=lm, budget="2x", cluster="passage")
    assert "2 of the 36 documents have no field 'passage' (read:3, read:9)" in str(refused.value)
    assert "drop --cluster" in str(refused.value)
    with pytest.raises(InvalidInputError, match=r"no document has a field 'pasage'.*they have .*passage"):
        run(tmp_path, "read", lm=lm, budget="2x", cluster="pasage")
    assert lm.calls == 0


def test_a_task_brings_its_clusters_along_in_yaml(tmp_path: Path) -> None:
    write(tmp_path, "read", passages())
    file = tmp_path / "read.yaml"
    block = yaml.safe_dump({"evalbudget": {"budget": "2x", "sampler": "uniform", "cluster": "passage"}})
    file.write_text("class: !function evalbudget_lm_eval.BudgetedTask\n" + block + file.read_text())
    results = simple_evaluate(tmp_path, ChanceModel(), "read")
    assert results["evalbudget"]["cluster"] == "passage"
    assert results["evalbudget"]["summary"]["clusters"] == 6
