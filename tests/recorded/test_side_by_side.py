"""Recordings of several sources as one: names, questions, directions, failures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evalbudget.backtest import Declared, RecordedScores, TaskName, digest_of, names_by_settings, side_by_side
from evalbudget.comparisons import Baseline, compare, gate
from evalbudget.doctor import Kind, diagnose
from evalbudget.doctor.checks._sources import SourcesCheck
from evalbudget.errors import InvalidInputError
from evalbudget.recorded._differences import settings_note
from evalbudget.recorded._direction import is_lower_better, notes_of, with_lower_better
from evalbudget.report import page, report


def one(model: str, scores: list[float], **declared: object) -> RecordedScores:
    """Scores of one model, with what its source declares."""
    items = tuple(f"q{i}" for i in range(len(scores)))
    recorded = RecordedScores(np.array(scores)[None, :, None, None], (model,), items, ("acc",))
    told = Declared.of((model,), items, ("acc",), **declared)  # type: ignore[arg-type]
    return replace(recorded, declared=told)


def test_what_differs_names_models_apart() -> None:
    settings = [{"hint": "True", "seed": "1"}, {"hint": "False", "seed": "1"}, {"seed": "1"}]
    assert names_by_settings(["m"] * 3, settings) == ["m (hint=True)", "m (hint=False)", "m (hint=default)"]
    assert names_by_settings(["m", "n"], settings[:2]) == ["m", "n"]
    assert names_by_settings(["m", "m"], [settings[0]] * 2) == ["m", "m"]
    long = names_by_settings(["m", "m"], [{"prompt": "x" * 500 + end} for end in "ab"])
    assert len(set(long)) == 2
    assert all(len(name) < 80 for name in long)


def test_a_model_of_several_files_goes_by_settings_or_by_file() -> None:
    hinted = one("m", [1, 0], settings={"m": {"hint": "yes"}})
    plain = one("m", [0, 0], settings={"m": {"hint": "no"}})
    assert side_by_side({"a.x": hinted, "b.x": plain}).models == ("m (hint=yes)", "m (hint=no)")
    assert side_by_side({"a.x": hinted, "b.x": hinted}).models == ("m (a)", "m (b)")


def test_items_are_paired_by_question() -> None:
    asked = {f"q{i}": digest_of(f"{i}") for i in range(3)}
    turned = {"q0": asked["q2"], "q1": asked["q1"], "q2": asked["q0"]}
    found = side_by_side({"a": one("m", [1, 0, 0], digests=asked), "b": one("n", [0, 0, 1], digests=turned)})
    assert found.items == ("q0", "q1", "q2")
    np.testing.assert_array_equal(found.scores[:, :, 0, 0], [[1, 0, 0], [1, 0, 0]])
    assert found.declared is not None
    assert "paired by question" in found.declared.notes[0]
    by_id = side_by_side(
        {"a": one("m", [1, 0, 0], digests=asked), "b": one("n", [0, 0, 1], digests=turned)}, across_tasks=True
    )
    np.testing.assert_array_equal(by_id.scores[1, :, 0, 0], [0, 0, 1])


@pytest.mark.parametrize(("n", "edited"), [(100, 100), (3, 3)])
def test_ids_that_only_a_person_can_vouch_for_are_refused_with_the_flag(n: int, edited: int) -> None:
    answers = [f"{i}" if n == 3 else "" for i in range(n)]  # of three, any two may agree
    old = {f"q{i}": digest_of(f"old {i}", answers[i]) for i in range(n)}
    new = old | {f"q{i}": digest_of(f"new {i}", answers[i]) for i in range(edited)}
    logs = {"a": one("m", [1.0] * n, digests=old), "b": one("n", [0.0] * n, digests=new)}
    with pytest.raises(InvalidInputError, match=rf"{edited} of {n} ids of b hold .*give --across-tasks\)$"):
        side_by_side(logs)
    assert compare(side_by_side(logs, across_tasks=True)).rows[0].items == n
    baseline = Baseline.of(logs["a"], name="a")
    with pytest.raises(InvalidInputError, match=rf"{edited} of {n} ids of n hold .*give --across-tasks\)$"):
        gate(baseline, logs["b"], margin=0.1)
    assert gate(baseline, logs["b"], margin=0.1, across_tasks=True).n_items == n


@pytest.mark.parametrize("edited", [1, 8])
def test_what_is_left_is_compared_and_the_flag_is_named(edited: int) -> None:
    old = {f"q{i}": digest_of(f"old {i}") for i in range(10)}
    new = old | {f"q{i}": digest_of(f"new {i}") for i in range(edited)}
    found = compare({"a": one("m", [1.0] * 10, digests=old), "b": one("n", [0.0] * 10, digests=new)})
    assert found.rows[0].items == 10 - edited
    assert "give --across-tasks" in found.notes[-1]


def test_versions_of_a_task_are_named_and_never_compared_in_silence() -> None:
    asked = {f"q{i}": digest_of(f"{i}") for i in range(2)}
    versions = [replace(one(m, [1, 0], digests=asked), task=TaskName("t", v)) for m, v in ("m1", "n2")]
    logs = dict(zip("ab", versions, strict=True))
    both = side_by_side(logs)
    assert both.models == ("m (version=1)", "n (version=2)")
    assert notes_of(both)[0].startswith("Versions of the task differ: 1 (m); 2 (n). Their items may differ")
    with pytest.raises(InvalidInputError, match=r"m is of version 1 of the task and n of version 2: .*--acr"):
        compare(both)
    trusted = side_by_side(logs, across_tasks=True)
    assert notes_of(trusted) == compare(trusted).notes == ()
    assert (
        compare(logs, across_tasks=True).rows[0].items == compare(both, across_tasks=True).rows[0].items == 2
    )
    (finding,) = [one for one in diagnose(both, [SourcesCheck]).findings if one.kind is Kind.PROBLEM]
    assert finding.title == "models were scored on different versions of the task"
    assert str(report(both).table()).count("Versions of the task differ") == 1
    two = [replace(v, models=(f"m ({n})",)) for v, n in zip(versions, ("base", "chat"), strict=True)]
    with pytest.raises(InvalidInputError, match=r"m \(base\) is of version 1 of the task and m \(chat\) of"):
        compare(side_by_side(dict(zip("ab", two, strict=True))))
    alone = [replace(each, models=("m",)) for each in versions]  # one model: named apart, and compared
    assert compare(side_by_side(dict(zip("ab", alone, strict=True)))).rows[0].second == "m (version=2)"


def test_settings_that_differ_between_models_are_said() -> None:
    def note(**settings: dict[str, str]) -> str:
        return settings_note(list(settings), list(settings.values()))

    assert note(a={"shots": "0"}, b={"shots": "5"}) == "Settings differ: shots=0 (a); shots=5 (b)."
    assert note(a={"shots": "0"}, b={"shots": "0"}) == note(a={"shots": "0"}, b={}) == ""
    assert note(a={"pretrained": "a", "model.revision": "1"}, b={"pretrained": "b", "model_sha": "2"}) == ""
    three = note(a={"t": "0"}, b={"t": "1", "s": "x"}, c={"t": "1"})
    assert three == "Settings differ: t=0 (a), t=1 (b, c); s=default (a, c), s=x (b)."
    many = note(**{f"m{i}": {f"k{j}": str(i) for j in range(9)} for i in range(9)})
    assert many == f"Settings differ: {'; '.join(f'k{j} (9 values)' for j in range(5))} and 4 more."
    arms = {f"m (k={k})": {"s.k": k} for k in "18"}
    assert settings_note(list(arms), list(arms.values())) == ""
    named = {f"m (t={t})": {"t": t} for t in "01"}
    assert settings_note(list(named), list(named.values())) == ""  # the names tell it
    judged = note(a={"graded.model": "j"}, b={"graded.model": "k"})  # whom somebody else is asked for
    assert judged == "Settings differ: graded.model=j (a); graded.model=k (b)."
    one_model = settings_note(["m", "m"], [{"revision": "1"}, {"revision": "2"}], ["old", "new"])
    assert one_model == "Settings differ: revision=1 (old); revision=2 (new)."


def test_settings_that_differ_are_said_wherever_models_are_compared() -> None:
    logs = {m: one(m, [1, 0, 1], settings={m: {"shots": n}}) for m, n in ("a0", "b5")}
    told = "Settings differ: shots=0 (a); shots=5 (b)."
    assert told in compare(logs).notes
    found = report(logs)
    assert told in found["sources"].to_dict()["notes"]
    assert "Settings differ: shots=0" in str(found.table())
    assert told in page(found)


def test_versions_are_refused_where_the_questions_are_not_known() -> None:
    asked = {f"q{i}": digest_of(f"{i}") for i in range(2)}
    unknown = [replace(one(m, [1, 0]), task=TaskName("t", v)) for m, v in ("m1", "n2")]
    with pytest.raises(InvalidInputError, match=r"different versions of the task.*--across-tasks"):
        side_by_side({"a": unknown[0], "b": unknown[1]})
    others = [replace(one(m, [1, 0], digests=asked), task=TaskName(m)) for m in "mn"]
    with pytest.raises(InvalidInputError, match="different tasks"):
        side_by_side({"a": others[0], "b": others[1]})


def test_what_is_declared_is_kept_and_contradictions_are_refused() -> None:
    lower = one("m", [1, 0], lower_is_better={"acc": True}, ranges={"acc": (0.0, 1.0)}, complete=["m"])
    unsure = replace(one("n", [1, 1], notes=["nothing."]), failed=np.array([[[1], [0]]]))
    found = side_by_side({"a": lower, "b": unsure})
    assert found.declared is not None
    assert found.declared.lower_is_better == (True,)
    assert found.declared.ranges == ((0.0, 1.0),)
    assert found.declared.complete == (True, False)
    assert found.declared.notes == ("b: nothing.",)
    assert found.failed is not None
    assert found.failed[:, :, 0].tolist() == [[0, 0], [1, 0]]
    higher = one("n", [1, 1], lower_is_better={"acc": False})
    with pytest.raises(InvalidInputError, match="a says that lower acc is better, and b that higher is"):
        side_by_side({"a": lower, "b": higher})
    with pytest.raises(InvalidInputError, match="a says that lower acc is better, and b that higher is"):
        side_by_side({"b": higher, "a": lower})


def test_direction_is_declared_or_said() -> None:
    plain = one("m", [0.25, 1.0])
    assert not is_lower_better(plain)
    said = with_lower_better(plain)
    assert is_lower_better(said)
    with pytest.raises(InvalidInputError, match="the source says that higher acc is better"):
        with_lower_better(one("m", [0.25, 1.0], lower_is_better={"acc": False}))


def test_of_several_scores_lower_is_better_of_the_one_that_is_chosen() -> None:
    both = RecordedScores(
        *(np.zeros((1, 2, 2, 1)), ("m",), ("q0", "q1"), ("wer", "acc")),
        one_measure=False,
        declared=Declared.of(("m",), ("q0", "q1"), ("wer", "acc"), lower_is_better={"acc": False}),
    )
    told = with_lower_better(both, "wer").declared
    assert told is not None
    assert told.lower_is_better == (True, False)
    for chosen in ("acc", None):
        with pytest.raises(InvalidInputError, match="the source says that higher acc is better"):
            with_lower_better(both, chosen)


def test_declarations_survive_a_file(tmp_path: object) -> None:
    asked = {f"q{i}": digest_of(f"{i}") for i in range(2)}
    told = one(
        "m",
        [1, 0],
        lower_is_better={"acc": True},
        ranges={"acc": (0.0, 1.0)},
        complete=["m"],
        digests=asked,
        clusters={"q0": "a", "q1": "b"},
        cluster="passage",
    )
    told = replace(told, failed=np.array([[[0], [0]]]))
    path = f"{tmp_path}/scores.npz"
    told.save(path)
    found = RecordedScores.load(path)
    assert found.declared == told.declared
    assert found.failed is not None
