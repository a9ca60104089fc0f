"""What a user can say of judges that take turns."""

from evalbudget.flags import Flag

JUDGES = Flag(
    "judges",
    "Judge models that take turns, or a .yaml file of them; with arguments: "
    "'cold={model: a, temperature: 0},b'.",
    "A,B,...",
)
ROTATION = Flag(
    "rotation",
    "Which judge scores what: cyclic, random, priced, single, all, modulo.  [default: cyclic]",
    "NAME",
)
JUDGE_PRICES = Flag(
    "judge_prices",
    "Price of one call of each judge, for --rotation priced and the log.",
    "A=1,B=5,...",
)
JUDGE_ROLE = Flag("judge_role", "Model role in which the judges take turns.  [default: grader]", "ROLE")

FLAGS = (JUDGES, ROTATION, JUDGE_PRICES, JUDGE_ROLE)
