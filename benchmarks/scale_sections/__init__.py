"""Sections of ``benchmarks/scale.py``."""
