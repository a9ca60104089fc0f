"""Judges that compare answers on lm-eval: what is bought, a kill, failures, what is read."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import warm
from evalbudget.errors import EvalbudgetError, InvalidInputError, UnknownNameError
from evalbudget_pairwise import load_preferences
from evalbudget_pairwise.lm_eval import pairwise
from evalbudget_pairwise.lm_eval.answers import read_answers
from evalbudget_pairwise.lm_eval.command import pairwise_command
from loopback import GARBLED, Asked, Server

EVALBUDGET = "import sys; from evalbudget.cli.main import main; sys.argv[0] = 'evalbudget'; main()"
_ANSWERS = re.compile(r"\[Answer A.*?\]\n(.*?)\n\n\[Answer B.*?\]\n(.*?)\n\n\[End", re.DOTALL)
_STAMP = "2026-01-31T12-00-00.000000"


def verdict(asked: Asked) -> str:
    """Prefers the answer of more words; between equals mostly the first."""
    found = _ANSWERS.search(asked.prompt)
    assert found is not None
    first, second = (len(text.split()) for text in found.groups())
    if first != second:
        return f"More is said. [[{'A' if first > second else 'B'}]]"
    return "Alike. [[A]]" if asked.luck < 0.5 else "Alike. [[C]]" if asked.luck < 0.8 else "Alike. [[B]]"


def written(folder: Path, model: str, words: list[int], *, task: str = "essays", chat: bool = False) -> Path:
    """What the host writes of a model's answers."""
    folder = folder / model
    folder.mkdir(parents=True)
    lines = []
    for doc, count in enumerate(words):
        prompt: Any = f"Essay {doc}?"
        if chat:
            prompt = [{"role": "user", "content": prompt}]
        lines.append(
            {
                "doc_id": doc,
                "doc": {},
                "target": "",
                "arguments": {"gen_args_0": {"arg_0": prompt, "arg_1": {"until": []}}},
                "resps": [[" ".join([f"{model}{doc}"] * count)]],
                "filtered_resps": ["?"],
                "filter": "none",
            }
        )
    path = folder / f"samples_{task}_{_STAMP}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / f"results_{_STAMP}.json").write_text(json.dumps({"model_name": model}))
    return folder


@pytest.fixture
def logs(tmp_path: Path) -> list[Path]:
    """Of a model that mostly says more, one that seldom does, and one between."""
    return [
        written(tmp_path / "out", "long", [9 if doc % 10 else 1 for doc in range(60)]),
        written(tmp_path / "out", "short", [2] * 60),
        written(tmp_path / "out", "middle", [1 + doc % 4 for doc in range(60)]),
    ]


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(answer=verdict) as there:
        yield there


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", EVALBUDGET, "lm-eval", "pairwise", *arguments]


def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
    return warm.run(command(*arguments), host="lm-eval")


def test_the_better_model_wins_within_the_budget(logs: list[Path], server: Server) -> None:
    server.gather(2)
    found = pairwise(logs[:2], judge=server.judge("judge", num_concurrent=4), budget=60)
    assert found.calls == server.billed == 60
    assert found.reading is not None
    assert found.reading.sentence == "long beats short, with 95% confidence."
    assert server.most_at_once > 1
    assert len(list(logs[0].glob("pairwise-*.db"))) == 1
    again = pairwise(logs[:2], judge=server.judge("judge", num_concurrent=4), budget=60)
    assert (again.rows, server.billed) == (found.rows, 60), "nothing is paid twice"


def test_three_models_until_proved_stop_early(logs: list[Path], server: Server) -> None:
    found = pairwise([logs[0].parent], judge=server.judge("judge"), until_proved=True)
    assert found.stopped == "a winner is proved"
    assert found.reading is not None
    assert found.reading.winner == "long"
    assert found.calls == server.billed < 0.8 * 6 * 60


def test_another_level_and_a_stop_go_on_from_what_was_bought(logs: list[Path], server: Server) -> None:
    judge = server.judge("judge")
    pairwise(logs, judge=judge, budget=60)
    stricter = pairwise(logs, judge=judge, budget=90, level=0.999)
    assert stricter.calls == server.billed == 90
    looser = pairwise(logs, judge=judge, budget=120, level=0.6)
    assert looser.calls == server.billed == 120
    stopped = pairwise(logs, judge=judge, budget=360, until_proved=True, level=0.9)
    assert stopped.stopped == "a winner is proved"
    assert stopped.calls == server.billed < 200
    assert pairwise(logs, judge=judge, budget=stopped.calls + 20).calls == server.billed == stopped.calls + 20
    assert len(list(logs[0].glob("pairwise-*.db"))) == 1


