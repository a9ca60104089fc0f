"""Judges that compare answers on inspect: what is bought, a kill, failures, what is read."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from inspect_ai.log import list_eval_logs, read_eval_log, write_eval_log
from inspect_ai.model import (
    ChatMessageUser,
    ContentImage,
    ContentText,
    ModelAPI,
    ModelOutput,
    _model,
    get_model,
    modelapi,
)
from tests.host_inspect.race_tasks import model, quiz, run
from tests.host_inspect.worlds import UNWATCHED

import warm
from evalbudget.cli.main import cli
from evalbudget.errors import EvalbudgetError, InvalidInputError
from evalbudget_inspect.reading.open_logs import open_scores
from evalbudget_pairwise import load_preferences
from evalbudget_pairwise.inspect import pairwise
from evalbudget_pairwise.inspect.answers import read_answers
from evalbudget_pairwise.inspect.task import take_purchases
from loopback import GARBLED, Asked, Server

EVALBUDGET = "import sys; from evalbudget.cli.main import main; sys.argv[0] = 'evalbudget'; main()"
JUDGE = "openai-api/here/judge"
_ANSWERS = re.compile(r"\[Answer A.*?\]\n(.*?)\n\n\[Answer B.*?\]\n(.*?)\n\n\[End", re.DOTALL)


def verdict(asked: Asked) -> str:
    """Prefers what is right; between equals mostly the first."""
    found = _ANSWERS.search(asked.prompt)
    assert found is not None
    first, second = (text.strip() == "C" for text in found.groups())
    if first != second:
        return f"One is right. [[{'A' if first else 'B'}]]"
    return "Alike. [[A]]" if asked.luck < 0.5 else "Alike. [[C]]" if asked.luck < 0.8 else "Alike. [[B]]"


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Of a model that is mostly right, one that is seldom, and one between."""
    folder = tmp_path_factory.mktemp("answers")
    found = []
    for name, mean in (("good", 0.95), ("bad", 0.1), ("middle", 0.3)):
        run(quiz(40), model(name, mean), folder / name)
        found.append(Path(list_eval_logs(str(folder / name))[0].name.removeprefix("file://")))
    return found


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with Server(answer=verdict) as there:
        monkeypatch.setenv("HERE_BASE_URL", f"{there.url}/v1")
        monkeypatch.setenv("HERE_API_KEY", "none")
        yield there


class Verdicts(ModelAPI):
    """A judge in this process, and everything it was asked."""

    def __init__(self, model_name: str, *_: Any, answer: Any = verdict, **__: Any) -> None:
        super().__init__(model_name)
        self.answer = answer
        self.prompts: list[str] = []

    async def generate(self, input: Any, *_: Any, **__: Any) -> ModelOutput:  # noqa: A002
        (message,) = input
        self.prompts.append(message.text)
        luck = random.Random(message.text).random()
        reply = self.answer(Asked(self.model_name, message.text, None, 1.0, luck, {}))
        return ModelOutput.from_content(self.model_name, reply)


@modelapi(name="verdicts")
def verdicts() -> type[ModelAPI]:
    return Verdicts


def bought(logs: list[Path], folder: Path, answer: Any = verdict, **asked: Any) -> tuple[Any, Any, list[str]]:
    """A purchase through Python: what it found, its log, and what the judge was asked."""
    take_purchases()
    asked = {"record": folder / "record.db", **asked}
    judge = get_model("verdicts/judge", memoize=False, answer=answer)
    (log,) = run(pairwise(logs, **asked), judge, folder / "logs")
    found = take_purchases()
    return (found[0] if found else None), log, judge.api.prompts  # type: ignore[attr-defined]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", EVALBUDGET, "inspect", "pairwise", *arguments]


def ran(*arguments: str) -> Result:
    getattr(_model, "_models", {}).clear()  # inspect hands them out again, with clients of other servers
    return CliRunner(env=UNWATCHED).invoke(cli, ["inspect", "pairwise", *arguments, "--display", "none"])


def refused(*arguments: str) -> str:
    """What the command says that refuses before anybody is asked."""
    result = CliRunner().invoke(cli, ["inspect", "pairwise", *arguments])
    assert result.exit_code == 2, result.output
    return result.stderr


