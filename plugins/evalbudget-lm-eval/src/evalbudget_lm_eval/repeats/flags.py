"""What a user can say of repeats and judges on lm-eval: as anywhere, and where what was paid for is kept."""

from dataclasses import replace

from evalbudget.flags import DRY_RUN, Flag
from evalbudget.judges.flags import JUDGE_PRICES, JUDGES, ROTATION
from evalbudget.repeats.flags import BUDGET, SAMPLER, SCORE
from evalbudget.repeats.flags import FLAGS as REPEATS

JOURNAL = Flag(
    "journal",
    "File that keeps what was paid for; continued if it exists, also with a higher budget. Of a finished run "
    "the results are shown again, for 0 calls.  [default: one below evalbudget-journals, in --output_path; "
    "none for no journal]",
    "PATH",
)
_OF_HOST = {
    BUDGET.name: replace(
        BUDGET,
        help="Calls of the model to buy: 2000, or 20x for 20 per document; or '$5', 2Mtok. Never exceeded.",
    ),
    SCORE.name: replace(SCORE, metavar="METRIC[,FILTER]"),
    SAMPLER.name: replace(SAMPLER, help="What decides; evalbudget plugins lists them.  [default: auto]"),
}

PANEL = (replace(JUDGES, metavar="MODEL:ARGS,..."), ROTATION, JUDGE_PRICES)
"""Of judges that take turns; they score in place of the task's own metrics."""

FLAGS = (
    *(_OF_HOST.get(flag.name, flag) for flag in REPEATS[:-2]),
    *PANEL,
    *REPEATS[-2:],
    *(JOURNAL, DRY_RUN),
)