def test_replies_without_a_verdict_are_failures_that_cost(logs: list[Path], server: Server) -> None:
    server.answer = lambda asked: "Hm." if asked.luck < 0.2 else verdict(asked)
    found = pairwise(logs[:2], judge=server.judge("judge"), budget=60)
    assert found.calls == server.billed == 60
    assert found.reading is not None
    assert found.reading.judgements == 60 - sum(found.failures.values()) < 60
    assert next(iter(found.failures)) == "no verdict in the reply: 'Hm.'"


def test_no_call_repeats_another_one_whoever_stopped_in_between(
    logs: list[Path], tmp_path: Path, server: Server
) -> None:
    """A server that honours seeds would say again what was no verdict before."""
    server.answer = lambda asked: "Hm." if asked.luck < 0.5 else verdict(asked)
    judge = {"model": server.judge("judge"), "gen_kwargs": {"temperature": 1}}
    for budget in (20, 40, 60):  # in the last round of each something may be left to ask again
        pairwise(logs[:2], judge=judge, budget=budget, record=tmp_path / "one.db")
    before = {(one.prompt, one.body["seed"]) for one in server.served}
    assert len(before) == server.billed == 60
    again = [prompt for prompt, n in Counter(prompt for prompt, _ in before).items() if n > 1]
    assert again
    pairwise(logs[:2], judge=judge, budget=60, record=tmp_path / "two.db")
    assert before.isdisjoint((one.prompt, one.body["seed"]) for one in server.served[60:])


def test_calls_that_fail_are_paid_and_never_exceed_the_budget(logs: list[Path], server: Server) -> None:
    server.fail(None, times=2, after=3)  # computed, and the connection is cut
    server.fail(GARBLED, times=2, after=10)
    server.fail(500, times=2, after=20)  # costs nothing, and is sent again
    found = pairwise(logs[:2], judge=server.judge("judge"), budget=40)
    assert 36 <= server.billed <= found.calls == 40


def test_a_judge_that_says_nothing_ends_it(logs: list[Path], server: Server) -> None:
    server.answer = lambda asked: "I cannot say."
    found = pairwise(logs[:2], judge=server.judge("judge"), budget=400)
    assert (found.reading, found.exit_code) == (None, 4)
    assert found.calls == server.billed == 24
    server.answer = verdict
    again = pairwise(logs[:2], judge=server.judge("judge"), budget=80)
    assert again.reading is not None, "it goes on"
    assert again.calls == server.billed == 80


def test_the_command_prints_and_saves(logs: list[Path], tmp_path: Path, server: Server) -> None:
    saved, told = tmp_path / "preferences.jsonl", tmp_path / "reading.json"
    result = ran(
        *(str(logs[0]), str(logs[1]), "--judge", server.judge("judge"), "--budget", "50"),
        *("--record", str(tmp_path / "r.db"), "--save", str(saved), "--json", str(told)),
    )
    assert result.returncode == 0, result.stderr
    assert "long beats short, with 95% confidence." in result.stdout
    assert "50 of 50 calls of the judge. Stopped: the budget is used up." in result.stdout
    assert json.loads(told.read_text())["winner"] == "long"
    assert load_preferences(saved).value.size == 50


