"""Audits on an unmodified task: batches, pauses, the same command again."""

from __future__ import annotations

import json
import shlex
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from inspect_ai.event import ErrorEvent, SandboxEvent, SpanBeginEvent
from inspect_ai.log import EvalError, EvalSample, read_eval_log
from inspect_ai.scorer import match, model_graded_fact, model_graded_qa
from tests.claims import variant
from tests.host_inspect.audited_tasks import human
from tests.host_inspect.worlds import UNWATCHED

import evalbudget
from evalbudget.audits.policies._lucb import Allocator
from evalbudget.audits.store import AuditStore
from evalbudget.audits.store._run import AuditRun, only_run
from evalbudget.audits.store._store_verdict import weigh
from evalbudget.cli.main import cli
from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.secrets import shown
from evalbudget_inspect.audits.answers import is_answered
from evalbudget_inspect.audits.which_judge import find_judge
from postgresql_server import Server

TASK = Path(__file__).with_name("audited_tasks.py")
MODELS = "mockllm/good,mockllm/bad"


ALONE = ["inspect", "audit", "a.sqlite", "stories.py@stories", "--model", MODELS, "--score-range", "1..10"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copy(TASK, tmp_path / "stories.py")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUDITED_CALLS", str(tmp_path / "calls.txt"))
    return tmp_path


def run(
    *options: str,
    models: str = MODELS,
    score_range: str = "1..10",
    task: str = "stories",
    store: str = "a.sqlite",
    env: dict[str, str] = UNWATCHED,
) -> Result:
    common = [store, f"stories.py@{task}", "--model", models, "--score-range", score_range]
    small = ["--sampler-option", "pilot=12", "--labels-per-batch", "25"]
    return CliRunner(env=env).invoke(cli, ["inspect", "audit", *common, *small, *options])


def calls(folder: Path) -> Counter[str]:
    path = folder / "calls.txt"
    return Counter(path.read_text().splitlines()) if path.exists() else Counter()


def label_all(path: str = "a.sqlite") -> int:
    with AuditStore.open(path) as store:
        draws = {draw.index: draw for draw in store.draws.all()}
        tasks = store.draws.tasks(labelled=False)
        for task in tasks:
            model = store.design.models[draws[task.draw].model]
            store.labels.add(task.draw, human(model, task.item), "ann")
        return len(tasks)


def test_the_same_command_goes_on_until_the_verdict(folder: Path) -> None:
    first = run()
    assert first.exit_code == 3, first.output
    assert "labels wanted" in first.output
    assert "evalbudget audit serve a.sqlite" in first.output
    paid = calls(folder)
    assert paid
    assert max(paid.values()) == 1
    again = run()
    assert again.exit_code == 3
    assert calls(folder) == paid  # nothing to do for the run before humans have labelled

    with AuditStore.open("a.sqlite") as store:
        assert store.design.models == ("mockllm/good", "mockllm/bad")
        assert store.design.items[:2] == ("story-0", "story-1")
        assert store.command.startswith("evalbudget inspect audit a.sqlite --score-range 1..10")
        assert "stories.py@stories" in store.command
        draws = store.draws.all()
        assert Counter(f"{store.design.models[d.model]} {store.design.items[d.item]}" for d in draws) == paid
        task = store.draws.tasks()[0]
        assert task.prompt == f"Write story {task.item.partition('-')[2]}."
        assert task.response == f"Story for {task.item}"
        opinion = store.draws.opinion(task.draw)
        assert opinion.reason == f"Reasons for {opinion.score:g}"

    refusal = run("--sampler-option", "delta=0.2")
    assert refusal.exit_code == 2
    assert "delta: 0.2 here, 0.05 there" in refusal.stderr
    refusal = run(models="mockllm/good,mockllm/ugly")
    assert "only here: mockllm/ugly" in refusal.stderr
    assert calls(folder) == paid

    for _ in range(6):
        if label_all() == 0:
            break
        last = run()
    assert last.exit_code == 0, last.output
    assert "mockllm/good is the best" in last.output
    assert max(calls(folder).values()) == 1  # nobody was asked anything twice
    with AuditStore.open("a.sqlite") as store:
        assert store.progress().batch >= 1
        assert len(store.draws.all()) < 2 * 300


def test_the_lowest_is_the_best_where_that_is_said(folder: Path) -> None:
    last = run("--lower-is-better")
    assert last.exit_code == 3, last.output
    with AuditStore.open("a.sqlite") as store:
        assert "--score-range 1..10 --lower-is-better --labels-per-batch 25" in store.command
        task = store.draws.tasks()[0]
        draw = next(draw for draw in store.draws.all() if draw.index == task.draw)
        assert store.draws.opinion(task.draw).score == 1.0 + 9.0 * (1.0 - draw.judge)
    assert "scale: 1 to 10 here, 1 to 10, lower is better there" in run().stderr
    for _ in range(6):
        if label_all() == 0:
            break
        last = run("--lower-is-better")
    assert last.exit_code == 0, last.output
    assert "mockllm/bad is the best" in last.output
    told = json.loads(CliRunner().invoke(cli, ["audit", "verdict", "a.sqlite", "--json", "-"]).output)
    means = {model["model"]: model for model in told["models"]}
    for name, level in (("mockllm/good", 8), ("mockllm/bad", 4)):
        assert means[name]["low"] < level < means[name]["high"]
    read = evalbudget.read("logs").recorded.declared
    assert read is not None
    assert read.lower_is_better == (True,)


def test_an_audit_in_a_database_with_no_password_in_its_address(postgresql: Server, folder: Path) -> None:
    where = f"{postgresql.url}#of_inspect"
    refusal = run(store=where.replace("evalbudget@", "evalbudget:hushhush@"))
    assert (refusal.exit_code, calls(folder)) == (2, Counter())
    assert "put it into the variable PGPASSWORD" in " ".join(refusal.output.split())
    assert "hushhush" not in refusal.output
    first = run(store=where)
    assert first.exit_code == 3, first.output
    assert "evalbudget audit serve 'postgresql://evalbudget@/postgres?host=" in first.output
    paid = calls(folder)
    assert label_all(where) > 0
    assert run(store=where).exit_code in (0, 3)
    assert max((calls(folder) + paid).values()) == 2  # nobody was asked anything twice
    with AuditStore.open(where) as store:
        assert store.progress().batch == 1
        with only_run(store.address):
            refusal = run(store=where)
            assert "another run goes on with postgresql://evalbudget@" in refusal.output
    said = " ".join(run("--budget", "$5", store=where).output.split())
    assert "was begun without a budget in money or tokens, or its bill was moved (bill of postgresql" in said


def test_a_run_killed_before_it_was_recorded_is_paid_for_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(AuditRun, "record", killed)
        assert run().exit_code != 3
    paid = calls(folder)
    assert paid
    with AuditStore.open("a.sqlite") as store:
        assert len(store.draws.all()) == 0
    done = run()
    assert done.exit_code == 3, done.output
    assert calls(folder) == paid
    with AuditStore.open("a.sqlite") as store:
        assert len(store.draws.all()) == paid.total()


def test_logs_are_read_where_an_env_file_has_inspect_write_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INSPECT_LOG_DIR", "")  # whatever the file sets is undone after the test
    monkeypatch.delenv("INSPECT_LOG_DIR")
    (folder / ".env").write_text("INSPECT_LOG_DIR=./elsewhere\n")
    done = run("-T", "items=6")
    assert done.exit_code == 3, done.output
    assert max(calls(folder).values()) == 1
    assert list((folder / "elsewhere").glob("*.eval"))


def test_an_answer_that_fails_twice_is_labelled_as_it_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # every item is in the first batch of so few
    monkeypatch.setenv("AUDITED_BROKEN", "mockllm/bad story-3")
    done = run("-T", "items=6")
    assert done.exit_code == 3, done.output
    paid = calls(folder)
    assert paid["mockllm/bad story-3"] == 2
    assert paid.total() == 13
    with AuditStore.open("a.sqlite") as store:
        draw = next(d for d in store.draws.all() if (d.model, d.item) == (1, 3))
        assert draw.judge != draw.judge
        assert store.draws.opinion(draw.index).score is None


def test_an_answer_without_a_score_is_scored_again_and_not_bought_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUDITED_UNRATED", "mockllm/bad story-3")
    done = run("-T", "items=6", "--judge", "rating", task="paneled")
    assert done.exit_code == 3, done.output
    paid = calls(folder)
    assert paid["rating mockllm/bad story-3"] == 2
    assert paid["mockllm/bad story-3"] == paid["panel mockllm/bad story-3 Story for story-3"] == 1
    assert paid.total() == 12 + 12 + 2
    with AuditStore.open("a.sqlite") as store:  # it was answered, so that is what people read
        answer = store.draws.answer(3, 1)
    assert answer is not None
    assert answer.response == "Story for story-3"


def test_what_scorers_cannot_see_again_is_not_taken_for_answered() -> None:
    def sample(*events: Any, **more: Any) -> EvalSample:
        failed = EvalError(message="the judge broke down", traceback="", traceback_ansi="")
        given = {"id": 1, "epoch": 1, "input": "?", "target": "", "error": failed, **more}
        return EvalSample(events=list(events), **given)

    scoring = SpanBeginEvent(id="s", name="scorers")
    broken = ErrorEvent(error=EvalError(message="no answer", traceback="", traceback_ansi=""))
    assert is_answered(sample(scoring, broken))
    assert not is_answered(sample())
    assert not is_answered(sample(broken, scoring))  # --score-on-error
    assert not is_answered(sample(SandboxEvent(action="exec"), scoring))
    assert not is_answered(sample(scoring, sandbox={"type": "local"}))
    assert not is_answered(sample(scoring, choices=["yes", "no"]))
    assert is_answered(sample(error=None))


def test_an_answer_in_a_sandbox_of_the_task_is_bought_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUDITED_UNRATED", "mockllm/bad story-3")
    done = run("-T", "items=4", "--judge", "rating", "--sandbox", "local", task="paneled")
    assert done.exit_code == 3, done.output
    assert calls(folder)["mockllm/bad story-3"] == 2


def test_every_answer_is_logged_at_once_so_that_a_kill_loses_none(folder: Path) -> None:
    assert run("-T", "items=3", env={}).exit_code == 3
    logs = list((folder / "logs").glob("*.eval"))
    assert {read_eval_log(str(log), header_only=True).eval.config.log_buffer for log in logs} == {1}


def test_two_runs_of_one_store_do_not_both_pay(folder: Path) -> None:
    with only_run(folder / "a.sqlite"):
        refusal = run()
        assert refusal.exit_code == 2
        assert "another run goes on" in refusal.stderr
        assert not calls(folder)
    assert run("-T", "items=3").exit_code == 3


def test_a_policy_audits_by_eval_and_the_judge_may_be_named_by_role(folder: Path) -> None:
    common = ["inspect", "eval", "stories.py@paneled", "--model", MODELS, "--score-range", "1..10"]
    common += ["-T", "items=8", "--sampler", "audit-eprocess", "--sampler-option", "labels_from=panel"]
    common += ["--model-role", "grader=mockllm/model", "--sampler-option"]
    done = CliRunner(env=UNWATCHED).invoke(cli, [*common, "judge=gradre"])
    assert done.exit_code == 2
    assert "Did you mean 'grader'" in done.stderr
    assert not calls(folder)
    done = CliRunner(env=UNWATCHED).invoke(cli, [*common, "judge=grader"])
    assert done.exit_code in (0, 1), done.output
    with AuditStore.open(folder / "logs" / "audit.sqlite") as store:
        assert set(store.progress().by) == {"scorer panel"}
        assert all(draw.judge == draw.judge for draw in store.draws.all())
    for extra in (["judge=grader", "--judges", "a,b"], ["judge=grader", "--budget", "9"]):
        refused = CliRunner().invoke(cli, [*common, *extra])
        assert refused.exit_code == 2
        assert extra[1] in refused.stderr


def test_a_pool_used_up_is_labelled_again_without_asking_any_model_twice(folder: Path) -> None:
    """Two systems that are equal on the pool, and a judge that is not: the tie is exact."""
    done = run("-T", "items=8", models="mockllm/good,mockllm/same")
    while done.exit_code == 3:
        paid = calls(folder)
        assert label_all() > 0
        with AuditStore.open("a.sqlite") as store:
            used_up = weigh(store).pool_used_up
        done = run("-T", "items=8", models="mockllm/good,mockllm/same")
        if used_up:
            assert calls(folder) == paid
            assert "Undecided" in done.output or "A tie" in done.output
    assert done.exit_code == 0, done.output
    assert "A tie: systems are exactly equal on these items" in done.output
    assert max(calls(folder).values()) == 1
    with AuditStore.open("a.sqlite") as store:
        assert store.progress().labelled == 16


def test_humans_alone_may_be_a_scorer_and_need_no_judge(folder: Path) -> None:
    done = run("--sampler", "human-only", "--labels-from", "rating", "-T", "items=4")
    assert done.exit_code in (0, 1), done.output
    with AuditStore.open("a.sqlite") as store:
        assert store.progress().labelled == store.progress().wanted == 8


TRUTH = "[0.01, 0.04]"


@pytest.mark.parametrize(
    "allocator",
    [each.value if each.value == "oracle" else variant(each.value) for each in Allocator],
)
def test_pp_lucb_runs_by_every_allocator(folder: Path, allocator: str) -> None:
    """As published, step by step, with a scorer that labels; then its store gives the verdict again."""
    options = [f"allocator={allocator}", "pulls=6", "rho=.5", *([f"truth={TRUTH}"] * (allocator == "oracle"))]
    command = [*ALONE, "-T", "items=40", "--labels-from", "panel", "--sampler", "pp-lucb"]
    command[3] = "stories.py@paneled"
    for option in options:
        command += ["--sampler-option", option]
    done = CliRunner(env=UNWATCHED).invoke(cli, command)
    assert done.exit_code == 1, done.output
    assert "Ended without a verdict: mockllm/good is ahead" in done.output
    paid = calls(folder)
    assert max(paid.values()) == 1
    with AuditStore.open("a.sqlite") as store:
        assert (store.design.policy, store.design.config["allocator"]) == ("pp-lucb", allocator)
        draws = store.draws.all()
        assert len(draws) == 6
        assert [draw.policy for draw in draws] == [0, 0, 1, 1, 2, 2]
        assert {draw.index for draw in draws if draw.wanted} == set(store.labels.counting())
        found = weigh(store)
        assert found.reason == "stopped after 6 pulls: the leader is named, nothing is proved"
        assert "as published" in found.interval
    again = CliRunner(env=UNWATCHED).invoke(cli, command)
    assert (again.exit_code, again.output) == (done.exit_code, again.output)
    assert calls(folder) == paid
    shown = CliRunner().invoke(cli, ["audit", "verdict", "a.sqlite"])
    assert shown.exit_code == 1
    assert "nothing is proved" in shown.output
    other = CliRunner().invoke(cli, [*command[:-1], "pulls=8"])
    assert other.exit_code == 2
    other = run("--sampler", "audit-eprocess")
    assert other.exit_code == 2
    assert "policy: audit-eprocess here, pp-lucb there" in other.stderr
    assert calls(folder) == paid


def test_pp_lucb_pauses_for_humans_and_goes_on_after_a_kill(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [*ALONE, "-T", "items=60", "--sampler", "pp-lucb", "--sampler-option", "batch=8"]
    for option in ("pulls=48", "rho=.5", "errata=fixed"):
        command += ["--sampler-option", option]

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(AuditRun, "record", killed)
        assert CliRunner(env=UNWATCHED).invoke(cli, command).exit_code != 3
    assert calls(folder).total() == 16
    codes = []
    for _ in range(8):
        done = CliRunner(env=UNWATCHED).invoke(cli, command)
        codes.append(done.exit_code)
        if done.exit_code != 3:
            break
        assert label_all() > 0
    assert codes == [3, 3, 3, 1], done.output
    assert calls(folder).total() == 48
    assert max(calls(folder).values()) == 1
    with AuditStore.open("a.sqlite") as store:
        assert weigh(store).leader == "mockllm/good"


def test_a_policy_of_a_plugin_runs_from_the_first_answer_to_the_verdict(folder: Path) -> None:
    command = [*ALONE, "-T", "items=40", "--sampler", "fixed-share"]
    command += ["--sampler-option", "share=.5"]
    first = CliRunner(env=UNWATCHED).invoke(cli, command)
    assert first.exit_code == 3, first.output
    assert calls(folder).total() == 80
    status = CliRunner().invoke(cli, ["audit", "status", "a.sqlite"])
    assert "fixed-share" in status.output
    wanted = label_all()
    assert 26 <= wanted <= 54
    last = CliRunner(env=UNWATCHED).invoke(cli, command)
    assert last.exit_code == 0, last.output
    assert "mockllm/good is the best" in last.output
    assert calls(folder).total() == 80
    with AuditStore.open("a.sqlite") as store:
        found = weigh(store)
        assert found.outcome == "best"
        assert found.interval.startswith("normal intervals, for one look at the end")
        assert found.cost == 80 + 20 * wanted
        design = store.design
    refused = CliRunner().invoke(cli, [*command[:-1], "share=.6"])
    assert "share: 0.6 here, 0.5 there" in refused.stderr
    assert design.config["share"] == 0.5


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
@pytest.mark.parametrize(
    ("store", "message"),
    [("no/a.sqlite", "the folder no does not exist; create it first"), (".", ". is a folder; name a file")],
)
def test_a_place_that_no_store_can_have_is_refused(
    folder: Path, store: str, message: str, more: list[str]
) -> None:
    done = CliRunner().invoke(cli, [*ALONE[:2], store, *ALONE[3:], *more])
    assert done.exit_code == 2, done.output
    assert message in done.stderr


def test_what_has_no_meaning_in_an_audit_is_refused_before_anything_is_paid_for(folder: Path) -> None:
    for options, message in (
        (("--limit", "5"), "--sampler-option items=N"),
        (("--epochs", "2"), "each item once"),
        (("--budget", "100"), "--max-labels N"),
        (("--judges", "a,b"), "--judges has no meaning in an audit"),
        (
            ("--sampler", "robin"),
            "keeps no audit store; use audit-eprocess, pp-lucb, human-only or fixed-share",
        ),
        (("--sampler", "pp-lucb"), "--labels-per-batch has no meaning with --sampler pp-lucb"),
        (("--sampler", "human-only", "--sampler-option", "use_judge=true"), "human-only asks none"),
        (("--sampler-option", "pilto=3"), "Did you mean 'pilot'"),
        (("--judge", "ratign"), "Did you mean 'rating'"),
        (("--labels-from", "rating"), "the task's only scorer"),
        (("--labels-from", "panle"), "no scorer of the task"),
        (("--labels-from", "rating", "--judge", "rating"), "cannot check itself"),
        (("--detach",), "into the background"),
        (("--no-log-samples",), "reads the answers"),
        (("--sampler-option", "delta=7"), "delta is 7"),
        (("--sampler-option", "models=x"), "models is no option"),
        (("--sampler-option", "store=x"), "store is no option"),
        (("--sampler-option", "n_models=3"), "n_models is no option"),
    ):
        done = run(*options)
        assert done.exit_code == 2, (options, done.output)
        assert message in " ".join(done.stderr.split()), options
    command = ["stories.py", "--model", MODELS, "--sampler", "audit-eprocess"]
    assert CliRunner().invoke(cli, ["inspect", "eval-set", *command]).exit_code == 2
    assert run(models="mockllm/good").exit_code == 2
    alone = CliRunner().invoke(cli, ["inspect", "eval", "stories.py", "--judge", "rating", "--model", "m"])
    assert "--judge is for audits; use evalbudget inspect audit STORE" in alone.stderr
    for sampler in ("audit-eprocess", "human-only", "pp-lucb", "fixed-share"):
        alone = CliRunner().invoke(cli, ["inspect", "eval", "stories.py", "--sampler", sampler])
        assert alone.exit_code == 2
        assert "which models?" in alone.stderr
    for words in (["--model", MODELS, "a.sqlite"], ["stories.py", "--model", MODELS]):
        misplaced = CliRunner().invoke(cli, ["inspect", "audit", *words])
        assert misplaced.exit_code == 2
        assert "stands where the store belongs" in misplaced.stderr
    racing = ["inspect", "eval", "stories.py", "--model", MODELS, "--sampler", "race", "--budget", "20"]
    for flag, value in (("--batch", "4"), ("--json", "board.json")):
        clash = CliRunner().invoke(cli, [*racing, flag, value])
        assert clash.exit_code == 2
        assert f"{flag} would go to inspect eval" in clash.stderr
    assert not calls(folder)
    assert not (folder / "a.sqlite").exists()


def test_judge_scores_off_the_scale_of_the_labels_are_refused(folder: Path) -> None:
    done = run(score_range="0..1 by 1")
    assert done.exit_code == 2
    assert "the audit's scale is 0 or 1" in done.stderr
    with AuditStore.open("a.sqlite") as store:
        assert len(store.draws.all()) == 0


def test_an_auditor_that_fails_is_said_and_its_other_labels_are_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUDITED_SILENT", "story-1")
    done = run("--labels-from", "panel", "-T", "items=6", task="paneled")
    assert done.exit_code == 2, done.output
    assert "the scorer 'panel' of --labels-from gave no score to 'story-1'" in " ".join(done.stderr.split())
    with AuditStore.open("a.sqlite") as store:
        assert store.progress().labelled >= store.progress().wanted - 2
    monkeypatch.delenv("AUDITED_SILENT")
    assert run("--labels-from", "panel", "-T", "items=6", task="paneled").exit_code in (0, 1)
    answers = {line: n for line, n in calls(folder).items() if not line.startswith("panel")}
    assert max(answers.values()) == 1


def test_a_scorer_of_the_task_labels_what_the_coins_ask_for_and_nothing_else(folder: Path) -> None:
    done = run("--labels-from", "panel", "-T", "items=60", task="paneled")
    assert done.exit_code == 0, done.output
    assert "mockllm/good is the best" in done.output
    audited = Counter(line for line in calls(folder).elements() if line.startswith("panel"))
    assert max(audited.values()) == 1
    with AuditStore.open("a.sqlite") as store:
        labels = store.labels.counting()
        draws = {draw.index: draw for draw in store.draws.all()}
        assert len(store.design.items) == 60
        assert store.progress().by == {"scorer panel": audited.total()}
        assert all(draws[index].wanted for index in labels)
        for index, label in labels.items():
            model, item = store.design.models[draws[index].model], store.design.items[draws[index].item]
            assert label.score == human(model, item)
            assert audited[f"panel {model} {item} Story for {item}"] == 1
        assert audited.total() < len(store.draws.all())


def test_a_role_names_the_scorer_that_asks_it() -> None:
    strict = model_graded_fact(model_role="strict")
    scorers = [match(), strict, model_graded_qa()]
    assert find_judge("grader", scorers, []) == "model_graded_qa"
    assert find_judge("strict", scorers, []) == "model_graded_fact"
    assert find_judge(None, scorers, ["grader"]) == "match"
    assert find_judge("match.key", scorers, []) == "match.key"
    with pytest.raises(InvalidInputError, match="may be asked by 2 scorers"):
        find_judge("grader", [model_graded_qa(), model_graded_fact()], [])
    with pytest.raises(UnknownNameError, match="Did you mean 'strict'"):
        find_judge("stritc", scorers, [])
    with pytest.raises(UnknownNameError):  # it asks a model of its own, whatever the role
        find_judge("grader", [model_graded_qa(model="mockllm/m")], [])


def test_a_command_is_shown_without_the_keys_in_it() -> None:
    for word, left in (
        ("api_key=sk-1", "api_key=***"),
        ("OPENAI_API_KEY=sk-1", "OPENAI_API_KEY=***"),
        (
            "--grader={model: a, api_key: 'sk-1, 2', temperature: 0}",
            "{model: a, api_key: ***, temperature: 0}",
        ),
        ('grader={"api_key": "sk-1", "model": "a"}', '"api_key": ***, "model": "a"}'),
        ("aws_secret_access_key=sk-1", "aws_secret_access_key=***"),
        ("auth_token=sk-1", "auth_token=***"),
    ):
        assert left in shlex.split(shown(["-M", word]))[1]
        assert "sk-1" not in shown([word])
    for word in ("--max-tokens=100", "token_limit=5", "key=C", "--model=openai/gpt-5"):
        assert shown([word]) == word
