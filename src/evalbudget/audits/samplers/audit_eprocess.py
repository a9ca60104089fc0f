"""audit-eprocess: a judge, few human labels, and a verdict that holds however often one looks."""

from __future__ import annotations

from evalbudget.audits.draw import Coin
from evalbudget.audits.policies import AuditConfig, AuditSession, NoGo
from evalbudget.audits.samplers.audit_sampler import AuditSampler
from evalbudget.design import Design


class AuditEProcess(AuditSampler):
    r"""Every system left is judged on the same items; labels go where they tell most for their price.

    Predictions of labels are learned from past labels only; with a propensity pi for every label, :math:`Z =
    m + (A/\pi)(Y - m)` is unbiased whatever judge and predictions are worth, and e-processes on :math:`Z_i -
    Z_j` drop a system j once the evidence against it reaches 2/delta (see :mod:`evalbudget.audits.evidence`).
    Claims are about items like these: the pool is drawn in random order, each item once. When all are drawn
    without a winner a second pass labels the other answers of the systems left until it is decided about
    these items, at the latest when all are labelled (:mod:`evalbudget.audits.policies.second_pass`). A pool
    that is too small for the first pass is drawn at once.

    Args:
        design: the systems, the items (categories are the segments) and the raters: judge, human.
        delta: probability of a wrong verdict.
        prices: of a judge's score and of a label.
        margin: share of the score range; also stop when no system can be better than one by this or more.
        half_width: with one system: of the interval wanted of its mean, as a share of the score range.
        pilot: labels to expect of the first batch.
        batch: labels to expect of the later ones.
        max_labels: never more than these; an attempt that fails is none, see max_failures.
        second_pass: False ends undecided once every item is drawn.
        no_go: ``continue`` without the judge or ``stop`` when it is not worth its price.
        coin: ``disjoint``, ``shared`` or ``independent``.
        score_range: smallest and largest possible label.
        judge_range: of the judge; None for the same.
        seed: of the order of items and of the coins.
        max_failures: see Sampler.

    Raises:
        InvalidInputError: see AuditSampler and AuditConfig.
    """

    name = "audit-eprocess"
    use_judge = True

    def __init__(
        self,
        design: Design,
        *,
        delta: float = 0.05,
        prices: tuple[float, float] = (1.0, 20.0),
        margin: float = 0.0,
        half_width: float | None = None,
        pilot: int = 40,
        batch: int = 50,
        max_labels: int | None = None,
        second_pass: bool = True,
        no_go: str = NoGo.CONTINUE,
        coin: str = Coin.DISJOINT,
        score_range: tuple[float, float] = (0.0, 1.0),
        judge_range: tuple[float, float] | None = None,
        seed: int = 0,
        max_failures: int = 3,
    ) -> None:
        names = sorted(set(design.categories)) if design.categories is not None else []
        number = {name: index for index, name in enumerate(names)}
        self.audit = AuditConfig(
            n_models=design.n_models,
            n_items=design.n_items,
            segments=tuple(number[name] for name in design.categories) if design.categories else None,
            delta=delta,
            price_judge=prices[0],
            price_label=prices[1],
            margin=margin,
            half_width=half_width,
            pilot=pilot,
            batch=batch,
            max_labels=max_labels,
            second_pass=second_pass,
            no_go=NoGo(no_go),
            coin=Coin(coin),
            use_judge=self.use_judge,
            seed=seed,
        )
        super().__init__(
            design,
            prices=prices,
            score_range=score_range,
            judge_range=judge_range,
            seed=seed,
            max_failures=max_failures,
            options={
                "delta": delta,
                "margin": margin,
                "half_width": half_width,
                "pilot": pilot,
                "batch": batch,
                "max_labels": max_labels,
                "second_pass": second_pass,
                "no_go": str(no_go),
                "coin": str(coin),
            },
        )

    def _start(self) -> AuditSession:
        return AuditSession(self.audit)


class HumanOnly(AuditEProcess):
    """The same without a judge: every item drawn is labelled for every system left.

    Arguments as :class:`AuditEProcess`.
    """

    name = "human-only"
    use_judge = False
