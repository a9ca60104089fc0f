"""Where benchmarks read recorded scores, and where they write their pages and figures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "benchmarks" / "data"


def data_file(name: str) -> Path:
    """A file of recorded scores, with or without the ending ``.npz``."""
    return (RECORDED / name).with_suffix(".npz")


@dataclass(frozen=True, slots=True)
class Places:
    """Folders of what a benchmark writes.

    Attributes:
        pages: Markdown and pictures.
        results: the figures as JSON.
    """

    pages: Path = ROOT / "docs" / "benchmarks"
    results: Path = ROOT / "benchmarks" / "results"

    @classmethod
    def of(cls, folder: Path | None) -> Places:
        """Those of the repository, or pages in ``folder`` and data in its ``results``."""
        return cls() if folder is None else cls(folder, folder / "results")

    def make(self) -> None:
        """Create the folders that are missing."""
        self.pages.mkdir(parents=True, exist_ok=True)
        self.results.mkdir(parents=True, exist_ok=True)
