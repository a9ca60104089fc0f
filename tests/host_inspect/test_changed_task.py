"""The task is changed between a run that ended early and the host's eval-retry."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import eval_retry, eval_set
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import (
    EvalError,
    EvalLog,
    EvalRetryError,
    EvalSampleSummary,
    ProvenanceData,
    invalidate_samples,
    read_eval_log,
    write_eval_log,
)
from tests.claims import variant
from tests.host_inspect.log_worlds import read
from tests.host_inspect.race_tasks import QUIET
from tests.host_inspect.worlds import book_says, entry_of

from evalbudget.report import report
from evalbudget.run import LOST, UNANSWERED
from evalbudget.run._lock import held
from evalbudget_inspect.host.not_run import NOT_BEGUN, NOT_PAID, is_refused
from evalbudget_inspect.host.questions import asks_else, is_judged_else
from evalbudget_inspect.host.refusals import take_refusals

BUDGET, STOP = 24, 10
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

TASK_FILE = """
import json
from pathlib import Path
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import Score, mean, scorer
from inspect_ai.solver import generate, solver

HERE = Path(__file__).parent


def made(name):
    @scorer(metrics=[mean()], name=name)
    def one():
        async def score(state, target):
            return Score(value=len(state.output.completion) % 2)
        return score
    return one()


@solver
def counted(stops):
    async def solve(state, generate):
        state = await generate(state)
        with (HERE / "calls").open("a") as file:
            file.write(f"{state.sample_id} {state.epoch}\\n")
        if len((HERE / "calls").read_text().splitlines()) in stops:
            raise RuntimeError("the tool is away")
        return state
    return solve


@task
def changing():
    said = json.loads((HERE / "task.json").read_text())
    samples = [Sample(**each) for each in said["samples"]]
    scorers = [made(name) for name in said["scorers"]]
    return Task(dataset=samples, solver=counted(said["stops"]), scorer=scorers, name="changing")
"""


class World:
    """A task whose samples and scorers stand in a file, and what its runs asked."""

    def __init__(self, folder: Path, run: Callable[..., EvalLog]) -> None:
        self.folder, self._run = folder, run
        self.samples: list[dict[str, Any]] = [
            {"id": f"q{i}", "input": f"Question {i}?", "target": "C"} for i in range(6)
        ]
        self.scorers = ["sc"]
        self.stops = [STOP]
        self.logs = folder / "logs"
        (folder / "task.py").write_text(TASK_FILE)

    def write(self) -> None:
        (self.folder / "task.json").write_text(
            json.dumps({"samples": self.samples, "scorers": self.scorers, "stops": self.stops})
        )

    def first(self, budget: int | str = BUDGET, log_format: Any = "eval", **arguments: Any) -> EvalLog:
        """A run that ends early, with an error."""
        self.write()
        given = {"task": str(self.folder / "task.py"), "budget": budget, **arguments}
        options: dict[str, Any] = {"fail_on_error": True, "max_samples": 1, "log_format": log_format}
        log = self._run("evalbudget_inspect/budgeted", task_args=given, **options)
        assert (log.status, self.calls) == ("error", STOP)
        return log

    def again(self, log: EvalLog, **options: Any) -> EvalLog:
        """What the host's eval-retry makes of it, however it ends."""
        self.write()
        given = {**QUIET, "log_dir": str(self.logs), "max_samples": 1, **options}
        (done,) = eval_retry(read_eval_log(log.location), **given)
        return read_eval_log(done.location)

    @property
    def calls(self) -> int:
        path = self.folder / "calls"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def rename_all(self) -> None:
        for sample in self.samples:
            sample["id"] = f"new-{sample['id']}"


@pytest.fixture
def world(tmp_path: Path, run: Callable[..., EvalLog]) -> World:
    return World(tmp_path, run)


def _spent_well(world: World, log: EvalLog) -> None:
    """The budget paid for all calls, earlier ones too, and the log says what became of them."""
    said = entry_of(log)
    assert log.status == "success"
    # what was cut off as another sample failed may have been asked
    assert BUDGET - said["failures"].get(UNANSWERED, 0) <= world.calls <= BUDGET
    assert said["spent"] == BUDGET
    assert said["readings"] + said["failed"] == BUDGET


