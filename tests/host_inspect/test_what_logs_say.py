"""What logs say beside scores: settings, questions, scorers, reducers, clusters, early stopping."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from inspect_ai import Epochs, Task, task
from inspect_ai.approval import ApprovalPolicy, auto_approver
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalSampleLimit, read_eval_log, write_eval_log
from inspect_ai.model import ChatMessageUser, ContentImage, ContentText, GenerateConfig, get_model
from inspect_ai.scorer import Scorer, accuracy, includes, match, mean, model_graded_qa, stderr
from inspect_ai.solver import system_message
from inspect_ai.util import EarlyStop, EarlyStopping, TokenLimit
from tests.host_inspect.log_worlds import (
    logged,
    means,
    notes,
    number,
    path_of,
    questions,
    quiz,
    read,
    rewritten,
    saying,
)
from tests.host_inspect.worlds import scoring

import evalbudget
from evalbudget import Allocation
from evalbudget.backtest import RecordedScores, side_by_side
from evalbudget.cli.main import cli
from evalbudget.comparisons import compare
from evalbudget.errors import InvalidInputError
from evalbudget.recorded._direction import notes_of
from evalbudget.report import report
from evalbudget_inspect import budgeted
from evalbudget_inspect.reading.open_logs import open_scores


@task
def hinted(hint: bool = False, shuffled: int = 0) -> Task:
    numbers = list(range(30))
    random.Random(shuffled).shuffle(numbers)
    skill = 0.9 if hint else 0.3
    dataset = MemoryDataset([Sample(input=f"question {n}", target="yes") for n in numbers])
    solver = saying(lambda state: random.Random(f"{number(state)}").random() < skill)
    return Task(dataset=dataset, solver=solver, scorer=match())


# what was evaluated


def test_a_sweep_of_a_task_argument_is_two_models(tmp_path: Path) -> None:
    for hint in (False, True):
        logged(hinted(hint=hint), tmp_path)
    found = read(tmp_path)
    assert means(found) == pytest.approx(
        {"mockllm/model (hint=false)": 7 / 30, "mockllm/model (hint=true)": 0.9}, abs=1e-12
    )
    assert {rest["hint"] for rest in found.declared.settings} == {"false", "true"}


@task
def versioned(version: str, temperature: float) -> Task:
    return quiz(3, lambda state: (version, number(state)) > ("a", temperature))


def test_arguments_that_are_called_as_other_settings_are_named_apart(tmp_path: Path) -> None:
    for version, warmth in (("a", 0.5), ("b", 0.5), ("b", 1.0)):
        logged(versioned(version=version, temperature=warmth), tmp_path, temperature=1.0)
    assert sorted(read(tmp_path).models) == [
        "mockllm/model (task.version=a, task.temperature=0.5)",
        "mockllm/model (task.version=b, task.temperature=0.5)",
        "mockllm/model (task.version=b, task.temperature=1.0)",
    ]


def test_what_a_scorer_was_told_names_models_apart(tmp_path: Path) -> None:
    for scorers in ([match(location="end")], [match(location="exact"), includes()], [includes()]):
        logged(quiz(4, lambda state: number(state) > 1, scorer=scorers), tmp_path)
    assert sorted(read(tmp_path).models) == [
        "mockllm/model (match.location=default)",  # the log that does not have it
        "mockllm/model (match.location=end)",
        "mockllm/model (match.location=exact)",
    ]


def test_a_scorer_that_some_logs_lack_is_no_setting(tmp_path: Path) -> None:
    for scorers in ([match(location="end")], [match(location="end"), includes()], [includes()]):
        logged(quiz(4, lambda state: number(state) > 1, scorer=scorers), tmp_path)
    found = read(tmp_path)
    assert found.models == ("mockllm/model",)
    assert found.counts.sum(axis=(0, 1)).tolist() == [8, 8]


def test_an_argument_at_its_default_is_no_setting_of_a_budgeted_run(tmp_path: Path) -> None:
    """A run of ours logs those arguments only that were given."""
    plain = logged(hinted(), tmp_path)
    with_default = logged(hinted(hint=False), tmp_path)
    assert plain.eval.task_args_passed != with_default.eval.task_args_passed
    arguments = {"evalbudget": {"task": f"{__file__}@hinted", "budget": "2x", "sampler": "uniform"}}
    logged("evalbudget_inspect/budgeted", tmp_path, task_args=arguments)
    found = read(tmp_path)
    assert found.models == ("mockllm/model",)
    assert found.counts.sum() == 30 + 30 + 60


def test_whatever_else_was_evaluated_names_models_apart(tmp_path: Path) -> None:
    scorer = scoring("anything", lambda state: 1.0)

    def one(name: str, *solvers: Any, **options: Any) -> None:
        made = Task(dataset=questions(range(2)), solver=[*solvers, saying(bool)], scorer=scorer(), name="q")
        logged(made, tmp_path / name, **options)

    one("plain")
    one("again", max_connections=3, timeout=9, seed=7)
    one("warm", temperature=0.5)
    one("prompted", system_message("Be brief."))
    one("graded", model_roles={"grader": get_model("mockllm/judge")})
    one("limited", message_limit=9)
    of_model = get_model(
        "mockllm/model", config=GenerateConfig(top_p=0.4), base_url="http://x", memoize=False
    )
    one("top", model=of_model)
    one("elsewhere", model=get_model("mockllm/model", base_url="http://y", memoize=False))
    found = read(tmp_path)
    assert len(found.models) == 7
    assert sorted(found.counts.sum(axis=(1, 2)).tolist()) == [2, 2, 2, 2, 2, 2, 4]  # one run was repeated
    (warm,) = [name for name in found.models if "temperature=0.5" in name]
    assert "grader=default" in warm


@pytest.mark.parametrize(
    "limit", ["message_limit", "token_limit", "turn_limit", "time_limit", "working_limit"]
)
def test_a_sweep_of_a_limit_is_two_models(limit: str, tmp_path: Path) -> None:
    for value in (100, 2000):
        logged(quiz(3, lambda state, v=value: v == 2000), tmp_path, **{limit: value})
    few, many = (f"mockllm/model ({limit}={value})" for value in (100, 2000))
    assert means(read(tmp_path)) == {few: 0.0, many: 1.0}


def test_which_tokens_a_limit_meters_is_a_setting(tmp_path: Path) -> None:
    for kind in ("all", "output"):
        limit = TokenLimit(tokens=1000, type=kind)
        logged(quiz(3, lambda state, k=kind: k == "output"), tmp_path, token_limit=limit)
    logged(quiz(3, lambda state: False), tmp_path, token_limit=1000)  # of all, unless it is said
    found = means(read(tmp_path))
    kinds = "mockllm/model (token_limit_type=default)", "mockllm/model (token_limit_type=output)"
    assert found == dict(zip(kinds, (0.0, 1.0), strict=True))


def test_a_policy_for_tools_is_a_setting(tmp_path: Path) -> None:
    for policy in (None, [ApprovalPolicy(auto_approver(), "*")]):
        logged(quiz(3, lambda state, p=policy: p is None), tmp_path, approval=policy)
    found = means(read(tmp_path))
    assert sorted(found.values()) == [0.0, 1.0]
    assert all(" (approval=" in name for name in found)


def test_versions_of_a_task_are_named_apart(tmp_path: Path) -> None:
    for version in (1, 2):
        logged(quiz(3, lambda state, v=version: v == 1, version=version), tmp_path)
    found = read(tmp_path)
    assert means(found) == {"mockllm/model (version=1)": 1.0, "mockllm/model (version=2)": 0.0}
    assert found.task is None

    for version in (3, 4):
        other = get_model("mockllm/other" if version == 4 else "mockllm/model")
        logged(
            quiz(3, lambda state: True, version=version), tmp_path / "two", model=other, temperature=version
        )
    found = read(tmp_path / "two")
    assert sorted(found.models) == ["mockllm/model (version=3)", "mockllm/other (version=4)"]
    with pytest.raises(InvalidInputError, match=r"is of version [34] of the task and .*across-"):
        compare(found)
    assert any("temperature=3.0 (mockllm/model (version=3))" in note for note in notes_of(found))


# what stands under an id


def test_questions_are_paired_whatever_their_ids(tmp_path: Path) -> None:
    """The host numbers samples in the order of the dataset, and this one was shuffled."""
    for order in (1, 2):
        logged(hinted(shuffled=order), tmp_path)
    found = read(tmp_path)
    assert len(found.items) == 30
    first, second = found.true_scores[:, :, 0]
    assert np.array_equal(first, second)
    assert "hold another question than elsewhere: paired by question" in notes(found)
    assert compare(found).rows[0].difference == 0.0


def test_two_questions_that_begin_alike_are_two(tmp_path: Path) -> None:
    """Summaries of the host keep the beginning of a text; the right answers tell the rest apart."""
    passage = "word " * 2000
    for order in ((0, 1), (1, 0)):
        samples = [Sample(input=f"{passage}{n}", target=f"answer {n}") for n in order]
        solver = saying(lambda state: state.input_text.endswith("1"))
        scorer = scoring("said", lambda state: float(state.output.completion == "yes"))
        logged(Task(dataset=MemoryDataset(samples), solver=solver, scorer=scorer(), name="long"), tmp_path)
    found = read(tmp_path)
    assert sorted(found.true_scores[0, :, 0]) == [0.0, 1.0]


def test_messages_and_choices_are_questions_too(tmp_path: Path) -> None:
    for choices in (["a", "b"], ["b", "a"]):
        right = "AB"[choices.index("a")]
        sample = Sample(input=[ChatMessageUser(content="which?")], target=right, choices=choices, id=1)
        logged(Task(dataset=MemoryDataset([sample]), solver=saying(bool), scorer=match(), name="q"), tmp_path)
    assert read(tmp_path).declared.notes == ()


# scorers


def test_choices_in_another_order_have_the_same_right_answer(tmp_path: Path) -> None:
    for seed in (1, 2):
        samples = [Sample(input=f"question {n}", choices=["x", "y", "z"], target="A", id=n) for n in range(9)]
        dataset = MemoryDataset(samples)
        dataset.shuffle_choices(seed=seed)
        logged(quiz(9, lambda state: number(state) > 3, dataset=dataset), tmp_path)
    found = read(tmp_path)
    assert notes(found) == ""
    assert found.counts.sum() == 18


def test_another_right_answer_is_said(tmp_path: Path) -> None:
    for right in ("yes", "no"):
        samples = [Sample(input=f"question {n}", target=right if n < 2 else "yes", id=n) for n in range(9)]
        logged(quiz(9, lambda state: number(state) > 3, dataset=MemoryDataset(samples)), tmp_path)
    assert "2 of 9 ids of " in notes(read(tmp_path))
    assert "have another right answer than elsewhere; paired." in notes(read(tmp_path))


def test_a_part_of_the_dataset_is_said(tmp_path: Path) -> None:
    made = quiz(9, lambda state: number(state) > 3)
    logged(made, tmp_path, limit=4)
    logged(made, tmp_path, sample_id=[1, 7, 8])
    logged(made, tmp_path)
    found = read(tmp_path)
    assert sorted(note.partition(" ")[2] for note in found.declared.notes) == [
        "(mockllm/model) is of 3 of the 9 samples of the dataset.",
        "(mockllm/model) is of 4 of the 9 samples of the dataset.",
    ]


def test_every_scorer_and_key_has_a_row_and_none_is_a_judge(tmp_path: Path) -> None:
    def counts(state: Any) -> dict[str, Any]:
        return {"solved": number(state) < 3, "words": 100 * number(state)}

    keyed = scoring("counts", counts, {"solved": [mean()], "words": [mean()]})
    two = quiz(10, lambda state: number(state) % 2 == 0, scorer=[match(), includes(), keyed()])
    found = read_log(two, tmp_path)
    assert means(found) == {"match": 0.5, "includes": 0.5, "counts.solved": 0.3, "counts.words": 450.0}
    assert not found.one_measure
    with pytest.raises(InvalidInputError, match="4 metrics"):
        found.as_panel()
    assert found.declared.ranges == ((0.0, 1.0), (0.0, 1.0), (0.0, 1.0), None)


def read_log(made: Any, folder: Path, **options: Any) -> Any:
    logged(made, folder, **options)
    return read(folder)


def test_one_scorer_that_asks_several_models_is_a_panel(tmp_path: Path) -> None:
    judges = [get_model(f"simulated/{name}", template="GRADE: C", memoize=False) for name in ("a", "b")]
    found = read_log(quiz(3, bool, scorer=[model_graded_qa(model=judge) for judge in judges]), tmp_path)
    assert found.raters == ("model_graded_qa", "model_graded_qa1")
    assert found.one_measure


def test_a_word_among_numbers_is_a_missing_score(tmp_path: Path) -> None:
    odd = scoring("odd", lambda state: "INVALID" if number(state) == 1 else 1.0, [accuracy()])
    words = scoring("words", lambda state: "fine", [])
    found = read_log(quiz(4, bool, scorer=[odd(), words()]), tmp_path)
    assert found.raters == ("odd",)
    assert found.failed.tolist() == [[[0], [1], [0], [0]]]
    assert "Scorer 'words' gives words and no numbers, and is left out." in notes(found)


def test_a_key_that_a_score_lacks_does_not_apply(tmp_path: Path) -> None:
    def keys(state: Any) -> dict[str, float]:
        return {"any": 1.0} | ({"rare": 0.0} if number(state) == 0 else {})

    found = read_log(quiz(3, bool, scorer=scoring("keys", keys, {"any": [mean()]})()), tmp_path)
    assert found.counts.tolist() == [[[1, 1], [1, 0], [1, 0]]]
    assert not found.failed.any()
    assert found.declared.complete == (True,)


def test_ranges_are_known_of_grades_and_of_accuracies(tmp_path: Path) -> None:
    def numbers(name: str, value: Any, *metrics: Any) -> Scorer:
        return scoring(name, value, list(metrics))()

    scorers = [
        match(),
        numbers("right", lambda state: float(number(state) > 1), accuracy()),
        numbers("share", lambda state: float(number(state) > 1), mean()),
        numbers("points", lambda state: 3.0 * number(state), accuracy()),
    ]
    found = read_log(quiz(4, lambda state: True, scorer=scorers), tmp_path)
    assert found.declared.ranges == ((0.0, 1.0), (0.0, 1.0), (0.0, 1.0), None)


wer = scoring("word_error_rate", lambda state: number(state) / 10, [mean()])


def test_that_higher_is_taken_for_better_is_said_where_a_name_suggests_otherwise(tmp_path: Path) -> None:
    logged(quiz(8, bool, scorer=wer()), tmp_path / "a")
    told = "No direction is declared for word_error_rate: higher is taken as better. If lower is better, give"
    assert any(note.startswith(told) for note in notes_of(read(tmp_path / "a")))
    log = str(path_of(logged(quiz(8, bool, scorer=wer()), tmp_path / "b")))
    gate = ["gate", "--baseline", log, "--candidate", log, "--margin", "0.1"]
    assert told in " ".join(CliRunner().invoke(cli, gate).output.split())
    assert told not in " ".join(CliRunner().invoke(cli, [*gate, "--lower-is-better"]).output.split())
    logged(quiz(8, bool), tmp_path / "c")
    assert not notes_of(read(tmp_path / "c"))


def test_a_declared_range_is_read(tmp_path: Path) -> None:
    points = scoring("points", lambda state: 2.0 + number(state))
    made = budgeted(quiz(4, bool, scorer=points()), budget=8, sampler="uniform", score_range="0..10")
    assert read_log(made, tmp_path).declared.ranges == ((0.0, 10.0),)


# how scores were made one


def test_reducers_other_than_the_mean_are_named(tmp_path: Path) -> None:
    found = read_log(quiz(3, lambda s: s.epoch == 2, epochs=Epochs(3, ["max"])), tmp_path / "max")
    assert found.declared.reducers == ("max",)
    assert means(found) == pytest.approx({"match": 1 / 3})
    assert read_log(quiz(3, bool, epochs=2), tmp_path / "mean").declared.reducers == (None,)
    several = read_log(quiz(3, bool, epochs=Epochs(2, ["mean", "at_least_1"])), tmp_path / "several")
    assert several.declared.reducers == ("mean, at_least_1",)
    other = "The log's own results of match by reducer {} are another quantity than what is said here"
    assert other.format("max") in notes(found)
    assert other.format("at_least_1") in notes(several)
    once = read_log(quiz(3, bool, epochs=Epochs(1, ["max"])), tmp_path / "once")
    assert "another quantity" not in notes(once)


# what was sampled together


def _clustered(lacks: tuple[int, ...] = (), **named: str) -> Task:
    dataset = questions(range(6))
    for sample in dataset:
        n = int(str(sample.id))
        sample.metadata = (
            {"passage": n // 2, "author": n % 2} if n not in lacks else {"passage": ""} if n == 4 else {}
        )
    metrics = [mean(), *(stderr(cluster=field) for field in named.values())]
    scorer = scoring("coin", lambda state: float(number(state) < 2), metrics)
    return Task(dataset=dataset, solver=saying(bool), scorer=scorer(), name="clustered")


def test_the_clusters_that_a_task_declares_are_read(tmp_path: Path) -> None:
    found = read_log(_clustered(by="passage"), tmp_path).declared
    assert (found.cluster, found.clusters) == ("passage", ("0", "0", "1", "1", "2", "2"))


def test_clusters_are_of_the_scorers_that_declare_them(tmp_path: Path) -> None:
    made = _clustered(by="passage")
    plain = scoring("plain", lambda state: float(str(state.sample_id) in "134"), [mean(), stderr()])
    made.scorer = [*made.scorer, plain()]
    found = read_log(made, tmp_path)
    first = found.raters[0]
    assert found.declared.clustered == (True, False)
    kept = tmp_path / "scores.npz"
    found.save(kept)
    evalbudget.read(kept).readings(frame="pandas").to_csv(tmp_path / "scores.csv", index=False)
    for source in (found, RecordedScores.load(kept), evalbudget.read(tmp_path / "scores.csv").recorded):
        assert source.select(rater="plain").declared.clusters is None
        assert source.select(rater=first).declared.clusters == ("0", "0", "1", "1", "2", "2")
        rows = {name: rows[0] for name, rows in report(source).sections[0].boards}
        scores = source.select(rater="plain").scores.ravel()
        assert rows["plain"].standard_error == pytest.approx(scores.std(ddof=1) / 6**0.5)
    two = RecordedScores.load(kept)
    both = side_by_side({"a": replace(two, models=("a",)), "b": replace(two, models=("b",))})
    assert both.declared.clustered == (True, False)
    assert {row.metric: row.clusters for row in compare(both).rows} == {first: 3, "plain": 6}


@pytest.mark.parametrize(
    ("metrics", "clustered"),
    [
        ({"x": [mean(), stderr(cluster="passage")], "y": [mean(), stderr()]}, (True, False)),
        ([{"x": [mean(), stderr()]}, {"y": [stderr(cluster="passage")]}], (False, True)),
        ({"y": [stderr()], "*": [mean(), stderr(cluster="passage")]}, (True, False)),
        ({"*": [mean(), stderr(cluster="passage")]}, ()),
    ],
    ids=["by key", "list", "pattern for the rest", "all"],
)
@pytest.mark.parametrize("status", ["success", "error"])
def test_clusters_are_of_the_keys_that_declare_them(
    metrics: Any, clustered: tuple[bool, ...], status: str, tmp_path: Path
) -> None:
    made = _clustered(by="passage")
    score = scoring("both", lambda state: {"x": number(state) // 2 % 2, "y": number(state) % 2}, metrics)
    made.scorer = [score()]
    log = logged(made, tmp_path)
    rewritten(log, path_of(log), status=status, **({} if status == "success" else {"results": None}))
    found = read(tmp_path)
    assert found.raters == ("both.x", "both.y")
    assert found.declared.cluster == "passage"
    assert found.declared.clustered == clustered


def test_clusters_of_a_budgeted_run_are_read(tmp_path: Path) -> None:
    found = read_log(budgeted(_clustered(by="passage"), budget=12, sampler="uniform"), tmp_path).declared
    assert found.cluster == "passage"


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (_clustered(lacks=(3, 4)), None),
        (_clustered(by="passage", also="author"), "clustered by passage and by author"),
    ],
    ids=["none declared", "two declared"],
)
def test_clusters_that_are_not_of_one_field_are_unknown(made: Task, why: str | None, tmp_path: Path) -> None:
    found = read_log(made, tmp_path)
    assert found.declared.clusters is None
    assert why is None or why in notes(found)


def test_items_without_a_cluster_are_said(tmp_path: Path) -> None:
    scorer = scoring("coin", lambda state: 1.0, [mean()])
    dataset = questions(range(3))
    dataset[0].metadata = {"passage": 1}
    log = logged(Task(dataset=dataset, solver=saying(bool), scorer=scorer(), name="q"), tmp_path)
    for score in log.results.scores:
        score.metrics["mean"].params["cluster"] = "passage"
    write_eval_log(log, log.location)
    found = read(tmp_path)
    assert found.declared.clusters is None
    assert "clusters its standard error by 'passage', and 2 items have none" in notes(found)


def test_a_category_that_items_lack_is_refused_with_their_names(tmp_path: Path) -> None:
    log = logged(_clustered(lacks=(3, 4)), tmp_path)
    with pytest.raises(InvalidInputError, match=r"no 'passage' in the metadata of 2 items \('3', '4'\)"):
        open_scores(tmp_path, category="passage")
    assert log.status == "success"
    whole = logged(_clustered(), tmp_path / "whole")
    assert whole.status == "success"
    found = open_scores(tmp_path / "whole", category="author")
    assert found is not None
    assert found.categories == ("0", "1", "0", "1", "0", "1")


# what was not asked for


class _UntilRight(EarlyStopping):
    def __init__(self) -> None:
        self.done: set[Any] = set()

    async def start_task(self, task: Any, samples: Any, epochs: int) -> str:
        return "until-right"

    async def schedule_sample(self, id: Any, epoch: int) -> EarlyStop | None:  # noqa: A002
        return EarlyStop(id=id, epoch=epoch, reason="solved") if id in self.done else None

    async def complete_sample(self, id: Any, epoch: int, scores: Any) -> None:  # noqa: A002
        if any(score.score.value == "C" for score in scores.values()):
            self.done.add(id)

    async def complete_task(self) -> dict[str, Any]:
        return {}


def test_a_tasks_own_early_stopping_leaves_first_epochs(tmp_path: Path) -> None:
    def right(state: Any) -> bool:
        return random.Random(f"{state.sample_id}-{state.epoch}").random() < 0.5

    made = quiz(16, right, epochs=8, early_stopping=_UntilRight())
    found = read_log(made, tmp_path, max_samples=1)
    (purchase,) = found.purchases
    assert (purchase.allocation, purchase.fixed_repeats) == (Allocation.ADAPTIVE, 1)
    first = found.scores[found.epochs == 0]
    assert np.nanmean(first) == pytest.approx(0.5, abs=1e-3)
    assert "the task stopped asking an item by a rule of its own" in notes(found)


def test_a_question_under_two_ids_is_said_unless_a_field_tells_it(tmp_path: Path) -> None:
    """Images are no questions of which a log tells that they are the same."""
    asked = [
        Sample(input=f"question {n // 2}", target="yes", id=n, metadata={"source": f"s{n // 2}"})
        for n in range(10)
    ]
    made = quiz(10, lambda state: number(state) % 2 == 0, dataset=MemoryDataset(asked))
    logged(made, tmp_path)
    assert "5 of 10 items ask what another one asks" in notes(read(tmp_path))
    found = open_scores(tmp_path, category="source")
    assert found is not None
    assert "asks" not in notes(found)
    picture = ContentImage(image="data:image/png;base64,iVBORw0KGgo=")
    seen = [
        Sample(
            input=[ChatMessageUser(content=[ContentText(text="what is it? 1"), picture])], target="yes", id=n
        )
        for n in range(10)
    ]
    logged(quiz(10, lambda state: True, dataset=MemoryDataset(seen)), tmp_path / "seen")
    assert "asks" not in notes(read(tmp_path / "seen"))


def test_answers_that_ended_at_a_limit_are_said(tmp_path: Path) -> None:
    log = logged(quiz(10, lambda state: True), tmp_path)
    samples = list(read_eval_log(log.location).samples or [])
    for sample in samples[:3]:
        sample.limit = EvalSampleLimit(type="token", limit=5)
    rewritten(log, path_of(log), samples=samples)
    assert "3 of 10 answers of mockllm/model ended at a limit (token) and count" in notes(read(tmp_path))
