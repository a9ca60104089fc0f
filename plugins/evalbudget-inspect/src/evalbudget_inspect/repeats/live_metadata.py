"""A scorer's metadata that fills itself in when the host copies it into results."""

from __future__ import annotations

from typing import Any

from evalbudget_inspect.repeats.diagnostics import Diagnosis, asked_for, outcome
from evalbudget_inspect.repeats.sample_source import BudgetedSource


class LiveMetadata(dict[str, Any]):
    """The host deep-copies a scorer's metadata each time it computes metrics; the copy describes the run.

    Per-item intervals and what judges did are computed only when everything is read.

    Args:
        source: whose run to describe.
        drives: this scorer's scores drive the sampler.
    """

    def __init__(self, source: BudgetedSource, *, drives: bool) -> None:
        super().__init__(asked_for(source.config, source.scores_as, source.beside))
        self._source = source
        self._drives = drives

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        copy = dict(self)
        book = self._source.book
        if book is not None and self._drives:
            copy |= outcome(book)
            if not book.purchase.finished:
                return copy
            found = Diagnosis(book, self._source.rotation, self._source.bounds)
            copy["per_item"] = found.per_item
            if (judges := found.judges) is not None:
                copy["panel"] = judges
            if (summary := self._source.summary) is not None:
                copy["summary"] = {"text": str(summary), **summary.as_json()}
        return copy
