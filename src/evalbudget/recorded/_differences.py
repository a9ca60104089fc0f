"""What models were evaluated with differently: in a sentence, and refused where it is the task's version."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evalbudget.errors import InvalidInputError
from evalbudget.recorded._declared import Settings, differing, differing_versions, is_version, told_settings

_OF_A_MODEL = {"model", "model_name", "pretrained", "path", "engine", "model_path", "revision", "subfolder"}
_OF_A_MODEL |= {"tokenizer", "tokenizer_path", "peft", "delta", "model_sha", "peft_sha", "delta_sha"}
"""Settings that say which model it is, of the model itself and not of who judges it."""

_SETTINGS, _VALUES, _MODELS = 5, 3, 3
"""That a sentence shows."""


def settings_note(models: Sequence[str], settings: Sequence[Settings], labels: Sequence[str] = ()) -> str:
    """In which settings models differ, with the models of each value; empty where nothing tells that any do.

    What different models are named by, and what their names tell, is not said.

    Args:
        models: names.
        settings: of each; empty where its source tells none.
        labels: what the models are called in the sentence; empty: their names.
    """
    telling = [number for number, own in enumerate(settings) if own]
    names, known = [models[number] for number in telling], [settings[number] for number in telling]
    called = [(labels or models)[number] for number in telling]
    one_model = len(set(map(_base, names, known))) == 1
    same = {key for own in known for key in own if is_version(key)}.difference(differing_versions(known))
    keys = [
        key
        for key in differing(known)
        if key not in same
        and (one_model or key.removeprefix("model.") not in _OF_A_MODEL)
        and not _is_named(key, names, known)
    ]
    if not keys:
        return ""
    parts = _by_value(keys, known, called)
    if len(parts) > 2:  # each setting by itself is shorter
        parts = [_of_one(key, known, called) for key in keys]
    return f"Settings differ: {_some(parts, _SETTINGS, '; ')}."


def _is_named(key: str, names: Sequence[str], settings: Sequence[Settings]) -> bool:
    pairs = zip(names, settings, strict=True)
    short = key.rpartition(".")[2]  # as arms of a race are called
    return all(
        told_settings(own, [key])[0] in name or f"{short}={own.get(key)}" in name for name, own in pairs
    )


def _of_one(key: str, settings: Sequence[Settings], called: Sequence[str]) -> str:
    """Values of a setting, if they are few."""
    found = _by_value([key], settings, called)
    return f"{key} ({len(found):,} values)" if len(found) > _VALUES else ", ".join(found)


def _by_value(keys: Sequence[str], settings: Sequence[Settings], called: Sequence[str]) -> list[str]:
    """Values of some settings, with those that have them."""
    having: dict[tuple[str, ...], list[str]] = {}
    for own, name in zip(settings, called, strict=True):
        having.setdefault(tuple(told_settings(own, keys)), []).append(name)
    return [f"{_some(told, _SETTINGS)} ({_some(who, _MODELS)})" for told, who in having.items()]


def _some(what: Sequence[str], most: int, between: str = ", ") -> str:
    rest = len(what) - most
    return between.join(what[:most]) + (f" and {rest:,} more" if rest > 0 else "")


def versions_note(models: Sequence[str], settings: Sequence[Settings]) -> str:
    """That models are of different versions of the task, and of which; empty where nothing tells that."""
    telling = [(name, own) for name, own in zip(models, settings, strict=True) if any(map(is_version, own))]
    keys = differing_versions([own for _, own in telling])
    if not keys:
        return ""
    having: dict[str, list[str]] = {}
    for name, own in telling:
        having.setdefault(_told(own, keys), []).append(_base(name, own))
    told = _some(
        [f"{version} ({_some([*dict.fromkeys(who)], _MODELS)})" for version, who in having.items()],
        _VALUES,
        "; ",
    )
    return (
        f"Versions of the task differ: {told}. Their items may differ under the same ids, so a rank or a "
        "difference across versions may be the task's and not the models'."
    )


def require_one_version(
    models: Sequence[str], settings: Sequence[Settings], pairs: Iterable[tuple[int, int]]
) -> None:
    """Refuse to compare different models on different versions of a task.

    Args:
        models: names.
        settings: of each.
        pairs: that are compared, by their numbers.

    Raises:
        InvalidInputError: two of them were evaluated on different versions.
    """
    for a, b in pairs:
        one, other = settings[a], settings[b]
        keys = differing_versions([one, other])
        first, second = _base(models[a], one), _base(models[b], other)
        if keys and first != second:
            raise InvalidInputError(
                f"{first} is of version {_told(one, keys)} of the task and {second} of version "
                f"{_told(other, keys)}: their items may differ under the same ids; give logs of the same "
                "task and version, or --across-tasks if their items are the same"
            )


def _told(own: Settings, keys: Sequence[str]) -> str:
    return _some([f"{own.get(key, 'unknown')}{key.removeprefix('version')}" for key in keys], _VALUES)


def _base(name: str, own: Settings) -> str:
    """The name of a model without the settings that tell it apart."""
    ends = (place for place in range(len(name)) if name.startswith(" (", place))
    return next((name[:end] for end in ends if name[end + 2 :].partition("=")[0] in own), name)