def test_a_report_of_scores_leaves_comparisons_out_and_asks_for_no_scoring(
    logs: list[Path], tmp_path: Path
) -> None:
    bought(logs[:2], tmp_path, budget=4)
    compared = tmp_path / "logs"
    told = "comparisons of answers by a judge, and no scores; .*evalbudget inspect pairwise, shows again"
    with pytest.raises(InvalidInputError, match=told):
        open_scores(compared)
    for log in logs[:2]:
        plain = read_eval_log(str(log))
        for sample in plain.samples or []:
            sample.scores = None
        write_eval_log(plain, str(compared / f"unscored-{log.name}"))
    with pytest.raises(InvalidInputError, match=told):
        open_scores(compared)
    for log in logs[:2]:
        (compared / f"unscored-{log.name}").unlink()
        shutil.copy(log, compared)
    found = open_scores(compared)
    assert found is not None
    assert len(found.models) == 2
    assert (
        "1 log of comparisons of answers by a judge (evalbudget inspect pairwise): left out."
        in found.declared.notes
    )


def test_comparisons_do_not_go_on_without_their_package(logs: list[Path], tmp_path: Path) -> None:
    _, log, _ = bought(logs[:2], tmp_path, budget=4)
    spec = log.eval.model_copy(update={"task_registry_name": "evalbudget_absent_kind/pairwise"})
    path = tmp_path / "there.eval"
    write_eval_log(log.model_copy(update={"eval": spec, "status": "cancelled"}), str(path))
    done = CliRunner().invoke(cli, ["inspect", "eval-retry", str(path)])
    assert done.exit_code == 2, done.output
    assert "evalbudget_absent_kind/pairwise, which no package here registers" in done.stderr
    assert "pip install 'evalbudget[absent-kind]'" in done.stderr
    assert "Traceback" not in done.output


def test_the_better_model_wins_within_the_budget(logs: list[Path], tmp_path: Path) -> None:
    found, log, prompts = bought(logs[:2], tmp_path, budget=60)
    assert found.calls == len(prompts) == 60
    assert found.reading.winner == "simulated/good"
    assert found.reading.positions[0].bias > 0.0
    told = log.samples[0].metadata["evalbudget"]
    assert told["sentence"] == "simulated/good beats simulated/bad, with 95% confidence."
    assert (told["calls"], told["judgements"]) == (60, 60)
    asked = [event for event in log.samples[0].events if event.event == "model"]
    assert len(asked) == 60, "the calls are the host's"


def test_every_comparison_has_a_mark_of_its_own_and_the_same_one_again(
    logs: list[Path], tmp_path: Path
) -> None:
    marks = []
    for name in ("one", "again"):
        _, _, prompts = bought(logs[:2], tmp_path / name, budget=20, record=tmp_path / f"{name}.db")
        found = [re.findall(r"^\[(?:Answer [AB]|End of the answers) (\w{12})\]$", p, re.M) for p in prompts]
        assert all(len(each) == 3 and len(set(each)) == 1 for each in found)
        marks.append(sorted(each[0] for each in found))
    assert len(set(marks[0])) == 20
    assert marks[0] == marks[1]


def test_three_models_until_proved_stop_early(logs: list[Path], tmp_path: Path) -> None:
    found, _, prompts = bought(logs, tmp_path, until_proved=True)
    assert found.stopped == "a winner is proved"
    assert found.reading.winner == "simulated/good"
    assert found.calls == len(prompts) < 0.8 * 6 * 40


def test_replies_without_a_verdict_are_failures_that_cost(logs: list[Path], tmp_path: Path) -> None:
    found, _, prompts = bought(
        logs[:2], tmp_path, lambda asked: "Hm." if asked.luck < 0.2 else verdict(asked), budget=60
    )
    assert found.calls == len(prompts) == 60
    failed = sum(found.failures.values())
    assert failed >= 6
    assert next(iter(found.failures)) == "no verdict in the reply: 'Hm.'"
    assert found.reading.judgements == 60 - failed


def test_a_judge_that_says_nothing_ends_it(logs: list[Path], tmp_path: Path) -> None:
    found, _, prompts = bought(logs[:2], tmp_path, lambda asked: "I cannot say.", budget=400)
    assert found.reading is None
    assert found.exit_code == 4
    assert 24 <= found.calls == len(prompts) < 24 + 10
    assert found.stopped.endswith("the same command goes on from here")
    again, _, more = bought(logs[:2], tmp_path, budget=80)
    assert again.reading.winner == "simulated/good"
    assert again.calls == found.calls + len(more) == 80
    assert found.lines()[0] == "No verdict: there is nothing to read."


