from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.audits.store.audits import Clock, RefusedError, audit, by_hand, design, drawn

from evalbudget.audits.policies import AuditEProcess, AuditPolicy, HumanOnly
from evalbudget.audits.store import Answer, AuditDesign, AuditStore, LabelKind, Scale
from evalbudget.errors import AuditStoreError, InvalidInputError
from evalbudget.store import Address


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(place: Callable[[str], Address], clock: Clock) -> Iterator[AuditStore]:
    with audit(place("a"), clock=clock) as store:
        yield store


def test_gives_back_what_it_was_given(store: AuditStore) -> None:
    expected = drawn(range(9))
    with AuditStore.open(store.address, design()) as again:
        assert again.draws.all() == tuple(draw for draw, _ in expected)
        assert again.design == store.design
        assert again.id == store.id
        assert again.command == "evalbudget inspect eval t.py"
        assert [(t.draw, t.prompt, t.response) for t in again.draws.tasks()] == [
            (draw.index, answer.prompt, answer.response) for draw, answer in expected if draw.wanted
        ]
        opinion = again.draws.opinion(7)
        assert (opinion.score, opinion.reason, opinion.model) == (pytest.approx(4.0), "Reason 3", "beta")


def test_a_judge_may_have_said_nothing(store: AuditStore) -> None:
    (first, answer), second = drawn(range(9, 10), start=18)
    store.draws.append([(replace(first, judge=math.nan), answer), second])
    assert math.isnan(store.draws.all()[18].judge)
    assert store.draws.opinion(18).score is None


def test_a_task_tells_neither_system_nor_judge(store: AuditStore) -> None:
    text = repr(store.draws.task(7))
    assert "beta" not in text
    assert "Reason" not in text


def test_another_design_is_refused_with_what_differs(store: AuditStore) -> None:
    other = design(
        models=("alpha", "gamma"), scale=Scale(0, 1, 1), config={"delta": 0.05, "seed": list(range(99))}
    )
    with pytest.raises(AuditStoreError) as refusal:
        AuditStore.open(store.address, other)
    message = str(refusal.value)
    assert "only here: gamma" in message
    assert "only there: beta" in message
    assert "scale: 0 or 1 here, whole numbers 1 to 10 there" in message
    assert "16... here, 3 there" in message
    assert "delta" not in message
    assert "policy" not in message


def test_items_in_another_order_are_another_design(store: AuditStore) -> None:
    with pytest.raises(AuditStoreError, match="items: the same names in another order"):
        AuditStore.open(store.address, design(items=tuple(reversed(design().items))))


def test_config_survives_json() -> None:
    one = AuditDesign(("a", "b"), ("i",), config={"prices": (1, 20)})
    assert AuditDesign.from_json(one.to_json()) == one
    with pytest.raises(InvalidInputError, match="JSON cannot hold"):
        AuditDesign(("a",), ("i",), config={"f": math.nan})
    with pytest.raises(InvalidInputError, match="models twice: 'a'"):
        AuditDesign(("a", "a"), ("i",))


def test_an_existing_file_is_never_replaced(store: AuditStore, tmp_path: Path) -> None:
    with pytest.raises(AuditStoreError, match="exists; continue it with AuditStore"):
        AuditStore.create(store.address, design())
    assert [p.name for p in tmp_path.iterdir()] == ["a.audit"] * (store.address.path is not None)


@pytest.mark.parametrize("content", [b"", b"hello" * 1000, b"SQLite format 3\0" + b"x" * 1000])
def test_files_that_are_no_stores_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.audit"
    path.write_bytes(content)
    with pytest.raises(AuditStoreError, match=r"x\.audit"):
        AuditStore.open(path)
    assert path.read_bytes() == content
    with pytest.raises(AuditStoreError, match="does not exist"):
        AuditStore.open(tmp_path / "none.audit")
    with pytest.raises(AuditStoreError, match="is a folder"):
        AuditStore.open(tmp_path)
    with pytest.raises(AuditStoreError, match="create it first"):
        AuditStore.create(tmp_path / "no" / "a.audit", design())


