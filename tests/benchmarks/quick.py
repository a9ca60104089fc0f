"""What the tests of benchmarks share: runs at a tiny size, their data and pages, and recordings made up."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import warm

ROOT = Path(__file__).resolve().parents[2]


def invoke(script: str, *arguments: str) -> Result:
    """A benchmark's command in this process; it ends well."""
    result = CliRunner().invoke(importlib.import_module(script).main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def written(script: str, *sections: str, docs: Path, page: str = "") -> tuple[dict[str, Any], str, str]:
    """Data and page that a quick run of these sections writes, and what it prints."""
    told = invoke(script, *sections, "--quick", "--write-docs", "--docs", str(docs)).output
    kept = json.loads((docs / "results" / f"{page or script}.json").read_text(encoding="utf-8"))
    return kept, (docs / f"{page or script}.md").read_text(encoding="utf-8"), told


@contextmanager
def warm_starts(*modules: str) -> Iterator[None]:
    """Sections start their processes from one that has imported what they need: most of their time."""

    def run(command: list[str], *, capture_output: bool, check: bool, **options: Any) -> Any:
        sizes = json.loads(command[-1]) if "load_sections.measured" in command else {}
        host = sizes.get("host", "lm-eval" if "arms" in command else "core")
        return warm.run(command, host=host, **options)

    started = SimpleNamespace(run=run, Popen=partial(warm.Popen, host="core"))
    with pytest.MonkeyPatch.context() as patch:
        for module in modules:
            patch.setattr(f"{module}.subprocess", started)
        yield


def check_table(table: dict[str, Any], page: str) -> None:
    """It has rows, each of a cell per column, and all of them stand on the page."""
    assert table["rows"]
    for row in table["rows"]:
        assert len(row) == len(table["columns"])
        assert "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" in page


def save(folder: Path, name: str, scores: np.ndarray, **more: Any) -> None:
    """A recording of scores[model, item, rater, repeat]; axes that are given no names are numbered."""
    axes = zip(("models", "items", "raters"), scores.shape, strict=False)
    names = {axis: [f"{axis} {i}" for i in range(n)] for axis, n in axes}
    np.savez(folder / f"{name}.npz", allow_pickle=False, scores=scores, **{**names, **more})
