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
    answers_of = KnownAnswers({"a": 0, "b": 1}, repeats)
    found = [answers_of.add(0, known(epoch, value)) for epoch, value in enumerate(answers, start=1)]
    assert found == items


def test_they_are_taken_in_the_order_of_asking_until_none_is_left() -> None:
    answers = KnownAnswers({"a": 0, "b": 1}, 1)
    for epoch, value in enumerate((FAILED, FAILED, HALF), start=1):
        answers.add(2, known(epoch, value))
    cell = Cell(2, 1)
    for epoch in (1, 2, 3):
        assert answers
        assert cell in answers
        assert Cell(2, 0) not in answers
        assert Cell(1, 1) not in answers
        assert answers.take(cell).key == ("b", epoch)
    assert not answers
    assert cell not in answers


def test_what_became_of_one_that_was_under_way() -> None:
    answers = KnownAnswers({"a": 0, "b": 1}, 1)
    answers.add(0, known(1, FAILED))
    answers.add(0, known(2, UNDER_WAY))
    answers.replace(0, 1, ("b", 2), known(2, HALF))
    assert [answers.take(Cell(0, 1)).value for _ in range(2)] == [None, HALF]
    answers.add(0, known(3, UNDER_WAY))
    answers.replace(0, 1, ("b", 3), None)
    assert not answers
