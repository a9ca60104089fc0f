"""``evalbudget demo``: the same task with plain epochs and with a budget, offline, through the real host."""
