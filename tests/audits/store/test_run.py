from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.audits.store.audits import Told, audit

from evalbudget.audits._draw import Coin
from evalbudget.audits.policies import HumanOnly
from evalbudget.audits.store import Answer, AuditStore
from evalbudget.audits.store._run import AuditRun, go_on, only_run
from evalbudget.audits.store._store_verdict import Stage, weigh
from evalbudget.errors import AuditStoreError, InvalidInputError, ReplayError
from evalbudget.store import Address


def label_all(told: Told, store: AuditStore) -> int:
    """Two labellers in turns, last draws first, as the run was started again each time."""
    wanted = AuditRun(store).verdict().labels_wanted
    for number, draw in enumerate(reversed(wanted)):
        store.labels.add(draw, told.score(store, draw), ("ann", "bob")[number % 2])
    return len(wanted)


def test_an_audit_is_labelled_batch_by_batch_until_its_verdict(place: Callable[[str], Address]) -> None:
    told = Told()
    stages = []
    with told.create(place("a")) as store:
        assert weigh(store).stage is Stage.DRAW
        assert "run evalbudget inspect eval t.py" in weigh(store).next_step
        for _ in range(20):
            told.draw(store)
            found = weigh(store)
            stages.append(found.stage)
            if found.stage is not Stage.LABELS:
                break
            assert f"{len(found.wanted)} labels wanted" in found.next_step
            label_all(told, store)
            stages.append(weigh(store).stage)
        found = weigh(store)
        assert found.stage is Stage.VERDICT
        assert (found.outcome, found.winner, found.headline) == ("best", "alpha", "alpha is the best")
        assert found.judge_says == "alpha"
        assert set(stages) <= {Stage.LABELS, Stage.DRAW, Stage.VERDICT}
        alpha, beta = found.models
        assert alpha.racing
        assert not beta.racing
        truth = told.human.mean(axis=0)
        for model, mean in zip(found.models, truth, strict=True):
            assert model.low is not None
            assert model.high is not None
            assert 1 <= model.low <= mean <= model.high <= 10
        labels = found.progress.labelled
        assert found.cost == 20 * labels + found.progress.drawn
        assert set(found.progress.by) == {"ann", "bob"}
    with AuditStore.open(place("a"), told.design) as again:
        assert weigh(again).as_json() == found.as_json()
        assert AuditRun(again).over


def test_a_run_killed_in_the_middle_of_a_batch_goes_on_with_the_rest(tmp_path: Path) -> None:
    told = Told()
    with told.create(tmp_path / "whole.sqlite") as whole, told.create(tmp_path / "parts.sqlite") as parts:
        told.draw(whole)
        first = AuditRun(parts)
        for context in first.contexts[::-2]:  # in any order
            answers = [
                Answer(
                    f"Write story {context.item}.", f"Story {context.item}, {m}.", f"Reason {context.item}"
                )
                for m in context.models
            ]
            first.record(context, answers, told.judge[context.item, list(context.models)].tolist())
        assert 0 < len(parts.draws.all()) < len(whole.draws.all())
        assert weigh(parts).stage in (Stage.LABELS, Stage.DRAW)
        told.draw(parts)
        assert parts.draws.all() == whole.draws.all()
        assert AuditRun(parts).contexts == ()


def test_two_runs_on_one_store_do_not_record_a_context_twice(place: Callable[[str], Address]) -> None:
    told = Told()
    with told.create(place("a")) as store:
        one, two = AuditRun(store), AuditRun(store)
        context = one.contexts[0]
        answers = [Answer("p", "r")] * 2
        one.record(context, answers, [5, 5])
        with pytest.raises(AuditStoreError, match="another run continues this store"):
            two.record(context, answers, [5, 5])
        assert len(store.draws.all()) == 2


def test_a_label_corrected_while_the_next_batch_is_drawn_stops_that_run(
    place: Callable[[str], Address],
) -> None:
    told = Told(pilot=8, labels_per_batch=8)
    with told.create(place("a")) as store:
        told.draw(store)
        label_all(told, store)
        run = AuditRun(store)
        label = next(iter(store.labels.counting().values()))
        store.labels.correct(label.draw, 11 - label.score, label.by)
        context = run.contexts[0]
        with pytest.raises(
            AuditStoreError, match="was corrected since this run read it; start the run again"
        ):
            run.record(context, [Answer("p", "r")] * 2, [5, 5])
        told.draw(store)
        weigh(store)  # and the draws are those that the corrected label leads to


