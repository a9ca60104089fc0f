"""Arms asked side by side: the race is that of one after the other, and nothing paid for is lost."""

from __future__ import annotations

import gc
import logging
import os
import random
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import lm_eval.models.api_models
import pytest
import tenacity
from click.testing import CliRunner
from lm_eval.api.registry import register_model
from lm_eval.tasks import TaskManager
from tests.bills import paid_in
from tests.claims import variant
from tests.host_lm_eval.judged_worlds import write_judged
from tests.host_lm_eval.money_worlds import PaidServer, price_file
from tests.host_lm_eval.race_worlds import Racer, arms_at_once, is_right, manager, racer
from tests.host_lm_eval.worlds import Written, written_in
from tqdm.std import tqdm  # type: ignore[import-untyped]

from evalbudget.cli.main import cli
from evalbudget.errors import InvalidInputError
from evalbudget.races._verdict import Status
from evalbudget_lm_eval.host.wire import Halt, Wire, halt_of_all, wired
from evalbudget_lm_eval.races.api import gate, race
from evalbudget_lm_eval.races.output import RaceResult
from evalbudget_lm_eval.run.record import FILE
from loopback import Asked, Fault, Server, rating

N = 40
BUDGET = 80
SKILLS = {"a": 0.9, "b": 0.8, "c": 0.6, "d": 0.5}


# a loop that Ctrl-C broke off leaves sockets behind, which are collected here and in no later file's tests
pytestmark = pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True, scope="module")
def _collected() -> Iterator[None]:
    yield
    gc.collect()


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lm_eval.models.api_models, "wait_exponential", lambda **_: tenacity.wait_none())


def number_of(asked: Asked) -> int:
    return int(asked.prompt.rsplit("say ", 1)[1].split()[0])


def skilled(asked: Asked) -> str:
    right = is_right(ord(asked.model), SKILLS[asked.model], number_of(asked))
    return f"{number_of(asked)}" if right else "?"


@pytest.fixture
def tasks(tmp_path: Path) -> Any:
    return manager(tmp_path / "tasks", n=N)


def run(
    server: Server, tasks: Any, folder: Path, at_once: int, *, concurrent: int = 1, **more: Any
) -> RaceResult:
    kind = "local-chat-completions"
    arms = {name: (kind, server.args_of(name, max_retries=1, num_concurrent=concurrent)) for name in SKILLS}
    given: dict[str, Any] = {"budget": BUDGET, "batch": 16, "apply_chat_template": True}
    with arms_at_once(at_once):
        return race(arms, "numbers", task_manager=tasks, journal=folder / "j", **given | more)


def decisions(result: RaceResult) -> dict[str, Any]:
    return {key: value for key, value in result.leaderboard.as_json.items() if key not in ("notes", "paid")}


def answers(result: RaceResult) -> dict[str, Any]:
    return {name: own["samples"] for name, own in result.results.items()}


def record(folder: Path) -> dict[str, list[Written]]:
    """Rows of each arm, but for what the host says of its own run."""
    rows: dict[str, list[Written]] = {}
    for row in written_in(folder / "j.db")[1:]:
        if row.kind != "opened":
            rows.setdefault(row.arm, []).append(row)
    return rows


def unlucky(body: dict[str, Any]) -> Fault | None:
    """Arm c fails on every fifth document, and d always."""
    number = int(body["messages"][-1]["content"].rsplit("say ", 1)[1].split()[0])
    fails = body["model"] == "d" or (body["model"] == "c" and number % 5 == 0)
    return Fault("unlucky", 500) if fails else None


@pytest.mark.parametrize("disturb", [variant(lambda body: None), unlucky])
def test_it_is_the_race_of_one_after_the_other(
    server: Server, tasks: Any, tmp_path: Path, disturb: Callable[[Any], Any]
) -> None:
    server.answer, server.disturb = skilled, disturb
    level = logging.getLogger("lm_eval.evaluator").level
    found, lines, calls, most, stock = {}, {}, {}, {}, vars(tqdm)["__init__"]
    for at_once in (1, 4):
        if at_once > 1:
            server.gather(at_once)
        found[at_once] = run(server, tasks, tmp_path / str(at_once), at_once, budget=100)
        lines[at_once] = record(tmp_path / str(at_once))
        calls[at_once] = Counter((s.model, s.prompt) for s in server.served)
        most[at_once] = server.most_at_once
        server.served.clear()
        server.most_at_once = 0
    assert (most[1], most[4]) == (1, 4)
    assert decisions(found[4]) == decisions(found[1])
    assert answers(found[4]) == answers(found[1])
    assert lines[4] == lines[1]
    assert calls[4] == calls[1]
    assert vars(tqdm)["__init__"] is stock  # the host is as it was
    assert logging.getLogger("lm_eval.evaluator").level == level
    board = found[4].leaderboard
    assert (board.of("d").status is Status.LOST) == (disturb is unlucky)
    assert board.of("a").readings >= 20


