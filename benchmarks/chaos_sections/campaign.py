"""Schedules by the hundred, two side by side, and the table of what they found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import click

from chaos_sections.inspect_side import INSPECT, missing_client
from chaos_sections.lm_eval_side import LM_EVAL
from chaos_sections.money import MONEY
from chaos_sections.plan import Capability
from chaos_sections.schedule import ENOUGH, SMALL, Played, play
from judges_sections.found import Found, Target

CAPABILITIES = (*LM_EVAL, *INSPECT, *MONEY)
LEAD = (
    "Each schedule runs a command of its own against a server on loopback that bills every answer, disturbs "
    "requests, and sends it one to three signals, each after a random number of requests; then the same "
    "command (on inspect also eval-retry) goes on until it ends. At last the bill is compared with logs "
    "and records. Answers on their way at a kill -9 may be lost, but must be counted as spent."
)
SEEDS = 50
SIDE_BY_SIDE = 2
OF_MONEY = 4
"""Side by side; they wait for replies most of the time, and no window of theirs is short."""
COUNTS = {
    "lost": "answers lost that had reached the client",
    "twice": "calls bought twice",
    "over": "calls (or dollars) on the bill beyond the budget, or beyond what the record counts as spent",
    "hung": "commands that hang, or never end",
}


def lm_eval(quick: bool, seeds: int = SEEDS) -> Found:
    """The campaign on lm-eval."""
    return _of(LM_EVAL, quick, seeds)


def inspect(quick: bool, seeds: int = SEEDS) -> Found:
    """The campaign on inspect."""
    if why := missing_client():
        return Found(lead=f"Not measured: {why}.", columns=("capability",), rows=())
    return _of(INSPECT, quick, seeds)


def money(quick: bool, seeds: int = SEEDS) -> Found:
    """The campaign of budgets in money, on both hosts."""
    if why := missing_client():
        return Found(lead=f"Not measured: {why}.", columns=("capability",), rows=())
    return _of(MONEY, quick, seeds, OF_MONEY)


def _of(
    capabilities: Sequence[Capability], quick: bool, seeds: int, side_by_side: int = SIDE_BY_SIDE
) -> Found:
    schedules = [(one, seed) for seed in range(1, 2 if quick else seeds + 1) for one in capabilities]
    return campaign(schedules, most_kills=1 if quick else 3, side_by_side=side_by_side)


def campaign(
    schedules: Sequence[tuple[Capability, int]], most_kills: int = 3, side_by_side: int = SIDE_BY_SIDE
) -> Found:
    """Play schedules: capabilities, and a seed for each."""

    def one(schedule: tuple[Capability, int]) -> Played:
        played = play(*schedule, most_kills=most_kills)
        _say(played)
        return played

    with ThreadPoolExecutor(side_by_side) as pool:
        try:
            found = list(pool.map(one, schedules))
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return _table(list(dict.fromkeys(capability for capability, _ in schedules)), found)


def _say(played: Played) -> None:
    capability, account = played.capability, played.account
    state = "clean" if account.clean else str(account)
    signals = " ".join(played.signals) or "no signal"
    click.echo(f"{capability.host} {capability.name} {played.seed}: {signals}; {state}", err=True)
    for line in played.told:
        click.echo(f"    {line}", err=True)


def _table(capabilities: Sequence[Capability], found: Iterable[Played]) -> Found:
    found = list(found)
    rows = []
    for capability in capabilities:
        own = [played for played in found if played.capability is capability]
        signals = [name for played in own for name in played.signals]
        rows.append(
            (
                f"{capability.host} {capability.name}",
                f"{len(own)}",
                f"{len(signals)}",
                f"{signals.count('SIGKILL')}",
                f"{sum(bool(played.faults) for played in own)}",
                f"{sum(played.faults.total() for played in own)}",
                *(f"{sum(getattr(played.account, count) for played in own):g}" for count in COUNTS),
            )
        )
    totals = {count: sum(getattr(played.account, count) for played in found) for count in COUNTS}
    kinds = sorted({kind for played in found for kind in played.faults})
    counted = ", ".join(f"{kind} {sum(played.faults[kind] for played in found)}" for kind in kinds)
    used = [played.used for played in found if played.used is not None]
    targets = [
        Target(f"{text}: 0", f"{totals[count]:g}", not totals[count]) for count, text in COUNTS.items()
    ]
    if used:
        enough = sum(share >= ENOUGH for share in used)
        targets.append(
            Target(
                f"{ENOUGH:.0%} of the cap used where a call costs under {SMALL:.0%} of it",
                f"{enough} of {len(used)} schedules, {min(used):.3f} at least",
                enough == len(used),
            )
        )
    notes = [f"Requests disturbed: {counted}."] if kinds else []
    if not all(played.account.clean for played in found):
        notes.append(
            "Schedules that are not clean, by seed; in benchmarks/, `python -m chaos_sections.schedule HOST "
            "CAPABILITY SEED` plays one by itself, and keeps its folder."
        )
    for played in found:
        if not played.account.clean:
            counts = ", ".join(f"{count} {n:g}" for count in COUNTS if (n := getattr(played.account, count)))
            happened = ", ".join([*played.signals, *(f"{kind} {n}" for kind, n in played.faults.items())])
            notes.append(f"- {played.capability.name} {played.seed} ({happened or 'nothing'}): {counts}")
    return Found(
        lead=LEAD,
        columns=("capability", "schedules", "kills", "of them -9", "with faults", "faults", *COUNTS),
        rows=tuple(rows),
        targets=tuple(targets),
        notes=tuple(notes),
    )
