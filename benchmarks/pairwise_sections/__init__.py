"""Sections of benchmarks/pairwise.py."""