def test_with_one_sample_fewer_earlier_calls_are_paid(world: World, warnings_of_plugin: list[str]) -> None:
    first = world.first(sampler="uniform")
    del world.samples[2]
    done = world.again(first)
    _spent_well(world, done)
    assert entry_of(done)["failures"][LOST] == STOP
    (said,) = [text for text in warnings_of_plugin if "cannot use" in text]
    assert f"paid for {STOP} answers" in said
    assert "of samples that the task no longer has (q2)" in said
    assert "inspect does not hand back" in said
    found = read(Path(done.location).parent)
    assert found.items == tuple(str(sample["id"]) for sample in world.samples)
    assert found.counts.sum() == entry_of(done)["readings"]
    assert "not in the retry that ended the run" in " ".join(found.declared.notes)


@pytest.mark.parametrize("sampler", [variant("eb-bernstein"), "sample"])
def test_with_other_ids_earlier_calls_are_paid(
    sampler: str, world: World, warnings_of_plugin: list[str]
) -> None:
    first = world.first(sampler=sampler)
    world.rename_all()
    done = world.again(first)
    _spent_well(world, done)
    assert entry_of(done)["failures"][LOST] == STOP
    assert LOST in " ".join(entry_of(done)["summary"]["text"].split())
    (said,) = [text for text in warnings_of_plugin if "cannot use" in text]
    assert f"{STOP} of samples that the task no longer has (q0, q1, q2, ...)" in said


@pytest.mark.parametrize("renamed", [True, False], ids=["other ids", "one sample fewer"])
def test_what_was_paid_stays_paid_in_later_attempts(renamed: bool, world: World, tmp_path: Path) -> None:
    first = world.first(sampler="uniform")
    if renamed:
        world.rename_all()
    else:
        del world.samples[2]
    world.stops.append(STOP + 4)
    second = world.again(first, log_dir=str(tmp_path / "elsewhere"))
    assert (second.status, world.calls) == ("error", STOP + 4)
    third = world.again(second)
    _spent_well(world, third)
    assert entry_of(third)["failures"][LOST] == STOP
    fourth = world.again(third)
    _spent_well(world, fourth)


def test_once_the_task_is_as_it_was_the_answers_count(world: World) -> None:
    first = world.first(sampler="uniform")
    samples = list(world.samples)
    del world.samples[2]
    world.stops.append(STOP + 4)
    assert world.again(first).status == "error"
    world.samples = samples
    done = world.again(first)
    _spent_well(world, done)
    assert entry_of(done)["failures"][LOST] == 4  # what failed in between too, which nothing tried again
    assert UNANSWERED not in entry_of(done)["failures"]  # what waited in between was not asked
    assert world.calls == BUDGET


def test_what_earlier_calls_used_up_is_not_asked(world: World) -> None:
    first = world.first(budget=12, sampler="uniform")
    world.rename_all()
    done = world.again(first)
    said = entry_of(done)
    assert (done.status, world.calls, said["spent"], said["readings"]) == ("success", 12, 12, 2)
    refused = [sample for sample in done.samples or [] if is_refused(sample.metadata)]
    assert len(refused) == 4
    assert {sample.metadata["evalbudget"] for sample in refused} == {NOT_PAID}


def test_samples_that_are_marked_as_invalid_are_paid_for(world: World, warnings_of_plugin: list[str]) -> None:
    first = world.first(sampler="uniform")
    scored = [str(sample.uuid) for sample in first.samples or [] if sample.error is None]
    write_eval_log(invalidate_samples(first, scored[:3], ProvenanceData(author="me")), first.location)
    done = world.again(first)
    _spent_well(world, done)
    assert entry_of(done)["failures"][LOST] == 3
    (said,) = [text for text in warnings_of_plugin if "cannot use" in text]
    assert "that nobody marked as invalid" in said


def test_what_a_killed_run_had_not_written_counts_beside_invalid_samples(world: World) -> None:
    first = world.first(sampler="uniform")
    last, *written = reversed(first.samples or [])
    assert last.error is None
    killed = first.model_copy(update={"status": "started", "samples": written[::-1]})
    invalid = str(written[-1].uuid)
    write_eval_log(invalidate_samples(killed, [invalid], ProvenanceData(author="me")), first.location)
    done = world.again(first)
    _spent_well(world, done)
    assert entry_of(done)["failures"][LOST] == 2


def _killed(log: EvalLog) -> None:
    """As if the run had been killed before its last answer was written."""
    answered = [sample for sample in log.samples or [] if sample.error is None]
    write_eval_log(log.model_copy(update={"status": "started", "samples": answered[:-1]}), log.location)


