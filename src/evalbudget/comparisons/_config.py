"""What the user asked of a gate that buys the candidate's scores, checked before anything runs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from evalbudget.budget import Budget
from evalbudget.comparisons._baseline import UNNAMED, Baseline
from evalbudget.errors import InvalidInputError
from evalbudget.hooks._plugins import plugins
from evalbudget.missing import Missing, as_missing
from evalbudget.races import RaceConfig
from evalbudget.recorded._direction import with_lower_better
from evalbudget.statistics._bounds import check_level

SAMPLER = "gate"
_LEAST_LEVEL = 0.5
NO_NAME = "model"
"""Of the model of a table that names none."""
_VARIANCES = 8.0
"""Of paired differences, by the margin squared: items that prove "not worse" where there is no difference."""
MOST_REPEATS = 20
_FEWEST = 2


@dataclass(frozen=True)
class GateConfig(RaceConfig):
    """One gate: a race of the candidate with a baseline whose scores are there.

    Attributes:
        budget: evaluations of the candidate; None for every item of the baseline.
        sampler: :class:`~evalbudget.comparisons.GateSampler`.
        baseline: log, or table of scores; empty where all scores of the baseline are bought.
        baseline_model: asked on items that the baseline has no score on; None: these are left out.
        cluster: field of items that says which belong together.
        repeats: answers of each item; None for as many as the baseline's noise makes necessary.
        seed_chosen: the user chose the seed of the order of items. Otherwise every gate has an order of its
            own: with one for all, a baseline that was unlucky on its first items would mislead every gate.

    Raises:
        InvalidInputError: no baseline or no margin, a baseline that does not exist; see also RaceConfig.
    """

    sampler: str = SAMPLER
    baseline: str = ""
    baseline_model: str | None = None
    cluster: str | None = None
    repeats: int | None = None
    seed_chosen: bool = False

    def __post_init__(self) -> None:
        if not self.baseline and self.baseline_model is None:
            raise InvalidInputError(
                "a gate needs what the candidate is compared with: --baseline main.eval, a log or a table "
                "that --save-baseline wrote, or --baseline-model, which is then asked the same items"
            )
        if self.baseline and not Path(self.baseline).exists():
            raise InvalidInputError(
                f"--baseline {self.baseline} does not exist (looked from {Path.cwd()}); give a log, or a "
                "table that --save-baseline wrote"
            )
        if "margin" not in self.options:
            raise InvalidInputError(
                "a gate needs --margin, what the candidate may be worse by: for example --margin 0.01"
            )
        if self.cluster is not None and self.options.get("these_items"):
            raise InvalidInputError(
                "--cluster says which items were sampled together, and --these-items that none were sampled; "
                "give one of them"
            )
        if self.cluster is not None and self.baseline_model is not None:
            raise InvalidInputError(
                f"--cluster {self.cluster} is read from the baseline's log, which does not have all items "
                "where --baseline-model is asked; give one of them"
            )
        if self.repeats is not None and not 1 <= self.repeats <= MOST_REPEATS:
            raise InvalidInputError(
                f"--repeats {self.repeats}: give the answers of each item, 1 to {MOST_REPEATS}"
            )
        super().__post_init__()

    @property
    def takes_one(self) -> bool:
        """The other one is a baseline that is not asked."""
        return self.baseline_model is None

    @property
    def until_proved(self) -> bool:
        """A gate goes on until it is decided, within the budget."""
        return True

    def resolve_budget(self, n_items: int, n_models: int) -> Budget:
        """See RaceConfig; a baseline that is not asked, one of the models, is not bought.

        Without a budget every item may be asked, and what failed or was cut off again.
        """
        bought = max(n_models - (self.baseline_model is None), 1)
        return (
            Budget(2 * n_items * bought) if self.budget is None else super().resolve_budget(n_items, bought)
        )

    @classmethod
    def of(cls, **typed: Any) -> Self:
        """See RaceConfig; a level is 1 - delta."""
        level = typed.pop("level", None)
        if level is not None:
            if check_level(float(level)) < _LEAST_LEVEL:
                raise InvalidInputError(
                    f"--level {float(level):g} is the confidence that a verdict is right, and a coin has "
                    "0.5; give for example 0.95"
                )
            typed["delta"] = 1.0 - float(level)
        typed["these_items"] = typed.get("these_items") or None
        typed["seed_chosen"] = typed.get("seed") is not None
        return super().of(**typed)

    def in_order_of(self, gate: str) -> GateConfig:
        """The same with an order of items of its own, unless the user chose a seed.

        Args:
            gate: what no other gate is called, and this one is again when it goes on after a kill.
        """
        if self.seed_chosen:
            return self
        digest = hashlib.sha256(gate.encode()).digest()
        return replace(self, seed=int.from_bytes(digest[:4], "big"))

    def read_baseline(self, series: Sequence[str] = ()) -> Baseline:
        """The baseline's scores; those of a baseline without a log are all to be bought.

        Args:
            series: names by which a host's logs may have the score that decides, the likeliest first.

        Raises:
            EvalbudgetError: it cannot be read, or holds something else.
        """
        if not self.baseline:
            assert self.baseline_model is not None
            return Baseline(self.baseline_model, next(iter(series), UNNAMED), {})
        found = read_baseline(
            self.baseline,
            score=self.score,
            series=series,
            cluster=self.cluster,
            lower_is_better=self.lower_is_better,
        )
        if found.lower_is_better and not self.lower_is_better:
            raise InvalidInputError(
                f"lower {found.score} is better by the log of {found.name}, and a gate that buys takes "
                "higher for better unless it is told: give --lower-is-better"
            )
        if as_missing(self.missing) is Missing.ZERO:
            worst = self.bounds[1 if self.lower_is_better else 0]
            share = {item: found.missing.get(item, 0.0) for item in found.items}
            filled = {x: (1.0 - s) * found.scores.get(x, worst) + s * worst for x, s in share.items()}
            found = replace(found, scores=filled, missing={})
        return found

    def check_model(self, name: str) -> None:
        """Refuse to ask another model than the one whose scores are there.

        Raises:
            InvalidInputError: both names are known, and differ.
        """
        if self.baseline and self.baseline_model not in (None, name) and name != NO_NAME:
            raise InvalidInputError(
                f"--baseline {self.baseline} is of {name} and --baseline-model is {self.baseline_model}: "
                "their scores would be mixed; give two of the same model"
            )

    def compared(self, baseline: Baseline, items: Sequence[str]) -> list[str]:
        """Those of the candidate's items that the baseline has a score of, or can be asked.

        Raises:
            InvalidInputError: there are fewer than two.
        """
        if self.baseline_model is None:
            return baseline.shared(items)
        if len(items) < 2:
            raise InvalidInputError(f"the task has {len(items)} items; a gate needs two or more")
        return list(items)

    def repeats_for(self, baseline: Baseline, n_items: int) -> int:
        r"""How many answers of each item to buy: one, unless that cannot decide and more can.

        A further item always tells more than a second answer. So answers are repeated only if the items do
        not suffice, by the baseline's own noise s^2: without a difference about

        .. math:: 8 \\frac{s^2}{M^2} \\Bigl(\\frac1m + \\frac1r\\Bigr)

        items decide, with m answers of the baseline and r of the candidate to each.

        Args:
            baseline: its scores; those of one answer each say nothing of noise.
            n_items: that there are.
        """
        if self.repeats is not None:
            return self.repeats
        noise = baseline.noise
        if self.options.get("these_items") or not noise > 0.0:
            return 1
        per_item = _VARIANCES * noise / float(self.options["margin"]) ** 2
        enough = (
            r for r in range(1, MOST_REPEATS + 1) if per_item * (1 / baseline.repeats + 1 / r) <= n_items
        )
        return next(enough, 1)

    def clusters(self, baseline: Baseline, items: Sequence[str]) -> tuple[str, ...] | None:
        """Label of each item, where items are clustered."""
        if self.cluster is None:
            return None
        baseline.codes(items)  # refuses items without one
        return tuple(baseline.clusters[item] for item in items)


def read_baseline(
    path: str | Path,
    *,
    score: str | None = None,
    series: Sequence[str] = (),
    cluster: str | None = None,
    task: str | None = None,
    lower_is_better: bool = False,
) -> Baseline:
    """A baseline from a log or a table of scores.

    Args:
        path: of the file or the folder.
        score: that decides; None for the only one.
        series: see :meth:`Baseline.of`.
        cluster: field of items that says which belong together.
        task: of several in a folder, the one to read.
        lower_is_better: of the score, where the log does not say so itself.

    Raises:
        EvalbudgetError: it cannot be read, or holds something else.
        InvalidInputError: it has one item.
    """
    recorded = plugins().open_scores(Path(path), task, category=cluster, may_be_empty=True)
    if lower_is_better:
        known_as = next((each for each in series if each in recorded.raters), score)
        recorded = with_lower_better(recorded, known_as)
    found = Baseline.of(recorded, name=f"the baseline {path}", score=score, series=series)
    found = replace(found, name=recorded.models[0])
    if len(found.items) < _FEWEST:
        raise InvalidInputError(
            f"the baseline {path} has one item, {found.items[0]!r}, which proves nothing of others; give one "
            "with two items or more"
        )
    return found
