"""Sections of ``benchmarks/judges.py``: functions ``(quick) -> Found``."""
