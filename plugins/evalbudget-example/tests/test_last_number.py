from math import nan

from evalbudget.testing import ScorerContract
from evalbudget_example.last_number import LastNumber


class TestLastNumber(ScorerContract):
    """The contract of every scorer."""

    scorer = LastNumber
    cases = (
        ({"input": "2 + 2?", "target": "4"}, "It is 4.", 1.0),
        ({"input": "2 + 2?", "target": "4"}, "4 or 5", 0.0),
        ({"input": "2 + 2?", "target": "4"}, "four", 0.0),
        ({"input": "half?", "target": "x = 0.50"}, "0.5", 1.0),
        ({"input": "?", "target": ""}, "4", nan),
    )
