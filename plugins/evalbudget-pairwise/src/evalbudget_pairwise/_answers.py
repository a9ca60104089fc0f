"""Answers of several models to the same items, from finished runs."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath

from evalbudget.errors import InvalidInputError
from evalbudget.secrets import without_known
from evalbudget.shown import shown

_LEAST = 2
_CHAT = re.compile(r"<\|[^|<>\n]+\|>|<｜[^｜\n]+｜>|\[/?INST\]|<(?:start|end)_of_turn>|<s>|<bos>")
"""What chat templates put around messages."""


@dataclass(frozen=True)
class ModelAnswers:
    """Of one model, in one log.

    Attributes:
        model: name.
        source: path of the log, for messages, and to tell two runs of one model apart.
        requests: what was asked, by item.
        answers: what was answered, by item.
        hashes: of what the data set has of an item, where the host tells: they, not the requests, then say
            whether two items are the same, since each model's chat template is part of its requests.
    """

    model: str
    source: str
    requests: dict[str, str]
    answers: dict[str, str]
    hashes: dict[str, str] = field(default_factory=dict)

    def is_same(self, other: ModelAnswers, item: str) -> bool:
        """Whether both were asked the same."""
        if item in self.hashes and item in other.hashes:
            return self.hashes[item] == other.hashes[item]
        return self.requests[item] == other.requests[item]


@dataclass(frozen=True)
class Answers:
    """Answers that can be compared.

    Attributes:
        models: names.
        items: that all of them answered.
        requests: of each item, shape (n_items,).
        texts: of each model and item.
        left_out: items that some model has no answer to.
    """

    models: tuple[str, ...]
    items: tuple[str, ...]
    requests: tuple[str, ...]
    texts: tuple[tuple[str, ...], ...]
    left_out: int

    @classmethod
    def of(cls, runs: Sequence[ModelAnswers]) -> Answers:
        """Those of the items that all have answered.

        Raises:
            InvalidInputError: fewer than two runs, no item in common, or the same item with another request.
        """
        if len(runs) < _LEAST:
            raise InvalidInputError(
                f"a preference is between the answers of two models, and there is {len(runs)}; give the log "
                "of another one"
            )
        shared = [item for item in runs[0].answers if all(item in run.answers for run in runs)]
        every = {item for run in runs for item in run.answers}
        if not shared:
            first = "; ".join(f"{run.source} has {next(iter(run.answers), 'none')!r}" for run in runs)
            raise InvalidInputError(
                f"the logs share no item ({first}); give logs of the same task on the same data"
            )
        for run in runs[1:]:
            for item in shared:
                if not run.is_same(runs[0], item):
                    raise InvalidInputError(
                        f"item {item!r} asks something else in {run.source} than in {runs[0].source}, so "
                        "that the answers cannot be compared; give logs of the same task on the same data"
                    )
        models, items = without_known((_names(runs), tuple(shared)))  # which are shown and written
        for names in (models, items):
            name, count = Counter(names).most_common(1)[0]
            if count > 1:
                raise InvalidInputError(
                    f"{count} names in the logs differ by a key alone, and are {shown(name)!r} without it; "
                    "rename them in the task"
                )
        return cls(
            models,
            items,
            tuple(_readable([run.requests[item] for run in runs]) for item in shared),
            tuple(tuple(run.answers[item] for item in shared) for run in runs),
            len(every) - len(shared),
        )

    @cached_property
    def fingerprint(self) -> str:
        """Short hash of everything that a judge is shown."""
        digest = hashlib.sha256()
        for text in (*self.requests, *(text for texts in self.texts for text in texts)):
            digest.update(text.encode("utf-8", "surrogatepass"))
            digest.update(b"\0")
        return digest.hexdigest()[:16]


def _readable(requests: Sequence[str]) -> str:
    """The first one without the marks of a chat template; the first if all have some."""
    return next((request for request in requests if not _CHAT.search(request)), requests[0])


def _names(runs: Sequence[ModelAnswers]) -> tuple[str, ...]:
    """Models by their names; those that stand in several logs by the ends of the logs' paths, too."""
    return tuple(
        run.model if len(same) == 1 else f"{run.model} ({_told_apart(run, same)})"
        for run in runs
        for same in [[other for other in runs if other.model == run.model]]
    )


def _told_apart(run: ModelAnswers, same: Sequence[ModelAnswers]) -> str:
    """The shortest end of a log's path that no other log of the model has."""
    paths = [PurePath(other.source).parts for other in same]
    own = PurePath(run.source).parts
    for length in range(1, len(own) + 1):
        if sum(path[-length:] == own[-length:] for path in paths) == 1:
            return "/".join(own[-length:])
    raise InvalidInputError(
        f"{shown(run.model)} ({shown(run.source)}) is given twice; a model is not compared with itself"
    )
