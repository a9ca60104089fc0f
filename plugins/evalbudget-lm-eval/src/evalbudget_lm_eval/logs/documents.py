"""Names of documents across logs: by what was asked, with their categories and texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evalbudget.backtest import ONE_BY_ONE, asked_twice, match_questions
from evalbudget.errors import InvalidInputError
from evalbudget_lm_eval.logs.log import Log, Record


class Documents:
    """Gives the same document the same name in every log.

    Args:
        logs: that are read together.
        by_task: documents are named ``task/doc_id``; else by their id alone.
        category: the field that all must have; None where the usual one counts, or the task.

    Attributes:
        digests: of what was asked, by name.
        clusters: labels of those that were sampled together, by name; None unless a run of ours clustered
            all logs by one field.
        cluster: that field.
        notes: on ids that hold other documents than elsewhere, for people.
    """

    def __init__(self, logs: Sequence[Log], *, by_task: bool, category: str | None) -> None:
        self._by_task = by_task
        self._category = category
        self._labels: dict[str, str | None] = {}
        self._texts: dict[str, str] = {}
        fields = {log.cluster for log in logs}
        self.cluster = fields.pop() if len(fields) == 1 else None
        self.clusters: dict[str, str] | None = {} if self.cluster else None
        self.digests: dict[str, str] = {}
        self._names: dict[int, Mapping[str, str]] = {}
        notes: list[str] = []
        for task in dict.fromkeys(log.file.task if by_task else None for log in logs):
            notes += self._match([log for log in logs if task in (None, log.file.task)])
        self.notes = tuple(notes)

    def _match(self, logs: Sequence[Log]) -> tuple[str, ...]:
        """Name the documents of logs of one task: two tasks of a group share none, whatever their texts."""
        own = [
            {self._id(log, int(record["doc_id"])): str(record["question"]) for record in log.records}
            for log in logs
        ]
        asked = [(log.label, questions) for log, questions in zip(logs, own, strict=True)]
        matched = match_questions(asked, remedy=ONE_BY_ONE)
        for log, questions, names in zip(logs, own, matched.names, strict=True):
            self._names[id(log)] = names
            for id_, digest in questions.items():
                if digest:
                    self.digests.setdefault(names[id_], digest)
        return matched.notes

    def asked_twice(self) -> list[str]:
        """A note on documents of one task that ask what others of it do; none where there are none."""
        labels = {item: label for item, label in self._labels.items() if label is not None}
        together = labels if self._category is not None else self.clusters
        tasks: dict[str, dict[str, str]] = {}
        for item, digest in self.digests.items():
            tasks.setdefault(item.partition("/")[0] if self._by_task else "", {})[item] = digest
        return [note for own in tasks.values() for note in asked_twice(own, together)]

    def name(self, log: Log, document: int) -> str:
        """Of a document, which may be missing from the log."""
        id_ = self._id(log, document)
        return self._names[id(log)].get(id_, id_)

    def see(self, log: Log, record: Record) -> str:
        """The name of a record's document, whose category and text are kept.

        Raises:
            InvalidInputError: it lacks the field that was asked for.
        """
        item = self.name(log, int(record["doc_id"]))
        own = None if record["category"] == "" else record["category"]
        if own is None and self._category is not None:
            raise InvalidInputError(
                f"document {record['doc_id']} in {log.file.path} has no {self._category!r}; give the name of "
                "a field that all documents have, or leave --cluster (in Python: category) out"
            )
        by_task = self._by_task and self._category is None
        self._labels[item] = log.file.task if by_task else None if own is None else str(own)
        self._texts.setdefault(item, record["text"])
        if self.clusters is not None and own is not None:
            self.clusters[item] = f"{log.file.task}/{own}" if self._by_task else str(own)
        return item

    def categories(self, items: Sequence[str]) -> tuple[str, ...] | None:
        """Of these documents; None unless all have one.

        Raises:
            InvalidInputError: documents without an answer in any log, whose field nobody knows, are asked
                for it.
        """
        labels = [self._labels.get(item, self._of_name(item)) for item in items]
        if self._category is not None and None in labels:
            lacking = [item for item, label in zip(items, labels, strict=True) if label is None]
            rest = f" and {len(lacking) - 1:,} more" if len(lacking) > 1 else ""
            raise InvalidInputError(
                f"no log has the document {lacking[0]}{rest}, whose answers are missing, so that nothing "
                f"tells its {self._category!r}; evaluate it, or leave --cluster (in Python: category) out"
            )
        return None if None in labels else tuple(map(str, labels))

    def texts(self, items: Sequence[str]) -> tuple[str, ...]:
        """The ends of their prompts; empty where nothing tells it."""
        return tuple(self._texts.get(item, "") for item in items)

    def _of_name(self, item: str) -> str | None:
        """The task of a document that no log has."""
        return item.partition("/")[0] if self._by_task and self._category is None else None

    def _id(self, log: Log, document: int) -> str:
        return f"{log.file.task}/{document}" if self._by_task else str(document)
