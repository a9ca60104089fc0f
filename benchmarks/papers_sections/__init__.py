"""Sections of ``benchmarks/papers.py``, one per paper: functions ``(quick) -> Found``."""
