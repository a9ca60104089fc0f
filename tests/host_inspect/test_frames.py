"""Logs in frames: the numbers are the log's own, and what a log tells travels with the frame."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.model import get_model
from tests.claims import variant
from tests.frames.libraries import rows

import evalbudget
from evalbudget.errors import InvalidInputError
from evalbudget_inspect import budgeted

for library in ("narwhals", "pandas"):
    pytest.importorskip(library, reason=f"{library} is not installed")


@pytest.mark.parametrize(
    "options", [{}, variant({"sampler": "uniform"}), variant({"sampler": "robin", "pilot": 2})]
)
def test_models_are_the_logs_own_numbers(
    run: Any, make_task: Any, metrics: Any, diagnostics: Any, options: dict[str, Any]
) -> None:
    log = run(budgeted(make_task(), budget=32, **options))
    scores = evalbudget.read(log.location)
    told = metrics(log)
    (row,) = rows(scores.models())
    for name in ("estimate", "stderr", "lower", "upper", "repeats_stderr"):
        assert row[name] == pytest.approx(told[name]), name
    width = told["repeats_upper"] - told["repeats_lower"]
    assert row["repeats_upper"] - row["repeats_lower"] == pytest.approx(width)
    assert row["allocation"] == diagnostics(log)["allocation"]
    again = evalbudget.from_frame(scores.readings())
    assert rows(again.models()) == rows(scores.models())
    assert again.recorded.task == scores.recorded.task


def test_a_panels_models_and_judges(run: Any, make_task: Any, metrics: Any) -> None:
    judges = [get_model(f"simulated/{name}", mean=m, memoize=False) for name, m in (("x", 3), ("y", 6))]
    log = run(budgeted(make_task(), budget=32, judges=judges))
    scores, told = evalbudget.read(log.location), metrics(log)
    (row,) = rows(scores.models())
    assert row["rater"] == "panel"
    assert (row["estimate"], row["stderr"]) == pytest.approx((told["estimate"], told["stderr"]))
    assert row["repeats_stderr"] == pytest.approx(told["repeats_stderr"])
    bias = {judge["rater"]: judge["bias"] for judge in rows(scores.judges())}
    assert bias["simulated/x"] == pytest.approx(told["bias_x"], abs=1e-6)


def test_a_folder_and_two_logs(run: Any, make_task: Any, tmp_path: Path) -> None:
    before, after = run(make_task(), epochs=2), run(make_task(), epochs=2)
    folder = evalbudget.read(tmp_path / "logs")
    assert [row["readings"] for row in rows(folder.models())] == [32]
    both = evalbudget.read(before.location, after.location)
    assert len(both.recorded.models) == 2
    assert len(both.compare().rows) == 1


def test_a_half_written_log_is_named(run: Any, make_task: Any, tmp_path: Path) -> None:
    log = Path(run(make_task()).location.removeprefix("file://"))
    half = log.with_name("2099-01-01T00-00-00_half.eval")
    half.write_bytes(log.read_bytes()[:-400])
    with pytest.raises(InvalidInputError, match=r"half\.eval is not a readable inspect log.*eval-retry"):
        evalbudget.read(half)
    with zipfile.ZipFile(half, "w") as other:
        other.writestr("header.json", '{"version": 99}')
    with pytest.raises(InvalidInputError, match=r"half\.eval is not a readable inspect log"):
        evalbudget.read(half)
    others = evalbudget.read(tmp_path / "logs").recorded
    assert others.counts.sum() == 8
    (note,) = others.declared.notes
    assert note.startswith(f"1 log could not be read: {half}; left out.")