def test_calls_that_fail_are_paid_and_never_exceed_the_budget(
    logs: list[Path], tmp_path: Path, server: Server
) -> None:
    server.fail(None, times=2, after=3)  # computed, and the connection is cut
    server.fail(GARBLED, times=2, after=10)
    result = ran(*map(str, logs[:2]), "--judge", JUDGE, "--budget", "40", "--record", str(tmp_path / "r.db"))
    assert "40 of 40 calls of the judge" in result.stdout, result.stderr
    assert 36 <= server.billed <= 40


def test_the_command_prints_and_saves(logs: list[Path], tmp_path: Path, server: Server) -> None:
    saved, told = tmp_path / "preferences.csv", tmp_path / "reading.json"
    asked = (
        *(str(logs[0]), str(logs[1]), "--judge", JUDGE, "--budget", "50", "--log-dir", str(tmp_path)),
        *("--record", str(tmp_path / "r.db"), "--save", str(saved), "--json", str(told)),
    )
    result = ran(*asked)
    assert result.exit_code == 0, result.stderr
    assert "simulated/good beats simulated/bad, with 95% confidence." in result.stdout
    assert "50 of 50 calls of the judge. Stopped: the budget is used up." in result.stdout
    assert json.loads(told.read_text())["winner"] == "simulated/good"
    assert load_preferences(saved).value.size == 50
    again = ran(*asked)
    assert (again.exit_code, server.billed) == (0, 50), "nothing is paid twice"
    more = ran(*(("70" if each == "50" else each) for each in asked))
    assert (more.exit_code, server.billed) == (0, 70), "a larger budget goes on"


def test_killed_it_goes_on_and_the_calls_that_were_lost_count(
    logs: list[Path], tmp_path: Path, server: Server
) -> None:
    server.hold(20)
    record = tmp_path / "record.db"
    asked = (
        *(str(logs[0]), str(logs[1]), "--judge", JUDGE, "--budget", "60", "--max-connections", "4"),
        *("--log-dir", str(tmp_path / "logs"), "--record", str(record), "--display", "none"),
    )
    process = warm.Popen(
        command(*asked), host="inspect", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while server.held < 4 and process.poll() is None:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert server.billed == 20
    server.release()  # what was under way is billed
    result = ran(*asked[:-2])
    assert result.exit_code == 0, result.stderr
    assert server.billed <= 60
    assert server.billed >= 60 - 4
    assert "60 of 60 calls of the judge" in result.stdout


def test_a_dry_run_asks_nothing(logs: list[Path], tmp_path: Path, server: Server) -> None:
    command = ["inspect", "pairwise", str(logs[0]), str(logs[1]), "--judge", JUDGE]
    result = CliRunner().invoke(cli, [*command, "--budget", "50", "--dry-run"])
    assert result.exit_code == 0
    assert "40 items that all have answered" in result.stdout
    assert result.stdout.rstrip().endswith("No call was made.")
    assert server.calls() == 0


def test_a_folder_that_the_run_writes_its_own_log_to_can_be_given_again(
    logs: list[Path], tmp_path: Path, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    for log in logs[:2]:
        shutil.copy(log, tmp_path)
    asked = (str(tmp_path), "--judge", JUDGE, "--log-dir", str(tmp_path), "--budget")
    assert ran(*asked, "10").exit_code == 0
    assert len(list(tmp_path.glob("*.eval"))) == 3
    foreseen = CliRunner().invoke(cli, ["inspect", "pairwise", *asked, "12", "--dry-run"]).stdout
    assert "has 10 calls already, which count: at most 2 more would be made." in foreseen
    again = ran(*asked, "12")
    assert (again.exit_code, server.billed) == (0, 12), again.stderr
    (tmp_path / "cut.eval").write_bytes(b"no zip")
    assert sorted(read_answers([str(tmp_path)]).models) == ["simulated/bad", "simulated/good"]
    assert caplog.text.count("left out") == 1, "own logs are passed over in silence"
    assert "cut.eval is not a readable inspect log" in caplog.text


def test_of_a_run_that_was_retried_the_newest_log_of_a_folder_counts(
    logs: list[Path], tmp_path: Path
) -> None:
    for log in logs[:2]:
        shutil.copy(log, tmp_path)
    newer = read_eval_log(str(logs[0]))
    newer.eval.created = "2999-01-01T00:00:00+00:00"
    assert newer.samples is not None
    newer.samples = newer.samples[:7]
    write_eval_log(newer, str(tmp_path / "0_newer.eval"))
    found = read_answers([str(tmp_path)])
    assert (len(found.models), len(found.items)) == (2, 7)


def test_logs_of_one_model_and_one_file_name_are_told_apart_by_folders(
    logs: list[Path], tmp_path: Path
) -> None:
    for name in ("one", "other"):
        (tmp_path / name / "logs").mkdir(parents=True)
        shutil.copy(logs[0], tmp_path / name / "logs" / "a.eval")
    found = read_answers([str(tmp_path / name / "logs" / "a.eval") for name in ("one", "other")])
    assert found.models == ("simulated/good (one/logs/a.eval)", "simulated/good (other/logs/a.eval)")


def test_a_template_of_ones_own(logs: list[Path], tmp_path: Path) -> None:
    template = tmp_path / "question.txt"
    template.write_text("{input}\n[Answer A]\n{first}\n\n[Answer B]\n{second}\n\n[End] Which one?\n")
    _, _, prompts = bought(logs[:2], tmp_path, budget=10, template=template)
    assert prompts[0].endswith("[End] Which one?\n")
    assert prompts[0].startswith("Question ")


def test_other_answers_do_not_go_on_from_a_record(logs: list[Path], tmp_path: Path) -> None:
    bought(logs[:2], tmp_path, budget=10)
    found, log, prompts = bought([logs[0], logs[2]], tmp_path, budget=20)
    assert found is None
    assert "begun with other settings (answers" in log.error.message
    assert not prompts


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({}, "give --budget"),
        ({"budget": "$5"}, "by number, not by money or tokens"),
        ({"budget": 40, "sampler": "duell"}, "Did you mean 'duel'"),
        ({"budget": 40, "sampler": "race"}, "unknown sampler of pairs 'race'"),
        ({"budget": 40, "bach": 3}, "Did you mean 'batch'"),
        ({"budget": 40, "template": "nowhere.txt"}, "cannot be read"),
    ],
)
def test_bad_arguments_are_refused(logs: list[Path], asked: dict[str, Any], told: str) -> None:
    with pytest.raises(EvalbudgetError, match=re.escape(told)):
        pairwise(logs[:2], **asked)


