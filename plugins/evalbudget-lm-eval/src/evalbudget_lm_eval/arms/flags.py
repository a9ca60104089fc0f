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
    "Models that stay loaded; switching loads weights anew.  [default: all if all are APIs, else "
    "as many as are asked at once]",
    "N",
    int,
)
ARMS_AT_ONCE = Flag(
    "arms_at_once",
    "Arms that are asked side by side; each has --batch_size and num_concurrent of its own. The race decides "
    "the same.  [default: one for each of --devices, else 1]",
    "N",
    int,
)
DEVICES = Flag(
    "devices",
    "Devices of arms whose models are loaded here, one for each arm at a time: cuda:0,cuda:1.",
    "NAME,NAME",
)
AT_ONCE = (ARMS_AT_ONCE, DEVICES)
