"""Labels bought from a scorer: an attempt is on disk before it answers, and counts whatever it says."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.audits.store.audits import RefusedError, audit, by_hand, design

from evalbudget.audits.store import AuditStore, Reply
from evalbudget.errors import AuditStoreError, InvalidInputError
from evalbudget.store import Address

JUROR = "scorer juror"
SAID = Reply(7, "B", "Because \ud83d it is.", {"openai/a": {"input_tokens": 9, "total_cost": 0.5}})


@pytest.fixture
def store(place: Callable[[str], Address]) -> Iterator[AuditStore]:
    with audit(place("a"), config={"delta": 0.05, "seed": 3, "max_labels": 3}) as store:
        yield store


def test_a_label_keeps_what_its_scorer_said_and_used(store: AuditStore) -> None:
    number = store.attempts.begin(6, JUROR)
    with AuditStore.open(store.address) as again:
        under_way = again.attempts.all()
    assert [(a.number, a.draw, a.by, a.reply) for a in under_way] == [(number, 6, JUROR, None)]
    assert 6 not in store.labels.counting()
    store.attempts.finish(number, SAID)
    with AuditStore.open(store.address) as again:
        kept = again.attempts.all()[0].reply
        assert kept is not None
        assert (kept.score, kept.answer, kept.explanation) == (7, "B", "Because ? it is.")
        assert kept.usage == SAID.usage
        label = again.labels.counting()[6]
        assert (label.score, label.by) == (7, JUROR)


def test_scores_that_are_none_or_off_the_scale_are_kept_and_no_labels(store: AuditStore) -> None:
    silent = store.attempts.finish(store.attempts.begin(0, JUROR), Reply(math.nan, explanation="Hm."))
    off = store.attempts.finish(store.attempts.begin(0, JUROR), Reply(11.0))
    assert silent.failure == "it gave no score"
    assert "outside the scale of this audit: whole numbers 1 to 10" in off.failure
    replies = [attempt.reply for attempt in store.attempts.all()]
    assert [r and (r.score, r.explanation, r.failure) for r in replies] == [
        (None, "Hm.", silent.failure),
        (11.0, "", off.failure),
    ]
    assert not store.labels.counting()


def test_the_limit_is_of_attempts_whatever_became_of_them(store: AuditStore) -> None:
    assert store.attempts.left == 3
    store.attempts.begin(0, JUROR)  # and its process was killed
    store.attempts.finish(store.attempts.begin(0, JUROR), Reply(failure="the provider is down"))
    assert store.attempts.left == 1
    store.labels.add(1, 4, "ann")
    assert store.attempts.left == 0
    with pytest.raises(
        InvalidInputError, match="all 3 labels allowed have been asked for, those that failed"
    ):
        store.attempts.begin(0, JUROR)
    assert len(store.attempts.all()) == 2


def test_a_label_that_was_bought_counts_once(store: AuditStore) -> None:
    store.attempts.finish(store.attempts.begin(0, JUROR), SAID)
    assert store.attempts.left == 2


def test_without_a_limit_there_is_none(tmp_path: Path) -> None:
    with audit(tmp_path / "a.sqlite") as store:
        assert store.attempts.left is None


def test_a_reply_is_to_an_attempt_and_for_good(store: AuditStore) -> None:
    number = store.attempts.begin(0, JUROR)
    store.attempts.finish(number, SAID)
    for wrong in (number, number + 1):
        with pytest.raises(InvalidInputError, match="was never begun, or has a reply already"):
            store.attempts.finish(wrong, SAID)
    with pytest.raises(InvalidInputError, match="asked for no label"):
        store.attempts.begin(2, JUROR)
    store.close()
    for statement in ("UPDATE replies SET score = 1", "DELETE FROM attempts", "DELETE FROM replies"):
        with pytest.raises(RefusedError, match="only ever added"):
            by_hand(store.address, statement)


JUDGE = {"scorer": "rating", "model of role grader": "openai/a"}


def test_a_store_is_refused_to_another_judge_and_both_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    AuditStore.create(path, design(judge=JUDGE)).close()
    with AuditStore.open(path, design(judge=JUDGE)) as store:
        assert store.design.judge == JUDGE
        assert store.design != design()
    with pytest.raises(AuditStoreError) as refusal:
        AuditStore.open(path, design(judge={**JUDGE, "model of role grader": "openai/b"}))
    assert "judge's model of role grader: openai/b here, openai/a there" in str(refusal.value)
    AuditStore.open(path, design()).close()  # whoever does not know the judge adds nothing by it


def test_a_store_of_an_unknown_judge_takes_any(tmp_path: Path) -> None:
    AuditStore.create(tmp_path / "a.sqlite", design()).close()
    AuditStore.open(tmp_path / "a.sqlite", design(judge=JUDGE)).close()
