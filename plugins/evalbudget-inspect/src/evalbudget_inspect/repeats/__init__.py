"""Repeats of items on inspect."""
