"""The smallest budget that a run can start with."""

from __future__ import annotations

from evalbudget.repeats.samplers import RepeatSampler
from evalbudget_inspect.repeats.config import Config

FEWER = "fewer items with --limit"


def least_of(
    config: Config, sampler: RepeatSampler, n_items: int, epochs: int, attempts: int
) -> tuple[int, str]:
    """The smallest budget that such a run can start with, and why."""
    if config.draws:
        return attempts, f"a reading takes up to {attempts} attempts (--retry-on-error)"
    by_host = n_items * epochs * attempts
    repeats = sampler.fixed_repeats
    by_sampler = n_items * repeats + attempts - 1  # room to ask the last of them
    why = f"{config.sampler} reads each of the {n_items} items {repeats} times before it chooses"
    if epochs * attempts > config.fixed_repeats:
        why = f"{n_items} items x {epochs} epochs"
        why += f" x {attempts} attempts (--retry-on-error)" if attempts > 1 else " (--epochs)"
    return max(by_host, by_sampler), why