def test_rounds_of_several_requests_and_arms_of_one_model(server: Server, tasks: Any, tmp_path: Path) -> None:
    server.answer, server.latency = skilled, 0.01
    given: dict[str, Any] = {
        "settings": {name: {"system_instruction": f"Be {name}."} for name in ("brief", "kind", "wise")},
        "task_manager": tasks,
        "apply_chat_template": True,
        "budget": 60,
        "sampler": "uniform",
    }
    arms = {"a": ("local-chat-completions", server.args_of("a", num_concurrent=4))}
    with arms_at_once(1):
        one = race(arms, "numbers", **given)
    server.gather(5)
    three = race(arms, "numbers", **given)
    assert decisions(one) == decisions(three)
    assert 4 < server.most_at_once <= 12
    # a live object is one for all settings: nobody asks it while somebody else does
    live = {"live": Racer(0.5, 1)}
    found = race(live, "numbers", **{**given, "apply_chat_template": False, "num_fewshot": 0})
    assert found.leaderboard.spent == 60


def test_an_error_that_ends_the_race_waits_for_the_other_arms(server: Server, tmp_path: Path) -> None:
    def score(asked: Asked) -> str:
        return "7" if asked.model == "b" else "1"

    server.answer, server.latency = score, 0.01
    own = "def process(doc, results):\n    return {'exact_match': float(results[0])}\n"
    tasks = manager(tmp_path / "own", n=N, own=own)
    with pytest.raises(InvalidInputError, match=r"document .* is 7, and without a declared range"):
        run(server, tasks, tmp_path, 4)
    said = Counter(row.arm for row in written_in(tmp_path / "j.db") if row.kind == "said")
    assert said == server.count()  # whatever was answered is kept
    before = server.calls()
    again = run(server, tasks, tmp_path, 4, score_range="0..10")
    assert again.leaderboard.standings[0].name == "b"
    assert max(Counter((s.model, s.prompt) for s in server.served).values()) == 1
    assert server.calls() > before


def test_ctrl_c_loses_nothing_of_any_arm(server: Server, tasks: Any, tmp_path: Path) -> None:
    server.answer, before = skilled, signal.getsignal(signal.SIGINT)
    whole = run(server, tasks, tmp_path / "whole", 1)
    for at, concurrent in ((6, 1), (40, 3)):
        server.served.clear()
        server.latency = 0.02
        server.disturb = _presses(server, at)
        with pytest.raises(KeyboardInterrupt):
            run(server, tasks, tmp_path / str(at), 4, concurrent=concurrent)
        server.latency = 0.0
        assert signal.getsignal(signal.SIGINT) is before
        rows = written_in(tmp_path / str(at) / "j.db")
        said = Counter(row.arm for row in rows if row.kind == "said")
        assert said == server.count()
        assert at <= said.total() < BUDGET
        again = run(server, tasks, tmp_path / str(at), 4, concurrent=concurrent)
        assert decisions(again) == decisions(whole)
        assert max(Counter((s.model, s.prompt) for s in server.served).values()) == 1


def _presses(server: Server, at: int, again: float = 0.0) -> Callable[[Any], None]:
    """Ctrl-C once so many calls were answered, and again after so many seconds."""
    times = iter([True])  # many threads ask

    def press(body: Any) -> None:
        loaded = len(server.count()) >= len(SKILLS) - 1
        if server.calls() >= at and loaded and next(times, False):
            server.latency = 0.5  # nothing ends the race before the signal does
            os.kill(os.getpid(), signal.SIGINT)
            if again:
                threading.Timer(again, os.kill, (os.getpid(), signal.SIGINT)).start()

    return press


