"""How a section on a paper ends: claims beside what was measured, errata beside what shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass

from judges_sections.found import Table


@dataclass(frozen=True)
class Claim:
    """What a paper says, and what came out here.

    Attributes:
        claim: in a few words.
        published: the paper's figure.
        literal: by the paper's own method, here.
        recommended: by what evalbudget does by default.
        verdict: reproduced or not, and why not.
    """

    claim: str
    published: str
    literal: str
    recommended: str
    verdict: str


@dataclass(frozen=True)
class Erratum:
    """What does not hold in a paper.

    Attributes:
        says: what the paper states.
        holds: what is the case.
        shown: the figure, and the table or command that prints it.
    """

    says: str
    holds: str
    shown: str


def claims_table(claims: Sequence[Claim]) -> Table:
    """Claims, in the order of the paper."""
    columns = ("claim of the paper", "published", "literal, here", "recommended, here", "verdict")
    return Table("Claims", columns, tuple(astuple(claim) for claim in claims))


def errata_table(errata: Sequence[Erratum]) -> Table:
    """Errata, in the order of the paper."""
    columns = ("the paper says", "what holds", "shown by")
    return Table("Errata", columns, tuple(astuple(erratum) for erratum in errata))


def verdict(reproduced: bool, why: str = "", otherwise: str = "") -> str:
    """``reproduced`` and why, or ``not reproduced`` and why it is otherwise."""
    said, reason = ("reproduced", why) if reproduced else ("not reproduced", otherwise)
    return f"{said}: {reason}" if reason else said
