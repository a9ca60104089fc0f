"""What a user can say of repeats."""

from evalbudget.flags import SAMPLER_OPTION, SAMPLER_SEED, Flag

BUDGET = Flag("budget", "Scores to buy: 2000, or 20x for 20 per item. Never exceeded.", "N|Nx")
SAMPLER = Flag(
    "sampler",
    "Registered sampler, of repeats, races or audits; see evalbudget plugins.  [default: auto]",
    "NAME",
)
SCORE = Flag("score", "Score that drives the sampler.  [default: the task's first]", "NAME")
SCORE_RANGE = Flag(
    "score_range",
    "Smallest and largest possible score, 1..10: gives every item a guaranteed interval.",
    "LOW..HIGH",
)

FLAGS = (BUDGET, SAMPLER, SCORE, SCORE_RANGE, SAMPLER_SEED, SAMPLER_OPTION)