def test_killed_it_goes_on_and_the_calls_that_were_lost_count(
    logs: list[Path], tmp_path: Path, server: Server
) -> None:
    server.hold(20)
    record = tmp_path / "record.db"
    asked = (
        *(str(logs[0]), str(logs[1]), "--judge", server.judge("judge", num_concurrent=4)),
        *("--budget", "60", "--record", str(record)),
    )
    process = warm.Popen(
        command(*asked), host="lm-eval", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while server.held < 4 and process.poll() is None:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert server.billed == 20
    server.release()  # what was under way is billed
    result = ran(*asked)
    assert result.returncode == 0, result.stderr
    assert 60 - 4 <= server.billed <= 60
    assert "60 of 60 calls of the judge" in result.stdout


def test_a_dry_run_asks_nothing(logs: list[Path], server: Server) -> None:
    result = ran(str(logs[0]), str(logs[1]), "--judge", server.judge("judge"), "--budget", "50", "--dry_run")
    assert result.returncode == 0, result.stderr
    assert "60 items that all have answered" in result.stdout
    assert "already" not in result.stdout
    assert server.calls() == 0
    pairwise(logs[:2], judge=server.judge("judge"), budget=20)
    result = ran(str(logs[0]), str(logs[1]), "--judge", server.judge("judge"), "--budget", "50", "--dry_run")
    assert "has 20 calls already, which count: at most 30 more would be made." in result.stdout
    assert server.billed == 20


def test_messages_and_texts_are_the_same_request(tmp_path: Path, server: Server) -> None:
    one = written(tmp_path, "one", [1] * 8)
    other = written(tmp_path, "other", [2] * 8, chat=True)
    found = pairwise([one, other], judge=server.judge("judge"), budget=8)
    assert found.calls == 8
    assert "[Request]\nEssay " in server.served[0].prompt


def changed(folder: Path, **given: Any) -> None:
    """Have every line say something else; ``{}`` is the number of its document."""
    path = next(folder.glob("samples_*"))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        told = json.loads(json.dumps(given).replace("{}", str(line["doc_id"])))
        line.update(told)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_models_with_chat_templates_of_their_own_answer_the_same_documents(tmp_path: Path) -> None:
    first, second, third = (written(tmp_path, name, [2] * 4) for name in ("one", "other", "last"))
    changed(first, arguments=[["<|im_start|>user\nEssay {}?<|im_end|>", {}]], doc_hash="hash {}")
    changed(second, arguments=[["<s>[INST] Essay {}? [/INST]", {}]], doc_hash="hash {}")
    found = read_answers([str(first), str(second)])
    assert found.requests[1] == "<|im_start|>user\nEssay 1?<|im_end|>"
    chat = json.dumps([{"role": "user", "content": "Essay {}?"}])
    changed(third, arguments={"gen_args_0": {"arg_0": [chat]}}, doc_hash="hash {}")
    found = read_answers([str(first), str(second), str(third)])
    assert found.requests[1] == "Essay 1?", "as people read it, where a log has that"
    changed(second, doc_hash="another {}")
    with pytest.raises(InvalidInputError, match="asks something else"):
        read_answers([str(first), str(second)])


def test_whether_tasks_are_part_of_items_is_one_decision_for_all_logs(tmp_path: Path) -> None:
    one = written(tmp_path / "a", "one", [1] * 3)
    other = written(tmp_path / "b", "other", [2] * 3)
    more = next(other.glob("samples_*"))
    more.with_name(f"samples_poems_{_STAMP}.jsonl").write_text(more.read_text())
    found = read_answers([str(one), str(other)])
    assert found.items == ("essays/0", "essays/1", "essays/2")
    assert found.left_out == 3


def test_runs_of_one_model_are_told_apart_by_folders(tmp_path: Path) -> None:
    folders = [written(tmp_path / name / "out", "same", [1] * 3) for name in ("x", "y")]
    found = read_answers([str(folder) for folder in folders])
    assert found.models == ("same (x/out/same)", "same (y/out/same)")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({}, "give --budget"),
        ({"budget": "$5"}, "by number, not by money or tokens"),
        ({"budget": 3}, None),
        ({"budget": 40, "sampler": "duell"}, "Did you mean 'duel'"),
        ({"budget": 40, "judge": "model=x"}, "names no kind of model"),
        ({"budget": 40, "orders": "bth"}, "both"),
    ],
)
def test_bad_arguments_are_refused(
    logs: list[Path], server: Server, asked: dict[str, Any], told: str | None
) -> None:
    if told is None:
        assert pairwise(logs[:2], judge=server.judge("judge"), **asked).calls == 3
        return
    with pytest.raises(EvalbudgetError, match=re.escape(told)):
        pairwise(logs[:2], **{"judge": server.judge("judge"), **asked})
    assert server.calls() == 0


def test_logs_that_cannot_be_compared_are_refused(logs: list[Path], tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="there is 1"):
        pairwise(logs[:1], judge="dummy:", budget=40)
    with pytest.raises(InvalidInputError, match="does not exist"):
        pairwise([tmp_path / "nowhere"], judge="dummy:", budget=40)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInputError, match=r"no samples_\*\.jsonl"):
        pairwise([tmp_path / "empty"], judge="dummy:", budget=40)
    other = written(tmp_path, "others", [1] * 5)
    path = next(other.glob("samples_*"))
    path.write_text(path.read_text().replace("Essay", "Poem"))
    with pytest.raises(InvalidInputError, match="asks something else"):
        pairwise([logs[0], other], judge="dummy:", budget=40)
    path.write_text(json.dumps({"doc_id": 0, "arguments": {}, "resps": [[[-1.5, True]]]}) + "\n")
    with pytest.raises(InvalidInputError, match="is no text"):
        pairwise([logs[0], other], judge="dummy:", budget=40)


@pytest.mark.parametrize("name", ["logs", "cls"])
def test_an_option_that_the_sampler_does_not_have_is_refused(logs: list[Path], name: str) -> None:
    named = ["--judge", "dummy:model=x", "--budget", "10", "--sampler_option", f"{name}=1"]
    with pytest.raises(UnknownNameError, match=f"unknown option of sampler 'duel' '{name}'"):
        CliRunner().invoke(pairwise_command, [*map(str, logs[:2]), *named], catch_exceptions=False)


def test_a_flag_that_does_not_exist_is_refused(logs: list[Path]) -> None:
    result = ran(str(logs[0]), str(logs[1]), "--judge", "dummy:", "--budget", "40", "--tasks", "x")
    assert result.returncode == 2
    assert "No such option" in result.stderr
