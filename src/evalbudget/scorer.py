"""A scorer by whoever writes one: one answer in, one number out, the same on every host."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar


class Scorer(ABC):
    """Scores answers in place of a task's own scorers or metrics (``--scorer NAME``); it has no state.

    Attributes:
        name: in ``--scorer``, and of the score in the host's results: letters, digits and ``_``.
        score_range: the smallest and the largest possible score, which a run then declares; None if unknown.
    """

    name: ClassVar[str]
    score_range: ClassVar[tuple[float, float] | None] = None

    @abstractmethod
    def score(self, item: Mapping[str, Any], answer: str) -> float:
        """The score; nan if there is none, which counts as a failed call.

        Args:
            item: ``input`` (what the model was asked), ``target`` (what the task holds answers against; empty
                without one), and the document's fields, or the sample's metadata. Not to be changed.
            answer: what the model said.
        """
