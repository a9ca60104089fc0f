"""Plays one schedule: starts a command, disturbs it, starts it again until it ends, and reads the bill.

``python -m chaos_sections.schedule lm-eval run 17``, in benchmarks/, plays one by hand and keeps its folder;
``... 17 kills`` without faults, ``... 17 429,cut`` with these kinds of faults and without kills.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import warm
from chaos_sections.bill import Account, Stop, dollars, missing, over, twice
from chaos_sections.faults import KINDS, disturbing, mixture
from chaos_sections.plan import Capability, Plan
from loopback import Fault, Server

DEADLINE, OF_MONEY = 120.0, 360.0
"""Seconds after which a process hangs; with a budget in money it makes hundreds of calls."""
REFUSED = 2
"""Code of a command that found its own record, or what it was given, wanting."""
SMALL, ENOUGH = 0.01, 0.97
"""Where a call costs less of a cap than the first, at least the second share of it is to be used."""
ROUNDING = 1e-9
STARTS = 8
"""Starts after which a command will never end."""
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True)
class Played:
    """What one schedule did, and found.

    Attributes:
        capability: that was disturbed.
        seed: of the schedule.
        signals: that reached a running process, in order.
        faults: requests that were disturbed, by kind.
        account: what must be 0.
        told: each finding, in words.
        used: share of a cap in money that is spent by the record; None where a call may cost over 1% of it,
            or where calls are counted.
    """

    capability: Capability
    seed: int
    signals: tuple[str, ...]
    faults: Counter[str]
    account: Account
    told: tuple[str, ...] = field(default=())
    used: float | None = None


def play(
    capability: Capability,
    seed: int,
    folder: Path | None = None,
    *,
    most_kills: int = 3,
    faults: tuple[Fault, ...] = KINDS,
) -> Played:
    """Play one schedule.

    Args:
        capability: what is disturbed.
        seed: of everything that is drawn.
        folder: where; by default one that is removed afterwards if all is clean.
        most_kills: 0 for none.
        faults: kinds that may happen.
    """
    if folder is None:
        made = Path(tempfile.mkdtemp(prefix="chaos-"))
        played = play(capability, seed, made, most_kills=most_kills, faults=faults)
        if played.account.clean:
            shutil.rmtree(made, ignore_errors=True)
            return played
        return replace(played, told=(*played.told, f"kept: {made}"))
    name = f"{capability.host} {capability.name} {seed}"
    rng = random.Random(name)
    with Server(latency=rng.choice((0.01, 0.04, 0.08))) as server:
        plan = capability.prepare(folder, server, rng)
        calls = sum(plan.billed.values()) if plan.cap is None else plan.cap.calls
        kills = [
            (rng.choice(SIGNALS), rng.randint(1, round(calls * 0.7)), rng.random() ** 4)
            for _ in range(rng.randint(1, 3))
        ][:most_kills]
        server.disturb = disturbing(mixture(rng, faults), name)
        runner = _Runner(plan, server, folder, capability.host)
        for kill in kills:
            if runner.over or runner.hung:
                break
            runner.start(*kill)
        while not runner.over and not runner.hung:
            runner.start()
        served = list(server.served)
    disturbed = Counter(one.fault.name for one in served if one.fault is not None)
    kept, spent = plan.kept(), plan.spent() if runner.over else None
    told = list(runner.told)
    lost, excused = missing([one for one in served if one.model in plan.recorded], kept, runner.stops)
    again = twice(served, excused)
    for what, ones in (("lost", lost), ("twice", again)):
        told += [f"{what}: {one.model}, {one.prompt[:60]!r}, {one.text!r}" for one in ones[:3]]
    beyond, used = 0.0, None
    if plan.cap is not None:
        billed = dollars(served, plan.cap.prices)
        beyond = max(0.0, billed - plan.cap.dollars, 0.0 if spent is None else billed - spent)
        beyond = beyond if beyond > ROUNDING else 0.0
        if beyond:
            told.append(f"${billed:.6f} paid, cap ${plan.cap.dollars:.6f}, spent by the record {spent}")
        if spent is not None and plan.cap.call < SMALL * plan.cap.dollars:
            used = spent / plan.cap.dollars
            if used < ENOUGH:
                told.append(f"only {used:.3f} of the cap is used")
    for models, budget in plan.billed.items():
        more = over(served, models, budget, spent)
        if more:
            paid = sum(one.billed and one.model in models for one in served)
            told.append(f"{'/'.join(models)}: {paid} paid, budget {budget}, spent by the record {spent}")
        beyond += more
    account = Account(len(lost), len(again), beyond, runner.hung)
    return Played(capability, seed, tuple(runner.sent), disturbed, account, tuple(told), used)


class _Runner:
    """Starts the command, waits for its moment, sends the signal.

    Attributes:
        over: whether the command has ended as it should.
        starts: how often it was started.
        sent: names of the signals that found it running.
        stops: the same, for the account.
        hung: processes that did not end, and commands that never do.
        told: about those.
    """

    def __init__(self, plan: Plan, server: Server, folder: Path, host: str) -> None:
        self._plan, self._server, self._folder, self._host = plan, server, folder, host
        self.over = False
        self.starts = self.hung = 0
        self.sent: list[str] = []
        self.stops: list[Stop] = []
        self.told: list[str] = []

    def start(self, number: int | None = None, after: int = 0, wait: float = 0.0) -> None:
        """Start the command and wait for its end.

        Args:
            number: of a signal that it is sent; None for none.
            after: requests that are served to this process before.
            wait: seconds from then to the signal.
        """
        command = self._plan.again() if self.starts else self._plan.command
        self.starts += 1
        before = self._server.calls()
        with (self._folder / f"{self.starts}.log").open("wb") as log:
            process = warm.Popen(
                command,
                host=self._host,
                cwd=self._folder,
                env={**os.environ, **self._plan.environment},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            allowed = DEADLINE if self._plan.cap is None else OF_MONEY
            deadline = time.monotonic() + allowed
            if number is not None:
                while self._server.calls() < before + after and process.poll() is None:
                    if time.monotonic() > deadline:
                        break
                    time.sleep(0.002)
                time.sleep(wait)
                if process.poll() is None:
                    self._send(process, number)
            try:
                code = process.wait(timeout=max(1.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                self._hang(f"start {self.starts} did not end in {allowed:g} s")
                return
        self.over = code >= 0 and self._plan.done(code)
        refused = code == REFUSED and self._server.calls() == before
        if refused or (not self.over and self.starts >= STARTS):
            self._hang(f"start {self.starts} ends with {code}: {self._last_words()}")

    def _send(self, process: subprocess.Popen[bytes], number: int) -> None:
        process.send_signal(number)
        killed = number == signal.SIGKILL
        # a host that does not drain hears nothing of what comes after the signal
        excused = self._plan.caught if killed or not self._plan.drains else 0
        window = self._plan.window if killed else 0.1
        self.stops.append(Stop(number, time.monotonic(), excused, window))
        self.sent.append(signal.Signals(number).name)

    def _hang(self, words: str) -> None:
        self.hung += 1
        self.told.append(words)

    def _last_words(self) -> str:
        lines = (self._folder / f"{self.starts}.log").read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "no words"


def _main() -> None:
    from chaos_sections.campaign import CAPABILITIES

    host, name, seed, *only = sys.argv[1:]
    (capability,) = (one for one in CAPABILITIES if (one.host, one.name) == (host, name))
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    kinds = KINDS if not only else tuple(kind for kind in KINDS if kind.name in only[0].split(","))
    most_kills = 3 if not only or only == ["kills"] else 0
    played = play(capability, int(seed), folder, most_kills=most_kills, faults=kinds)
    print(*played.signals, dict(played.faults), played.account, *played.told, folder, sep="\n")


if __name__ == "__main__":
    _main()
