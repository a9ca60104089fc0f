"""What a source says beside its scores: direction, range, settings, questions, and what was left out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from evalbudget.errors import InvalidInputError

T = TypeVar("T")
Settings = Mapping[str, str]
Range = tuple[float, float]

UNKNOWN = "unknown"
"""In tables: a direction that the source should say, and does not."""
_CHARACTERS = 16
"""Of each half of a digest: a chance of 1 in 10^11 that two of 10,000 questions share one."""


@dataclass(frozen=True, slots=True)
class Declared:
    """Answers of a source to one list of questions; every reader answers it, and may say "unknown".

    Attributes:
        settings: of each model, what it was evaluated with, as far as the source tells: model arguments,
            generation settings, task arguments, version of the task, shots, system prompt. The same settings
            mean repeats of one model.
        complete: of each model, whether the source has an entry, if only of a failure, for whatever it was
            to be scored on, so that what has none was not to be scored: an item that the model was not asked,
            a rater that does not apply to an item.
        lower_is_better: of each rater; None: unknown, and larger is taken for better.
        direction_missing: the source should say which way is better, so that people are told where it does
            not. Elsewhere larger is better by convention.
        ranges: of each rater, smallest and largest possible score; None: unknown.
        reducers: of each rater, how the source makes one score of an item's, where it is not the mean.
        digests: of each item, see :func:`digest_of`; empty: unknown.
        clusters: of each item, the label of those that were sampled together; None: the source declares none.
        cluster: the field that these labels come from.
        clustered: of each rater, whether its error is clustered by these; empty: it is of all.
        notes: sentences for people: what was left out, counted once, renamed or not read, and of whom.
    """

    settings: tuple[Settings, ...]
    complete: tuple[bool, ...]
    lower_is_better: tuple[bool | None, ...]
    ranges: tuple[Range | None, ...]
    reducers: tuple[str | None, ...]
    digests: tuple[str, ...]
    clusters: tuple[str, ...] | None = None
    cluster: str | None = None
    notes: tuple[str, ...] = ()
    clustered: tuple[bool, ...] = ()
    direction_missing: bool = False

    @classmethod
    def of(
        cls,
        models: Sequence[str],
        items: Sequence[str],
        raters: Sequence[str],
        *,
        settings: Mapping[str, Settings] | None = None,
        complete: Iterable[str] = (),
        lower_is_better: Mapping[str, bool] | None = None,
        ranges: Mapping[str, Range] | None = None,
        reducers: Mapping[str, str] | None = None,
        digests: Mapping[str, str] | None = None,
        clusters: Mapping[str, str] | None = None,
        cluster: str | None = None,
        unclustered: Iterable[str] = (),
        notes: Iterable[str] = (),
        direction_missing: bool = False,
    ) -> Declared:
        """From what is known by name; whatever is not named is unknown.

        Clusters are declared only if every item has one.
        """
        known, alone = set(complete), set(unclustered)
        every = clusters is not None and all(item in clusters for item in items)
        return cls(
            _each(models, settings, {}),
            tuple(model in known for model in models),
            _each(raters, lower_is_better, None),
            _each(raters, ranges, None),
            _each(raters, reducers, None),
            _each(items, digests, ""),
            clusters=tuple(clusters[item] for item in items) if every and clusters is not None else None,
            cluster=cluster if every else None,
            notes=tuple(dict.fromkeys(notes)),
            clustered=tuple(rater not in alone for rater in raters) if every and alone & {*raters} else (),
            direction_missing=direction_missing,
        )

    def part(self, models: Sequence[int], items: Sequence[int], raters: Sequence[int]) -> Declared:
        """Of some models, items and raters, by their numbers."""
        clustered = _chosen(self.clustered, raters) if self.clustered else ()
        is_clustered = self.clusters is not None and (not clustered or any(clustered))
        return Declared(
            _chosen(self.settings, models),
            _chosen(self.complete, models),
            _chosen(self.lower_is_better, raters),
            _chosen(self.ranges, raters),
            _chosen(self.reducers, raters),
            _chosen(self.digests, items),
            _chosen(self.clusters, items) if self.clusters is not None and is_clustered else None,
            self.cluster if is_clustered else None,
            self.notes,
            clustered if is_clustered else (),
            self.direction_missing,
        )

    def check(self, models: int, items: int, raters: int) -> None:
        """Refuse answers of another shape than the scores.

        Raises:
            InvalidInputError: they are.
        """
        given = {
            "settings": (self.settings, models),
            "complete": (self.complete, models),
            "lower_is_better": (self.lower_is_better, raters),
            "ranges": (self.ranges, raters),
            "reducers": (self.reducers, raters),
            "digests": (self.digests, items),
            "clusters": (self.digests if self.clusters is None else self.clusters, items),
            "clustered": (self.clustered or self.ranges, raters),
        }
        for name, (values, n) in given.items():
            if len(values) != n:
                raise InvalidInputError(f"{name} has {len(values)} entries; the scores need {n}")


def _each(names: Sequence[str], known: Mapping[str, T] | None, otherwise: T) -> tuple[T, ...]:
    found = known or {}
    return tuple(found.get(name, otherwise) for name in names)


def _chosen(values: Sequence[T], numbers: Sequence[int]) -> tuple[T, ...]:
    return tuple(values[number] for number in numbers)


def digest_of(question: object, target: object = None, sent: object = None) -> str:
    """A digest of what stands under an item's id, by which two sources show that they ask the same.

    Args:
        question: text, or anything that JSON holds.
        target: the right answer, likewise; tells a question in other words from another question.
        sent: all that was sent to the model, likewise, where the question has more than that, such as the
            right answer; what sends the same is the same question.
    """
    rest = "" if sent is None else f"-{_hashed(sent)}"
    return f"{_hashed(question)}-{_hashed(target)}{rest}"


def _hashed(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_CHARACTERS]


def names_by_settings(models: Sequence[str], settings: Sequence[Settings]) -> list[str]:
    """Names under which evaluations stand apart: the model, and what differs among those of one model.

    Two with the same model and the same settings have the same name: they are repeats. Versions of the task
    that differ among those of all models are told, too.

    Args:
        models: the model of each evaluation.
        settings: of each evaluation.
    """
    groups: dict[str, list[int]] = {}
    for number, model in enumerate(models):
        groups.setdefault(model, []).append(number)
    versions = differing_versions(settings)
    names = list(models)
    for model, group in groups.items():
        differ = differing([settings[number] for number in group])
        others = [key for key in versions if key not in differ]
        for number in group:
            own = settings[number]
            told = [text for text in told_settings(own, [k for k in others if k in own]) if text not in model]
            told += told_settings(own, differ)
            names[number] = f"{model} ({', '.join(told)})" if told else model
    return _unshortened(names, models, settings)


def settings_in(text: str, where: str) -> Settings:
    """Settings as JSON, as tables have them.

    Args:
        text: an object of texts.
        where: it stands, for messages.

    Raises:
        InvalidInputError: it is something else.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not (isinstance(found, dict) and all(isinstance(value, str) for value in found.values())):
        raise InvalidInputError(f"{where}: settings is {text[:40]!r}, which is no JSON object of texts")
    return found


