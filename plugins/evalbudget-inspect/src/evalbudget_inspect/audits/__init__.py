"""Audits of inspect tasks: a scorer of the task judges, humans label what the coins ask for."""
