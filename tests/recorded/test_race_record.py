"""What a race recorded of itself, read back from the leaderboard that its logs keep."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from evalbudget.races import Leaderboard, Standing
from evalbudget.races._verdict import Status
from evalbudget.recorded._race_record import RaceRecord


def _standing(name: str, status: Status, estimate: float | None) -> Standing:
    return Standing(
        name, status, 1, 1, 2, estimate, 0.1, 0.2, 0.9, None, 0.3, 0.8, 12, 1, 7, 13, None, {}, None
    )


def _board() -> Leaderboard:
    return Leaderboard(
        standings=(_standing("short", Status.BEST, 0.75), _standing("long", Status.LOST, None)),
        sentence="short is best, with 95% confidence.",
        proof="paired e-values",
        outcome="best",
        sampler="race",
        seed=1,
        options={},
        budget=40,
        spent=26,
        grid=40,
        items=20,
        unread=0,
        until_proved=False,
        stop_reason="proved",
        level=0.95,
        interval="anytime, simultaneous",
        target="mean over 20 items",
        notes=("history was dropped",),
    )


def test_what_a_race_said_is_kept_word_for_word() -> None:
    record = RaceRecord.of(_board().as_json, {"short": "m (prompt=short)"})
    assert (record.sentence, record.proof) == ("short is best, with 95% confidence.", "paired e-values")
    assert (record.claim, record.target) == ("anytime, simultaneous", "mean over 20 items")
    assert (record.items, record.notes) == (20, ("history was dropped",))
    assert not record.lower_is_better
    assert RaceRecord.of(replace(_board(), lower_is_better=True).as_json).lower_is_better
    first, second = (asdict(row) for row in record.rows)
    assert first == {
        "model": "m (prompt=short)",
        "status": "best",
        "estimate": 0.75,
        "lower": 0.3,
        "upper": 0.8,
        "read": 12,
    }
    assert (second["model"], second["status"], second["estimate"]) == ("long", "lost", None)


def test_what_is_no_leaderboard_is_refused() -> None:
    with pytest.raises(KeyError):
        RaceRecord.of({"standings": []})
