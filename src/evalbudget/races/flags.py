"""What a user can say of a race."""

from evalbudget.flags import (
    JSON,
    LOWER_IS_BETTER,
    MISSING,
    PRICES,
    RISK,
    SAMPLER_OPTION,
    SAMPLER_SEED,
    Flag,
)

ARM = Flag("arms", "Who races; give it several times.", "NAME=...", repeated=True, spelled="arm")
BUDGET = Flag(
    "budget",
    "Evaluations of all models together: 5000, 20x for 20 per item, 5% of models x items; or '$5', or 2Mtok.",
    "N|Nx|N%|$",
)
UNTIL_PROVED = Flag(
    "until_proved",
    "Go on until the best is proved; --budget is then a cap, by default all models x items.",
    switch=True,
)
UNTIL = Flag(
    "until",
    "Go on until every model's mean is known to within ±0.02, say, whoever is best; a single model will do. "
    "--budget is then a cap, by default all models x items.",
    "±W",
)
SAMPLER = Flag(
    "sampler", "What decides; evalbudget plugins lists samplers of models.  [default: race]", "NAME"
)
SCORE = Flag("score", "Score that decides.  [default: the task's first]", "NAME")
SCORE_RANGE = Flag("score_range", "Smallest and largest possible score.  [default: 0..1]", "LOW..HIGH")
BATCH = Flag(
    "batch",
    "Items a model is given at a time; with --sampler race, evaluations of all models together in a round, "
    "at least, and nothing with --until-proved.",
    "N",
    int,
)
MARGIN = Flag("margin", "With --sampler lucb: models this close to the best count as equivalent.", "E", float)
HISTORY = Flag(
    "history",
    "Earlier logs or recorded scores of other models on these items, or factors learned from them.",
    "PATH",
)

STORE = Flag(
    "store",
    "Where processes that run some arms each meet: a file, or postgresql://user@host/database#name.",
    "ADDRESS",
)
ALL_ARMS = Flag("all_arms", "With --store: how many arms race, over all processes.", "N", int)

FLAGS = (
    *(ARM, BUDGET, PRICES, RISK, UNTIL_PROVED, UNTIL, SAMPLER, SCORE, SCORE_RANGE),
    *(
        LOWER_IS_BETTER,
        MISSING,
        BATCH,
        MARGIN,
        HISTORY,
        STORE,
        ALL_ARMS,
        SAMPLER_SEED,
        SAMPLER_OPTION,
        JSON,
    ),
)
