"""Sections of ``benchmarks/racing.py``: functions ``(quick, seeds) -> Found``."""
