"""What a user can say of repeats on inspect, and of judges."""

from evalbudget.judges.flags import FLAGS as JUDGES
from evalbudget.repeats.flags import FLAGS as REPEATS

FLAGS = (*REPEATS[:-2], *JUDGES, *REPEATS[-2:])
