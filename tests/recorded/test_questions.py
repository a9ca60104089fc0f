"""Items are paired by what was asked, not by an id that may hold another question."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evalbudget.backtest import asked_twice, digest_of, match_questions

ASKED = {f"{i}": digest_of(f"question {i}", f"answer {i}") for i in range(5)}


def test_the_same_questions_keep_their_ids() -> None:
    found = match_questions([("a", ASKED), ("b", dict(reversed(ASKED.items())))])
    assert found.notes == ()
    assert found.names == ({i: i for i in ASKED}, {i: i for i in ASKED})


def test_shuffled_ids_are_paired_by_question() -> None:
    order = ["0", "3", "1", "2", "4"]
    shuffled = {i: ASKED[was] for i, was in zip(ASKED, order, strict=True)}
    found = match_questions([("a", ASKED), ("b", shuffled)])
    assert found.names[1] == dict(zip(ASKED, order, strict=True))
    assert found.notes == ("3 of 5 ids of b hold another question than elsewhere: paired by question.",)


def test_a_question_nobody_else_was_asked_is_paired_with_nothing() -> None:
    other = ASKED | {"4": digest_of("another question", "another answer")}
    found = match_questions([("a", ASKED), ("b", other)])
    assert found.names[1]["4"] == "4 (b)"
    assert found.notes[0].endswith("paired by question; 1 question is asked nowhere else.")


def test_other_words_for_the_same_answers_are_the_same_items() -> None:
    reworded = {i: digest_of(f"Please: question {i}", f"answer {i}") for i in ASKED}
    found = match_questions([("a", ASKED), ("b", reworded)])
    assert found.names[1] == {i: i for i in ASKED}
    assert found.notes == ("5 of 5 ids of b ask for the same answer in other words; paired.",)


def test_right_answers_that_other_questions_share_too_show_nothing() -> None:
    for answer in ("yes", "", None):
        asked, other = (
            {f"{i}": digest_of(f"{words} {i}", answer) for i in range(30)} for words in ("this", "that")
        )
        found = match_questions([("a", asked), ("b", other)])
        assert set(found.names[1].values()).isdisjoint(asked)
        assert "right answers agree, as those of other questions may well" in found.notes[0]


def test_one_question_in_other_words_is_known_by_an_answer_that_is_rare() -> None:
    for answers, paired in ([f"{i}" for i in range(30)], True), (["yes", "no"] * 15, False):
        asked = {f"{i}": digest_of(f"question {i}", answer) for i, answer in enumerate(answers)}
        other = asked | {"3": digest_of("Question 3?", answers[3])}
        assert (match_questions([("a", asked), ("b", other)]).names[1]["3"] == "3") == paired


def test_what_sends_the_same_is_the_same_question_whatever_its_right_answer() -> None:
    asked, edited = (
        {i: digest_of(f"{words} {i}", f"{words} answer {i}", f"what is {i}?") for i in ASKED}
        for words in ("old", "new")
    )
    found = match_questions([("a", asked), ("b", edited)])
    assert found.names[1] == {i: i for i in ASKED}
    assert found.notes == ("5 of 5 ids of b have another right answer than elsewhere; paired.",)
    copies = {"0": digest_of("q", "a", "after some examples: q"), "1": digest_of("q", "a", "after others: q")}
    assert asked_twice(copies)


def test_another_right_answer_to_the_same_question_is_said() -> None:
    other = ASKED | {"4": digest_of("question 4", "not that")}
    found = match_questions([("a", ASKED), ("b", other)])
    assert found.names[1] == {i: i for i in ASKED}
    assert found.notes == ("1 of 5 ids of b has another right answer than elsewhere; paired.",)


def test_ids_count_where_a_person_says_so() -> None:
    other = {i: digest_of(f"other {i}", i) for i in ASKED}
    found = match_questions([("a", ASKED), ("b", other)], trust_ids=True)
    assert found.names[1] == {i: i for i in ASKED}
    assert "paired by id" in found.notes[0]
    assert set(match_questions([("a", ASKED), ("b", other)]).names[1].values()).isdisjoint(ASKED)


def test_a_question_that_stands_twice_is_paired_once() -> None:
    twice = {"x": ASKED["0"], "y": ASKED["0"]}
    found = match_questions([("a", twice), ("b", {"y": ASKED["0"], "x": ASKED["0"]})])
    assert found.names[1] == {"y": "y", "x": "x"}
    swapped = {"x": ASKED["1"], "y": ASKED["0"], "z": ASKED["0"]}
    names = match_questions([("a", twice | {"z": ASKED["1"]}), ("b", swapped)]).names[1]
    assert names == {"x": "z", "y": "y", "z": "x"}


def test_unknown_questions_are_paired_by_id() -> None:
    found = match_questions([("a", dict.fromkeys(ASKED, "")), ("b", ASKED), ("c", dict.fromkeys(ASKED, ""))])
    assert found.notes == ()
    assert all(name == i for names in found.names for i, name in names.items())


LOGS = st.lists(st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 5)), min_size=1, max_size=4)


@given(LOGS)
def test_a_name_is_one_question_and_stands_once_in_a_log(logs: list[dict[str, int]]) -> None:
    """A question 0 is unknown; the answers are those of the questions, so nothing is merely reworded."""
    digests = [{i: digest_of(f"{q}", f"{q}") if q else "" for i, q in log.items()} for log in logs]
    found = match_questions([(f"log {n}", log) for n, log in enumerate(digests)])
    asked: dict[str, str] = {}
    for names, log in zip(found.names, digests, strict=True):
        assert list(names) == list(log)
        assert len(set(names.values())) == len(names)
        for i, name in names.items():
            if log[i]:
                assert asked.setdefault(name, log[i]) == log[i]


def test_questions_under_new_ids_are_paired_where_they_stand_once() -> None:
    renumbered = {f"x{i}": told for i, told in ASKED.items()}
    found = match_questions([("a", ASKED), ("b", renumbered)])
    assert found.names[1] == {f"x{i}": i for i in ASKED}
    assert found.notes == ("5 questions of b have other ids elsewhere: paired by question.",)
    alike = [{f"{name}{i}": digest_of("Solve it.", "") for i in range(3)} for name in "ab"]
    found = match_questions([("a", alike[0]), ("b", alike[1])])
    assert (found.names[1], found.notes) == ({f"b{i}": f"b{i}" for i in range(3)}, ())
    longer = ASKED | {"9": ASKED["0"]}
    assert match_questions([("a", ASKED), ("b", longer)]).names[1] == {i: i for i in longer}


def test_items_that_ask_what_others_ask_are_told_once() -> None:
    digests = {str(n): digest_of(f"question {n // 2}", "yes") for n in range(6)}
    (note,) = asked_twice({**digests, "a": "", "b": "", "c": digest_of("question 0", "no")})
    assert note.startswith("3 of 9 items ask what another one asks, with the same right answer (1 what 0")
    assert "--cluster" in note
    assert not asked_twice({"a": digest_of("one"), "b": digest_of("two"), "c": "", "d": ""})


def test_copies_that_count_as_sampled_together_are_not() -> None:
    digests = {str(n): digest_of(f"question {n // 2}", "yes") for n in range(4)}
    assert not asked_twice(digests, {str(n): f"group {n // 2}" for n in range(4)})
    (note,) = asked_twice(digests, {"0": "a", "1": "a", "2": "a", "3": "b"})
    assert note.startswith("1 of 4 items asks")
