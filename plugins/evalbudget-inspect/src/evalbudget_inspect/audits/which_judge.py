"""Which of a task's scorers is the judge that is audited."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Sequence

from inspect_ai.scorer import Scorer

from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget_inspect.host.private import registry_info, registry_lookup, registry_params
from evalbudget_inspect.host.scoring import scorer_names
from evalbudget_inspect.repeats.task import driving_score


def find_judge(wanted: str | None, scorers: Sequence[Scorer], roles: Collection[str]) -> str:
    """The judge as ``name`` or ``name.key``: the scorer of that name, or the one that asks that role.

    Args:
        wanted: scorer or model role; None for the first scorer.
        scorers: of the task, without the one that labels.
        roles: that models were given for.

    Raises:
        UnknownNameError: there is neither such a scorer nor such a role.
        InvalidInputError: several scorers may ask the role.
    """
    names = scorer_names(scorers)
    try:
        driving_score(wanted, names)
        return names[0] if wanted is None else wanted
    except UnknownNameError:
        asking = [_role(scorer) for scorer in scorers]
        told = sorted({*roles, *(role for role in asking if role is not None)})
        if wanted not in told:
            raise UnknownNameError("judge", str(wanted), [*names, *told]) from None
    # a scorer may ask a role without telling; with only one there is nothing to guess
    found = [name for name, role in zip(names, asking, strict=True) if role == wanted] or names
    if len(found) > 1:
        raise InvalidInputError(
            f"role {wanted!r} may be asked by {len(found)} scorers of the task; name the scorer: --judge "
            f"{' or --judge '.join(found)}"
        )
    return found[0]


def _role(scorer: Scorer) -> str | None:
    """The role that a scorer is made to ask, as ``model_graded_qa`` and its like tell by an argument."""
    given = registry_params(scorer)
    if given.get("model") is not None:
        return None
    if "model_role" in given:
        return given["model_role"] or None
    made_by = registry_lookup("scorer", registry_info(scorer).name)
    parameter = inspect.signature(made_by).parameters.get("model_role") if callable(made_by) else None
    default = None if parameter is None else parameter.default
    return default if isinstance(default, str) else None