def test_answers_that_a_kill_kept_out_of_the_log_are_told_of_each_time(
    world: World, warnings_of_plugin: list[str]
) -> None:
    first = world.first(sampler="uniform")
    _killed(first)
    world.stops.append(STOP + 4)
    third = world.again(world.again(first))
    _spent_well(world, third)
    said = [text for text in warnings_of_plugin if "cannot use" in text]
    assert len(said) == 2
    assert all(
        "paid 1 of the budget" in text and "the log it goes on from lacks them" in text for text in said
    )


@pytest.mark.parametrize("killed", [True, False])
def test_a_log_whose_book_is_gone_counts_for_what_it_has_and_the_rest_is_told(
    killed: bool, world: World, warnings_of_plugin: list[str]
) -> None:
    first = world.first(sampler="uniform")
    cut_off = [sample for sample in first.samples or [] if sample.error is not None]
    if killed:
        _killed(first)
    else:
        cut_off[0].error = EvalError(message="CancelledError()", traceback="", traceback_ansi="")
        write_eval_log(first, first.location)
    for path in world.logs.glob(".evalbudget-*"):
        path.unlink()
    done = world.again(first)
    said = entry_of(done)
    (told,) = [text for text in warnings_of_plugin if "was missing" in text]
    assert ("(1 call at most)" in told) == killed
    assert said["changes"] == [f"{told}."]
    assert told.split(". ")[1] in " ".join(said["summary"]["text"].split())
    assert said["spent"] == BUDGET
    assert world.calls == BUDGET + 2 * killed  # an answer that was not written, and one that failed
    assert said["failures"] == ({} if killed else {UNANSWERED: 1})


@pytest.mark.parametrize("asked", [True, False])
def test_a_log_without_samples_whose_book_is_gone_is_told_of_if_it_asked_anything(
    asked: bool, world: World, warnings_of_plugin: list[str]
) -> None:
    first = world.first(sampler="uniform")
    first.samples = []
    first.stats.model_usage = first.stats.model_usage if asked else {}
    write_eval_log(first, first.location)
    for path in world.logs.glob(".evalbudget-*"):
        path.unlink()
    world.again(first)
    assert any("was missing" in text for text in warnings_of_plugin) == asked


def test_a_log_whose_book_is_gone_counts_for_what_others_beside_it_have(
    world: World, warnings_of_plugin: list[str]
) -> None:
    first = world.first(sampler="uniform")
    world.stops += [STOP + 5, STOP + 8]
    world.again(first)
    for path in world.logs.glob(".evalbudget-*"):
        path.unlink()
    third = world.again(first)
    assert (third.status, world.calls) == ("error", STOP + 8)
    done = world.again(third)
    _spent_well(world, done)
    told = [text for text in warnings_of_plugin if "was missing" in text]
    assert told == [told[0]] * 2  # said each time one goes on
    assert f"{told[0]}." in entry_of(done)["changes"]


@pytest.mark.parametrize("paid", [BUDGET, BUDGET - 2])
@pytest.mark.parametrize("cut_off", [0, 3])
def test_a_finished_log_whose_book_is_gone_says_what_was_paid(
    paid: int, cut_off: int, world: World, warnings_of_plugin: list[str]
) -> None:
    world.stops = []
    world.write()
    given = {"task": str(world.folder / "task.py"), "budget": BUDGET, "sampler": "uniform"}
    done = world._run("evalbudget_inspect/budgeted", task_args=given, max_samples=1)
    assert (done.status, world.calls, len(done.samples or [])) == ("success", BUDGET, BUDGET)
    for score in done.results.scores if done.results else ():
        if "spent" in (score.metadata or {}).get("evalbudget", {}):
            score.metadata["evalbudget"]["spent"] = paid
    done.samples = (done.samples or [])[: paid - cut_off]
    write_eval_log(done, done.location)
    for path in world.logs.glob(".evalbudget-*"):
        path.unlink()
    said = entry_of(world.again(done))
    assert world.calls == 2 * BUDGET - paid
    assert (said["spent"], said["failures"]) == (BUDGET, {UNANSWERED: cut_off} if cut_off else {})
    assert not [text for text in warnings_of_plugin if "was missing" in text]


