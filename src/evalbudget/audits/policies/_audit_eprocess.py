"""``audit-eprocess``: scores and labels come in any order, and are learned from in draw order."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from evalbudget.audits._draw import AuditDraw, Coin
from evalbudget.audits._evidence import Audited
from evalbudget.audits.policies._config import AuditConfig, HumanConfig, PolicyConfig
from evalbudget.audits.policies._eprocess_batches import Drawn, Frozen, Weighed
from evalbudget.audits.policies._eprocess_state import EProcess
from evalbudget.audits.policies._policy import AuditPolicy, Context
from evalbudget.audits.policies._second_pass import SecondBatch, SecondPass, SecondWeighed
from evalbudget.audits.policies._verdict import DECIDED, AuditOutcome, ModelEstimate, Verdict
from evalbudget.errors import InvalidInputError
from evalbudget.statistics._bounds import FloatArray


class AuditEProcess(AuditPolicy):
    r"""Every system left is judged on the same items; labels go where they tell most for their price.

    Predictions of labels are learned from past labels only; with a propensity pi for every label, :math:`Z =
    m + (A/\pi)(Y - m)` is unbiased whatever judge and predictions are worth, and e-processes on :math:`Z_i -
    Z_j` drop a system j once the evidence against it reaches 2/delta (see
    :mod:`evalbudget.audits._evidence`).
    Claims are about items like these: the pool is drawn in random order, each item once. When all are drawn
    without a winner a second pass labels the other answers of the systems left until it is decided about
    these items, at the latest when all are labelled (:mod:`evalbudget.audits.policies._second_pass`). A pool
    that is too small for the first pass is drawn at once.

    Labels count once those of all earlier contexts are there; when the labels of a batch are complete the
    next one is frozen.

    Args:
        config: settings.

    Raises:
        InvalidInputError: the settings are those of a policy that asks no judge, or the other way round.
    """

    name = "audit-eprocess"
    config_type: ClassVar[type[PolicyConfig]] = AuditConfig
    config: AuditConfig

    def __init__(self, config: AuditConfig) -> None:
        super().__init__(config)
        if config.use_judge != self.asks_judge:
            raise InvalidInputError(
                f"use_judge is {config.use_judge} and the policy {self.name}; audit-eprocess asks the judge, "
                "human-only asks none"
            )
        self.process = EProcess(config)
        self._first_index = 0
        self._late: set[int] = set()
        self._taken: set[int] = set()  # draws whose labels were taken in
        """Labels asked for and not needed any more; they are taken, and paid, when they come."""
        self._decided: int | None = None
        self._where: dict[int, tuple[int, int]] = {}
        self._open()

    # the batch under way

    @property
    def contexts(self) -> tuple[Context, ...]:
        """Contexts of the batch under way; empty when the audit is over."""
        return () if self._decided is not None or self.process.batch is None else self._contexts

    def judge(self, context: Context, scores: FloatArray) -> tuple[AuditDraw, ...]:
        """Take the judge's scores of one context; arguments and errors as in AuditPolicy."""
        position = context.number - self._contexts[0].number if not self.over else -1
        if not 0 <= position < len(self._contexts) or self._thrown[position]:
            return ()
        self._check_scores(context, scores)
        return self._throw(position, scores)

    def _throw(self, position: int, scores: FloatArray) -> tuple[AuditDraw, ...]:
        f = self.process.batch
        assert f is not None
        row = self.process.throw(scores[None, :], start=position)
        self._judge[position], self._wanted[position] = scores, row.wanted[0]
        self._prediction[position], self._propensity[position] = row.prediction[0], row.propensity[0]
        self._thrown[position] = True
        self._missing[position] = int(row.wanted.sum())
        self.scores_received += int(np.isfinite(scores).sum())
        again = isinstance(f, SecondBatch)
        draws = []
        for column, model in enumerate(f.arms.tolist()):
            if again and not row.wanted[0, column]:
                continue  # labelled in the first pass
            index = self._first_index + position * f.arms.size + column
            self._where[index] = (position, column)
            draws.append(
                AuditDraw(
                    index=index,
                    context=f.first + position,
                    model=model,
                    item=int(f.items[position]),
                    segment=self.config.segment_of(int(f.items[position])),
                    judge=float(row.judge[0, column]),
                    prediction=float(row.prediction[0, column]),
                    propensity=float(row.propensity[0, column]),
                    uniform=0.0 if isinstance(f, SecondBatch) else float(f.uniform[position, model]),
                    coin=Coin.NONE if again else self.config.coin,
                    leader=f.leader,
                    cap=math.inf if isinstance(f, SecondBatch) else f.cap,
                    policy=f.number,
                    wanted=bool(row.wanted[0, column]),
                )
            )
        self.draws += draws
        self._advance()
        return tuple(draws)

    def label(self, index: int, value: float) -> None:
        """Take the human label of a draw; arguments and errors as in AuditPolicy."""
        if index in self._late:
            self._late.discard(index)
            self.labels_received += not math.isnan(value)
            return
        at = self._where.get(index)
        if at is None and index in self._taken:  # its batch was learned from: nothing changes any more
            return
        wanted = at is not None and bool(self._wanted[at])
        before = float(self._label[at]) if at is not None and self._labelled[at] else None
        if not self._is_new(index, value, wanted=wanted, before=before) or at is None:
            return
        self._label[at] = value
        self._labelled[at] = True
        self._taken.add(index)
        self._missing[at[0]] -= 1
        self.labels_received += not math.isnan(value)
        self._advance()

    @property
    def wanted(self) -> tuple[int, ...]:
        """Indices of draws whose label is missing, in draw order."""
        f = self.process.batch
        if f is None or self._decided is not None:
            return ()
        rows = np.argwhere((self._wanted & ~self._labelled)[: self._limit])
        return tuple(self._first_index + int(p) * f.arms.size + int(c) for p, c in rows)

    @property
    def _limit(self) -> int | None:
        """Contexts of the batch whose labels may be asked for; None for all of them.

        With a limit on labels these are the first ones, as far as their coins have fallen without a gap.
        """
        if self.config.max_labels is None:
            return None
        thrown = int(self._thrown.argmin()) if not self._thrown.all() else self._thrown.size
        return self.process.affordable(self._drawn(thrown)) if thrown else 0

    def _drawn(self, n: int) -> Drawn:
        f = self.process.batch
        assert f is not None
        return Drawn(f, self._judge[:n], self._prediction[:n], self._propensity[:n], self._wanted[:n])

    def _open(self) -> None:
        for index, (position, column) in self._where.items():
            if self._wanted[position, column] and not self._labelled[position, column]:
                self._late.add(index)
        f = self.process.batch
        self._where = {}
        self._contexts = _contexts(f)
        shape = (0, 0) if f is None else (f.items.size, f.arms.size)
        self._judge: FloatArray = np.full(shape, np.nan)
        self._prediction: FloatArray = np.zeros(shape)
        self._propensity: FloatArray = np.ones(shape)
        self._wanted: NDArray[np.bool_] = np.zeros(shape, dtype=bool)
        self._label: FloatArray = np.full(shape, np.nan)
        self._labelled: NDArray[np.bool_] = np.zeros(shape, dtype=bool)
        self._thrown: NDArray[np.bool_] = np.zeros(shape[0], dtype=bool)
        self._missing: NDArray[np.int64] = np.zeros(shape[0], dtype=np.int64)
        self._complete = 0
        if f is not None and not f.judged:
            for position in range(shape[0]):
                if self.process.batch is f:  # it ends at once where no labels are allowed any more
                    self._throw(position, np.full(shape[1], np.nan))

    def _advance(self) -> None:
        """Weigh the contexts that are complete without a gap; learn when all are."""
        f = self.process.batch
        if f is None or self._decided is not None:
            return
        ready = self._thrown & (self._missing == 0)
        n = ready.size if ready.all() else int(ready.argmin())
        if n == self._complete and (n == ready.size or not self._thrown[n]):
            return
        thrown = int(self._thrown.argmin()) if not self._thrown.all() else self._thrown.size
        affordable = self.process.affordable(self._drawn(thrown))
        n = min(n, affordable)
        cut = affordable < thrown
        if n > self._complete and f.arms.size > 1:
            self._complete = n
            found = self.process.weigh(self._drawn(n), self._label[:n])
            self._decided = self._end(found, n)
            if self._decided is not None:
                return
        self._complete = n
        if n == f.items.size or (cut and n == affordable):
            self._first_index += f.items.size * f.arms.size
            drawn = self._drawn(thrown)
            self.process.learn(drawn, self._label[:n])
            self._open()

    def _end(self, found: Weighed | SecondWeighed, n: int) -> int | None:
        """Contexts until it was decided, if that is within the first n."""
        last_two = np.sort(found.first[self.process.active])[-2]
        end = int(min(last_two, found.equivalent))
        return end + 1 if end < n else None

    # what is known

    def verdict(self) -> Verdict:
        """What has been proved so far; never changes what is asked."""
        if self._decided is not None:
            # the rest of the batch is not needed: close it where the decision fell
            self.process.learn(self._drawn(self._decided), self._label[: self._decided])
            self._decided = None
        estimates = self._estimates()
        active = np.flatnonzero(self.process.active).tolist()
        outcome, winner, reason = self._outcome(estimates, active)
        return self._verdict(
            outcome,
            reason,
            estimates,
            self._intervals(estimates),
            winner=winner,
            no_go=self.process.no_go if self.config.use_judge else None,
            **self._pool(outcome),
        )

    def _intervals(self, estimates: tuple[ModelEstimate, ...]) -> str:
        """What the intervals are, in a sentence."""
        c = self.config
        level = f"{100 * (1 - c.delta):.6g}% intervals, anytime"
        level += "" if c.n_models == 1 else ", for all systems at once"
        if self.process.second is None:
            return f"{level}, of the mean over items like these; complete batches only"
        mixed = not all(each.of_pool for each in estimates)
        return (
            f"{level}, of the mean over these {c.n_items:,} items"
            + ", or over items like these for systems that were out before the second pass" * mixed
            + "; without width where every answer is labelled"
        )

    def _pool(self, outcome: AuditOutcome) -> dict[str, Any]:
        """What the verdict says of this pool, and of a second pass through it."""
        second, c = self.process.second, self.config
        more = second.wanted if second is not None and outcome is AuditOutcome.UNDECIDED else 0
        exact = second is not None and outcome in DECIDED and self._is_exact(second)
        return {
            "pool_used_up": second is not None,
            "exact": exact,
            "second_pass_labels": more,
            "second_pass_cost": c.label_price * more,
        }

    def _is_exact(self, second: SecondPass) -> bool:
        """Whether labels settle it among the systems left after the first pass, without any probability."""
        if self.config.n_models == 1:
            return second.complete(0)
        if self.process.near is not None:
            return False
        return bool(second.certain.all())

    def _estimates(self) -> tuple[ModelEstimate, ...]:
        policy, K = self.process, self.config.n_models
        total, seen, labels = np.zeros(K), np.zeros(K), np.zeros(K)
        for drawn, label in policy.past:
            n, arms = len(label), drawn.batch.arms
            wanted = drawn.wanted[:n].astype(np.float64)
            z = Audited.of(drawn.prediction[:n], drawn.propensity[:n], wanted, label)
            total[arms] += ((z.low + z.high) / 2.0).sum(axis=0)
            seen[arms] += n
            labels[arms] += (drawn.wanted[:n] & ~np.isnan(label)).sum(axis=0)
        judge_means = self._judge_means()
        second = policy.second
        means = second.estimates() if second is not None else None
        found = []
        for k in range(K):
            low, high = policy.interval(k)
            value = total[k] / seen[k] if seen[k] else math.nan
            if second is not None and means is not None and second.contenders[k]:
                value = means[k]
                labels[k] += second.labels[k]
            if seen[k]:  # corrected by few labels it may leave the scale
                value = min(max(value, low), high)
            found.append(
                ModelEstimate(
                    model=k,
                    value=float(value),
                    low=low,
                    high=high,
                    judged=int(seen[k]),
                    labels=int(labels[k]),
                    judge_mean=judge_means[k],
                    active=bool(policy.active[k]),
                    of_pool=second is not None and bool(second.contenders[k]),
                )
            )
        return tuple(found)

    def _outcome(
        self, estimates: tuple[ModelEstimate, ...], active: list[int]
    ) -> tuple[AuditOutcome, int | None, str]:
        policy, c, second = self.process, self.config, self.process.second
        sure = f"with probability {1.0 - c.delta:g}"
        where = "on items like these" if second is None else f"on these {c.n_items:,} items"
        if c.n_models > 1 and len(active) == 1:
            if second is None:
                return AuditOutcome.BEST, active[0], f"better than every other system {where}, {sure}"
            return AuditOutcome.BEST, active[0], self._won(second, active[0], where, sure)
        if policy.narrow:
            if second is not None and second.complete(0):
                reason = "every item is labelled: the mean is exact, for these items"
            else:
                about = "items like these" if second is None else f"these {c.n_items:,} items"
                reason = f"the interval of the mean over {about} is as narrow as wanted, {sure}"
            return AuditOutcome.ESTIMATED, active[0], reason
        if policy.near is not None:
            reason = f"no system is better than this one by {c.margin:g} or more {where}, {sure}"
            return AuditOutcome.EQUIVALENT, policy.near, reason
        if second is not None:
            return self._used_up(second, estimates, active)
        if policy.batch is not None:
            n = len(self.wanted)
            reason = f"{n} label{'s' if n > 1 else ''} wanted" if n else "the judge's scores are awaited"
            return AuditOutcome.UNDECIDED, None, reason
        if policy.stopped_by_judge:
            return (
                AuditOutcome.AUDIT_ONLY,
                None,
                "the judge is not worth its price here: label without it (no_go=continue, or human-only)",
            )
        return AuditOutcome.UNDECIDED, None, self._out_of_labels()

    def _won(self, second: SecondPass, winner: int, where: str, sure: str) -> str:
        """Why a system is the best of this pool."""
        out = int((~second.contenders).sum())
        if not second.certain.all():
            reason = f"better than every other system {where}, {sure}"
        elif all(second.complete(k) for k in np.flatnonzero(second.contenders).tolist()):
            whose = "the systems left" if out else "every system"
            reason = f"exact: every answer of {whose} is labelled, and its mean label {where} is the highest"
        else:
            reason = f"exact: whatever the labels not given would be, its mean label {where} is the highest"
        if out:
            many = f"{out} systems were" if out > 1 else "1 system was"
            reason += f"; {many} ruled out before, as worse on items like these, {sure}"
        return reason

    def _used_up(
        self, second: SecondPass, estimates: tuple[ModelEstimate, ...], active: list[int]
    ) -> tuple[AuditOutcome, int | None, str]:
        """Every item is drawn, and nothing is proved yet."""
        c, more = self.config, second.wanted
        drawn = f"all {c.n_items:,} items are drawn"
        if more == 0 and all(second.complete(k) for k in active) and c.n_models > 1:
            reason = f"{len(active)} systems have exactly equal means on these {c.n_items:,} items"
            if not (second.contenders.all() and second.certain.all()):
                reason += f"; the others were ruled out with probability {1.0 - c.delta:g}"
            return AuditOutcome.TIE, None, reason
        if c.n_models == 1:
            wide = (estimates[0].high - estimates[0].low) / 2.0
            open_ = f"the half-width is {wide:.3g}, not yet {c.half_width:g}"
        else:
            open_ = f"{len(active)} systems may still be the best"
        if more == 0:
            return (
                AuditOutcome.UNDECIDED,
                None,
                f"{drawn}, labels that were asked for never came, and {open_}",
            )
        price = (
            f"at most {more:,} more label{'s' * (more > 1)}, {c.label_price * more:,.6g} at "
            f"{c.label_price:g} each"
        )
        if self.process.batch is not None:
            whose = "its" if c.n_models == 1 else "their"
            what = f"a second pass labels {whose} other answers until it is decided"
        elif self.process.out_of_labels:
            drawn, what = f"{self._out_of_labels()}; {drawn}", "a second pass would decide it"
        else:
            what = "a second pass would decide it (second_pass=true)"
        return AuditOutcome.UNDECIDED, None, f"{drawn} and {open_}; {what}: {price}"

    def _out_of_labels(self) -> str:
        used, most = self.process.labels, self.config.max_labels
        allowed = f"{most} labels allowed are used up"
        if used == most:
            return f"all {allowed}"
        return f"{used} of the {allowed}, and the next item needs more than are left"


class HumanOnly(AuditEProcess):
    """The same without a judge: every item drawn is labelled for every system left."""

    name = "human-only"
    config_type: ClassVar[type[PolicyConfig]] = HumanConfig
    asks_judge = False


def _contexts(f: Frozen | SecondBatch | None) -> tuple[Context, ...]:
    if f is None:
        return ()
    if isinstance(f, SecondBatch):
        return tuple(
            Context(f.first + p, int(item), tuple(f.arms[f.wanted[p]].tolist()), False, True)
            for p, item in enumerate(f.items)
        )
    arms = tuple(f.arms.tolist())
    return tuple(Context(f.first + p, int(item), arms, f.judged) for p, item in enumerate(f.items))
