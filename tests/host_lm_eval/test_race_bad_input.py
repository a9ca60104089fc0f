"""What a race refuses, before anything is spent, and what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from lm_eval.api.metrics import mean
from tests.host_lm_eval.race_worlds import KIND, Racer, manager, racer, truth
from tests.host_lm_eval.worlds import averaged, write_task

from evalbudget.cli.main import cli
from evalbudget.errors import EvalbudgetError, InvalidInputError, JournalError, UnknownNameError
from evalbudget_lm_eval.arms.arm import check_arms, parse_arm
from evalbudget_lm_eval.arms.metric import check_direction, choose_metric
from evalbudget_lm_eval.races.api import race
from evalbudget_lm_eval.run.record import Record

TWO = {"a": racer(0.9, 1), "b": racer(0.5, 2)}


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("tasks")
    regex = {"function": "regex", "regex_pattern": "(\\d+)"}
    both = [{"name": name, "filter": [regex, {"function": "take_first"}]} for name in ("strict", "loose")]
    manager(folder, name="filtered", n=30, filter_list=both)
    manager(folder, name="two", n=30, metric_list=averaged("exact_match", "acc"))
    return manager(folder, n=30)


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        ([], "two arms or more, and there is none"),
        (["a=hf:pretrained=x"], "there is only a"),
        (["a=hf:pretrained=x", "a=hf:pretrained=y"], "two arms are named 'a'"),
        (["a/b=hf:pretrained=x", "a__b=hf:pretrained=y"], "in file names so is 'a/b'"),
        (["a=hf:pretrained=x,dtype=y", "b=hf:dtype=y,pretrained=x"], "arms a and b are the same model"),
        (["a=hf:pretrained=x", "b=hff:pretrained=x"], "unknown model of arm b: 'hff'. Did you mean 'hf'"),
        (["a=hf:pretrained=x", "hf:pretrained=y"], "NAME=MODEL:ARGS; for example --arm small=hf:"),
        (["a=hf:pretrained=x", "b=hf:pretrained"], "'pretrained' is not KEY=VALUE"),
        (["a=hf:pretrained=x", 'b=hf:{"pretrained": }'], "cannot be read"),
    ],
)
def test_arms_that_cannot_race(arms: list[str], message: str) -> None:
    with pytest.raises(EvalbudgetError) as refusal:
        check_arms([parse_arm(text) for text in arms])
    assert message in str(refusal.value)


def test_arms_as_users_write_them() -> None:
    arm = parse_arm("chat=local-chat-completions:model=m,base_url=http://localhost:8000/v1,num_concurrent=4")
    assert (arm.name, arm.model) == ("chat", "local-chat-completions")
    assert arm.args == {"model": "m", "base_url": "http://localhost:8000/v1", "num_concurrent": 4}
    # how fast it is asked does not make it another model
    assert (
        arm.description
        == parse_arm(
            "chat=local-chat-completions:model=m,base_url=http://localhost:8000/v1,max_retries=9"
        ).description
    )
    assert parse_arm('x=hf:{"pretrained": "a,b"}').args == {"pretrained": "a,b"}
    assert parse_arm("x=dummy").args == {}


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        ("numbers", {"budget": 7}, "minimum of 8 here: race reads 8 cells of the 2 models"),
        ("numbers", {"budget": 50, "sampler": "lucb", "batch": 30}, "minimum of 60"),
        ("numbers", {"sampler": "eb-bernstein"}, "unknown sampler"),
        ("numbers", {"sampler_options": {"batsh": 3}}, "Did you mean 'batch'"),
        ("numbers", {"sampler_options": {"delta": 2.0}}, "delta=2 is no probability of error"),
        ("numbers", {"keep": 0}, "--keep is 0"),
        ("numbers", {"limmit": 3}, "Did you mean 'limit'"),
        ("numbers", {"predict_only": True}, "predict_only is not for races"),
        ("numbers", {"score": "exact_macth"}, "Did you mean 'exact_match'"),
        ("numbers", {"samples": {"other": [1]}}, "--samples has no entry for task 'numbers'"),
        ("numbers", {"score_range": "1..0"}, "score range '1..0' is not a range"),
        ("numbers", {"history": "nowhere"}, "--history nowhere does not exist"),
        ("nummbers", {}, "unknown task 'nummbers'. Did you mean 'numbers'"),
        ("two", {}, "2 scores to compare by: exact_match,none, acc,none; choose one, for example --score"),
        (
            "filtered",
            {"score": "exact_match"},
            "choose one: --score exact_match,strict, --score exact_match,loose",
        ),
    ],
)
def test_refused_before_anything_is_loaded(
    tasks: Any, task: str, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(EvalbudgetError) as refusal:
        race(TWO, task, task_manager=tasks, **{"budget": 50, **options})
    assert message in str(refusal.value)
    assert not Racer.loads


def test_a_score_outside_the_range_is_kept_for_the_next_try(tasks: Any, tmp_path: Path) -> None:
    write_task(tmp_path, name="points", n=30)
    config = yaml.safe_load((tmp_path / "points.yaml").read_text()) | {
        "metric_list": averaged("points"),
        "process_results": lambda doc, results: {"points": 10.0 * (results[0] == doc["text"])},
    }
    options: dict[str, Any] = {"task_manager": tasks, "output_path": tmp_path, "budget": 60}
    with pytest.raises(EvalbudgetError, match=r"points,none of document \d+ is 10, .* --score-range 0\.\.10"):
        race(TWO, config, **options)
    asked = sorted(Racer.asked)
    assert asked
    board = race(TWO, config, score_range="0..10", sampler="uniform", **options).leaderboard
    assert board.spent == len(Racer.asked) == len(set(Racer.asked)) == 60
    assert board.of("a").estimate == pytest.approx(10 * truth(1, 0.9, 30))


def test_a_score_that_only_answers_show_is_asked_for_after_one_of_each_arm(tmp_path: Path) -> None:
    own = "def process(doc, results):\n    return {'right': results[0] == doc['text'], 'n': 1}\n"
    task = manager(tmp_path / "tasks", n=40, own=own, metric_list=averaged("acc"))
    options: dict[str, Any] = {"task_manager": task, "output_path": tmp_path, "budget": 60}
    told = "no number as '{},none' .* use --score n,none or right,none"
    for _ in range(2):  # nothing more is asked for the sake of what is known
        with pytest.raises(InvalidInputError, match=told.format("acc")):
            race(TWO, "numbers", **options)
        assert len(Racer.asked) <= len(TWO)
    with pytest.raises(InvalidInputError, match=told.format("rihgt")):
        race(TWO, "numbers", score="rihgt", **options)
    options |= {"sampler": "uniform", "budget": 80}
    board = race(TWO, "numbers", score="right", **options).leaderboard
    assert board.spent == len(Racer.asked) == 80
    assert board.of("a").estimate == pytest.approx(truth(1, 0.9, 40))


def test_records_of_other_races_are_refused(tasks: Any, tmp_path: Path) -> None:
    options: dict[str, Any] = {"task_manager": tasks, "journal": tmp_path / "j.db", "budget": 10}
    race(TWO, "numbers", **options)
    with pytest.raises(JournalError, match="num_fewshot = None there, 1 here"):
        race(TWO, "numbers", num_fewshot=1, **options)
    with pytest.raises(JournalError, match=r"arm a was .* give it a name of its own"):
        race({**TWO, "a": racer(0.8, 1)}, "numbers", **options)
    Record.open(tmp_path / "other.db", "run", {}).close()
    with pytest.raises(JournalError, match=r"other\.db is the record of a run on lm-eval, not of a race"):
        race(TWO, "numbers", **{**options, "journal": tmp_path / "other.db"})


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--tasks numbers", "a race needs a budget"),
        ("--budget 50", "which task? Add --tasks"),
        (
            "--budget 50 --tasks numbers --model hf",
            "--model is not for several models: name",
        ),
        ("--budget 50 --tasks numbers --sampler-option x", "'x' is not NAME=VALUE"),
        ("--budget $5 --tasks numbers --prices none.yaml", "price file none.yaml cannot be read"),
        ("--budget 50 --tasks numbers --risk .1", "--risk is for a budget in money or tokens"),
        ("--level .9 --budget 50 --tasks numbers", "--level is of gates; what a race may err with is"),
        ("--budget 50 --tasks numbers --baseline x", "--baseline is of evalbudget lm-eval gate"),
        ("--budget 50 --tasks numbers --json nowhere/x.json", "the folder nowhere does not exist"),
        ('--budget 50 --tasks numbers --limit 5 --samples {"numbers":[1]}', "lm-eval refuses its flags"),
    ],
)
def test_the_command_says_what_is_wrong_and_exits_with_2(flags: str, message: str) -> None:
    arms = ["--arm", f"a={KIND}:seed=1", "--arm", f"b={KIND}:seed=2"]
    result = CliRunner().invoke(cli, ["lm-eval", "race", *arms, *flags.split()])
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
    assert not Racer.loads


def test_unknown_names_are_their_own_kind_of_error() -> None:
    with pytest.raises(UnknownNameError):
        check_arms([parse_arm("a=hf"), parse_arm("b=vlm")])


def test_a_score_of_every_document_is_named_before_one_of_some() -> None:
    def nanmean(scores: list[float]) -> float:
        raise NotImplementedError

    class Two:
        """A task with a score of some documents, listed first, and one of all."""

        def aggregation(self) -> dict[str, object]:
            return {"acc_a": nanmean, "acc": mean}

        def higher_is_better(self) -> dict[str, bool]:
            return {"acc_a": True, "acc": True}

    with pytest.raises(InvalidInputError, match=r"for example --score acc,none$"):
        choose_metric("two", Two(), None)


def test_a_score_of_which_lower_is_better_is_taken_only_if_named_or_alone() -> None:
    class Scores:
        def __init__(self, **higher: bool) -> None:
            self.higher = higher

        def aggregation(self) -> dict[str, object]:
            return dict.fromkeys(self.higher, mean)

        def higher_is_better(self) -> dict[str, bool]:
            return self.higher

    assert choose_metric("two", Scores(err=False, acc=True), None) == "acc,none"
    with pytest.raises(InvalidInputError, match="2 scores to compare by: acc,none, f1,none;"):
        choose_metric("three", Scores(err=False, acc=True, f1=True), None)
    assert choose_metric("two", Scores(err=False, acc=True), "err") == "err,none"
    assert choose_metric("one", Scores(err=False), None) == "err,none"
    task = Scores(acc=True, err=False, f1=True)
    for score, lower, others in (("acc", True, "err"), ("err", False, "acc, f1")):
        with pytest.raises(InvalidInputError, match=rf"choose another score \({others}\), or"):
            check_direction([("three", task, score)], lower=lower)
    with pytest.raises(InvalidInputError, match="choose another score, or"):
        check_direction([("one", Scores(acc=True), "acc")], lower=True)
