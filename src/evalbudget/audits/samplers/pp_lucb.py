"""pp-lucb: the published algorithm for a judge and few audits, as written or with its errata fixed."""

from __future__ import annotations

from numpy.typing import ArrayLike

from evalbudget.audits.policies.lucb import Allocator, Errata, LucbState
from evalbudget.audits.policies.lucb_session import LucbSession
from evalbudget.audits.samplers.audit_sampler import AuditSampler
from evalbudget.design import Design
from evalbudget.errors import UnknownNameError


class PPLUCB(AuditSampler):
    """Leader and challenger are judged and audited with a coin until their intervals part.

    Formulas and errata: :mod:`evalbudget.audits.policies.lucb`. As the paper states it the rule needs tens of
    thousands of scores at a gap of .1; its tables stop at a fixed number of pulls instead: ``pulls``.

    Args:
        design: the systems, the items and the raters: judge, human.
        delta: probability of a wrong answer.
        allocator: ``uniform``, ``price-of-precision``, ``uncertainty-weighted``, ``neyman`` or ``oracle``.
        rho: the audit rate aimed at.
        least_propensity: pi_min; None for rho with ``uniform`` and .01 otherwise, as the paper has it.
        errata: ``literal`` or ``fixed``.
        pulls: stop after so many in all and name the leader; None: when leader and challenger have parted.
        prices: of a judge's score and of a label.
        truth: for ``oracle``: E (Y - F)^2 per system and fifth of the scale, shape (systems, 5).
        max_labels: never more than these; an attempt that fails is none, see max_failures.
        score_range: smallest and largest possible label.
        judge_range: of the judge; None for the same.
        seed: of the order of items and of the coins.
        max_failures: see Sampler.

    Raises:
        UnknownNameError: no such allocator, or neither literal nor fixed.
        InvalidInputError: see AuditSampler and LucbState.
    """

    name = "pp-lucb"

    def __init__(
        self,
        design: Design,
        *,
        delta: float = 0.05,
        allocator: str = Allocator.UNIFORM,
        rho: float = 0.1,
        least_propensity: float | None = None,
        errata: str = Errata.LITERAL,
        pulls: int | None = None,
        prices: tuple[float, float] = (1.0, 20.0),
        truth: ArrayLike | None = None,
        max_labels: int | None = None,
        score_range: tuple[float, float] = (0.0, 1.0),
        judge_range: tuple[float, float] | None = None,
        seed: int = 0,
        max_failures: int = 3,
    ) -> None:
        for kind, given in ((Allocator, allocator), (Errata, errata)):
            known = [member.value for member in kind]
            if given not in known:
                raise UnknownNameError(kind.__name__.lower(), given, known)
        self._given = {
            "delta": delta,
            "rho": rho,
            "least": least_propensity,
            "allocator": Allocator(allocator),
            "errata": Errata(errata),
            "prices": prices,
            "truth": truth,
        }
        self._ends = {"prices": prices, "pulls": pulls, "max_labels": max_labels}
        super().__init__(
            design,
            prices=prices,
            score_range=score_range,
            judge_range=judge_range,
            seed=seed,
            max_failures=max_failures,
            options={
                "delta": delta,
                "allocator": str(allocator),
                "rho": rho,
                "least_propensity": least_propensity,
                "errata": str(errata),
                "pulls": pulls,
                "max_labels": max_labels,
            },
        )

    def _start(self) -> LucbSession:
        state = LucbState(self.design.n_models, **self._given)  # type: ignore[arg-type]
        return LucbSession(
            state,
            self.design.n_models,
            self.design.n_items,
            seed=self.seed,
            **self._ends,  # type: ignore[arg-type]
        )