def test_an_eval_set_pays_for_samples_it_lost(world: World, tmp_path: Path) -> None:
    def whole() -> EvalLog:
        world.write()
        given = {"task": str(world.folder / "task.py"), "budget": BUDGET, "sampler": "uniform"}
        options: dict[str, Any] = {**QUIET, "retry_attempts": 0, "fail_on_error": True, "max_samples": 1}
        entry = "evalbudget_inspect/budgeted"
        (log,) = eval_set(entry, str(world.logs), task_args=given, model="simulated/writer", **options)[1]
        return read_eval_log(log.location)

    assert whole().status == "error"
    del world.samples[2]
    _spent_well(world, whole())


def _refused(world: World, log: EvalLog, *, asked: int = STOP) -> str:
    """Why a run was refused before it asked anything."""
    assert (log.status, world.calls) == ("error", asked)
    (reason,) = {str(refusal) for refusal in take_refusals()}
    return reason


@pytest.mark.parametrize(
    ("change", "sampler"),
    [
        ("edited", "uniform"),
        ("swapped", "sample"),
        variant("edited", "sample"),
        variant("swapped", "uniform"),
    ],
)
def test_answers_to_other_questions_are_not_pooled(change: str, sampler: str, world: World) -> None:
    first = world.first(sampler=sampler)
    before = [dict(sample) for sample in world.samples]
    if change == "edited":
        for sample in world.samples:
            sample["input"] += " Please."
    else:
        world.samples[0]["id"], world.samples[5]["id"] = "q5", "q0"
    second = world.again(first)
    reason = _refused(world, second)
    assert "samples that earlier attempts answered ask something else now (q0, " in reason
    assert "begin another run in another log folder" in reason
    world.samples = before
    done = world.again(second)  # the remedy: what was bought is still there
    _spent_well(world, done)
    assert LOST not in entry_of(done)["failures"]


def test_samples_that_waited_when_a_run_was_refused_are_free(world: World) -> None:
    world.stops = [2]
    world.write()
    given = {"task": str(world.folder / "task.py"), "budget": BUDGET, "sampler": "uniform"}
    first = world._run("evalbudget_inspect/budgeted", task_args=given, fail_on_error=True, max_samples=1)
    assert (first.status, world.calls) == ("error", 2)
    world.samples[0]["input"] += " Please."
    second = world.again(first, max_samples=4)
    _refused(world, second, asked=2)
    waited = [s for s in second.samples or [] if s.metadata.get("evalbudget") == NOT_BEGUN]
    assert waited
    assert world.calls == 2
    found = read(Path(second.location).parent)
    assert found.purchases is not None
    assert found.purchases[0].cost == 2
    world.samples[0]["input"] = "Question 0?"
    done = world.again(second)
    assert (world.calls, entry_of(done)["spent"]) == (BUDGET, BUDGET)
    assert UNANSWERED not in entry_of(done)["failures"]


def test_questions_that_vary_go_on_where_the_user_says_so(
    world: World, warnings_of_plugin: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = world.first(sampler="uniform")
    for number, sample in enumerate(world.samples):
        sample |= {"input": f"Another one, {number}?", "target": "D"}
    second = world.again(first)
    assert "set EVALBUDGET_QUESTIONS_VARY=1 and run this again" in _refused(world, second)
    monkeypatch.setenv("EVALBUDGET_QUESTIONS_VARY", "1")
    done = world.again(second)
    _spent_well(world, done)
    assert LOST not in entry_of(done)["failures"]
    (said,) = [text for text in warnings_of_plugin if "earlier attempts" in text]
    assert "6 of the 6 samples that earlier attempts answered ask something else now" in said


def test_a_corrected_target_is_warned_of(world: World, warnings_of_plugin: list[str]) -> None:
    first = world.first(sampler="uniform")
    world.samples[0]["target"] = "D"
    done = world.again(first)
    _spent_well(world, done)
    (said,) = [text for text in warnings_of_plugin if "another target" in text]
    assert said.startswith("1 sample that earlier attempts answered has another target now (q0)")
    assert "does not score answers again" in said
    assert f"{said}." in entry_of(done)["summary"]["beside"]
    shown = " ".join(str(report(read(Path(done.location))).table()).split())
    assert f"{Path(done.location).name}: {said}." in shown


@pytest.mark.parametrize("scorers", [["sc2"], ["sc2", "sc"]], ids=["renamed", "another first"])
def test_scores_by_another_name_are_told(scorers: list[str], world: World) -> None:
    first = world.first(sampler="uniform")
    world.scorers = scorers
    second = world.again(first)
    reason = _refused(world, second)
    assert "has a score from 'sc2', which decides here: they were scored by 'sc'" in reason
    assert "no-score" not in reason
    third = world.again(second)
    assert "has a score from 'sc2'" in _refused(world, third)
    world.scorers = ["sc", *({*scorers} - {"sc"})] if len(scorers) > 1 else ["sc"]
    done = world.again(third)
    _spent_well(world, done)


SAME: list[dict[str, Any]] = [  # what is asked of one sample each
    {"input": "word " * 4000},
    {
        "input": [
            {"role": "system", "content": "Be good."},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        ]
    },
    {"input": f"data:image/png;base64,{PIXEL}"},
    {
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is it?"},
                    {"type": "image", "image": f"data:image/png;base64,{PIXEL}"},
                ],
            }
        ]
    },
    {
        "input": [
            {
                "role": "user",
                "content": [{"type": "text", "text": "?"}, {"type": "image", "image": "dot.png"}],
            }
        ]
    },
    {"target": ["a", "b"]},
]


