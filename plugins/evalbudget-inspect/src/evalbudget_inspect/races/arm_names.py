"""Names of a race's arms, and races that cannot be run."""

from __future__ import annotations

from collections.abc import Sequence

from evalbudget.comparisons import GateConfig
from evalbudget.errors import InvalidInputError
from evalbudget_inspect.races.arm import Arm


def check_items(first: Arm, other: Arm) -> None:
    """Refuse arms that do not have the same items.

    Raises:
        InvalidInputError: they do not.
    """
    if first.pool.keys() == other.pool.keys():
        return
    only = sorted(first.pool.keys() ^ other.pool.keys())
    raise InvalidInputError(
        f"{name_of(first.identity)} and {name_of(other.identity)} do not have the same items: "
        f"{len(only)} ids are in one and not in the other, for example {only[0]!r}. A race compares models "
        "on the same items: give the samples of all arms the same ids, in a dataset that does not "
        "depend on the model"
    )


def names_of_arms(identities: Sequence[tuple[str, str]]) -> list[str]:
    """As short as they can be told apart."""
    labels = {label for label, _ in identities}
    models = {model for _, model in identities}
    if len(models) == 1 and len(labels) == len(identities):
        return [label or model for label, model in identities]
    if len(labels) == 1:
        return [model for _, model in identities]
    return [name_of(identity) for identity in identities]


def check_gate(config: GateConfig, names: Sequence[str], *, asked: bool, resumed: bool) -> None:
    """Refuse a gate without its baseline, or of more than one candidate."""
    if not asked and resumed:
        raise InvalidInputError(
            f"this log holds one side of a gate that asks {config.baseline_model}, too, and inspect "
            "eval-retry goes "
            "on with one log at a time. Run the gate again with --baseline and the baseline's log, which has "
            "what it answered; begun as inspect eval-set, the same command goes on with both"
        )
    if not asked:
        raise InvalidInputError(
            f"--baseline-model {config.baseline_model} is not among the models of this run "
            f"({', '.join(names)}); name it with --model, beside the candidate"
        )
    if len(names) != 2:
        raise InvalidInputError(
            f"a gate judges one candidate, and there are {len(names) - 1}: {', '.join(names[1:])}; run "
            "one gate "
            "for each"
        )


def name_of(identity: tuple[str, str]) -> str:
    """Setting and model."""
    label, model = identity
    return f"{label} {model}".strip()


def alone(name: str, *, resumed: bool) -> str:
    """Why a single arm is no race."""
    if resumed:
        return (
            f"this log holds one arm of a race, {name}, and a race goes on with all of its arms. Run the "
            "command that began it again, as eval-set, with the same log folder: nothing is evaluated twice "
            "(inspect eval-retry resumes one log at a time)"
        )
    return f"a race needs two models or more, and there is only {name}; name them with --model a,b,c"
