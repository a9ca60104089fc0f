"""Which task scores are of, as its log says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TaskName:
    """A task in one of its versions.

    Attributes:
        name: as the host calls it.
        version: None where the log tells none.
    """

    name: str
    version: str | None = None

    def __str__(self) -> str:
        return self.name if self.version is None else f"{self.name} (version {self.version})"
