"""The default: chooses between the recommended repeats samplers by what the warm-up shows."""

from __future__ import annotations

from evalbudget.repeats.samplers._eb_bernstein import EBBernstein
from evalbudget.repeats.samplers._rating_kernel import RatingKernel


class Auto(RatingKernel):
    """``rating-kernel`` where the warm-up shows a scale of few levels, else ``eb-bernstein``.

    The choice falls once, at the end of the warm-up: at most 32 different scores, most of them
    seen more than once, and at least one item whose
    scores differ, and what one reading says about the next is learned from the pool; otherwise only how large
    the items' variances are. :attr:`chosen` says which it was.

    The arguments are those of :class:`~evalbudget.repeats.samplers._rating_kernel.RatingKernel`.
    """

    name = "auto"

    @property
    def chosen(self) -> str | None:
        """Name of the sampler that decides; None until it has made its first choice."""
        if not self._frozen:
            return None
        return EBBernstein.name if self._kernel is None else RatingKernel.name
