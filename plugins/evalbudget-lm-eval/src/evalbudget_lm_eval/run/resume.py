"""What happens after a kill: the record is taken over, and what may have been lost is counted.

Documents that were scored count as answered. Responses that were not scored yet are scored once their cell is
wanted (``Rounds.finish``), without asking anew. Of the calls that were under way, as many as the model takes
side by side count as paid: one, where it takes one at a time. Local models bill nobody.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from evalbudget_lm_eval.host.answers import Answered, Asked
from evalbudget_lm_eval.host.host_evaluate import PrimedTasks
from evalbudget_lm_eval.judges.filter import revived
from evalbudget_lm_eval.run.kept import Kept
from evalbudget_lm_eval.run.record import AUDIT, RACE

CUT_OFF = {kind: f"under way when the {kind} was broken off" for kind in (RACE, AUDIT)}
"""Why calls failed of which nobody knows whether they were answered."""


def take_over_answers(primed: PrimedTasks, kept: Kept) -> list[Answered]:
    """Count what earlier runs had answered as answers of this one.

    Args:
        primed: the model's tasks.
        kept: its record; what it has of other documents is left out.

    Returns:
        The answers, with the readings of judges that their totals need.
    """
    documents = {(name, doc_id) for name in primed.names for doc_id in primed.documents(name)}
    answers = [
        Answered.of(
            one.asked, [revived(primed.task(one.asked.task), sample) for sample in one.samples], one.calls
        )
        for one in kept.bought
        if one.samples is not None and one.asked.document in documents
    ]
    primed.adopt(answers)
    return answers


def count_cut_off(kept: Kept, fail: Callable[[Asked], object]) -> None:
    """Count calls that may have been under way when a run was killed as paid; they are asked again.

    A document of several calls counts for the part of it that was said or may have been under way, together
    with others and rounded up: nobody knows whether it is asked again. If it is, only the rest of it is.

    Args:
        kept: the model's record.
        fail: counts a document of which all calls may have been under way.
    """
    if not kept.under_way:
        return
    left, parts = kept.at_once, 0.0
    for asked in kept.under_way:
        lost = min(left, kept.unheard(asked))
        left -= lost
        calls, unheard = kept.calls_of(asked), kept.unheard(asked)
        if lost == calls:
            fail(asked)
        else:
            parts += (calls - unheard + lost) / calls
    if parts:
        kept.pay(math.ceil(parts))
    kept.stop()