def test_judge_and_labels_share_one_scale(tmp_path: Path) -> None:
    told = Told()
    with told.create(tmp_path / "a.sqlite") as store:
        run = AuditRun(store)
        context = run.contexts[0]
        answers = [Answer("p", "r")] * 2
        with pytest.raises(InvalidInputError, match="outside the scale of the labels: whole numbers 1 to 10"):
            run.record(context, answers, [0.5, 5])
        with pytest.raises(InvalidInputError, match="needs 2 answers and 2 judge scores"):
            run.record(context, answers, None)
        assert len(store.draws.all()) == 0
        draws = run.record(context, answers, [math.nan, 5.5])
        assert math.isnan(draws[0].judge)
        assert draws[1].judge == 0.5


def test_without_a_judge_humans_label_everything(tmp_path: Path) -> None:
    told = Told(n_items=12, policy=HumanOnly)
    with told.create(tmp_path / "a.sqlite") as store:
        assert store.design.policy == "human-only"
        told.draw(store)
        assert label_all(told, store) == 24
        assert weigh(store).winner == "alpha"


def test_labels_that_ran_out_end_without_a_verdict(tmp_path: Path) -> None:
    told = Told((5.0, 5.0), max_labels=10)
    with told.create(tmp_path / "a.sqlite") as store:
        told.draw(store)
        wanted = weigh(store).wanted
        assert 0 < len(wanted) <= 10
        label_all(told, store)
        found = weigh(store)
        assert found.stage is Stage.OVER
        assert found.headline.startswith("ended without a verdict")
        assert "10 labels" in found.reason
        assert found.progress.labelled <= 10


def test_what_cannot_be_replayed_is_refused(tmp_path: Path) -> None:
    with audit(tmp_path / "a.sqlite") as store, pytest.raises(AuditStoreError, match="settings"):
        weigh(store)
    with (
        audit(tmp_path / "b.sqlite", policy="gone") as store,
        pytest.raises(AuditStoreError, match="'gone', which cannot be replayed: no installed plugin"),
    ):
        weigh(store)
    config = dict(Told(n_items=30).design.config)
    with (
        audit(tmp_path / "c.sqlite", config=config) as store,
        pytest.raises(ReplayError, match="another audit"),
    ):
        weigh(store)
    with (
        audit(tmp_path / "d.sqlite", config=config | {"n_items": 31}) as store,
        pytest.raises(AuditStoreError, match="names 2 systems, 30 items and 1 segments"),
    ):
        weigh(store)


def test_a_verdict_that_falls_while_a_batch_is_still_recorded_ends_it(tmp_path: Path) -> None:
    """An item in the middle came late; the labels of those after it were there before."""
    told = Told((6.0, 4.0), n_items=400, pilot=20, labels_per_batch=80)
    with told.create(tmp_path / "a.sqlite") as store, told.create(tmp_path / "whole.sqlite") as whole:
        for each in (store, whole):
            told.draw(each)
            label_all(told, each)
        told.draw(whole)
        wanted = {draw.context for draw in whole.draws.all() if draw.wanted}
        run = AuditRun(store)
        late = [next(c for c in run.contexts if c.number not in wanted), *run.contexts[-2:]]
        for context in [c for c in run.contexts if c not in late] + [None] + late:
            if context is None:
                for task in store.draws.tasks(labelled=False):
                    store.labels.add(task.draw, told.score(store, task.draw), "ann")
                run = AuditRun(store)
                assert run.contexts == tuple(late)
                continue
            answers = [Answer(f"Write story {context.item}.", "Story") for _ in context.models]
            draws = run.record(context, answers, told.judge[context.item, list(context.models)].tolist())
            assert bool(draws) == (context is late[0] or context not in late)
        assert run.over
        assert run.contexts == ()
        assert weigh(store).stage is Stage.VERDICT


def test_systems_that_were_asked_different_things_are_refused(tmp_path: Path) -> None:
    told = Told()
    with told.create(tmp_path / "a.sqlite") as store:
        run = AuditRun(store)
        with pytest.raises(InvalidInputError, match="shuffling a seed"):
            run.record(run.contexts[0], [Answer("one", "x"), Answer("another", "y")], [5.0, 5.0])
        assert len(store.draws.all()) == 0


def test_one_run_at_a_time(place: Callable[[str], Address], tmp_path: Path) -> None:
    store = place("a")
    with only_run(store), pytest.raises(AuditStoreError, match="another run"), only_run(store):
        pass
    with only_run(store):  # the first one ended
        pass
    (tmp_path / ".a.audit.run.lock").touch()  # left by one that was killed
    with only_run(store):
        pass
    with (
        pytest.raises(AuditStoreError, match="does not exist"),
        only_run(Address(tmp_path / "none" / "a.sqlite")),
    ):
        pass


