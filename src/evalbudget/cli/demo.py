"""``evalbudget demo``: a small budgeted run, offline."""

from __future__ import annotations

import click


@click.command()
def demo() -> None:
    """Run a real budgeted evaluation offline and compare it with uniform repeats."""
