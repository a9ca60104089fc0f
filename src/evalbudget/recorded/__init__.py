"""Recorded scores: their layout, and the files they are read from."""
