"""The evaluation of CyclicJudge's paper, rebuilt from its published figures: three models, five judges.

Table 2 gives each model's mean and components. Table 1 gives what three of the judges say of it; the
deviations of the other two follow from their sum, 0, and from the sum of all squares, K sigma_gamma^2. Which
of the two is whose, no published figure tells, and none printed here depends on it. Scores are normal and not
rounded; scenarios of different models are independent of each other, as the paper has no figure for that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalbudget.judges.estimates import JudgeScores
from judges_sections.found import Floats, World

JUDGES = ("Qwen", "Llama", "GPT", "Gemini", "Claude")
SCENARIOS, GENERATIONS = 80, 10


@dataclass(frozen=True)
class Published:
    """A column of Table 2, and the judges' deviations.

    Attributes:
        mean: over all scores.
        item: sigma_alpha^2, of scenarios.
        generation: sigma_beta^2.
        judge: sigma_gamma^2.
        residual: sigma_epsilon^2.
        f: statistic of the judges, with (4, 3196) degrees of freedom.
        gamma: deviation of each judge, in the order of :data:`JUDGES`.
        single: Table 1, by judge: mean and half-width of its interval.
    """

    mean: float
    item: float
    generation: float
    judge: float
    residual: float
    f: float
    gamma: tuple[float, ...]
    single: dict[str, tuple[float, float]]

    @property
    def components(self) -> tuple[float, ...]:
        """Item, generation, judge, residual: the order of Table 2."""
        return self.item, self.generation, self.judge, self.residual

    def table(self, rng: np.random.Generator, n: int = SCENARIOS, m: int = GENERATIONS) -> Floats:
        """Scores of the whole crossed design, shape (n, 5, m)."""
        world = World(self.item, self.generation, 0.0, self.residual, np.array(self.gamma))
        return self.mean + world.draw(n, m, rng)

    def rotation_constants(self) -> Floats:
        """N B times V_A, V_B, V_C, Eqs. 3-5: all judges, random ones, judges in turn."""
        together = self.generation + self.residual
        return np.array(
            [len(JUDGES) * self.generation + self.residual, together + self.judge, together], dtype=np.float64
        )

    def pool_constants(self, m: int = GENERATIONS) -> Floats:
        """What :func:`rotation_constants` are on average where a pool of m generations is subsampled."""
        K, left = len(JUDGES), 1 - 1 / m
        return np.array(
            [
                left * (K * self.generation + self.residual),
                left * self.generation + self.judge + (1 - 1 / (K * m)) * self.residual,
                left * (self.generation + self.residual),
            ]
        )


MODELS = {
    "Qwen": Published(
        7.13,
        1.530,
        0.266,
        0.947,
        1.486,
        638,
        (0.89, 1.26, -1.03, 0.02, -1.14),
        {"Qwen": (8.02, 0.16), "Llama": (8.39, 0.16), "GPT": (6.10, 0.20)},
    ),
    "Llama": Published(
        7.87,
        0.882,
        0.238,
        0.503,
        1.130,
        446,
        (0.00, 0.84, -0.97, 0.72, -0.59),
        {"Qwen": (7.87, 0.17), "Llama": (8.71, 0.11), "GPT": (6.90, 0.21)},
    ),
    "GPT": Published(
        8.72,
        0.634,
        0.076,
        0.339,
        0.564,
        602,
        (-0.81, 0.09, -0.05, 0.99, -0.22),
        {"Qwen": (7.91, 0.16), "Llama": (8.81, 0.11), "GPT": (8.67, 0.12)},
    ),
}


def one_table() -> dict[str, Floats]:
    """The table of 80 x 5 x 10 scores per model that Table 1, Figure 2 and the plans share."""
    rng = np.random.default_rng(1)
    return {name: model.table(rng) for name, model in MODELS.items()}


def scores_of(table: Floats) -> JudgeScores:
    """As the estimators want them."""
    return JudgeScores.from_table(table, judges=JUDGES)
