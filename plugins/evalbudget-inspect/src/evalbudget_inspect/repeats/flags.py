"""What a user can say of repeats on inspect; what a repeat repeats, and judges, come on top."""

from evalbudget.flags import Flag
from evalbudget.judges.flags import FLAGS as JUDGES
from evalbudget.repeats.flags import FLAGS as REPEATS

REPEAT = Flag(
    "repeat",
    "generation: a fresh answer, scored; judge: the first answer, scored again.  [default: generation]",
    "WHAT",
)

FLAGS = (*REPEATS[:-2], REPEAT, *JUDGES, *REPEATS[-2:])
