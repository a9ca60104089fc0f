"""Kills and disturbs real runs, and reconciles the server's bill; renders docs/benchmarks/chaos.md.

Usage::

    python benchmarks/chaos.py lm-eval --seeds 5
    python benchmarks/chaos.py all --write-docs
    python benchmarks/chaos.py all --quick

Exit code 1 if anything paid was lost, bought twice or beyond the budget, or if a command hung.
"""

from __future__ import annotations

import signal

from chaos_sections.campaign import inspect, lm_eval, money
from sections import Page, command

PAGE = Page(
    script="chaos",
    name="chaos",
    title="Chaos: the bill after kills and faults",
    sections={"lm-eval": lm_eval, "inspect": inspect, "money": money},
    strict=True,
)

main = command(PAGE)

if __name__ == "__main__":
    # a shell's background jobs ignore it, and so would every process that is started and interrupted here
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main()
