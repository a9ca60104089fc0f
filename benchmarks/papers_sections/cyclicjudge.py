"""CyclicJudge (arXiv 2603.01865): Tables 1 and 2 and Figure 2, from one simulated world."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from judges_sections.found import Found, Table, Target
from papers_sections.claims import Claim, Erratum, claims_table, errata_table, verdict
from papers_sections.judge_alone import Alone, Favours, Rankings, alone, favours, rankings
from papers_sections.judge_components import Components, components
from papers_sections.judge_turns import Cuts, Order, Turns, all_against_random, cuts, figure_2, plans
from papers_sections.judge_world import MODELS

SUBSAMPLES = 5000
DRAWS = 400
EVALUATIONS = 20_000


@dataclass(frozen=True)
class _Measured:
    components: Components
    alone: Alone
    rankings: Rankings
    turns: Turns
    cuts: Cuts
    order: Order
    favours: Favours
    generations: dict[str, tuple[int, int]]


def cyclicjudge(quick: bool, seeds: int | None = None) -> Found:
    """Every experiment of the paper that needs no model, in its own constants."""
    draws = 20 if quick else seeds or DRAWS
    subsamples = 400 if quick else SUBSAMPLES
    bought, generations = plans()
    found = _Measured(
        components(draws),
        alone(),
        rankings(draws),
        figure_2(subsamples),
        cuts(1000 if quick else EVALUATIONS),
        all_against_random(draws),
        favours(),
        generations,
    )
    first = found.components.table
    tables: tuple[Table, ...] = (
        found.alone.table,
        found.rankings.table,
        found.favours.table,
        found.turns.table,
        found.cuts.table,
        found.order.table,
        bought,
        claims_table(_claims(found)),
        errata_table(_errata(found)),
    )
    return Found(
        "CyclicJudge (arXiv 2603.01865). MT-Bench's scores are not public; the world is rebuilt from the "
        "published means, components and judges' means: 80 scenarios x 10 generations x 5 judges for each of "
        "three models, normal scores. So Table 2 checks the estimators, and the rest what follows from it. "
        f"First Table 2, means of {draws} tables.",
        first.columns,
        first.rows,
        _targets(found, draws, 5 * sqrt(2 / subsamples)),
        first.notes,
        tables,
    )


def _targets(found: _Measured, draws: int, noise: float) -> tuple[Target, ...]:
    off, low, high = found.components.off, *found.turns.ratio
    own, turns = found.rankings.own, found.rankings.turns
    return (
        *(
            Target(f"Table 2 by the {method}: no bias", f"largest deviation {z:.1f} s.e.", z < 3.5)
            for method, z in off.items()
        ),
        Target(
            f"Figure 2: measured variances are those of the pool's exact constants, within {noise:.0%}",
            f"{low:.3f} to {high:.3f} of them",
            low > 1 - noise and high < 1 + noise,
        ),
        Target("Qwen's own judge puts Qwen first", f"{own[1]:.2f} of {draws} tables, m = 10", own[1] > 0.5),
        Target(
            "judges in turn put the best model first, with as many calls",
            f"{turns[0]:.3f} at m = 1, {turns[1]:.3f} at m = 10",
            min(turns) > 0.95,
        ),
    )


def _claims(found: _Measured) -> tuple[Claim, ...]:
    off, cut = found.components.off, found.turns.cut
    net = " / ".join(f"{x[0]:.1%}" for x in cut.values())
    pool = " / ".join(f"{x[2]:.1%}" for x in cut.values())
    total = " / ".join(f"{x:.1%}" for x in found.cuts.total.values())
    share = " / ".join(f"{x:.1%}" for x in found.components.share.values())
    order = ", ".join(f"{name}: {'A' if a else 'B'}" for name, a in found.order.equations.items())
    pools = ", ".join(f"{name}: A in {x:.2f}" for name, x in found.order.pools.items())
    f = " / ".join(f"{x:.0f}" for x in found.components.f.values())
    low, high = found.alone.narrower[0]
    expected = [model.pool_constants() for model in MODELS.values()]
    ten = " / ".join(f"{1 - x[2] / x[1]:.1%}" for x in expected)
    free, capped = zip(*found.generations.values(), strict=True)
    return (
        Claim(
            "components of Table 2",
            "12 values",
            f"back within {off['literal ANOVA']:.1f} s.e.",
            f"back within {off['G study']:.1f} s.e.",
            verdict(max(off.values()) < 3.5, "the world is made of them; both estimators find them"),
        ),
        Claim(
            "F(4, 3196): judges differ",
            " / ".join(f"{model.f:g}" for model in MODELS.values()),
            f,
            "-",
            verdict(
                all(abs(found.components.f[name] / model.f - 1) < 0.02 for name, model in MODELS.items()),
                "within 2%",
            ),
        ),
        Claim(
            "one judge: its bias is more than 94% of the variance",
            "95.8% / 94.7% / 95.5%",
            share,
            "-",
            verdict(min(found.components.share.values()) > 0.94),
        ),
        Claim(
            "Table 1: means by one judge",
            "9 values",
            f"within {found.alone.off:.1f} of the half-width here",
            "-",
            verdict(found.alone.off < 1.5, "one table with noise of its own"),
        ),
        Claim(
            "Table 1: intervals",
            "±.11 to ±.21",
            f"Table 2 implies {low:.1f} to {high:.1f} times as much at m = 1",
            "-",
            verdict(high < 1.1, otherwise="see the errata"),
        ),
        Claim(
            "Qwen's own judge puts Qwen first",
            "8.02 against 7.91",
            f"in {found.rankings.own[0]:.2f} (m = 1) and {found.rankings.own[1]:.2f} (m = 10) of the tables",
            f"in turn: GPT first in {found.rankings.turns[0]:.2f} and {found.rankings.turns[1]:.2f}",
            verdict(found.rankings.own[1] > 0.5, "a gap of .11, so that not every table shows it"),
        ),
        Claim(
            "one judge's bias differs by up to 1.7 between models",
            "1.7",
            f"{found.favours.apart:.2f}",
            f"self_preference of Qwen's judge {found.favours.qwen:+.2f}",
            verdict(round(found.favours.apart, 1) == 1.7),
        ),
        Claim(
            "random to cyclic at B = 5 saves 30-35%",
            "30-35% across models",
            f"{net} by Eqs. 4-5; {ten} expected in pools of ten, {pool} measured in one",
            f"{total} of the whole variance",
            verdict(
                all(0.295 < x[0] < 0.355 for x in cut.values()),
                otherwise="neither the equations nor pools of ten put all three there; with the scenarios "
                "counted it is a quarter of that",
            ),
        ),
        Claim(
            "all judges (A) beat random ones (B) for GPT only",
            "GPT: A; Qwen, Llama: B",
            order,
            f"in pools of ten, {pools}",
            verdict(
                list(found.order.equations.values()) == [False, False, True],
                "by the equations; Figure 2's own subsampling favours A, see the errata",
            ),
        ),
        Claim(
            "one generation per scenario until the scenarios run out",
            "m = 1",
            "-",
            f"plan: m = {', '.join(map(str, free))}; with 80 scenarios {', '.join(map(str, capped))}",
            verdict(set(free) == {1} and min(capped) > 1),
        ),
    )


def _errata(found: _Measured) -> tuple[Erratum, ...]:
    llama = found.turns.cut["Llama"][0]
    (low, high), (least, most) = found.alone.narrower
    total = found.cuts.total.values()
    fixed = found.cuts.fixed.values()
    qwen = MODELS["Qwen"].pool_constants()
    return (
        Erratum(
            "30-35% less variance across models",
            "Eqs. 4-5 with Table 2 give less for Llama",
            f"{llama:.1%}; table 'Random judges to judges in turn'",
        ),
        Erratum(
            "30-35% less variance",
            "of the part without the scenarios, which is the smaller one",
            f"{min(total):.1%} to {max(total):.1%} in all; the same table",
        ),
        Erratum(
            "Table 1's intervals (80 scenarios)",
            "Table 2 implies wider ones, with one generation and with ten",
            f"{low:.1f} to {high:.1f} times at m = 1, {least:.1f} to {most:.1f} at m = 10; Table 1 here",
        ),
        Erratum(
            "Prop. 1: scenarios drawn without replacement, sigma_alpha^2/n",
            "(1 - n/N) is missing: with the whole benchmark, n = N, scenarios add nothing",
            f"measured variance {min(fixed):.2f} to {max(fixed):.2f} of Prop. 1's; "
            "last column of 'Random judges to judges in turn'",
        ),
        Erratum(
            "B beats A for Qwen (Figure 2, pool of ten)",
            "in a pool of ten it is the other way round: A loses a tenth of its variance, B hardly any",
            f"expected {1e3 * qwen[0] / 400:.2f} against {1e3 * qwen[1] / 400:.2f}; A better in "
            f"{found.order.pools['Qwen']:.2f} of the pools; table 'All judges on each generation'",
        ),
        Erratum(
            "Eqs. 23-28 hold for judges that differ by scenario too",
            "an interaction of scenario and judge makes sigma_beta^2 collapse",
            "`python benchmarks/judges.py interaction`",
        ),
        Erratum(
            "judge j mod K",
            "a dataset whose order has period K biases its categories",
            "`python benchmarks/judges.py period`",
        ),
    )
