"""Flags of ours in the host's file of flags."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lm_eval.evaluator
import pytest
import tests.host_lm_eval.worlds  # noqa: F401  (registers the model)
from tests.host_lm_eval.worlds import write_task

from evalbudget.errors import BudgetError, InvalidInputError
from evalbudget_lm_eval.arms.arm import Arm
from evalbudget_lm_eval.arms.host_flags import read_flags
from evalbudget_lm_eval.host.config_file import with_flags_of_file, without_keys
from evalbudget_lm_eval.host.private import EvaluatorConfig
from evalbudget_lm_eval.repeats.flags import FLAGS
from evalbudget_lm_eval.repeats.host_cli import run_host

pytestmark = pytest.mark.usefixtures("own_tasks_only")
LOAD = EvaluatorConfig.load_yaml_config


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_task(Path("tasks"), n=12)
    path = Path("run.yaml")
    path.write_text(
        "model: evalbudget-test-coin\ntasks: [numbers]\ninclude_path: tasks\noutput_path: out\n"
        "budget: 30\nsampler: uniform\nscore_range: 0..1\nseed: 7\n"
    )
    return path


def bought() -> dict[str, Any]:
    (path,) = Path("out").glob("*/results_*.json")
    return dict(json.loads(path.read_text())["evalbudget"])


def test_a_budget_may_stand_in_the_file(config: Path) -> None:
    assert run_host(["run", "--config", str(config)]) == 0
    block = bought()
    assert (block["spent"], block["sampler"], block["score_range"]) == (30, "uniform", [0.0, 1.0])
    assert block["seed"] == 0  # which is the host's
    assert EvaluatorConfig.load_yaml_config is LOAD
    assert lm_eval.evaluator.evaluate.__module__ == "lm_eval.evaluator"


def test_what_is_typed_counts(config: Path) -> None:
    typed = ["--budget", "0.5x", "--sampler", "sample", "--score-range", "0..2"]
    assert run_host(["run", "--config", str(config), *typed]) == 0
    block = bought()
    assert (block["spent"], block["sampler"], block["score_range"]) == (6, "sample", [0.0, 2.0])


def test_the_file_names_the_model_and_the_folder_as_if_they_were_typed(config: Path) -> None:
    for noise in ("true", "false"):
        log = Path(f"asked-{noise}")
        text = config.read_text().partition("model_args")[0]
        config.write_text(f"{text}model_args: {{noise: {noise}, log: {log}}}\n")
        assert run_host(["run", "--config", str(config)]) == 0
        assert len(log.read_text().splitlines()) == 30  # another model's answers are not this one's
    assert len([*Path("out/evalbudget-journals").glob("*.db")]) == 2
    assert not Path("evalbudget-journals").exists()


@pytest.mark.parametrize("ours", ["budget: 30", "num_fewshot: 0"])
@pytest.mark.parametrize(
    ("key", "meant"),
    [("batchsize: 4", "Did you mean 'batch_size'"), ("sampler_sed: 1", "Did you mean 'sampler_seed'")],
)
def test_a_key_that_nobody_knows_is_refused(config: Path, ours: str, key: str, meant: str) -> None:
    text = config.read_text().partition("budget:")[0]
    config.write_text(f"{text}{ours}\n{key}\n")
    with pytest.raises(InvalidInputError, match=f"has the key '{key.partition(':')[0]}', .*{meant}"):
        run_host(["run", "--config", str(config)])
    assert not Path("out").exists()


def test_a_key_that_nobody_knows_is_refused_of_several_models(config: Path) -> None:
    config.write_text("tasks: [numbers]\ninclude_path: tasks\nfewshot: 3\n")
    with pytest.raises(InvalidInputError, match=r"has the key 'fewshot', .*Did you mean 'num_fewshot'"):
        read_flags(["--config", str(config)], [Arm("a", "evalbudget-test-coin", {})])


def test_flags_of_ours_that_ask_for_nothing_are_no_flags_of_the_host(config: Path) -> None:
    text = config.read_text().partition("budget:")[0]
    config.write_text(f"{text}dry_run: false\nbudget: null\n")
    assert run_host(["run", "--config", str(config)]) == 0
    (path,) = Path("out").glob("*/results_*.json")
    assert "evalbudget" not in json.loads(path.read_text())


def test_what_is_wrong_in_the_file_is_refused_as_if_it_were_typed(config: Path) -> None:
    config.write_text(config.read_text().replace("budget: 30", "budget: many"))
    with pytest.raises(BudgetError, match="'many' is not an amount"):
        run_host(["run", "--config", str(config)])
    assert not Path("out").exists()


def test_flags_of_a_file(config: Path) -> None:
    config.write_text(
        "budget: 20x\ndry_run: true\nsampler_option: [objective=mse, x=1]\nseed: 3\ntasks: [a]\n"
    )
    arguments, keys = with_flags_of_file(["run", f"--config={config}", "--budget", "5"], FLAGS)
    assert sorted(arguments[1:4]) == ["--dry_run", "--sampler_option=objective=mse", "--sampler_option=x=1"]
    assert arguments[4:] == [f"--config={config}", "--budget", "5"]
    assert keys == {"budget", "dry_run", "sampler_option"}
    with without_keys(keys):
        assert EvaluatorConfig.load_yaml_config(config) == {"seed": 3, "tasks": ["a"]}
    assert EvaluatorConfig.load_yaml_config is LOAD


@pytest.mark.parametrize("text", [None, "- a list\n", "budget: [", ""])
def test_what_the_host_refuses_it_refuses(config: Path, text: str | None) -> None:
    if text is None:
        config.unlink()
    else:
        config.write_text(text)
    assert with_flags_of_file(["run", "--config", str(config)], FLAGS) == (
        ["run", "--config", str(config)],
        frozenset(),
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("dry_run: 'no'", "write true or false"),
        ("score_range: [0, 1]", "write it as it is typed"),
        ("journal: no", "put what it is in quotes"),
        ("sampler_option: [no]", "put what it is in quotes"),
    ],
)
def test_values_that_cannot_be_typed(config: Path, line: str, said: str) -> None:
    config.write_text(f"{line}\n")
    with pytest.raises(InvalidInputError, match=said):
        with_flags_of_file(["run", "--config", str(config)], FLAGS)


def test_nothing_and_what_is_typed_count_for_nothing_in_the_file(config: Path) -> None:
    config.write_text("budget:\nsampler_option: [x=1]\ndry_run: false\n")
    typed = ["--config", str(config), "--sampler-option", "objective=mse"]  # the host takes it for a run
    assert with_flags_of_file(typed, FLAGS) == (typed, {"budget", "sampler_option", "dry_run"})
    assert with_flags_of_file(["ls", "--config", str(config)], FLAGS)[1] == frozenset()
