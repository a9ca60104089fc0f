"""What a user can say of a gate."""

from dataclasses import replace

from evalbudget.flags import JSON, LOWER_IS_BETTER, MISSING, PRICES, RISK, SAMPLER_SEED, Flag
from evalbudget.races.flags import BATCH as _BATCH
from evalbudget.races.flags import BUDGET, SCORE, SCORE_RANGE

BASELINE = Flag(
    "baseline", "What the candidate is compared with: a log, or a table that --save-baseline wrote.", "PATH"
)
BASELINE_MODEL = Flag(
    "baseline_model",
    "Asked on items that the baseline has no score on; without --baseline, on all items.",
    "MODEL",
)
MARGIN = Flag("margin", "What the candidate may be worse by, in the units of the score.", "M", float)
LEVEL = Flag("level", "Confidence that a verdict is right, at whatever moment.  [default: 0.95]", "P", float)
NOT_OF_A_RACE = (
    "is of gates; what a race may err with is --sampler-option delta=.05: the probability of naming a wrong "
    "model as the best"
)
"""Of that confidence."""
THESE_ITEMS = Flag(
    "these_items",
    "The verdict is about these items as scored once each, not about items and answers like them.",
    switch=True,
)
_LOWER = replace(LOWER_IS_BETTER, help="Lower scores are better, where the log does not say so itself.")
BATCH = replace(_BATCH, help="Items in the first round; later ones go by what a verdict lacks.")
REPEATS = Flag(
    "repeats",
    "Answers of each item.  [default: 1; more if a baseline with several shows that 1 cannot decide]",
    "N",
    int,
)
CLUSTER = Flag("cluster", "Field of an item that says which items belong together, such as document.", "NAME")
CANDIDATE = Flag("candidate", "Who is judged: a log that is there, or a model to evaluate.", "LOG|MODEL")
"""Of the command that takes logs, too."""
NOT_HERE = "is of evalbudget gate; here the candidate is --model"
MARKDOWN = Flag(
    "markdown_path",
    "Write the verdict as a comment for a pull request; - for standard output.",
    "PATH",
    spelled="markdown",
)
JUNIT = Flag(
    "junit_path", "Write the verdict as JUnit's XML; - for standard output.", "PATH", spelled="junit"
)

OUTPUT = (
    replace(JSON, help="Write the verdict to this file, as JSON; - for standard output."),
    MARKDOWN,
    JUNIT,
)
FLAGS = (
    *(BASELINE, BASELINE_MODEL, MARGIN, LEVEL, THESE_ITEMS, CLUSTER, REPEATS),
    *(
        replace(
            BUDGET,
            help="Evaluations to buy: 500, or '$5', or 2Mtok.  [default: every item]",
        ),
        PRICES,
        RISK,
    ),
    *(SCORE, SCORE_RANGE, _LOWER, MISSING, BATCH),
    replace(SAMPLER_SEED, help="Seed of the order of items.  [default: every gate has an order of its own]"),
    *OUTPUT,
)
