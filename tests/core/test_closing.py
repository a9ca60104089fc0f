from itertools import permutations

from evalbudget import Cell, Design, Reading, Sampler
from evalbudget.sampler import Eligible


class FirstItem(Sampler):
    """Writes the one method that must be written."""

    name = "first-item"

    def _next(self, eligible: Eligible | None) -> Cell | None:
        return Cell(epoch=self.asked)


def test_closing_does_not_depend_on_the_order_of_completion() -> None:
    values = [1.0, 0.0, None, None, None]  # three failures against two readings: open at max_failures=3
    for order in set(permutations(range(5))):
        sampler = FirstItem(Design.of_items(1), max_failures=3)
        requests = sampler.ask(5)
        sampler.tell(Reading(requests[i], values[i]) for i in order)
        assert sampler.closed == ()
    for order in set(permutations(range(5))):
        sampler = FirstItem(Design.of_items(1), max_failures=1)
        requests = sampler.ask(5)
        sampler.tell(Reading(requests[i], values[i]) for i in order)
        assert sampler.closed == (Cell(),)
