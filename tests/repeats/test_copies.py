"""When answers are copies of earlier ones, and how probable that is by chance."""

from __future__ import annotations

import numpy as np
import pytest
from tests.claims import variant

from evalbudget.repeats import COPIED, Copies
from evalbudget.repeats._copies import FEWEST


def _answers(said: str, first: int = 0) -> list[tuple[int, str]]:
    return [(first + i, text) for i, text in enumerate(said)]


def _heard(*rounds: str) -> Copies:
    copies = Copies()
    for said in rounds:
        for item, text in _answers(said):
            copies.remember(item, text)
    return copies


def test_what_is_no_round_of_copies() -> None:
    n = FEWEST
    assert Copies().among(_answers("a" * n)) == ([], 1.0)  # nothing to compare with
    assert _heard("a" * n).among(_answers("a" * (n - 1))) == ([], 1.0)  # too few
    assert _heard("abcdefgh").among(_answers("abcdefgz")) == ([], 1.0)  # one is new


def test_items_with_one_answer_tell_nothing() -> None:
    assert _heard("abcdefgh").among(_answers("abcdefgh")) == (list(range(8)), 1.0)


def test_whether_a_model_has_varied() -> None:
    assert not Copies().has_varied
    assert not _heard("abcdefgh", "abcdefgh").has_varied
    assert _heard("abcdefgh", "abcdefgz").has_varied


def test_how_probable_copies_are() -> None:
    # of four answers two are the same and the new one is of these; of one item all four are the same
    copies = _heard("abcdefgh", "ijklmnop", "aqrstuvw", "axyzABCD")
    found, chance = copies.among([(50, "new"), *_answers("aqrstuvw")])
    assert found == list(range(1, 9))  # and not what was asked for the first time
    assert chance == pytest.approx((4 / 5) * (2 / 5) ** 7)
    again = copies.among([*_answers("aqrstuvw"), (1, "q")])[1]
    assert again == pytest.approx(chance * 3 / 6)


def test_what_other_items_said_tells_nothing_of_these() -> None:
    copies = _heard("abcdefghijklmnopqrst", "ABCDEFGHIJKLMNOPQRST")
    for item, text in _answers("y" * FEWEST, first=50) * 2:
        copies.remember(item, text)
    found, chance = copies.among(_answers("y" * FEWEST, first=50))
    assert len(found) == FEWEST
    assert chance > COPIED  # these always say the same


@pytest.mark.parametrize("kinds", [2, variant(5), 50])
def test_models_that_draw_anew_are_not_taken_for_copies(kinds: int) -> None:
    rng, accused, rounds = np.random.default_rng(kinds), 0, 0
    for _ in range(300):
        share = rng.dirichlet(np.full(kinds, 0.3), size=FEWEST)  # some items nearly always say the same
        copies = Copies()
        for _ in range(6):
            said = [(item, str(rng.choice(kinds, p=p))) for item, p in enumerate(share)]
            found, chance = copies.among(said)
            accused += bool(found) and chance <= COPIED
            rounds += 1
            for item, text in said:
                copies.remember(item, text)
    assert (accused, rounds) == (0, 1800)


@pytest.mark.parametrize("items", [9, variant(12), variant(16), 32])
def test_a_task_of_two_replies_is_not_accused(items: int) -> None:
    """Both were said to most items after two rounds, and whatever is said then was said before."""
    rng = np.random.default_rng(items)
    accused = 0
    for said in rng.integers(2, size=(4000, 3, items)).astype(str):
        copies = _heard("".join(said[0]), "".join(said[1]))
        found, chance = copies.among(_answers("".join(said[2])))
        accused += bool(found) and chance <= COPIED
    assert accused == 0
