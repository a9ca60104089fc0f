"""Repeats of items on lm-eval."""
