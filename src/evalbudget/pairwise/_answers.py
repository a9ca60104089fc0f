"""Answers of several models to the same items, from finished runs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from evalbudget.errors import InvalidInputError

_LEAST = 2


@dataclass(frozen=True)
class ModelAnswers:
    """Of one model, in one log.

    Attributes:
        model: name.
        source: path of the log, for messages, and to tell two runs of one model apart.
        requests: what was asked, by item.
        answers: what was answered, by item.
    """

    model: str
    source: str
    requests: Mapping[str, str]
    answers: Mapping[str, str]


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
            shown = "; ".join(f"{run.source} has {next(iter(run.answers), 'none')!r}" for run in runs)
            raise InvalidInputError(
                f"the logs share no item ({shown}); give logs of the same task on the same data"
            )
        for run in runs[1:]:
            for item in shared:
                if run.requests[item] != runs[0].requests[item]:
                    raise InvalidInputError(
                        f"item {item!r} asks something else in {run.source} than in {runs[0].source}, so "
                        "that the answers cannot be compared; give logs of the same task on the same data"
                    )
        return cls(
            _names(runs),
            tuple(shared),
            tuple(runs[0].requests[item] for item in shared),
            tuple(tuple(run.answers[item] for item in shared) for run in runs),
            len(every) - len(shared),
        )

    @property
    def fingerprint(self) -> str:
        """Short hash of everything that a judge is shown."""
        digest = hashlib.sha256()
        for text in (*self.requests, *(text for texts in self.texts for text in texts)):
            digest.update(text.encode("utf-8", "surrogatepass"))
            digest.update(b"\0")
        return digest.hexdigest()[:16]


def _names(runs: Sequence[ModelAnswers]) -> tuple[str, ...]:
    """Models by their names; those that stand in several logs by the ends of the logs' paths, too."""
    return tuple(
        run.model if len(same) == 1 else f"{run.model} ({_told_apart(run, same)})"
        for run in runs
        for same in [[other for other in runs if other.model == run.model]]
    )


def _told_apart(run: ModelAnswers, same: Sequence[ModelAnswers]) -> str:
    """The shortest end of a log's path that no other log of the model has."""
    paths = [PurePath(other.source).with_suffix("").parts for other in same]
    own = PurePath(run.source).with_suffix("").parts
    for length in range(1, len(own) + 1):
        if sum(path[-length:] == own[-length:] for path in paths) == 1:
            return "/".join(own[-length:])
    raise InvalidInputError(f"{run.model} ({run.source}) is given twice; a model is not compared with itself")