def test_a_store_of_another_format_is_refused(store: AuditStore) -> None:
    store.close()
    says = f"COMMENT ON SCHEMA {store.address.name} IS 'evalbudget audit store 99'"
    by_hand(store.address, says if store.address.path is None else "PRAGMA user_version = 99")
    with pytest.raises(AuditStoreError, match="has format 99; this version of evalbudget reads format 1"):
        AuditStore.open(store.address)


HISTORY = (
    "UPDATE draws SET judge = 0",
    "DELETE FROM draws",
    "UPDATE labels SET score = 1",
    "DELETE FROM labels",
    "UPDATE meta SET value = ''",
    "DELETE FROM contexts",
    "DELETE FROM opinions_seen",
    "INSERT INTO labels (draw, score, \"by\", at, kind) VALUES (0, 9, 'eve', 0, 'first')",
    "INSERT INTO labels (draw, score, \"by\", at, kind) VALUES (2, 9, 'eve', 0, 'first')",
)


def test_nobody_rewrites_history_not_even_in_sql(store: AuditStore) -> None:
    store.labels.add(0, 7, "ann")
    store.labels.show_opinion(0, "ann")
    for statement in HISTORY:
        with pytest.raises(RefusedError):
            by_hand(store.address, statement)


@pytest.mark.parametrize(
    ("table", "row"),
    [
        ("draws", "(99, 0, 1, NULL, 0.5, 0.5, 0.5, 'shared', 0, 1.0, 0, 0, '', '', 1.0)"),
        ("draws", "(99, 77, 1, NULL, 0.5, 0.5, 0.5, 'none', 0, 1.0, 0, 0, '', '', 1.0)"),
        ("draws", "(99, 0, 1, NULL, 0.5, 0.5, 0.5, 'none', 0, 1.0, 0, 0, '', '', 'x')"),
        ("labels", "(1, 0, 5.0, '', 1.0, 'first', '')"),
        ("leases", "(77, 's', 'ann', 1.0)"),
        ("attempts", "(1, 77, 'ann', 1.0)"),
        ("attempts", "(1, 0, '', 1.0)"),
        ("replies", "(77, 1.0, '', '', '{}', '', 1.0)"),
        ("opinions_seen", "(77, 'ann', 1.0)"),
    ],
)
def test_rows_that_a_tool_without_checks_wrote_are_refused(tmp_path: Path, table: str, row: str) -> None:
    with audit(tmp_path / "a.audit", contexts=1) as store:
        by_hand(
            store.address,
            "PRAGMA foreign_keys = OFF",
            "PRAGMA ignore_check_constraints = ON",
            "DROP TRIGGER only_wanted",
            f"INSERT OR REPLACE INTO {table} VALUES {row}",
        )
    with pytest.raises(AuditStoreError, match=rf"a\.audit is damaged.*row \d+ of its table {table} holds"):
        AuditStore.open(tmp_path / "a.audit")


IMPOSSIBLE: tuple[tuple[dict[str, Any], str], ...] = (
    ({"index": 17}, "has draw 17 already; another run"),
    ({"index": 19}, "has draw 19 already"),
    ({"index": -1}, "draw -1: an index is a whole number"),
    ({"model": 2}, "draw 18 is of model 2; the audit has 2"),
    ({"item": 30}, "draw 18 is of item 30; the audit has 30"),
    ({"segment": 1}, "segment 1"),
    ({"leader": 5}, "leader 5"),
    ({"judge": 7.0}, r"judge score 7.0, outside \[0, 1\]; rescale .*whole numbers 1 to 10"),
    ({"judge": math.inf}, "judge score inf"),
    ({"prediction": -0.1}, "prediction"),
    ({"propensity": 0.0}, "propensity"),
    ({"uniform": 1.0}, "uniform"),
    ({"cap": math.nan}, "cap nan"),
    ({"item": 11}, "context 9, which has another item"),
    ({"context": 8}, "has draw 18 already; another run"),
)


