"""Sections of ``benchmarks/papers.py``: functions ``(quick, seeds) -> Found``."""
