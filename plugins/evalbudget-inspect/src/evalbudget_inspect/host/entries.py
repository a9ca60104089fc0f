"""What both know: the names that inspect finds, and the race that asks it for them."""

MOST_ARMS = 64
"""Settings of one race by command: inspect knows a task by its name, so that each setting needs one."""


def entry_of_arm(number: int) -> str:
    """The registered name of a setting's task; numbers begin with 1."""
    return f"race_arm_{number}"