def test_draws_that_cannot_be_are_refused_whole(store: AuditStore) -> None:
    rows = drawn(range(9, 11), start=18)
    for change, message in IMPOSSIBLE:
        bad = [(replace(rows[0][0], **change), rows[0][1]), *rows[1:]]
        with pytest.raises((InvalidInputError, AuditStoreError), match=message):
            store.draws.append(bad)
        assert len(store.draws.all()) == 18, change
    with pytest.raises((InvalidInputError, AuditStoreError)):
        store.draws.append([*rows[:3], (replace(rows[3][0], judge=2.0), rows[3][1])])
    assert len(store.draws.all()) == 18
    store.draws.append(rows)
    assert len(store.draws.all()) == 22


def test_policies_do_not_go_back(store: AuditStore) -> None:
    store.draws.append(drawn(range(9, 10), start=18, policy=1))
    with pytest.raises(InvalidInputError, match="policy version 0 after version 1"):
        store.draws.append(drawn(range(10, 11), start=20))


def test_texts_that_utf8_cannot_hold_are_kept_as_far_as_possible(store: AuditStore) -> None:
    rows = [(draw, Answer("p\x00q", "half \ud83d", "")) for draw, _ in drawn(range(9, 10), start=18)]
    store.draws.append(rows)
    assert store.draws.task(18).response == "half ?"
    assert store.draws.task(18).prompt == ("p\N{REPLACEMENT CHARACTER}q" if store.address.url else "p\x00q")


def test_labels_say_who_and_when(store: AuditStore, clock: Clock) -> None:
    label = store.labels.add(6, 7, " ann ")
    assert (label.by, label.kind) == ("ann", LabelKind.FIRST)
    assert label.at == clock.now or store.address.url  # by the server's clock, which all share
    store.labels.add(0, 3, "bob", at=5.0)
    assert {d: (x.score, x.by, x.at) for d, x in store.labels.counting().items()} == {
        0: (3.0, "bob", 5.0),
        6: (7.0, "ann", label.at),
    }


MEANINGLESS = (
    (2, 5, "ann", "coin of draw 2 asked for no label.*bias"),
    (18, 5, "ann", "draw 18 was never drawn.*bias"),
    (-1, 5, "ann", "never drawn"),
    (10**30, 5, "ann", "never drawn"),
    (0, 11, "ann", "score 11 is outside the scale of this audit: whole numbers 1 to 10"),
    (0, 0.99, "ann", "outside the scale"),
    (0, 7.5, "ann", "score 7.5 is not on the scale"),
    (0, math.nan, "ann", "outside"),
    (0, 5, "  ", "name"),
    (0, 5, "a\nb", "no name"),
)


def test_labels_that_would_bias_or_mean_nothing_are_refused(store: AuditStore) -> None:
    for draw, score, by, message in MEANINGLESS:
        with pytest.raises(InvalidInputError, match=message):
            store.labels.add(draw, score, by)
        assert store.labels.history() == [], message


def test_contradictions_are_kept_and_reported_and_change_nothing(store: AuditStore) -> None:
    assert store.labels.add(0, 7, "ann").kind is LabelKind.FIRST
    assert store.labels.add(0, 7, "ann").kind is LabelKind.KNOWN
    assert store.labels.add(0, 7, "bob").kind is LabelKind.AGREES
    assert store.labels.add(0, 2, "eve").kind is LabelKind.CONFLICTS
    assert store.labels.add(0, 2, "eve").kind is LabelKind.KNOWN
    assert store.labels.add(0, 3, "ann").kind is LabelKind.CONFLICTS
    assert store.labels.counting()[0].score == 7
    assert [(x.score, x.by) for x in store.labels.conflicts()[0]] == [(7, "ann"), (2, "eve"), (3, "ann")]
    progress = store.progress()
    assert (progress.labelled, progress.conflicts, progress.by) == (1, 1, {"ann": 1})


def test_several_labels_are_recorded_all_or_none(store: AuditStore) -> None:
    with pytest.raises(InvalidInputError, match="outside"):
        store.labels.add_all([(0, 5, "ann", None), (1, 50, "ann", None)])
    assert store.labels.history() == []