def test_ctrl_c_stops_local_models_at_their_next_answer(tasks: Any, tmp_path: Path) -> None:
    live = {name: Racer(0.5, seed, stops_at=50 if seed == 2 else 0) for seed, name in enumerate("abcd")}
    options: dict[str, Any] = {"budget": 100, "batch": 16, "task_manager": tasks}
    whole = race({n: Racer(0.5, seed) for seed, n in enumerate("abcd")}, "numbers", **options)
    Racer.asked.clear()
    options["journal"] = tmp_path / "j"
    with arms_at_once(here=True), pytest.raises(KeyboardInterrupt):
        race(live, "numbers", **options)
    live["c"].stops_at = 0
    with arms_at_once(here=True):
        assert decisions(race(live, "numbers", **options)) == decisions(whole)
    assert max(Counter(Racer.asked).values()) == 1


def test_ctrl_c_while_judges_are_asked_loses_none_of_their_replies(server: Server, tmp_path: Path) -> None:
    server.answers = {"j1": rating(), "j2": rating()}
    judges = [server.judge(name, num_concurrent=2, max_retries=1) for name in ("j1", "j2")]
    write_judged(tmp_path / "judged", judges, n=6, scale=[1, 5], rotation="all")
    options: dict[str, Any] = {"score": "judged", "score_range": "1..5", "sampler": "uniform", "budget": 24}
    tasks = TaskManager(include_path=str(tmp_path / "judged"), include_defaults=False)
    kind = "local-chat-completions"
    arms = {name: (kind, server.args_of(name, num_concurrent=4)) for name in SKILLS}
    options |= {"task_manager": tasks, "apply_chat_template": True, "journal": tmp_path / "j"}
    pressed = False

    def press(body: Any) -> None:
        nonlocal pressed
        if not pressed and body["model"] == "j2" and server.calls("j1") >= 3:
            pressed = True
            os.kill(os.getpid(), signal.SIGINT)

    server.latency, server.disturb = 0.02, press
    with pytest.raises(KeyboardInterrupt):
        race(arms, "essays", **options)
    assert server.calls("j1") < 4 * 6
    done = race(arms, "essays", **options)
    assert {standing.readings for standing in done.leaderboard.standings} == {6}
    assert server.count() == Counter(dict.fromkeys(SKILLS, 6) | {"j1": 24, "j2": 24})


@register_model("evalbudget-test-pressing")
class Pressing(Racer):
    """The user presses Ctrl-C while it is loaded."""

    def __init__(self, pressing: bool = True, **more: Any) -> None:
        super().__init__(**more)
        if pressing:
            os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_breaks_off_loading_and_keeps_what_others_say(tasks: Any, tmp_path: Path) -> None:
    arms = {"a": racer(0.5, 1), "b": ("evalbudget-test-pressing", {"seed": 2})}
    options: dict[str, Any] = {
        "budget": 60,
        "devices": "x,x",
        "task_manager": tasks,
        "journal": tmp_path / "j",
    }
    with pytest.raises(KeyboardInterrupt):
        race(arms, "numbers", **options)
    known = list(Racer.asked)
    said = [row.asked.doc_id for row in written_in(tmp_path / "j.db") if row.kind == "said"]
    assert said == [number for _, number in known]
    arms["b"] = ("evalbudget-test-pressing", {"seed": 2, "pressing": False})
    assert race(arms, "numbers", **options).leaderboard.spent <= 60
    assert max(Counter(Racer.asked).values()) == 1


def test_a_local_model_sends_nothing_after_its_next_answer() -> None:
    halt = Halt()
    before = halt_of_all.set(halt)
    try:
        wire = Wire(Racer(), _Purse())
        wire.heard()
        halt.error = KeyboardInterrupt()
        with pytest.raises(KeyboardInterrupt):
            wire.heard()
        with pytest.raises(KeyboardInterrupt), wired(Racer(), _Purse()):
            pytest.fail("a round begins")
    finally:
        halt_of_all.reset(before)


class _Purse:
    def pays(self, calls: int) -> bool:
        return True

    def owes(self, calls: int) -> None:
        pass


@pytest.mark.parametrize("all_of_them", [False, True])
def test_a_second_ctrl_c_waits_for_nobody(
    server: Server, tasks: Any, tmp_path: Path, all_of_them: bool
) -> None:
    held = threading.Event()

    def hold(asked: Asked) -> str:
        if asked.model == "b" or (all_of_them and server.latency):
            held.wait(20)
        return skilled(asked)

    server.answer, server.disturb = hold, _presses(server, 6, again=0.3)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(server, tasks, tmp_path, 4)
        assert "b" not in server.count()  # still held
    finally:
        held.set()
    for thread in [t for t in threading.enumerate() if t.name == "evalbudget arm"]:
        thread.join(10)
    server.disturb, server.latency = lambda body: None, 0.0
    board = run(server, tasks, tmp_path, 4).leaderboard
    assert board.spent <= BUDGET
    assert max(standing.failed for standing in board.standings) <= 1  # calls given up are paid


