"""evalbudget's hooks: the ``evalbudget lm-eval`` command and the reader of ``samples_*.jsonl``."""

from __future__ import annotations