@pytest.mark.parametrize("log_format", ["eval", variant("json")])
def test_what_was_not_edited_goes_on(
    log_format: Any,
    world: World,
    warnings_of_plugin: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("dot.png").write_bytes(b64decode(PIXEL))
    for sample, asked in zip(world.samples, SAME, strict=True):
        sample |= asked
    first = world.first(sampler="uniform", log_format=log_format)
    assert {sample.id for sample in first.samples or [] if sample.scores} == {f"q{i}" for i in range(6)}
    done = world.again(first, log_format=log_format)
    _spent_well(world, done)
    assert LOST not in entry_of(done)["failures"]
    assert not [text for text in warnings_of_plugin if "earlier attempts" in text]


def test_choices_in_another_order_are_the_same_question() -> None:
    shuffled = MemoryDataset([Sample(id="q", input="Which?", choices=["x", "y", "z"], target="B")])
    logged = EvalSampleSummary(id="q", epoch=1, input="Which?", choices=["x", "y", "z"], target="B")
    for seed in range(5):
        shuffled.shuffle_choices(seed)
        assert not asks_else(logged, shuffled[0])
        assert not is_judged_else(logged, shuffled[0])
    assert asks_else(logged, Sample(id="q", input="Which?", choices=["x", "y", "w"], target="B"))
    assert is_judged_else(logged, Sample(id="q", input="Which?", choices=["x", "y", "z"], target="C"))


@pytest.mark.parametrize("fewer", [False, True], ids=["handed back", "not handed back"])
def test_a_sample_cut_off_counts_once_beside_the_failures_that_its_log_tells_of(
    fewer: bool, world: World
) -> None:
    first = world.first(sampler="uniform")
    (last,) = (sample for sample in first.samples or [] if sample.error is not None)
    assert last.error is not None
    last.error_retries = [EvalRetryError(**dict(last.error))]
    last.error = EvalError(**{**dict(last.error), "message": "CancelledError()"})
    first.eval.config.retry_on_error = 3
    write_eval_log(first, first.location)
    book_says(first, STOP + 1)
    if fewer:
        del world.samples[2]
    done = world.again(first)
    _spent_well(world, done)
    assert entry_of(done)["failures"][UNANSWERED] == 1
    assert world.calls == BUDGET - 1  # one that was not made here


@pytest.mark.parametrize("fewer", [False, True], ids=["the same task", "one sample fewer"])
def test_a_retry_elsewhere_goes_on_with_the_bill(fewer: bool, world: World, tmp_path: Path) -> None:
    (tmp_path / "prices.yaml").write_text("simulated/*: {call: 0.001, input: 0, output: 0, max_output: 100}")
    first = world.first(budget=f"${BUDGET / 1000}", sampler="uniform", prices=str(tmp_path / "prices.yaml"))
    if fewer:
        del world.samples[2]
    done = world.again(first, log_dir=str(tmp_path / "elsewhere"))
    assert world.calls <= BUDGET
    assert entry_of(done)["spent"] == pytest.approx(BUDGET / 1000)


@pytest.mark.parametrize("in_money", [False, True], ids=["scores", "money"])
def test_a_log_that_is_retried_into_two_folders_has_one_budget(
    in_money: bool, world: World, tmp_path: Path
) -> None:
    (tmp_path / "prices.yaml").write_text("simulated/*: {call: 0.001, input: 0, output: 0, max_output: 100}")
    money = {"budget": f"${BUDGET / 1000}", "prices": str(tmp_path / "prices.yaml")}
    world.stops = [STOP, STOP + 5]
    first = world.first(sampler="uniform", **(money if in_money else {}))
    assert world.again(first, log_dir=str(tmp_path / "a")).status == "error"
    assert world.calls == STOP + 5
    done = world.again(first, log_dir=str(tmp_path / "b"))
    if in_money:
        assert (world.calls, entry_of(done)["spent"]) == (BUDGET, pytest.approx(BUDGET / 1000))
    else:
        _spent_well(world, done)
    asked, second = world.calls, next((tmp_path / "a").glob("*.eval"))
    world.again(read_eval_log(str(second)), log_dir=str(tmp_path / "c"))
    assert world.calls == asked


@pytest.mark.parametrize("last", ["logs", "b"])
@pytest.mark.parametrize("stops", [(5, 9), (1, 2)], ids=["of other samples", "of the same sample"])
def test_tries_before_a_log_was_retried_into_several_folders_count_once(
    stops: tuple[int, int], last: str, world: World
) -> None:
    world.stops = [STOP, *(STOP + more for more in stops)]
    first = world.first(sampler="uniform")
    for name in ("a", "b"):
        assert world.again(first, log_dir=str(world.folder / name)).status == "error"
    (log,) = (world.folder / last).glob("*.eval")
    _spent_well(world, world.again(read_eval_log(str(log)), log_dir=str(world.folder / "c")))


def test_what_a_killed_retry_elsewhere_had_not_written_counts(world: World, tmp_path: Path) -> None:
    world.stops = [STOP, STOP + 5]
    first = world.first(sampler="uniform")
    killed = world.again(first, log_dir=str(tmp_path / "a"))
    answered = [s for s in killed.samples or [] if s.error is None]
    _, *written = sorted(answered, key=lambda s: str(s.completed_at), reverse=True)
    write_eval_log(killed.model_copy(update={"status": "started", "samples": written}), killed.location)
    done = world.again(first, log_dir=str(tmp_path / "b"))
    _spent_well(world, done)


def test_a_folder_that_is_gone_is_asked_for(world: World, tmp_path: Path) -> None:
    world.stops = [STOP, STOP + 5]
    first = world.first(sampler="uniform")
    second = world.again(first, log_dir=str(tmp_path / "a"))
    world.logs.rename(tmp_path / "away")
    refused = world.again(second, log_dir=str(tmp_path / "b"))
    assert f"its book in {world.logs}, which is gone" in _refused(world, refused, asked=STOP + 5)
    (tmp_path / "away").rename(world.logs)
    _spent_well(world, world.again(second, log_dir=str(tmp_path / "b")))


@pytest.mark.parametrize("goes_on_from", ["logs", "a"])
def test_folders_that_are_moved_together_are_gone_on_with(goes_on_from: str, world: World) -> None:
    world.stops = [STOP, STOP + 5]
    first = world.first(sampler="uniform")
    world.again(first, log_dir=str(world.folder / "a"))
    (new := world.folder / "new").mkdir()
    for name in ("logs", "a"):
        (world.folder / name).rename(new / name)
    (log,) = (new / goes_on_from).glob("*.eval")
    _spent_well(world, world.again(read_eval_log(str(log)), log_dir=str(new / "a")))


def test_a_log_that_was_moved_without_its_book_goes_on_with_what_it_has(world: World, tmp_path: Path) -> None:
    first = world.first(sampler="uniform")
    (tmp_path / "moved").mkdir()
    moved = Path(first.location).rename(tmp_path / "moved" / "first.eval")
    done = world.again(read_eval_log(str(moved)), log_dir=str(tmp_path / "moved"))
    _spent_well(world, done)


@pytest.mark.parametrize("damaged", [b"", b"SQLite format 3\0", b"hello"])
def test_a_damaged_book_is_told(damaged: bytes, world: World) -> None:
    first = world.first(sampler="uniform")
    (book,) = world.logs.glob(".evalbudget-*.book")
    book.write_bytes(damaged)
    said = _refused(world, world.again(first))
    assert str(book) in said
    assert "restore it; or move it away" in said
    book.unlink()
    _spent_well(world, world.again(first))


def test_a_run_that_another_process_writes_is_left_alone(world: World) -> None:
    first = world.first(sampler="uniform")
    (book,) = world.logs.glob(".evalbudget-*.book")
    lock = held(book)
    assert lock is not None
    assert "written by another process" in _refused(world, world.again(first))
    lock.release()
    _spent_well(world, world.again(first))