def test_killed_anywhere_nothing_is_lost_and_nothing_bought_twice(
    server: Server, tasks: Any, tmp_path: Path
) -> None:
    taken: dict[int, Path] = {}
    one_at_a_time = threading.Lock()

    def take(body: Any) -> None:
        """What a kill would leave: the record as it is now, with what stands beside it."""
        with one_at_a_time:
            due = [calls for calls in (5, 30, 61) if calls <= server.calls() and calls not in taken]
            for calls in due[:1]:
                taken[calls] = tmp_path / f"kill-{calls}"
                taken[calls].mkdir()
                for end in ("", "-wal"):
                    shutil.copy(tmp_path / "whole" / f"j.db{end}", taken[calls])

    server.answer, server.latency, server.disturb = skilled, 0.005, take
    run(server, tasks, tmp_path / "whole", 4)
    server.disturb = lambda body: None
    assert len(taken) == 3
    for folder in taken.values():
        said = [row for row in written_in(folder / "j.db") if row.kind == "said"]
        known = {(row.arm, row.asked.doc_id) for row in said}
        server.served.clear()
        board = run(server, tasks, folder, 4).leaderboard
        asked = Counter((s.model, number_of_prompt(s.prompt)) for s in server.served)
        assert not known & set(asked)
        assert max(asked.values()) == 1
        failed = sum(standing.failed for standing in board.standings)
        assert failed <= 4  # one call of each arm may have been under way: they count as paid
        assert board.spent == len(known) + asked.total() + failed <= BUDGET


def number_of_prompt(prompt: str) -> int:
    return int(prompt.rsplit("say ", 1)[1].split()[0])


@pytest.mark.parametrize(("concurrent", "risk"), [(1, 0.0), variant(4, 0.0), (4, 0.1)])
def test_one_bill_for_arms_at_once_is_never_exceeded(
    tasks: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, concurrent: int, risk: float
) -> None:
    monkeypatch.chdir(tmp_path)
    price_file(tmp_path)
    kind = "local-chat-completions"
    with PaidServer(answer=lambda asked: f"{number_of(asked)}", latency=0.005) as server:
        arms = {n: (kind, server.args_of(n, num_concurrent=concurrent)) for n in ("m", "j1", "j2")}
        options: dict[str, Any] = {"gen_kwargs": {"max_gen_toks": 20}, "prices": "prices.yaml", "risk": risk}
        options |= {"task_manager": tasks, "apply_chat_template": True}
        server.gather(concurrent + 1)
        found = race(arms, "numbers", budget="$0.15", sampler="uniform", journal="j", **options)
        assert 0.8 * 0.15 < server.bill <= 0.15
        assert server.most_at_once > concurrent
        assert found.leaderboard.spent == server.calls()
        more = race(arms, "numbers", budget="$0.2", sampler="uniform", journal="j", **options)
        assert server.bill <= 0.2
        assert more.leaderboard.spent == server.calls()


def test_arms_at_once_share_judges_and_their_bill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    price_file(tmp_path)
    kind, found = "local-chat-completions", []
    with PaidServer(latency=0.005, answers={"j1": rating(), "j2": rating()}) as server:
        judges = [server.judge(name, num_concurrent=4, max_gen_toks=20) for name in ("j1", "j2")]
        write_judged(tmp_path / "judged", judges, n=6, scale=[1, 5], rotation="all")
        arms = {f"m{seed}": (kind, server.args_of("m", seed=seed)) for seed in (1, 2, 3)}
        for at_once in (1, 3):
            server.dollars.clear()
            server.served.clear()
            if at_once > 1:
                server.gather(5, "j1", "j2")
            options: dict[str, Any] = {"sampler": "uniform", "score": "judged", "score_range": "1..5"}
            options |= {"budget": "$20", "prices": "prices.yaml", "gen_kwargs": {"max_gen_toks": 20}}
            tasks = TaskManager(include_path=str(tmp_path / "judged"), include_defaults=False)
            options |= {"task_manager": tasks, "apply_chat_template": True, "journal": f"{at_once}/j"}
            with arms_at_once(at_once):
                result = race(arms, "essays", **options)
            assert paid_in(tmp_path / f"{at_once}/j.db", FILE) == pytest.approx(server.bill)
            assert server.calls() == 3 * 6 * (1 + len(judges))
            found.append(result)
        assert server.most_at_once > 4
    assert decisions(found[0]) == decisions(found[1])
    assert {(s.name, s.readings) for s in found[0].leaderboard.standings} == {(name, 6) for name in arms}


