"""Which way scores are better: as their source says, or as a person does."""

from __future__ import annotations

from dataclasses import replace

from evalbudget.errors import InvalidInputError
from evalbudget.recorded._declared import Declared
from evalbudget.recorded._differences import settings_note, versions_note
from evalbudget.recorded._scores import RecordedScores


def with_lower_better(recorded: RecordedScores, rater: str | None = None) -> RecordedScores:
    """The same scores, of which a person says that lower is better.

    Args:
        recorded: the scores.
        rater: of several, the one that this is said of; None, or none of them, for all.

    Raises:
        InvalidInputError: the source says otherwise of one of them, or was a race for the highest.
    """
    declared = recorded.declared or Declared.of(recorded.models, recorded.items, recorded.raters)
    if recorded.race is not None and not recorded.race.lower_is_better:
        raise InvalidInputError(
            f"--lower-is-better: these scores are of a {recorded.race.kind} that took higher for better, and "
            "whom it asked what followed from that; leave it out, or run it again with --lower-is-better"
        )
    meant = [rater] if rater in recorded.raters else list(recorded.raters)
    ways = dict(zip(recorded.raters, declared.lower_is_better, strict=True))
    for name in meant:
        if ways[name] is False:
            raise InvalidInputError(
                f"--lower-is-better: the source says that higher {name} is better; leave it out, or choose "
                "another score"
            )
    ways |= dict.fromkeys(meant, True)
    return replace(recorded, declared=replace(declared, lower_is_better=tuple(ways.values())))


def direction_note(recorded: RecordedScores) -> str:
    """That a source should say which way is better, and does not; empty where it does, or need not."""
    declared = recorded.declared
    if declared is None or not declared.direction_missing:
        return ""
    ways = zip(recorded.raters, declared.lower_is_better, strict=True)
    unsaid = ", ".join(rater for rater, lower in ways if lower is None)
    told = f"No direction is declared for {unsaid}: higher is taken as better."
    return f"{told} If lower is better, give --lower-is-better." if unsaid else ""


def notes_of(recorded: RecordedScores) -> tuple[str, ...]:
    """What a source says beside the scores, in what models differ, and what it should say and does not."""
    declared = recorded.declared
    if declared is None:
        return ()
    models, settings = recorded.models, declared.settings
    found = (direction_note(recorded), versions_note(models, settings), settings_note(models, settings))
    return (*filter(None, found), *declared.notes)


def is_lower_better(recorded: RecordedScores) -> bool:
    """Whether lower scores are better; unknown counts as higher.

    Raises:
        InvalidInputError: of some raters the lower, of others the higher, so that no mean of them means
            anything.
    """
    if recorded.declared is None:
        return False
    known = {lower for lower in recorded.declared.lower_is_better if lower is not None}
    if len(known) > 1:
        low = [
            rater
            for rater, lower in zip(recorded.raters, recorded.declared.lower_is_better, strict=True)
            if lower
        ]
        raise InvalidInputError(
            f"lower is better of {', '.join(low)} and higher of the others, so they have no mean; choose "
            f"one of them, for example {low[0]}"
        )
    return known == {True}
