"""What is known of the judge that is audited: two that differ in any of it are two judges."""

from __future__ import annotations

from typing import Any

from evalbudget_lm_eval.judges.filter import check_judges


def judge_identity(name: str, task: Any, metric: str) -> dict[str, Any]:
    """Task, score and, where models judge, who they are and how they are asked.

    Args:
        name: of the task.
        task: the host's object.
        metric: the host's ``metric,filter``.

    Raises:
        InvalidInputError: a judge cannot be used.
    """
    known: dict[str, Any] = {"score": metric, "task": name, "task version": str(task.VERSION)}
    panel = check_judges(task)
    if panel is not None:
        known |= {f"judges' {what}": told for what, told in panel.identity.items()}
    return known