@register_model("evalbudget-test-placed")
class Placed(Racer):
    """Knows its device, and how many models of one are asked at once."""

    now: ClassVar[Counter[str]] = Counter()
    most: ClassVar[Counter[str]] = Counter()
    devices: ClassVar[dict[int, set[str]]] = {}
    turn: ClassVar[threading.Barrier | None] = None

    def __init__(self, device: str = "none", **more: Any) -> None:
        super().__init__(**more)
        self.place = device
        Placed.devices.setdefault(self.seed, set()).add(device)

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        Placed.now[self.place] += 1
        Placed.most |= Placed.now
        Placed.most["all"] = max(Placed.most["all"], Placed.now.total())
        try:
            if Placed.turn is not None:
                Placed.turn.wait(20)
            return super().generate_until(requests, disable_tqdm)
        finally:
            Placed.now[self.place] -= 1


@pytest.fixture
def _placed() -> None:
    Placed.now.clear()
    Placed.most.clear()
    Placed.devices.clear()
    Placed.turn = None


@pytest.mark.usefixtures("_placed")
def test_every_arm_has_a_device_and_no_device_two_models(tasks: Any, tmp_path: Path) -> None:
    arms = {name: ("evalbudget-test-placed", racer(0.6, seed)[1]) for seed, name in enumerate("abcd")}
    arms["e"] = ("evalbudget-test-placed", {"skill": 0.6, "seed": 9, "device": "own"})
    options: dict[str, Any] = {"budget": 100, "batch": 16, "task_manager": tasks}
    whole = race(arms, "numbers", **options)
    assert Placed.most["all"] == 1
    Placed.devices.clear()
    Racer.loads.clear()
    Racer.most_alive = 0
    found = race(arms, "numbers", devices="x:0,x:1", **options)
    assert decisions(found) == decisions(whole)
    assert Placed.devices.pop(9) == {"own"}
    assert set.union(*Placed.devices.values()) == {"x:0", "x:1"}
    assert max(Placed.most[device] for device in ("x:0", "x:1", "own")) == 1
    assert Racer.most_alive == 2
    assert {found.results[name]["config"]["device"] for name in "abcd"} <= {"x:0", "x:1"}
    assert found.results["e"]["config"]["device"] is None


@pytest.mark.usefixtures("_placed")
def test_models_on_two_devices_compute_at_the_same_time(tasks: Any) -> None:
    Placed.turn = threading.Barrier(2)  # each waits for the other
    arms = {name: ("evalbudget-test-placed", racer(0.6, seed)[1]) for seed, name in enumerate("ab")}
    found = race(
        *(arms, "numbers"),
        budget=64,
        sampler="uniform",
        devices=["x:0", "x:0"],
        task_manager=tasks,
    )
    assert found.leaderboard.spent == 64
    assert Placed.most["x:0"] == 2  # named twice


def test_the_task_scores_in_the_thread_that_began(server: Server, tmp_path: Path) -> None:
    own = (
        "import signal\n\n\ndef process(doc, results):\n"
        "    try:\n        signal.signal(signal.SIGALRM, signal.SIG_DFL)\n"
        "    except ValueError:\n        return {'exact_match': 0.0}  # as lm-eval's minerva_math\n"
        "    return {'exact_match': 1.0}\n"
    )
    found = run(server, manager(tmp_path / "own", n=N, own=own), tmp_path, 4, sampler="uniform")
    assert {standing.estimate for standing in found.leaderboard.standings} == {1.0}


def test_a_task_object_is_one_for_each_arm(server: Server, tasks: Any, tmp_path: Path) -> None:
    server.answer, server.latency = skilled, 0.005
    kind = "local-chat-completions"
    arms = {name: (kind, server.args_of(name)) for name in SKILLS}
    found = []
    for most in (1, 4):
        with arms_at_once(most):
            task = tasks.load(["numbers"])["tasks"]["numbers"]
            found.append(race(arms, task, budget=BUDGET, task_manager=tasks, apply_chat_template=True))
    assert decisions(found[0]) == decisions(found[1])
    assert answers(found[0]) == answers(found[1])


