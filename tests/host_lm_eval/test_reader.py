"""``backtest``, ``plan`` and ``report`` on what real runs of the host wrote."""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from tests.host_lm_eval.judged_worlds import evaluate, write_judged
from tests.host_lm_eval.worlds import OWN_TASKS_ONLY, averaged, samples_in, write_group, write_task

import warm
from evalbudget import Allocation
from evalbudget.backtest import RecordedScores
from evalbudget.cli.main import cli
from evalbudget.errors import InvalidInputError
from evalbudget_lm_eval import budgeted
from evalbudget_lm_eval.log_folder import open_scores
from loopback import Server, rating

JUDGES = ["a", "b", "c"]


def read(path: Path) -> RecordedScores:
    found = open_scores(path)
    assert found is not None
    return found


def run(*arguments: object) -> str:
    result = CliRunner().invoke(cli, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


STOCK = f"""{OWN_TASKS_ONLY}
from lm_eval.__main__ import cli_evaluate
sys.argv[0] = "lm_eval"
cli_evaluate()
"""


def stock(*arguments: object) -> str:
    """The host's own command, but for the thousands of tasks it would list for seconds."""
    command = [sys.executable, "-c", STOCK, *map(str, arguments)]
    done = warm.run(command, host="lm-eval", timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_judged_runs_of_the_stock_command(server: Server, judges: list[str], tmp_path: Path) -> None:
    # one reply of a judge is unreadable
    server.answers["b"] = lambda asked: "no idea" if "topic: topic 2\n" in asked.prompt else rating()(asked)
    folder = write_judged(tmp_path / "task", judges, n=12, repeats=3)
    out = tmp_path / "out"
    table = stock(
        "run", "--model", "local-chat-completions", "--model_args", server.chat_args("first"),
        "--tasks", "essays", "--include_path", folder, "--apply_chat_template", "--log_samples",
        "--output_path", out,
    )  # fmt: skip
    assert "judged_bias_c" in table
    found = evaluate(folder, server.chat_args("second"), output=out)

    recorded = read(out)
    assert recorded.models == ("first", "second")
    assert sorted(recorded.raters) == JUDGES
    assert recorded.scores.shape == (2, 12, 3, 3)
    assert recorded.categories == tuple("ab"[int(i) % 2] for i in recorded.items)
    for index, item in enumerate(recorded.items):
        sample = found["samples"]["essays"][int(item)]
        said = {(r.judge, r.epoch): r.score for r in map(json_reading, sample["filtered_resps"][0])}
        for (judge, epoch), score in said.items():
            value = recorded.scores[1, index, recorded.raters.index(judge), epoch]
            assert (math.isnan(value) and score is None) or value == score
    assert recorded.texts is not None
    assert recorded.texts == tuple(f"Write about topic {item}." for item in recorded.items)
    failed = np.isnan(recorded.scores).sum() - 2 * 12 * 3 * 2  # each answer has one judge of three
    assert failed == sum(s.model == "b" and "topic: topic 2\n" in s.prompt for s in server.served) > 0

    # what the host's table said is what the report says
    row = found["results"]["essays"]["judged,panel"]
    report = json.loads(run("report", out, "--json", "-"))
    assert estimate_of(report, "second") == pytest.approx(row, abs=1e-9)
    assert "cyclic" in run("plan", out, "--model", "first", "--half-width", "0.2")
    assert "single" in run("backtest", out, "--rotation", "cyclic,single", "--model", "first", "--seeds", "3")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Output of three runs without judges: two of one model on a group, one of them under a budget."""
    here = tmp_path_factory.mktemp("runs")
    metrics = [*averaged("exact_match"), {"metric": "bleu", "aggregation": "bleu", "higher_is_better": True}]
    both = [{"name": name, "filter": [{"function": "take_first"}]} for name in ("strict", "loose")]
    write_task(here, "three", n=4, filter_list=both)
    write_task(here, "one", n=6, metric_list=metrics)
    write_task(here, "two", n=4)
    write_group(here, "both", ["one", "two"])
    options: dict[str, Any] = {"model": "evalbudget-test-coin", "apply_chat_template": False}
    out = here / "out"
    evaluate(here, "model=coin,seed=1", "both", output=out, **options)
    evaluate(here, "model=other,seed=2", "two", output=out, **options)
    with budgeted(sampler="eb-bernstein", budget=60, journal="none", seed=3):
        evaluate(here, "model=coin,seed=3", "both", output=out, **options)
    return out


def test_a_group_with_several_models_and_runs(runs: Path) -> None:
    recorded = read(runs)
    assert recorded.models == ("coin", "other")
    assert recorded.raters == ("exact_match",)  # bleu is no number per document
    names = [*(f"one/{i}" for i in range(6)), *(f"two/{i}" for i in range(4))]
    assert sorted(recorded.items) == names
    assert recorded.categories == tuple(item.split("/")[0] for item in recorded.items)
    assert recorded.texts is not None
    assert len(set(recorded.texts)) > 1
    assert all(re.fullmatch(r"say -?\d+ please", text) for text in recorded.texts), recorded.texts
    assert recorded.purchases is not None
    assert recorded.epochs is not None
    coin, other = recorded.purchases
    assert (coin.allocation, coin.fixed_repeats, coin.cost) == (Allocation.PHASED, 1, 70)
    assert (other.allocation, other.cost) == (Allocation.FIXED, 4)
    assert int(recorded.counts[0].sum()) == 70
    assert int(recorded.counts[1].sum()) == 4

    # every score, by hand
    assert np.nansum(recorded.scores) == sum(sample["exact_match"] for sample in samples_in(runs))
    # of both runs, and so of every item, the shares add up to 1
    assert recorded.phases is not None


def test_metrics_are_no_panel_of_judges(runs: Path) -> None:
    out = runs.parent / "metrics"
    options: dict[str, Any] = {"model": "evalbudget-test-coin", "apply_chat_template": False}
    evaluate(runs.parent, "model=coin", "three", output=out, **options)
    recorded = read(out)
    assert recorded.raters == ("exact_match,strict", "exact_match,loose")
    table = run("report", out)
    assert all(rater in table for rater in recorded.raters)
    assert "coin" in run("report", out, "--rater", "exact_match,loose")
    recorded.save(out / "saved.npz")
    assert not RecordedScores.load(out / "saved.npz").one_measure


def test_one_task_alone(runs: Path) -> None:
    file = next((runs / "other").glob("samples_two_*.jsonl"))
    alone = read(file)
    assert alone.items == ("0", "1", "2", "3")
    assert alone.categories is None
    assert "other" in run("report", file)
    arguments = ("--model", "coin", "--sampler", "uniform,eb-bernstein", "--budget", "5x", "--seeds", "2")
    assert "eb-bernstein" in run("backtest", runs, *arguments)


def test_without_results_the_folder_names_the_model(runs: Path, tmp_path: Path) -> None:
    found = sorted((runs / "coin").glob("samples_one_*.jsonl"))
    folder = tmp_path / "my-model"
    folder.mkdir()
    for file in found:
        (folder / file.name).write_text(file.read_text())
    recorded = read(tmp_path)
    assert recorded.models == ("my-model",)
    assert recorded.purchases is not None
    # a run of ours that lost its results: its first answers are all that may count
    assert recorded.purchases[0].allocation is Allocation.ADAPTIVE
    assert recorded.purchases[0].fixed_repeats == 1 + 1


def test_other_paths_are_left_to_others(tmp_path: Path) -> None:
    (tmp_path / "samples_of_mine.jsonl").write_text("{}")
    assert open_scores(tmp_path) is None
    assert open_scores(tmp_path / "samples_of_mine.jsonl") is None
    assert open_scores(tmp_path / "absent") is None


def test_damaged_files_are_named(runs: Path, tmp_path: Path) -> None:
    source = next((runs / "other").glob("samples_two_*.jsonl"))
    copy = tmp_path / source.name

    def refused(text: str, message: str) -> None:
        copy.write_text(text)
        with pytest.raises(InvalidInputError, match=message):
            open_scores(tmp_path)

    text = source.read_text()
    refused(text[: len(text) - 40], "line 4 is no JSON")
    refused('{"a": 1}\n', "line 1 has no doc_id")
    refused(text.replace('"metrics": ["exact_match"]', '"metrics": []'), "samples without a score")
    (tmp_path / source.name.replace("samples_two", "results").replace(".jsonl", ".json")).write_text("{")
    refused(text, "not readable as results")


def json_reading(text: str) -> Any:
    from evalbudget_lm_eval.judges.readings import Reading

    reading = Reading.parse(text)
    assert reading is not None
    return reading


def estimate_of(report: dict[str, Any], model: str) -> float:
    rows = report["leaderboard"]["rows"]
    return float(next(row["estimate"] for row in rows if row["model"] == model))
