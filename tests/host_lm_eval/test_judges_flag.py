"""``--judges`` on tasks that know of no judges, ``--repeat judge``, and judges on a finished run."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from tests.claims import variant
from tests.host_lm_eval.judged_worlds import evaluate, write_judged
from tests.host_lm_eval.worlds import broken_off, choice, samples_in, write_task

from evalbudget.cli.main import cli
from evalbudget.errors import BudgetError, EvalbudgetError, InvalidInputError, UnknownNameError
from evalbudget_lm_eval import budgeted
from evalbudget_lm_eval.judges.asking import Asking
from evalbudget_lm_eval.judges.typed import typed_panel
from evalbudget_lm_eval.log_folder import open_scores
from evalbudget_lm_eval.repeats.config import Config
from loopback import Server

NAMES = ["a", "b", "c"]
WARM = {"temperature": 1}
SAMPLED = {"until": ["\n"], "do_sample": True, "temperature": 1.0}


@pytest.fixture
def file(judges: list[str], tmp_path: Path) -> str:
    path = tmp_path / "judges.yaml"
    path.write_text(yaml.safe_dump({"judges": judges, "gen_kwargs": WARM}))
    return str(path)


def plain(folder: Path, n: int = 6, **changes: Any) -> Path:
    """A task that compares answers with a target."""
    return write_task(folder, "numbers", n, generation_kwargs=SAMPLED, **changes)


def readings(out: Path) -> list[tuple[int, int, str, list[Any]]]:
    found = []
    for record in samples_in(out):
        for text in record["filtered_resps"][0]:
            judge = json.loads(text)["evalbudget_judge"]
            found.append((record["doc_id"], record.get("epoch", 0), judge, record["resps"]))
    return found


@pytest.mark.parametrize(
    ("judges", "name"),
    [
        ("[{model: '{chat}', model_args: {api_key: marked}}]", "api_key"),
        ("[{model: '{chat}', model_args: {header: {X-Api-Key: marked}}}]", "X-Api-Key"),
        ("{chat},auth_token=marked", "auth_token"),
        ("{chat},base_url=https://me:marked@host/v1", "base_url"),
    ],
)
def test_a_key_is_refused_before_anything_is_asked(
    server: Server, tmp_path: Path, judges: str, name: str
) -> None:
    chat = "local-chat-completions:model=strict"
    words = ["--model", "local-chat-completions", "--model_args", f"model=m,base_url={server.chat}"]
    task = ["--tasks", "numbers", "--include_path", plain(tmp_path), "--apply_chat_template"]
    given = ["--budget", "9", "--judges", judges.replace("{chat}", chat), "--output_path", tmp_path / "out"]
    told = CliRunner().invoke(cli, [str(word) for word in ("lm-eval", "run", *words, *task, *given)])
    said = " ".join(told.output.split())
    assert told.exit_code == 2, said
    assert f"judge 'strict' has a secret in {name}, and would be written into logs" in said
    assert "set the variable that is read in its place, such as OPENAI_API_KEY" in said
    assert "marked" not in said
    assert not server.served
    assert not (tmp_path / "out").exists()


def test_judges_in_a_row_yaml_and_files(tmp_path: Path) -> None:
    chat = "local-chat-completions:model={0},base_url=http://localhost:8000/v1,num_concurrent=2"
    row = ",".join(chat.format(name) for name in "ab")
    assert typed_panel({"judges": row})["judges"] == [chat.format("a"), chat.format("b")]
    named = typed_panel({"judges": f"cold={chat.format('a')},{chat.format('a')}"})["judges"]
    assert named == [{"name": "cold", "model": chat.format("a")}, chat.format("a")]
    braces = typed_panel(
        {"judges": "cold={model: 'dummy:model=x', gen_kwargs: {temperature: 0}},dummy:model=y"}
    )
    assert braces["judges"] == [
        {"name": "cold", "model": "dummy:model=x", "gen_kwargs": {"temperature": 0}},
        "dummy:model=y",
    ]
    assert typed_panel({"judges": "[dummy:model=x, 'dummy:model=y']"})["judges"] == [
        "dummy:model=x",
        "dummy:model=y",
    ]
    path = tmp_path / "judges.yaml"
    path.write_text("{judges: [dummy:model=x, 'dummy:model=y'], scale: [0, 1], rotation: random}")
    options = typed_panel({"judges": str(path), "rotation": "priced", "judge_prices": "x=1,y=4"})
    assert (options["rotation"], options["scale"], options["prices"]) == (
        "priced",
        [0, 1],
        {"x": 1.0, "y": 4.0},
    )
    path.write_text("first: dummy:model=x\nsecond: {model: 'dummy:model=x'}")
    assert [judge["name"] for judge in typed_panel({"judges": str(path)})["judges"]] == ["first", "second"]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"judges": "dumy:model=x,dummy:model=y"}, "'dumy'.*dummy"),
        ({"judges": "dummy:model=x,dumy:model=y"}, "'dumy'.*dummy"),
        ({"judges": "dummy:model=x"}, "at least 2 judges"),
        ({"judges": "no.yaml"}, "no.yaml.*cannot be read"),
        ({"judges": "[dummy:model=x"}, "cannot be read as YAML"),
        ({"judges": "{}"}, "at least 2 judges"),
        ({"judges": "dummy:model=x,dummy:model=y", "rotation": "cylic"}, "cyclic"),
        ({"judges": "dummy:model=x,dummy:model=y", "judge_prices": "x=1"}, "no entry for judge 'y'"),
        ({"judges": "dummy:model=x,dummy:model=y", "judge_prices": "x"}, "JUDGE=PRICE"),
    ],
)
def test_judges_that_cannot_be_read(asked: dict[str, str], message: str) -> None:
    with pytest.raises(EvalbudgetError, match=message):
        typed_panel(asked)


def test_judges_score_in_place_of_the_tasks_metrics(
    server: Server, judges: list[str], tmp_path: Path
) -> None:
    folder = plain(tmp_path / "tasks")
    stock = evaluate(folder, server.chat_args("writer"), "numbers")
    assert "exact_match,none" in stock["results"]["numbers"]
    with budgeted(judges=judges):  # the host's own run: one answer each, one call of a judge each
        found = evaluate(folder, server.chat_args("writer"), "numbers", output=tmp_path / "out")
    assert Counter(one.model for one in server.served) == Counter(writer=12, a=2, b=2, c=2)
    row = found["results"]["numbers"]
    assert {"judged,panel", "judged_stderr,panel", "judged_lower,panel", "judged_bias_c,panel"} <= set(row)
    assert row["judged_missing,panel"] == 0
    assert not any("exact_match" in key for key in row)
    assert found["higher_is_better"]["numbers"] == {"judged": True}
    assert "CyclicJudgeFilter" in json.dumps(found["configs"]["numbers"]["filter_list"])
    recorded = open_scores(tmp_path / "out")
    assert recorded is not None
    assert sorted(recorded.raters) == NAMES

    with budgeted(judges=judges, budget="2x", journal="none"):
        found = evaluate(folder, server.chat_args("writer"), "numbers")
    assert found["evalbudget"]["sampler"] == "uniform"  # as on the other host, where judges take turns
    assert (found["evalbudget"]["spent"], server.calls("writer")) == (12, 24)


def test_a_task_keeps_its_prompt_and_its_targets_are_of_no_account(
    server: Server, judges: list[str], tmp_path: Path
) -> None:
    folder = write_judged(tmp_path / "own", judges[:2], n=4, prompt="HERE: {{response}}", scale=[1, 9])
    with budgeted(judges=judges[1:]):
        found = evaluate(folder, server.chat_args("writer"))
    assert Counter(one.model for one in server.served) == Counter(writer=4, b=2, c=2)
    assert all(prompt_of(one).startswith("HERE: ") for one in server.served if one.model != "writer")
    assert found["results"]["essays"]["judged,panel"] > 0
    several = plain(tmp_path / "several", doc_to_target="{{[text, text]}}")
    with budgeted(judges=judges, score_range="0..10"):
        found = evaluate(several, server.chat_args("writer"), "numbers")
    assert found["results"]["numbers"]["judged,panel"] > 1  # and not 0 or 1
    asked = [prompt_of(one) for one in server.served if one.model == "a"]
    assert "from 0 (worst) to 10 (best)" in asked[-1]


def prompt_of(one: Any) -> str:
    return str(one.body["messages"][-1]["content"])


def test_one_answer_is_scored_again_and_again(server: Server, file: str, tmp_path: Path) -> None:
    folder, out = plain(tmp_path / "tasks"), tmp_path / "out"
    with budgeted(judges=file, repeat="judge", budget=40, sampler="auto", journal=tmp_path / "run.db"):
        found = evaluate(folder, server.chat_args("writer"), "numbers", output=out)
    assert (server.calls("writer"), sum(server.calls(name) for name in NAMES)) == (6, 40)
    block = found["evalbudget"]
    assert (block["repeat"], block["spent"], block["readings"]) == ("judge", 40, 40)
    said = readings(out)
    assert len(said) == 40
    for doc in range(6):
        own = [one for one in said if one[0] == doc]
        assert len({json.dumps(answer) for *_, answer in own}) == 1
        assert sorted(epoch for _, epoch, *_ in own) == list(range(len(own)))
        assert len({judge for _, _, judge, _ in own}) == 3
    text = block["summary"]["text"]
    assert "answers to these 6 items scored again (only judging random)" in " ".join(text.split())
    assert "asked again" not in text
    recorded = open_scores(out)
    assert recorded is not None
    assert recorded.one_generation
    assert np.count_nonzero(~np.isnan(recorded.scores)) == 40


@pytest.mark.parametrize("at", [variant(3), variant(9), 12])
def test_a_broken_run_pays_no_judge_twice_and_asks_no_answer_anew(
    at: int, server: Server, file: str, tmp_path: Path
) -> None:
    folder = plain(tmp_path / "tasks")

    def run(journal: str) -> dict[str, Any]:
        with budgeted(judges=file, repeat="judge", budget=20, journal=tmp_path / journal):
            return evaluate(folder, server.chat_args("writer"), "numbers")

    whole = run("whole.db")
    with broken_off(Asking, "_heard", at), pytest.raises(KeyboardInterrupt):
        run("broken.db")
    again = run("broken.db")
    assert sum(server.calls(name) for name in NAMES) == 40
    assert server.calls("writer") == 12
    assert again["evalbudget"]["spent"] == whole["evalbudget"]["spent"] == 20
    calls = server.calls()
    assert run("broken.db")["results"] == again["results"]
    assert server.calls() == calls


def test_another_run_buys_other_judgements_and_the_same_elsewhere_the_same(
    server: Server, file: str, tmp_path: Path, own_tasks_only: None
) -> None:
    tasks, out = plain(tmp_path / "tasks"), tmp_path / "out"
    evaluate(tasks, server.chat_args("writer"), "numbers", output=out)
    said = []
    for journal in ("a/one.db", "a/two.db", "b/one.db"):
        server.served.clear()
        given = ["--include_path", str(tasks), "--judges", file, "--journal", str(tmp_path / journal)]
        told = CliRunner().invoke(cli, ["lm-eval", "score", str(out), *given])
        assert told.exit_code == 0, told.output
        said.append({(one.model, prompt_of(one), one.body["seed"]): one.text for one in server.served})
    one, two, elsewhere = said
    assert len(one) == len(two) == 6
    assert one == elsewhere
    assert {seed for *_, seed in one}.isdisjoint(seed for *_, seed in two)


def test_what_cannot_be_judged_again_is_refused(server: Server, judges: list[str], tmp_path: Path) -> None:
    folder = plain(tmp_path / "tasks")

    def refused(message: str, **options: Any) -> None:
        given = {"budget": "4x", "repeat": "judge", "journal": "none", **options}
        with pytest.raises(EvalbudgetError, match=message), budgeted(**given):
            evaluate(folder, server.chat_args("writer"), "numbers")

    refused("no judge scores task 'numbers'")
    refused("at temperature 0.*--budget of 3x or less", judges=judges)
    refused("at temperature 0", judges=judges, rotation="single")
    refused("at temperature 0", judges=judges, sampler="auto", budget="3x")
    with pytest.raises(UnknownNameError, match="judge"):
        Config.of(budget="4x", repeat="jugde")
    with pytest.raises(InvalidInputError, match="--rotation is for judges"):
        Config.of(budget="4x", rotation="cyclic")
    with pytest.raises(InvalidInputError, match="--estimators"):
        Config.of(budget="4x", judges="a,b", estimators="median")
    with pytest.raises(BudgetError, match="no budget"):
        Config.of(judges="a,b", sampler="auto")
    assert server.calls() == 0
    # every judge scores each answer once, by turns: no two scores are the same call
    with budgeted(budget="3x", repeat="judge", judges=judges, journal="none"):
        evaluate(folder, server.chat_args("writer"), "numbers")
    assert Counter(one.model for one in server.served) == Counter(writer=6, a=6, b=6, c=6)


def test_log_likelihoods_have_no_answer_to_judge(server: Server, judges: list[str], tmp_path: Path) -> None:
    folder = write_task(tmp_path / "tasks", **choice("1", "2"))
    with pytest.raises(InvalidInputError, match="no answer that judges could score"), budgeted(judges=judges):
        evaluate(folder, "", "numbers", model="evalbudget-test-coin", apply_chat_template=False)
    assert server.calls() == 0


def test_judges_score_a_finished_run(server: Server, file: str, tmp_path: Path, own_tasks_only: None) -> None:
    folder, out = plain(tmp_path / "tasks"), tmp_path / "out"
    evaluate(folder, server.chat_args("writer"), "numbers", output=out, samples={"numbers": [0, 1, 4, 5]})
    assert server.calls() == 4

    def score(*more: str, path: Path = out) -> tuple[int, str]:
        command = ["lm-eval", "score", str(path), "--include_path", str(folder), *more]
        result = CliRunner().invoke(cli, command)
        return result.exit_code, result.output

    for more, expected in (
        ((), "Budget 4 scores"),
        (("--budget", "5x", "--sampler", "auto"), "Budget 20 scores"),
    ):
        code, text = score("--judges", file, "--dry_run", *more)
        assert (code, expected in " ".join(text.split()), "No call was made." in text) == (0, True, True), (
            text
        )
    code, text = score("--judges", file, "--dry_run", "--budget", "$5")
    assert (code, "no price is known for a, b, c" in " ".join(text.split())) == (2, True), text
    assert server.calls() == 4

    code, text = score("--judges", file, "--output_path", "judged", "--log_samples")
    assert code == 0, text
    assert "numbers with writer" in text
    assert Counter(one.model for one in server.served) == Counter(writer=4, a=2, b=1, c=1)
    said = readings(tmp_path / "judged")
    assert [(doc, epoch) for doc, epoch, *_ in said] == [(0, 0), (1, 0), (4, 0), (5, 0)]
    (results,) = (tmp_path / "judged").rglob("results_*.json")
    assert json.loads(results.read_text())["model_name"] == "writer"

    code, text = score("--judges", file, "--budget", "5x", "--sampler", "auto", "--journal", "run.db")
    assert code == 0, text
    assert (server.calls("writer"), sum(server.calls(name) for name in NAMES)) == (4, 24)
    code, text = score("--judges", file, "--budget", "5x", "--sampler", "auto", "--journal", "run.db")
    assert code == 0, text
    assert sum(server.calls(name) for name in NAMES) == 24

    for given, message in [
        (["--judges", file, "--model", "hf"], "--model follows from the finished run"),
        (["--judges", file, "--tasks=numbers"], "--tasks follows from the finished run"),
        (["--judges", file, "--sampler", "auto"], "--sampler needs a --budget"),
        ([], "no judge scores task 'numbers'"),
    ]:
        code, text = score(*given)
        assert (code, message in " ".join(text.split())) == (2, True), text
    (samples,) = out.rglob("samples_*.jsonl")
    code, text = score("--judges", file, path=tmp_path / "tasks")
    assert (code, "has no samples_" in text) == (2, True)
    plain(folder, doc_to_text="say {{number}} now")  # another prompt, and the same document
    code, text = score("--judges", file, "--journal", "none", path=samples)
    assert code == 0, text
    calls = server.calls()
    (folder / "numbers.jsonl").write_text(
        "".join(json.dumps({"number": i, "text": f"{i + 1}"}) + "\n" for i in range(6))
    )
    code, text = score("--judges", file, path=samples)
    assert (code, "is not the one that was answered" in " ".join(text.split())) == (2, True), text
    assert server.calls() == calls