def test_a_gate_asks_both_at_once(server: Server, tasks: Any, tmp_path: Path) -> None:
    server.answer = skilled
    server.gather(2)
    chat = {n: ("local-chat-completions", server.args_of(n)) for n in "ad"}
    options: dict[str, Any] = {"task_manager": tasks, "apply_chat_template": True}
    found = gate(chat["d"], "numbers", margin=0.05, baseline_model=chat["a"], seed=1, **options)
    assert found.gate is not None
    assert found.gate.verdict == "worse"
    assert server.most_at_once == 2


@pytest.mark.usefixtures("_placed")
def test_eight_are_asked_at_once_and_of_models_here_one(server: Server, tasks: Any) -> None:
    server.gather(8)
    names = [f"m{number}" for number in range(10)]
    arms: dict[str, Any] = {name: f"local-completions:{server.completions_args(name)}" for name in names}
    arms |= {n: ("evalbudget-test-placed", racer(0.6, seed)[1]) for seed, n in enumerate("bc")}
    arms["live"] = Placed(seed=7)
    found = race(arms, "numbers", budget=104, sampler="uniform", task_manager=tasks)
    assert found.leaderboard.spent == 104
    assert (server.most_at_once, Placed.most["all"]) == (8, 1)
    assert Racer.most_alive == 2  # the live one, and one that is loaded


@register_model("evalbudget-test-drawing")
class Drawing(Racer):
    """Samples, and notes what it drew."""

    drawn: ClassVar[list[float]] = []

    def _answer(self, prompt: str, kwargs: dict[str, Any]) -> str:
        Drawing.drawn.append(random.random())
        time.sleep(0.002)  # others are loaded meanwhile
        return super()._answer(prompt, kwargs)


def test_arms_that_are_loaded_beside_it_have_no_model_draw_the_same_again(server: Server, tasks: Any) -> None:
    Drawing.drawn.clear()
    arms: dict[str, Any] = {"here": ("evalbudget-test-drawing", racer(0.6, 1)[1])}
    arms |= {name: f"local-completions:{server.completions_args(name)}" for name in "abcd"}
    race(arms, "numbers", budget=5 * N, sampler="uniform", task_manager=tasks)
    assert len(set(Drawing.drawn)) == len(Drawing.drawn) == N


ARMS = {name: racer(0.5, seed) for seed, name in enumerate("abc")}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"devices": "x:0,,x:1"}, "--devices has an entry without a name"),
        ({"devices": ""}, "--devices has an entry without a name"),
        ({"devices": []}, "--devices has an entry without a name"),
        ({"devices": "x:0", "device": "x:1"}, "--device x:1 is for all arms"),
        ({"devices": "x:0,x:1", "keep": 1}, "--keep is 1, and --devices names 2"),
        ({"devices": "x:0", "live": True}, "for models that are loaded here, and no arm is; drop it"),
        ({"devices": "x:0", "own": True}, "each of them names its own; keep one of both"),
    ],
)
def test_refusals(given: dict[str, Any], told: str, tasks: Any) -> None:
    arms: dict[str, Any] = {"p": Racer(0.5, 1), "q": Racer(0.5, 2)} if given.pop("live", False) else ARMS
    if given.pop("own", False):
        arms = {name: (kind, args | {"device": "x:1"}) for name, (kind, args) in ARMS.items()}
    with pytest.raises(InvalidInputError, match=told):
        race(arms, "numbers", budget=90, task_manager=tasks, **given)
    assert not Racer.asked


@pytest.mark.usefixtures("own_tasks_only")
def test_on_the_command_line(server: Server, tasks: Any, tmp_path: Path) -> None:
    server.answer = skilled
    server.gather(2)
    arms = [f"--arm={name}=local-chat-completions:{server.chat_args(name)}" for name in SKILLS]
    command = ["race", *arms, "--budget", str(BUDGET), "--tasks", "numbers", "--apply_chat_template"]
    done = CliRunner().invoke(cli, ["lm-eval", *command, "--include_path", str(tmp_path / "tasks")])
    assert done.exit_code == 0, done.output
    assert 1 < server.most_at_once <= len(SKILLS)
