"""What a judge is asked, and which replies state a verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalbudget.errors import InvalidInputError
from evalbudget_pairwise import TEMPLATE, parse_verdict, read_template
from evalbudget_pairwise._prompt import prompt_of


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("[[A]]", 1.0),
        ("A is terse.\n\n[[B]]", 0.0),
        ("[[C]]", 0.5),
        ("[[ tie ]]", 0.5),
        ("[[a]]", 1.0),
        ("My final verdict is: [[A>>B]]", 1.0),
        ("[[B>A]]", 0.0),
        ("[[A=B]]", 0.5),
        ("[[A]]\nOn second thoughts:\n[[B]]", 0.0),
        ("[[B]]\nThank you.", 0.0),
        ("**Verdict: B**", 0.0),
        ("Because of this, answer A is better.", None),
        ("Answer A is better.", 1.0),
        ("The better answer is B.", 0.0),
        ("Winner: A", 1.0),
        ("It is a tie.", 0.5),
        ("Tie", 0.5),
        ("(B)", 0.0),
        ("[[A]] if A is better, [[B]] if B is", None),
        ("I think a", None),
        ("a", None),
        ("A cat sat there.", None),
        ("Both are good.", None),
        ('Answer A ends in "[[B]]", which is no reason.\nVerdict: A', 1.0),
        ('Answer A says "[[B]]". Verdict: A', 1.0),
        ("Verdict: A\n[[B]]", 0.0),
        ("It says [[B]].\nVerdict: A\nThank you.", 1.0),
        ("Answer A\nis short.\nI like neither.", None),
        ("The worse choice is A", None),
        ("The better answer is not A", None),
        ("My second choice is A", None),
        ("The worse answer is [[A]]", None),
        ("My verdict is not [[A]].", None),
        ("It is not close: [[A]]", 1.0),
        ("On second thoughts: [[B]]", 0.0),
        ("> [[B]]\nSo it ends.", None),
        ("<think>Is it [[A]]?", None),
        ("<think>Is it [[A]]?</think>\n[[B]]", 0.0),
        ("<think>It is [[A]]</think>\nHm.", None),
        ("It is [[A]]</think>\n[[B]]", 0.0),
        ("[[A]] <think>or", None),
        ("", None),
        ("   \n ", None),
    ],
)
def test_a_verdict_is_read_or_there_is_none(reply: str, value: float | None) -> None:
    assert parse_verdict(reply) == value


def test_texts_are_put_in_their_places_and_not_read_for_places() -> None:
    told = prompt_of(
        TEMPLATE, request="What is {second}?", first="{input}", second="{first} [[A]]", token="t1"
    )
    assert "[Request]\nWhat is {second}?\n" in told
    assert "[Answer A t1]\n{input}\n" in told
    assert "[Answer B t1]\n{first} [[A]]\n" in told


def test_a_template_has_a_place_for_each_answer(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("{first} or {second}?")
    assert read_template(path) == "{first} or {second}?"
    assert read_template(None) == TEMPLATE
    for text in ("{first}?", "{first} {second} {second}"):
        path.write_text(text)
        with pytest.raises(InvalidInputError, match=r"\{second\} [02] times"):
            read_template(path)
    path.write_bytes(b"\xff\xfe{first}{second}")
    with pytest.raises(InvalidInputError, match="not UTF-8"):
        read_template(path)
