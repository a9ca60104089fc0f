"""Runs in money that are killed, interrupted and disturbed: the server's bill never exceeds the cap."""

from __future__ import annotations

import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.claims import variant
from tests.host_lm_eval.judged_worlds import write_judged
from tests.host_lm_eval.money_worlds import PaidServer, luck, price_file, run
from tests.host_lm_eval.worlds import bought_in, write_task

import warm
from loopback import DROPPED, GARBLED, Fault, rating

N = 12
ROOT = Path(__file__).parents[2]


@pytest.fixture
def server() -> Iterator[PaidServer]:
    with PaidServer(answer=luck) as running:
        yield running


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    price_file(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGKILL, variant(signal.SIGINT)])
def test_a_command_that_is_stopped_goes_on_within_its_cap(
    server: PaidServer, tmp_path: Path, number: int
) -> None:
    folder = write_task(tmp_path / "tasks", n=N)
    server.latency = 0.03
    server.hold(24)  # in the middle of a round, when as many as may be are under way
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from types import SimpleNamespace\n"
        "from tests.host_lm_eval.money_worlds import args_of, run\n"
        "run(Path(sys.argv[1]), SimpleNamespace(chat_args=args_of(sys.argv[2])), '$0.6', concurrent=8,"
        " prices='prices.yaml')\n"
    )
    where = os.pathsep.join([str(ROOT), str(ROOT / "benchmarks"), os.environ.get("PYTHONPATH", "")])
    child = warm.Popen(
        [sys.executable, "-c", script, str(folder), server.chat],
        host="lm-eval",
        env={**os.environ, "PYTHONPATH": where},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + 120
        while server.held < 8 and child.poll() is None and time.monotonic() < until:
            time.sleep(0.005)
        child.send_signal(number)
        server.release()
        assert child.wait(120) != 0
    finally:
        child.kill()
    block = run(folder, server, "$0.6", concurrent=8, prices="prices.yaml")["evalbudget"]
    lost = sum(row["unknown"] for row in block["costs"])
    assert lost == block["failed"] <= (8 if number == signal.SIGKILL else 0)
    assert (f"Failed    {lost} calls: cut off, or no reply" in block["summary"]["text"]) is (lost > 0)
    assert server.bill <= block["spent"] + 1e-9 <= 0.6 + 1e-9
    assert block["spent"] > 0.57
    costs = [reading.cost for reading in bought_in("j.db").readings]  # the lost ones included
    unheard = block["spent"] - math.fsum(costs)  # paid, and not written yet when it was killed
    assert -1e-9 <= unheard <= (8 * max(costs) if number == signal.SIGKILL else 0) + 1e-9


@pytest.mark.parametrize("seed", [0, 3, *map(variant, (1, 2, 4, 5))])
def test_random_schedules(tmp_path: Path, server: PaidServer, seed: int) -> None:
    luck_of = random.Random(seed)
    judged = luck_of.random() < 0.5
    concurrent = luck_of.choice([1, 4, 16])
    if judged:
        server.answer = rating()
        judges = [server.judge(name, num_concurrent=concurrent, max_retries=2) for name in ("j1", "j2")]
        folder = write_judged(
            *(tmp_path / "tasks", judges), rotation="all", gen_kwargs={"temperature": 1, "max_gen_toks": 20}
        )
    else:
        folder = write_task(tmp_path / "tasks", n=N)
    lock = threading.Lock()

    def disturb(body: dict[str, object]) -> Fault | None:
        with lock:
            kind = luck_of.random()
        faults = {0.02: GARBLED, 0.04: 500, 0.05: None, 0.06: DROPPED, 0.08: 429}
        return next((Fault("random", status) for most, status in faults.items() if kind < most), None)

    server.disturb = disturb
    cap = luck_of.choice([0.7, 1.2])
    block = None
    for _ in range(12):
        try:
            found = run(
                *(folder, server, f"${cap}"),
                tasks="essays" if judged else "numbers",
                concurrent=concurrent,
                prices="prices.yaml",
                args={"max_retries": 2},
            )
            block = found["evalbudget"]
            break
        except Exception:
            server.disturb = lambda body: None
    assert block is not None
    assert server.bill <= block["spent"] + 1e-9 <= cap + 1e-9
    assert block["spent"] > cap - (0.06 if judged else 0.03)  # what is left does not pay for another answer
    readings = bought_in("j.db").readings
    assert math.fsum(r.cost for r in readings) <= block["spent"] + 1e-9
