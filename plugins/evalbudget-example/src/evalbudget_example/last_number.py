"""A third-party scorer: whether the last number in the answer is the target."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from evalbudget.scorer import Scorer

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


class LastNumber(Scorer):
    """1 if the last number in the answer is that of the target, else 0; no score without a target."""

    name = "last_number"
    score_range = (0.0, 1.0)

    def score(self, item: Mapping[str, Any], answer: str) -> float:
        """See Scorer."""
        wanted, found = _NUMBER.findall(str(item["target"])), _NUMBER.findall(answer)
        if not wanted:
            return float("nan")
        return float(bool(found) and float(found[-1]) == float(wanted[-1]))