def test_a_correction_is_recorded_beside_what_it_replaces(store: AuditStore) -> None:
    store.labels.add(0, 7, "ann")
    store.labels.add(0, 8, "bob")
    assert store.labels.correct(0, 7, "ann").kind is LabelKind.KNOWN
    assert store.labels.correct(0, 8, "ann", "slipped").kind is LabelKind.CORRECTION
    assert store.labels.counting()[0].score == 8
    assert [(x.score, x.kind.value, x.why) for x in store.labels.history()] == [
        (7, "first", ""),
        (8, "conflicts", ""),
        (8, "correction", "slipped"),
    ]
    assert store.labels.conflicts() == {}
    assert store.progress().corrections == 1
    assert store.labels.add(0, 7, "ann").kind is LabelKind.KNOWN  # an old file imported again


def test_corrections_end_when_the_judge_was_seen_or_the_label_used(store: AuditStore) -> None:
    with pytest.raises(InvalidInputError, match="hidden until it is labelled"):
        store.labels.show_opinion(0, "ann")
    with pytest.raises(InvalidInputError, match="no label to correct"):
        store.labels.correct(0, 7, "ann")
    for draw in (0, 1, 6):
        store.labels.add(draw, 7, "ann")
    with pytest.raises(InvalidInputError, match="labelled by ann"):
        store.labels.correct(0, 8, "bob")
    with pytest.raises(InvalidInputError, match="outside"):
        store.labels.correct(0, 80, "ann")
    assert store.labels.show_opinion(0, "ann").reason == "Reason 0"
    with pytest.raises(InvalidInputError, match="has seen what the judge says"):
        store.labels.correct(0, 8, "ann")
    store.labels.show_opinion(1, "bob")  # what bob saw does not bind ann
    store.labels.correct(1, 8, "ann")
    store.draws.append(drawn(range(9, 10), start=18, policy=1))
    with pytest.raises(InvalidInputError, match="a later batch was drawn"):
        store.labels.correct(6, 8, "ann")


def test_progress_counts_the_batch(store: AuditStore) -> None:
    store.draws.append(drawn(range(9, 13), start=18, policy=1))
    store.labels.add(0, 7, "ann")
    store.labels.add(18, 7, "bob")
    found = store.progress()
    assert (found.drawn, found.contexts, found.wanted, found.labelled, found.outstanding) == (
        26,
        13,
        10,
        2,
        8,
    )
    assert (found.batch, found.batch_wanted, found.batch_labelled) == (1, 4, 1)
    assert found.by == {"ann": 1, "bob": 1}


def test_an_empty_store_has_made_no_progress(tmp_path: Path) -> None:
    with AuditStore.create(tmp_path / "a.audit", design()) as store:
        found = store.progress()
        assert (found.drawn, found.wanted, found.batch, found.outstanding) == (0, 0, -1, 0)
        assert store.leases.next("s", "ann") is None
        assert store.draws.all() == ()


def test_revision_changes_with_every_draw_and_label(store: AuditStore) -> None:
    seen = {store.revision()}
    store.labels.add(0, 7, "ann")
    seen.add(store.revision())
    store.labels.add(0, 8, "bob")
    seen.add(store.revision())
    store.draws.append(drawn(range(9, 10), start=18))
    seen.add(store.revision())
    assert len(seen) == 4


@pytest.mark.parametrize("policy", [AuditEProcess, HumanOnly])
def test_a_design_covers_every_setting_and_survives_a_store(policy: type[AuditPolicy]) -> None:
    begun = policy.of({"n_models": 2, "n_items": 3, "seed": 4, "max_labels": 9})
    design = AuditDesign.of(begun, ("a", "b"), ("x", "y", "z"), Scale(1, 10, 1))
    assert AuditDesign.from_json(design.to_json()) == design
    assert design.differences(design) == []
    for name, value in {"seed": 5, "max_labels": 8, "labels_per_batch": 7}.items():
        other = policy.of({**design.config, name: value})
        (found,) = AuditDesign.of(other, ("a", "b"), ("x", "y", "z"), Scale(1, 10, 1)).differences(design)
        assert found.startswith(f"{name}: {value} here")