def test_logs_that_cannot_be_compared_are_refused(logs: list[Path], tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="there is 1"):
        pairwise(logs[:1], budget=40)
    with pytest.raises(InvalidInputError, match="does not exist"):
        pairwise(["nowhere.eval", logs[0]], budget=40)
    broken = tmp_path / "broken.eval"
    broken.write_bytes(b"no zip")
    with pytest.raises(InvalidInputError, match="not a readable inspect log"):
        pairwise([broken, logs[0]], budget=40)
    other = quiz(40)
    for sample in other.dataset:
        sample.input = f"Other {sample.input}"
    run(other, model("other", 0.5), tmp_path / "other")
    with pytest.raises(InvalidInputError, match="asks something else"):
        pairwise([logs[0], tmp_path / "other"], budget=40)


def test_questions_with_images_are_refused(logs: list[Path], tmp_path: Path) -> None:
    image = ContentImage(image="data:image/png;base64,iVBORw0KGgo=")
    shown = read_eval_log(str(logs[0]))
    assert shown.samples is not None
    shown.samples[2].input = [ChatMessageUser(content=[ContentText(text="What is this?"), image])]
    path = tmp_path / "images.eval"
    write_eval_log(shown, str(path))
    with pytest.raises(InvalidInputError, match=r"item 'item-\d+' asks with image"):
        read_answers([str(path), str(logs[1])])
    with pytest.raises(InvalidInputError, match="asks with image"):
        read_answers([str(tmp_path), str(logs[1])])


def test_a_budget_below_both_orders_is_refused(logs: list[Path], tmp_path: Path, server: Server) -> None:
    asked = ("--judge", JUDGE, "--budget", "5", "--record", str(tmp_path / "r.db"))
    assert "below 6" in refused(*map(str, logs), *asked)
    assert server.calls() == 0


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--model", "m"], "name who compares by --judge"),
        (["--limit", "3"], "decides the sampler"),
        (["--batch-sise", "3"], "No such option '--batch-sise'"),
    ],
)
def test_what_has_no_place_in_the_command(logs: list[Path], more: list[str], told: str) -> None:
    assert told in refused(str(logs[0]), str(logs[1]), "--judge", JUDGE, "--budget", "40", *more)
