"""Logs of the host as recorded scores: which logs and samples count, and what they say of themselves."""
