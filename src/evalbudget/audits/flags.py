"""What a user can say of an audit."""

from dataclasses import replace

from evalbudget.flags import LOWER_IS_BETTER, PRICES, RISK, SAMPLER_OPTION, SAMPLER_SEED, Flag

BUDGET = Flag(
    "budget",
    "What calls of models, judges and scorers may cost together: '$5', or 2Mtok. Never exceeded. Labels by "
    "people are no calls, and not in it.",
    "$",
)

JUDGE = Flag(
    "judge",
    "Scorer to check, or the model role that it asks.  [default: the task's first scorer]",
    "SCORER|ROLE",
)
LABELS_FROM = Flag("labels_from", "Scorer of the task that labels in place of people.", "SCORER")
SAMPLER = Flag("sampler", "Audit policy; evalbudget plugins lists them.  [default: audit-eprocess]", "NAME")
SCORE_RANGE = Flag(
    "score_range",
    "Smallest and largest possible score, of judge and labels; '1..10 by 1' has people label in whole "
    "numbers.  [default: 0..1 by 1: no or yes]",
    "LOW..HIGH",
)
MARGIN = Flag(
    "margin",
    "Also stop once no model can beat the leader by this share of the score range.",
    "E",
    float,
)
LABEL_PRICE = Flag("label_price", "Price of a label, in scores of the judge.  [default: 20]", "P", float)
LABEL_PRICE_OR_MONEY = replace(
    LABEL_PRICE,
    help="Price of a label: in scores of the judge, or in money with a --budget in money.  [default: 20]",
    metavar="P|$",
    type=str,
)
LABELS_PER_BATCH = Flag(
    "labels_per_batch",
    "About how many labels to ask for at a time.  [default: a tenth of those so far, from 10 to 50]",
    "N",
    int,
)
MAX_LABELS = Flag("max_labels", "Never ask for more labels than this.", "N", int)

FLAGS = (
    *(JUDGE, LABELS_FROM, SAMPLER, SCORE_RANGE, LOWER_IS_BETTER, MARGIN, BUDGET, PRICES, RISK),
    *(LABEL_PRICE_OR_MONEY, LABELS_PER_BATCH, MAX_LABELS, SAMPLER_SEED, SAMPLER_OPTION),
)
