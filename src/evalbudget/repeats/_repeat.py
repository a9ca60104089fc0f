"""What a repeat repeats."""

from evalbudget.errors import Choice


class Repeat(Choice):
    """What a repeat repeats."""

    GENERATION = "generation"
    """Everything: a fresh answer, scored."""
    JUDGE = "judge"
    """The scoring only: the item's first answer is kept and scored again."""
