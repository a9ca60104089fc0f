"""What the page asks for and what it is told; knows nothing of HTTP."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

from evalbudget.audits.store import AuditStore, LabelKind, Standing
from evalbudget.errors import EvalbudgetError, InvalidInputError, StoreDownError
from evalbudget.secrets import without_secrets

Json = dict[str, Any]


class MalformedCallError(InvalidInputError):
    """A call without what it needs, or with something of another type."""


class _Weighed(NamedTuple):
    revision: tuple[int, int]
    standing: Json | None
    problem: str
    wanted: frozenset[int] | None


class PageApi:
    """Answers the page's questions, for any number of pages at once.

    Args:
        store: the audit.
        standing: what the audit has proved so far.
        by: name of the labeller that a page begins with; empty to have it ask.
    """

    def __init__(self, store: AuditStore, standing: Callable[[AuditStore], Standing], by: str = "") -> None:
        self._store = store
        self._standing = standing
        self._by = by
        self._weighing = threading.Lock()
        self._weighed: _Weighed | None = None
        self.calls: Mapping[str, Callable[[Json], Json]] = {
            "audit": self._audit,
            "state": self._state,
            "next": self._next,
            "label": self._label,
            "correct": self._correct,
            "opinion": self._opinion,
            "alive": self._alive,
            "release": self._release,
        }

    def _audit(self, asked: Json) -> Json:
        scale = self._store.design.scale
        levels = scale.levels
        return {
            "by": self._by,
            "store": self._store.address.title,
            "systems": len(self._store.design.models),
            "segments": len(self._store.design.segments),
            "scale": {
                "low": scale.low,
                "high": scale.high,
                "step": scale.step,
                "levels": None if levels is None else list(levels),
                "text": str(scale),
            },
        }

    def _state(self, asked: Json) -> Json:
        progress = self._store.progress()
        now = asdict(progress) | {"outstanding": progress.outstanding}
        weighed = self._weigh(stale=False)
        problem = weighed.standing is None
        if weighed.wanted is not None:  # not all that is unlabelled is still needed
            now["outstanding"] = len(weighed.wanted)
        return {"progress": now, "standing": weighed.standing} | (
            {"problem": weighed.problem} if problem else {}
        )

    def _weigh(self, *, stale: bool) -> _Weighed:
        """What is proved; replaying takes its time, so once for all pages.

        Args:
            stale: what was proved before the last labels will do.
        """
        with self._weighing:
            revision = self._store.revision()
            known = self._weighed
            if known is None or known.revision != revision:
                if known is not None and stale and known.revision[0] == revision[0]:
                    return known
                self._weighed = known = self._replay(revision)
            return known

    def _replay(self, revision: tuple[int, int]) -> _Weighed:
        try:
            found = self._standing(self._store)
        except StoreDownError:
            raise
        except EvalbudgetError as ex:  # labelling goes on; whoever is in charge reads it on the page
            return _Weighed(revision, None, without_secrets(str(ex)), None)
        return _Weighed(revision, found.as_json(), "", frozenset(found.wanted))

    def _next(self, asked: Json) -> Json:
        skip = asked.get("skip", [])
        if not (isinstance(skip, list) and all(type(draw) is int for draw in skip)):
            raise MalformedCallError("skip is not a list of draws")
        among = self._weigh(stale=True).wanted
        task = self._store.leases.next(_text(asked, "session"), _text(asked, "by"), skip=skip, among=among)
        return {"task": None if task is None else asdict(task)}

    def _label(self, asked: Json) -> Json:
        label = self._store.labels.add(_draw(asked), _score(asked), _text(asked, "by"))
        counts = self._store.labels.counting()[label.draw]
        answer: Json = {"kind": label.kind.value, "score": label.score}
        if label.kind is not LabelKind.FIRST:
            answer |= {"counts": {"score": counts.score, "by": counts.by}}
        return answer

    def _correct(self, asked: Json) -> Json:
        label = self._store.labels.correct(
            _draw(asked), _score(asked), _text(asked, "by"), why="corrected on the page"
        )
        return {"kind": label.kind.value, "score": label.score}

    def _opinion(self, asked: Json) -> Json:
        opinion = self._store.labels.show_opinion(_draw(asked), _text(asked, "by"))
        return {"score": opinion.score, "reason": opinion.reason}

    def _alive(self, asked: Json) -> Json:
        return asdict(self._store.leases.renew(_draw(asked), _text(asked, "session")))

    def _release(self, asked: Json) -> Json:
        self._store.leases.release(_text(asked, "session"))
        return {}


def _text(asked: Json, name: str) -> str:
    value = asked.get(name)
    if not isinstance(value, str) or not value:
        raise MalformedCallError(f"{name} is missing")
    return value


def _draw(asked: Json) -> int:
    value = asked.get("draw")
    if type(value) is not int or value < 0:
        raise MalformedCallError("draw is missing")
    return value


def _score(asked: Json) -> float:
    value = asked.get("score")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise MalformedCallError("score is missing")
    return float(value)
