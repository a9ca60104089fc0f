"""An answer of five megabytes on one line, and items named by marks alone, are read, kept and shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from time import thread_time

from tests.audits.store.audits import Told
from tests.cli.commands import typed
from tests.labelling.serving import call, serving

from evalbudget.audits.store import Answer, AuditRun
from evalbudget.recorded._files import open_scores

MARK, LONG = "\u0301", "x" * 5_000_000


def test_a_long_answer_in_an_audit(tmp_path: Path) -> None:
    path, told, audit = tmp_path / "a.sqlite", Told(n_items=30, pilot=1, labels_per_batch=1), typed("audit")
    told.design = replace(told.design, items=tuple(MARK * (1 + i) for i in range(30)))
    began = thread_time()
    with told.create(path) as store:
        run = AuditRun(store)
        (context, *_) = run.contexts
        run.record(context, [Answer("?", LONG, LONG) for _ in context.models], [5.0 for _ in context.models])
        with serving(store) as server:
            assert call(server, "next", session="s", by="ann").json["task"]["response"] == LONG
    shown = audit("next", path).output
    assert LONG in shown
    assert "\\u0301" in shown
    for kind in ("csv", "jsonl", "label-studio"):
        file = tmp_path / f"labels.{kind}"
        assert audit("export", path, "--format", kind, "-o", file).exit_code == 0
        done = audit("import", path, file, "--format", kind, "--by", "ann")
        assert done.exit_code == 0, done.output
    # half a second; laying the answer out for the width of a terminal took a quarter of a minute
    assert thread_time() - began < 5.0


def test_items_named_by_marks_alone(tmp_path: Path) -> None:
    table, baseline = tmp_path / "table.csv", tmp_path / "baseline.csv"
    table.write_text("item,score\n" + "".join(f"{MARK * (1 + i)},{i % 2}\n" for i in range(6)))
    found = open_scores(table)
    assert found is not None
    assert found.items == tuple(MARK * (1 + i) for i in range(6))
    assert typed("gate")("--baseline", table, "--save-baseline", baseline).exit_code == 0
    gate = typed("gate", "--baseline", str(baseline), "--candidate", str(table), "--margin", "0.5")()
    assert "on 6 items" in gate.output, gate.output
