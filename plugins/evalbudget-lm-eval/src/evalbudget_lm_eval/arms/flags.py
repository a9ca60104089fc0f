"""What a user can say of several models on lm-eval."""

from dataclasses import replace

from evalbudget.flags import Flag
from evalbudget.races.flags import ARM as ANY_ARM

ARM = replace(
    ANY_ARM,
    help="One of the models: lm-eval's --model and --model_args. Give it several times.",
    metavar="NAME=MODEL:ARGS",
)
KEEP = Flag(
    "keep",
    "Models that stay loaded; switching loads weights anew.  [default: all if all are APIs, else 1]",
    "N",
    int,
)
