from collections import Counter

from evalbudget import Design
from evalbudget.testing import SamplerContract, play
from evalbudget_example.widest_range import WidestRange


class TestWidestRange(SamplerContract):
    """The contract of every sampler: same seed same decisions, failures, resuming and so on."""

    def make(self, design: Design, seed: int) -> WidestRange:
        return WidestRange(design, seed=seed)


def test_asks_the_item_whose_scores_range_widest() -> None:
    played = play(
        WidestRange(Design.of_items(3)),
        60,
        score=lambda cell: 0.0 if cell.item < 2 else float(cell.epoch % 2),
    )
    counts = Counter(reading.request.cell.item for reading in played.readings)
    assert counts == {0: 3, 1: 3, 2: 54}
