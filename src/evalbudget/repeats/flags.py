"""What a user can say of repeats."""

from evalbudget.flags import PRICES, RISK, SAMPLER_OPTION, SAMPLER_SEED, Flag

BUDGET = Flag(
    "budget",
    "Scores to buy in all: 2000, or 20x, 20 per item; or '$5', or 2Mtok. Never exceeded.",
    "N|Nx|$",
)
SAMPLER = Flag(
    "sampler",
    "What decides, for repeats, races or audits; evalbudget plugins lists them.  [default: auto]",
    "NAME",
)
SCORE = Flag(
    "score",
    "Score that the sampler goes by.  [default: the task's first]",
    "NAME",
)
SCORE_RANGE = Flag(
    "score_range",
    "Smallest and largest possible score, such as 1..10: gives every item a guaranteed interval.",
    "LOW..HIGH",
)
ESTIMATORS = Flag(
    "estimators",
    "Further estimates of the benchmark, by name (evalbudget plugins lists them).",
    "NAME,...",
)
UNTIL = Flag(
    "until",
    "End once items, or their mean, are known to ±W.",
    "item±W|±W",
)
STRATA = Flag(
    "strata",
    "Sample items in proportion to this field.",
    "FIELD",
)
CLUSTER = Flag(
    "cluster",
    "Items sharing this field are not independent.",
    "FIELD",
)
VARIANCES = Flag(
    "variances",
    "How much items vary, for sampler robin.",
    "FILE|LOG",
)
STORE = Flag(
    "store",
    "Share --budget with processes that meet at this file, or postgresql://user@host/db#name.",
    "ADDRESS",
)
SCORER = Flag(
    "scorer",
    "A plugin's scorer, in place of the task's own (evalbudget plugins lists them).",
    "NAME",
)
REPEAT = Flag(
    "repeat",
    "generation: a fresh answer, scored; judge: the first answer, scored again.  [default: generation]",
    "WHAT",
)
FLAGS = (
    *(BUDGET, UNTIL, PRICES, RISK, SAMPLER, STRATA, CLUSTER, SCORE, SCORE_RANGE, ESTIMATORS, SCORER, REPEAT),
    *(VARIANCES, STORE, SAMPLER_SEED, SAMPLER_OPTION),
)
