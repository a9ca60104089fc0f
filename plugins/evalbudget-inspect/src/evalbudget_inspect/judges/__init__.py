"""Judges in turns on inspect."""
