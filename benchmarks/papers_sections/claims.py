"""The table a paper's section ends with: what it claims, and what came out here."""

from __future__ import annotations

from dataclasses import dataclass

from judges_sections.found import Table


@dataclass(frozen=True)
class Claim:
    """One statement of a paper.

    Attributes:
        text: the statement.
        published: its figure.
        literal: ours, by the method as published.
        recommended: ours, by the method recommended here.
        verdict: in a few words.
    """

    text: str
    published: str
    literal: str
    recommended: str
    verdict: str


def claims_table(claims: tuple[Claim, ...]) -> Table:
    """Claims as a table."""
    return Table(
        "Claims of the paper",
        ("claim", "published", "literal here", "recommended here", "verdict"),
        tuple((c.text, c.published, c.literal, c.recommended, c.verdict) for c in claims),
    )


@dataclass(frozen=True)
class Erratum:
    """One mistake of a paper, with the check that was just run."""

    what: str
    check: str
    result: str


def errata_table(errata: tuple[Erratum, ...]) -> Table:
    """Errata as a table."""
    return Table(
        "Errata",
        ("what the paper says, and what is wrong", "check", "result"),
        tuple((e.what, e.check, e.result) for e in errata),
    )
