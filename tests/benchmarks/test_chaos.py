"""A reduced campaign of kills and faults, and the account: what is lost, bought twice or over is found."""

from __future__ import annotations

import json
import math
import signal
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import chaos
from chaos_sections import campaign
from chaos_sections.bill import JUST_ARRIVED, Account, Stop, missing, over, stamped, twice
from chaos_sections.faults import KINDS
from chaos_sections.inspect_side import INSPECT
from chaos_sections.lm_eval_side import LM_EVAL
from chaos_sections.schedule import Played, play
from loopback import CHAT, DROPPED, GARBLED, Fault, Served, Server


def served(
    number: int,
    prompt: str = "p",
    *,
    at: float = 0.0,
    model: str = "m",
    status: int | None = 200,
    fault: Fault | None = None,
) -> Served:
    body = {"model": model, "messages": [{"role": "user", "content": prompt}]}
    return Served(CHAT, body, status, fault, f"Answer: 7 [reply {number}]", at)


def test_an_answer_that_no_record_has_is_lost_unless_a_kill_caught_it() -> None:
    ones = [served(n, f"p{n}", at=float(n)) for n in range(1, 7)]
    kept = "[reply 1] [reply 6]"
    assert missing(ones, "[reply 1][reply 2][reply 3][reply 4][reply 5][reply 6]", []) == ([], [])
    assert missing(ones, kept, []) == (ones[1:5], [])
    kill = Stop(signal.SIGKILL, 5.1, excused=2, window=JUST_ARRIVED)
    lost, excused = missing(ones, kept, [kill])
    assert (lost, sorted(one.at for one in excused)) == (ones[1:3], [4.0, 5.0])
    # no more than may have been on their way, and none of long before
    assert len(missing(ones, kept, [Stop(signal.SIGKILL, 5.1, excused=1, window=JUST_ARRIVED)])[0]) == 3
    assert len(missing(ones, kept, [Stop(signal.SIGKILL, 9.0, excused=9, window=JUST_ARRIVED)])[0]) == 4


def test_what_never_arrived_or_says_nothing_is_not_lost() -> None:
    late = next(kind for kind in KINDS if kind.name == "timeout")
    ones = [served(1, fault=late), served(2, status=GARBLED), served(3, status=None)]
    assert missing(ones, "", []) == ([], [])
    assert over(ones, ["m"], 2, None) == 1  # and yet it is paid
    assert over([served(4, status=DROPPED), served(5, status=429)], ["m"], 0, 0) == 0


def test_the_same_attempt_is_bought_once() -> None:
    ones = [served(1, "a"), served(2, "b"), served(3, "a"), served(4, "a", model="other")]
    assert twice(ones, []) == [ones[2]]
    assert twice(ones, [ones[0]]) == []  # a kill caught the first
    assert over(ones, ["m"], 3, 3) == 0
    assert over(ones, ["m", "other"], 3, 4) == over(ones, ["m", "other"], 9, 3) == 1


def test_answers_are_stamped_and_faults_served(monkeypatch: pytest.MonkeyPatch) -> None:
    import requests

    with Server(answer=stamped(lambda asked: "yes")) as server:
        body = {"model": "m", "messages": [{"role": "user", "content": "?"}]}
        kinds = iter([*(kind for kind in KINDS if not kind.delay), None, None])
        server.disturb = lambda body: next(kinds)
        for _ in range(len(KINDS) + 1):
            try:
                said = requests.post(server.chat, json=body, timeout=300)
            except requests.ConnectionError:
                continue
            if said.status_code == 429:
                assert said.headers["Retry-After"] == "1"
    named = {one.fault.name if one.fault else "none": one for one in server.served}
    assert {name for name, one in named.items() if one.billed} == {"cut", "malformed", "unparsable", "none"}
    assert [one.text for one in server.served if one.fault is None] == ["yes [reply 3]", "yes [reply 4]"]
    assert named["unparsable"].text == "I would rather not say"


@pytest.mark.host
def test_a_killed_and_disturbed_run_keeps_what_it_paid_for() -> None:
    """Killed by -9, disturbed by errors, and started again."""
    found = campaign.campaign([(LM_EVAL[0], 58)], most_kills=1)
    ((name, schedules, kills, by_9, disturbed, *_),) = found.rows
    assert (name, schedules, kills, by_9, disturbed) == ("lm-eval run", "1", "1", "1", "1")
    assert all(target.reached for target in found.targets), found.notes
    assert len(found.targets) == 4


@pytest.mark.host
@pytest.mark.variant
@pytest.mark.skipif(find_spec("openai") is None, reason="inspect asks servers through openai")
def test_a_disturbed_run_of_inspect_is_reconciled() -> None:
    free = tuple(kind for kind in KINDS if kind.name in ("500", "dropped"))
    played = play(INSPECT[0], 1, most_kills=0, faults=free)
    assert played.account == Account(), played.told
    assert played.signals == ()


def test_what_is_found_is_told_and_ends_with_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    accounts = {capability: Account() for capability in LM_EVAL} | {LM_EVAL[1]: Account(lost=2, over=1)}

    def played(capability: Any, seed: int, **_: Any) -> Played:
        return Played(
            capability, seed, ("SIGKILL",), Counter({"cut": 3}), accounts[capability], ("lost: it",)
        )

    monkeypatch.setattr(campaign, "play", played)
    arguments = ["lm-eval", "--seeds", "2", "--write-docs", "--docs", str(tmp_path)]
    result = CliRunner().invoke(chaos.main, arguments)
    assert result.exit_code == 1
    row = ["lm-eval race", "2", "2", "2", "2", "6", "4", "0", "2", "0"]
    kept = json.loads((tmp_path / "results" / "chaos.json").read_text(encoding="utf-8"))["lm-eval"]
    assert kept["rows"][1] == row
    page = (tmp_path / "chaos.md").read_text(encoding="utf-8")
    assert "| " + " | ".join(row) + " |" in page
    assert "- race 2 (SIGKILL, cut 3): lost 2, over 1" in page
    accounts[LM_EVAL[1]] = Account()
    assert CliRunner().invoke(chaos.main, arguments).exit_code == 0
    assert math.prod(target["reached"] for target in kept["targets"]) == 0
