"""What a race cost, why it stopped, and what to do next, in plain words."""

from __future__ import annotations

from evalbudget._fields import all_zero, share_of_all
from evalbudget.budget import USED_UP, cut_off
from evalbudget.missing import Missing
from evalbudget.races._board import Board
from evalbudget.races._missing_answers import count_of_answers, counted_as
from evalbudget.races._verdict import Finding, Status, listed


def closing_lines(board: Board) -> list[tuple[str, str]]:
    """Labels and sentences, in the order to read them."""
    lines = [("Spent", _spent(board)), ("Stopped", _sentence(_stopped(board)))]
    if board.proof:
        lines.append(("Proof", _sentence(f"{board.proof}{_ahead(board)}")))
    score = _score(board)
    if score:
        lines.append(("Score", score))
    lines += [("Missing", line) for line in _missing(board)]
    following = _next(board)
    if following:
        lines.append(("Next", following))
    lines += [("Lost", line) for line in _why_lost(board)]
    return lines + [("Note", _sentence(note)) for note in board.notes]


def decimals_of(board: Board) -> int:
    """Enough to tell scores on 0 to 1 apart; fewer on wider scales."""
    return 3 if max(abs(s.all_upper) for s in board.standings) < 10 else 2


def _spent(board: Board) -> str:
    models = f"{len(board.standings)} model{'s' * (len(board.standings) > 1)}"
    grid = f"{board.grid:,} ({models} x {board.items:,} items)"
    share = f"{share_of_all(board.spent / board.grid)} of the whole grid of {grid}"
    wasted = cut_off(board.wasted, board.paid, board.unit)
    wasted = wasted and f"; {wasted}"
    if board.budget >= board.grid:
        return f"{board.spent:,} evaluations, {share}{wasted}."
    return f"{board.spent:,} of the budget of {board.budget:,} evaluations; {share}{wasted}."


def _stopped(board: Board) -> str:
    kind = board.stop_reason.removeprefix("decided: ")
    if kind == board.stop_reason:
        return "the budget is used up" if kind == USED_UP else kind
    # a sampler's own criterion, which is not the one of the sentence above
    margin = board.options.get("margin") or 0.0
    held = f"holds {board.leader.name} for the best"
    if kind == "equivalent":
        held = f"holds the models left for within {margin:g} of the best, on scores in [0, 1]"
    elif kind == "tie":
        held = "holds the models left for equal"
    return f"by its own bounds {board.sampler} {held}"


def _ahead(board: Board) -> str:
    """How clear it is, beside the nearest rival."""
    rivals = [s for s in board.standings[1:] if s.status is Status.BEHIND and s.behind is not None]
    if not rivals or board.outcome != Finding.BEST:
        return ""
    nearest = min(rivals, key=lambda s: s.behind or 0.0)
    if not (nearest.behind or 0.0) > 0.0:  # beaten on other items than both read
        return ""
    margin = f"{nearest.behind:.{decimals_of(board)}f}"
    return f"; {board.leader.name} is {margin} ahead of {nearest.name} on the items both read"


def _score(board: Board) -> str:
    """Of the best model, with its interval as an ordinary evaluation would give it."""
    first, d = board.leader, decimals_of(board)
    if board.outcome == Finding.NOTHING or first.estimate is None:
        return ""
    text = f"{first.name} has {first.estimate:.{d}f}"
    if first.stderr is not None:
        text += f", standard error {first.stderr:.{d}f}"
    if first.lower is None or first.upper is None:
        return f"{text}; no interval: {first.no_interval}."
    return f"{text}, 95% interval {first.lower:.{d}f} to {first.upper:.{d}f} for items like these."


def _next(board: Board) -> str:
    asked = [standing for standing in board.standings if standing.readings]
    scores = [standing.stderr or standing.estimate or 0.0 for standing in asked]
    if said := all_zero(sum(standing.readings for standing in asked), scores):
        return said
    if board.outcome == Finding.TIE:
        return "choose by price or speed: these items cannot tell them apart."
    if board.outcome == Finding.BEST and board.leader.unread:
        left = f"{board.leader.name} has {board.leader.unread:,} items left to ask"
        return f"who is best on these items is settled. {left}, should its own score be wanted more exactly."
    possible = board.named(Status.LEADS, Status.POSSIBLE)
    if board.outcome != Finding.UNDECIDED or not board.unread or len(possible) < 2:
        return ""
    rest = f"all that {listed(possible)} have not answered"
    text, until = f"{board.unread:,} more evaluations decide it at the latest: {rest}.", "it is decided"
    if board.missing != Missing.ZERO and any(board.of(name).missing for name in possible):
        text = f"{board.unread:,} evaluations are left, {rest}; what is missing may still leave it undecided."
        until = "nothing is left that could decide it"
    if not board.until_proved:
        return f"{text} With --until-proved a race goes on until {until}."
    return f"{text} Raise --budget."


def _missing(board: Board) -> list[str]:
    lacking = [s for s in board.standings if s.missing and s.status is not Status.LOST]
    if not lacking:
        return []
    counts = listed([f"{count_of_answers(s.missing)} of {s.name}" for s in lacking])
    text = f"{counts}: calls failed there more often than on other items. {_as_they_count(board)}"
    return [text]


def _as_they_count(board: Board) -> str:
    missing = Missing(board.missing)
    if missing is not Missing.WORST:
        return f"As asked for, {counted_as(missing)}."
    return (
        "They count as the worst for what is said; estimates are of what was answered. With --missing zero "
        "they count as the worst score there is, with --missing drop only items count that both have."
    )


def _why_lost(board: Board) -> list[str]:
    lines = []
    for standing in board.standings:
        if standing.status is Status.LOST:
            errors = sorted(standing.errors.items(), key=lambda e: -e[1])
            why = ", ".join(f"{kind} ({count:,})" for kind, count in errors[:3])
            reason = standing.left or "it kept failing"
            lines.append(f"{standing.name}: {reason}{': ' + why if why else ''}.")
    return lines


def _sentence(text: str) -> str:
    stripped = text.strip()
    return stripped if stripped.endswith((".", "!", "?")) else f"{stripped}."
