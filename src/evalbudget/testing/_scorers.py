"""The contract of a scorer, as tests to inherit."""
# the names of the tests say what they test

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from evalbudget.scorer import Scorer

_ODD = ("", " ", "\n", "0", "-1.5", "nan", "é—漢", "word " * 2000)


class ScorerContract:
    """What every scorer must do; inherit in a class named ``Test...`` and set :attr:`scorer`.

    Attributes:
        scorer: the class.
        cases: items, answers to them, and their scores; nan where there is none.
    """

    scorer: ClassVar[type[Scorer]]
    cases: ClassVar[Sequence[tuple[Mapping[str, Any], str, float]]]

    def test_it_gives_these_scores(self) -> None:
        assert self.cases
        for item, answer, score in self.cases:
            found = self.scorer().score(item, answer)
            assert found == score or (math.isnan(found) and math.isnan(score)), (answer, found)

    def test_it_says_the_same_again_and_changes_nothing(self) -> None:
        for item, answer, _ in self.cases:
            before, made = copy.deepcopy(dict(item)), self.scorer()
            one, two = made.score(item, answer), made.score(item, answer)
            assert one == two or (math.isnan(one) and math.isnan(two))
            assert dict(item) == before

    def test_no_answer_is_an_error_and_every_score_is_in_the_range(self) -> None:
        low, high = self.scorer.score_range or (-math.inf, math.inf)
        for item in ({"input": "", "target": ""}, *(item for item, *_ in self.cases)):
            for answer in _ODD:
                found = float(self.scorer().score(item, answer))
                assert math.isnan(found) or low <= found <= high
