"""What a user can say of comparisons that a judge makes."""

from dataclasses import replace

from evalbudget.flags import JSON, SAMPLER_OPTION, SAMPLER_SEED, Flag
from evalbudget.races.flags import UNTIL_PROVED

JUDGE = Flag("judge", "The model that compares, as the host names it.", "MODEL")
BUDGET = Flag(
    "budget", "Calls of the judge: 400, 2x for 2 per item, 20% of all pairs, items and orders.", "N|Nx|N%"
)
SAMPLER = Flag(
    "sampler", "What decides; evalbudget plugins lists samplers of pairs.  [default: duel]", "NAME"
)
TEMPLATE = Flag(
    "template", "File with what the judge is asked, with {input}, {first} and {second} in it.", "PATH"
)
LEVEL = Flag("level", "Of intervals, and of all that is proved.  [default: 0.95]", "P", float)
ORDERS = Flag(
    "orders",
    "fresh: every item in one order first, in turn; both: in both at once.  [default: fresh]",
    "fresh|both",
)
RECORD = Flag(
    "record",
    "Where what is bought is kept; the same command goes on from it.  [default: a file beside the logs]",
    "PATH",
)
SAVE = Flag("save_path", "Write the preferences: .csv, .tsv, .json or .jsonl.", "PATH", spelled="save")

OUTPUT = (SAVE, replace(JSON, help="Write the reading to this file, as JSON."))
FLAGS = (
    BUDGET,
    replace(
        UNTIL_PROVED,
        help="Stop once a winner is proved; --budget is then a cap, by default all comparisons.",
    ),
    *(SAMPLER, ORDERS, TEMPLATE, LEVEL, RECORD, SAMPLER_SEED, SAMPLER_OPTION),
    *OUTPUT,
)
