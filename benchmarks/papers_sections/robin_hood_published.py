"""Table 2 of arXiv 2602.15481: worst-item error, mean and error over 50 runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Figure = tuple[float, float]
"""Mean and printed error; nan where there is none."""

MEAN = "mean of the rows"


@dataclass(frozen=True)
class Row:
    """One judge and attribute: uniform, ROBIN-HOOD, ROBIN at 50,000, and the same at 100,000."""

    name: str
    figures: tuple[Figure, Figure, Figure, Figure, Figure, Figure]

    @property
    def halved(self) -> bool:
        """Whether ROBIN-HOOD at 50,000 is at or below uniform at 100,000."""
        return self.figures[1][0] <= self.figures[3][0]

    @property
    def ahead_of_robin(self) -> bool:
        """Whether ROBIN-HOOD is below ROBIN at 50,000."""
        return self.figures[1][0] < self.figures[2][0]

    @property
    def fall(self) -> float:
        """ROBIN-HOOD at 100,000 over itself at 50,000."""
        return self.figures[4][0] / self.figures[1][0]


ROWS = (
    Row(
        "Llama complexity",
        ((0.385, 0.011), (0.324, 0.010), (0.314, 0.007), (0.266, 0.006), (0.233, 0.009), (0.202, 0.003)),
    ),
    Row(
        "GPT complexity",
        ((0.437, 0.010), (0.368, 0.011), (0.381, 0.011), (0.320, 0.007), (0.287, 0.013), (0.251, 0.007)),
    ),
    Row(
        "Llama correctness",
        ((0.420, 0.015), (0.296, 0.006), (0.288, 0.006), (0.310, 0.012), (0.219, 0.006), (0.195, 0.004)),
    ),
    Row(
        "GPT correctness",
        ((0.451, 0.012), (0.300, 0.008), (0.273, 0.006), (0.321, 0.007), (0.249, 0.011), (0.187, 0.003)),
    ),
    Row(
        "Llama helpfulness",
        ((0.383, 0.007), (0.314, 0.006), (0.321, 0.007), (0.265, 0.006), (0.255, 0.009), (0.203, 0.004)),
    ),
    Row(
        "GPT helpfulness",
        ((0.413, 0.016), (0.265, 0.005), (0.263, 0.005), (0.291, 0.012), (0.220, 0.005), (0.187, 0.004)),
    ),
    Row(
        "Llama verbosity",
        ((0.523, 0.017), (0.360, 0.010), (0.343, 0.007), (0.369, 0.010), (0.275, 0.010), (0.243, 0.007)),
    ),
    Row(
        "GPT verbosity",
        ((0.455, 0.012), (0.342, 0.009), (0.331, 0.008), (0.322, 0.008), (0.289, 0.013), (0.225, 0.005)),
    ),
)


def mean_of_rows() -> tuple[float, ...]:
    """Each column's mean over the eight rows."""
    return tuple(np.mean([[value for value, _ in row.figures] for row in ROWS], axis=0).tolist())


def row_of(name: str) -> tuple[Figure, ...]:
    """The figures of a row; of their mean, with the error of a mean of eight."""
    for row in ROWS:
        if row.name == name:
            return row.figures
    errors = np.sqrt(np.sum([[error**2 for _, error in row.figures] for row in ROWS], axis=0)) / len(ROWS)
    return tuple(zip(mean_of_rows(), errors.tolist(), strict=True))
