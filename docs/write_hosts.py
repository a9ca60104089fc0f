"""Writes docs/hosts.md: every option of ours on both hosts, and why some are on one only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evalbudget.audits.flags import FLAGS as AUDITS
from evalbudget.flags import DRY_RUN, Flag
from evalbudget.races.flags import FLAGS as RACES
from evalbudget_inspect.repeats.flags import FLAGS as REPEATS_ON_INSPECT
from evalbudget_lm_eval.audits.command import FLAGS as AUDITS_ON_LM_EVAL
from evalbudget_lm_eval.host.flag_spelling import spelled
from evalbudget_lm_eval.races.command import FLAGS as RACES_ON_LM_EVAL
from evalbudget_lm_eval.repeats.flags import FLAGS as REPEATS_ON_LM_EVAL
from evalbudget_pairwise.flags import FLAGS as PAIRS
from evalbudget_pairwise.flags import JUDGE
from evalbudget_pairwise.lm_eval.command import FLAGS as PAIRS_ON_LM_EVAL

PAGE = Path(__file__).with_name("hosts.md")

QUESTIONS = {
    "Repeats and judges: `inspect eval`, `lm-eval run`": (
        (REPEATS_ON_INSPECT[0], DRY_RUN, *REPEATS_ON_INSPECT[1:]),
        REPEATS_ON_LM_EVAL,
    ),
    "Races: `inspect race`, `lm-eval race`": ((*RACES, DRY_RUN), RACES_ON_LM_EVAL),
    "Audits: `inspect audit STORE`, `lm-eval audit STORE`": ((*AUDITS, DRY_RUN), AUDITS_ON_LM_EVAL),
    "Pairwise judges: `inspect pairwise LOG LOG`, `lm-eval pairwise LOG LOG`": (
        (JUDGE, *PAIRS, DRY_RUN),
        PAIRS_ON_LM_EVAL,
    ),
}
"""Options of each host."""

ONE_ONLY = {
    "judge_role": "lm-eval has no model roles",
    "journal": "inspect's log is the record",
    "keep": "inspect's models are asked side by side",
    "devices": "inspect: `device` among the arguments of each model, `-M`",
    "arms of audits": "inspect: `--model a,b`",
    "labels_from": "lm-eval computes all scores of an answer at once: the one that labels would be paid for "
    "every answer",
}
"""Why an option is on one host only, by its name."""


BESIDE_OPTIONS = (
    "`--score` names one scorer on inspect, or an entry of what it returns (`rubric.depth`), and one metric "
    "on lm-eval, which a filter may follow (`exact_match,strict-match`).",
    "Races on a group of tasks are on lm-eval only: inspect has no groups.",
    "Judges on a finished run: inspect has a command of its own, `inspect score LOG --scorer "
    "evalbudget_inspect/cyclic_judge`; lm-eval has none, so that `evalbudget lm-eval score` is ours.",
    "Settings that race are arguments of the task on inspect (`--arm shots=3`), and options of lm-eval there "
    "(`--arm num_fewshot=3`).",
)
"""What no option shows."""


def page() -> str:
    """The whole page.

    Raises:
        KeyError: an option is on one host only, and nobody says why.
    """
    parts = [
        "# The two hosts side by side",
        "Every option of ours, and why some are on one host only. All other options are the host's own. "
        "Written by `python docs/write_hosts.py` from the commands themselves.",
    ]
    for title, (inspect, lm_eval) in QUESTIONS.items():
        parts += [f"## {title}", "\n".join(_rows(inspect, lm_eval, title.partition(":")[0].lower()))]
    parts += ["## What no option shows", "\n".join(f"- {line}" for line in BESIDE_OPTIONS)]
    return "\n\n".join(parts) + "\n"


def _rows(inspect: Sequence[Flag], lm_eval: Sequence[Flag], question: str) -> list[str]:
    theirs = {flag.name: flag for flag in lm_eval}
    ours = {flag.name: flag for flag in inspect}
    rows = ["| inspect | lm-eval | what it says |", "|---|---|---|"]
    for name in dict.fromkeys([*ours, *theirs]):
        flag, other = ours.get(name), theirs.get(name)
        said = (flag or other).help.partition("  [")[0].replace("|", "\\|")
        if flag is None or other is None:
            said += f" *{(ONE_ONLY.get(f'{name} of {question}') or ONE_ONLY[name])}.*"
        shown = (f"`{flag.option}`" if flag else "", f"`{spelled(other)}`" if other else "")
        rows.append(f"| {shown[0]} | {shown[1]} | {said} |")
    return rows


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