def is_version(key: str) -> bool:
    """Whether a setting is the version of the task, or of one of several tasks."""
    return key == "version" or key.startswith("version of ")


def differing_versions(settings: Sequence[Settings]) -> list[str]:
    """Names of the versions that are not the same in all that tell them: not everybody runs every task."""
    keys = dict.fromkeys(key for own in settings for key in own if is_version(key))
    return [key for key in keys if len({own.get(key, UNKNOWN) for own in settings} - {UNKNOWN}) > 1]


def differing(settings: Sequence[Settings]) -> list[str]:
    """Names of the settings that are not the same in all."""
    keys = dict.fromkeys(key for own in settings for key in own)
    return [key for key in keys if len({own.get(key) for own in settings}) > 1]


def told_settings(own: Settings, keys: Sequence[str]) -> list[str]:
    """Some settings as people read them."""
    return [_short(f"{key}={own.get(key, 'default')}") for key in keys]


_WORDS = 60
"""Characters of a setting that are shown."""


def _short(text: str) -> str:
    return text if len(text) <= _WORDS else f"{text[: _WORDS - 9]}…{_hashed(text)[:8]}"


def _unshortened(names: list[str], models: Sequence[str], settings: Sequence[Settings]) -> list[str]:
    """Refuse to give one name to different settings."""
    owner: dict[str, tuple[str, Settings]] = {}
    for name, model, own in zip(names, models, settings, strict=True):
        if owner.setdefault(name, (model, own)) != (model, own):
            raise InvalidInputError(
                f"{name!r} is the name of two models with different settings; give their logs one by one"
            )
    return names


_FEW = 3
"""Sentences of one kind."""


def few(sentences: Sequence[str], more: str) -> list[str]:
    """The first of many sentences of one kind, and how many more there are.

    Args:
        sentences: of the kind.
        more: what the others say, after their number.
    """
    every = list(dict.fromkeys(sentences))
    rest = len(every) - _FEW
    return every if rest < 2 else [*every[:_FEW], f"{rest:,} more {more}."]


def columns_not_read(columns: Sequence[str], *, repeats: bool = False) -> list[str]:
    """A note on columns of a table that nothing reads; none if there is none but a nameless index.

    Args:
        columns: their names.
        repeats: some rows differ in nothing that is read.
    """
    named = [name for name in columns if name.strip()]
    alike = " Rows that differ in nothing else count as repeats of one item by one model." if repeats else ""
    return [f"Columns that were not read: {', '.join(named)}.{alike}"] if named else []