def finish(told: Told, store: AuditStore) -> list[Stage]:
    """Draw and label until it is over."""
    stages = []
    for _ in range(60):
        found = go_on(store)
        stages.append(found.stage)
        if found.stage is Stage.DRAW:
            told.draw(store)
        elif found.stage is Stage.LABELS:
            label_all(told, store)
        else:
            return stages
    raise AssertionError("no verdict")


def test_a_pool_used_up_is_labelled_again_until_it_is_decided(tmp_path: Path) -> None:
    told = Told((5.0, 5.2), n_items=20, pilot=12, labels_per_batch=18)
    with told.create(tmp_path / "a.sqlite") as store:
        told.draw(store)
        while not (found := weigh(store)).pool_used_up:
            label_all(told, store)
            told.draw(store)
        assert found.headline.startswith("undecided, the pool is used up: ")
        assert found.outcome == "undecided"
        more = found.second_pass_labels
        assert found.second_pass_cost == 20 * more > 0
        assert f"at most {more} more labels, {20 * more:,} at 20 each" in found.reason
        assert found.next_step == f"{len(found.wanted)} labels wanted, of at most {more} that decide it"
        assert "of the mean over these 20 items" in found.interval
        drawn, items = store.progress().drawn, store.progress().contexts
        assert (drawn, items) == (40, 20)
        assert AuditRun(store).contexts == (), "no model and no judge is asked again"
        again = [draw for draw in store.draws.all() if draw.coin is Coin.NONE]
        assert again
        for draw in again:
            task = store.draws.task(draw.index)
            assert task.response == f"Story {draw.item}, {draw.model}."
            assert task.prompt == f"Write story {draw.item}."
            assert store.draws.opinion(draw.index).reason == f"Reason {draw.item}"
        finish(told, store)
        found = go_on(store)
        assert found.stage is Stage.VERDICT
        means = told.human.mean(axis=0)
        assert found.winner == ("alpha", "beta")[int(means.argmax())]
        assert found.headline == f"{found.winner} is the best on these items"
        assert (store.progress().drawn, store.progress().contexts) == (40, 20)
        assert store.progress().labelled <= 40
        assert found.cost == 40 + 20 * store.progress().labelled
        draws = len(store.draws.all())
    with AuditStore.open(tmp_path / "a.sqlite", told.design) as again_:
        assert AuditRun(again_).over
        assert go_on(again_).as_json() == found.as_json()
        assert len(again_.draws.all()) == draws


def test_whoever_looks_has_the_next_labels_of_the_second_pass_drawn_once(
    place: Callable[[str], Address],
) -> None:
    told = Told((5.0, 5.0, 5.1), n_items=20, pilot=12, labels_per_batch=6)
    with told.create(place("a")) as store, AuditStore.open(place("a")) as other:
        told.draw(store)
        while not weigh(store).pool_used_up:
            label_all(told, store)
            told.draw(store)
        label_all(told, store)
        assert weigh(store).stage is Stage.DRAW, "weighing alone changes nothing"
        before = len(store.draws.all())
        assert go_on(other).stage is Stage.LABELS
        after = len(store.draws.all())
        assert after > before
        assert go_on(store).wanted == go_on(other).wanted
        assert len(store.draws.all()) == after


def test_human_only_waits_for_answers_before_it_wants_labels(tmp_path: Path) -> None:
    told = Told((5.0, 5.2), n_items=20, policy=HumanOnly, pilot=8, labels_per_batch=16)
    with told.create(tmp_path / "a.sqlite") as store:
        assert weigh(store).stage is Stage.DRAW
        assert weigh(store).wanted == ()
        told.draw(store)
        assert weigh(store).stage is Stage.LABELS
        finish(told, store)
        assert weigh(store).stage is Stage.VERDICT


def test_a_second_pass_that_was_not_wanted_ends_undecided_with_its_price(tmp_path: Path) -> None:
    told = Told((5.0, 5.0), n_items=10, pilot=8, second_pass=False)
    with told.create(tmp_path / "a.sqlite") as store:
        finish(told, store)
        found = go_on(store)
        assert found.stage is Stage.OVER
        assert found.headline.startswith("undecided, the pool is used up")
        assert "a second pass would decide it (second_pass=true)" in found.reason
        assert found.next_step == "nothing more is asked"
