"""Sizes that a purchase must bear: what they take in time and memory."""
