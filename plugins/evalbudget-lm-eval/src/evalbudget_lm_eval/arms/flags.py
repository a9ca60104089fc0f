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
    "Models that stay loaded here; switching loads weights anew.  [default: one, or one for each device]",
    "N",
    int,
)
DEVICES = Flag(
    "devices",
    "Devices of arms whose models are loaded here, which are asked side by side, one on each: cuda:0,cuda:1. "
    "Without them one is asked after the other.",
    "NAME,NAME",
)
