"""Sections of benchmarks/audits.py."""
