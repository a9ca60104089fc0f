"""What earlier attempts answered, by model and item, in the order in which it was asked."""

from __future__ import annotations

import pytest

from evalbudget import Cell
from evalbudget.races._known_answers import KnownAnswers
from evalbudget.races._lanes import KnownCell

FAILED, HALF, UNDER_WAY = None, 0.5, "under way"


def known(epoch: int, value: float | str | None, document: str = "b") -> KnownCell:
    score = value if isinstance(value, float) else None
    return KnownCell((document, epoch), score, 1, again=value == UNDER_WAY)


@pytest.mark.parametrize(
    ("repeats", "answers", "items"),
    [
        (1, [FAILED, HALF], [1, 1]),
        (1, [HALF, HALF], [1, None]),
        (1, [FAILED, UNDER_WAY, HALF], [1, 1, None]),
        (1, [UNDER_WAY, FAILED], [1, None]),
        (2, [HALF, HALF, HALF], [2, 3, None]),
        (2, [HALF, FAILED, HALF, FAILED, HALF, HALF], [2, 3, None, 3, None, 3]),
        (3, [FAILED, FAILED, HALF, HALF, HALF, HALF], [3, 4, 5, 3, 4, None]),
    ],
)
def test_which_item_an_answer_is_of(
    repeats: int, answers: list[float | str | None], items: list[int | None]
) -> None:
    answers_of = KnownAnswers(["a", "b"], repeats)
    found = [answers_of.add(0, known(epoch, value)) for epoch, value in enumerate(answers, start=1)]
    assert found == items


def test_each_answers_the_call_of_its_number() -> None:
    answers = KnownAnswers(["a", "b"], 1)
    for epoch, value in enumerate((FAILED, FAILED, HALF), start=1):
        answers.add(2, known(epoch, value))
    found = [answers.of(Cell(2, 1, call)) for call in range(4)]
    assert [None if each is None else each.key for each in found] == [("b", 1), ("b", 2), ("b", 3), None]
    assert answers.of(Cell(2, 0)) is None
    assert answers.of(Cell(1, 1)) is None


def test_what_became_of_one_that_was_under_way() -> None:
    answers = KnownAnswers(["a", "b"], 1)
    answers.add(0, known(1, FAILED))
    answers.add(0, known(2, UNDER_WAY))
    answers.replace(0, 1, known(2, HALF))
    assert [answers.of(Cell(0, 1, call)) for call in range(2)] == [known(1, FAILED), known(2, HALF)]


def test_a_call_has_the_key_of_what_is_known_or_one_that_no_host_had() -> None:
    answers = KnownAnswers(["a", "b"], 2)
    answers.add(0, known(4, FAILED))
    answers.take_keys(0, [known(6, HALF)])
    assert answers.key_of(Cell(0, 3, 0)) == ("b", 4)
    assert answers.key_of(Cell(0, 3, 1)) == ("b", 4)
    assert [answers.new_key(Cell(0, 3, call)) for call in (1, 2, 3)] == [("b", 8), ("b", 10), ("b", 12)]
    assert answers.new_key(Cell(1, 2, 0)) == ("b", 1)
    assert answers.has(("a", 9))
    assert not answers.has(("c", 1))
