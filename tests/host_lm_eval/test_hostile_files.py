"""Records and the host's output that broke or that something else wrote: a result, or our own error."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.hostile.damage import check_damage

from evalbudget import Design
from evalbudget.design import Reading
from evalbudget.errors import InvalidInputError, JournalError
from evalbudget.journal import Event
from evalbudget.repeats.samplers import EBBernstein
from evalbudget_lm_eval.host.answers import Answered, Asked
from evalbudget_lm_eval.log_folder import open_scores
from evalbudget_lm_eval.run.record import RACE, RUN, Record, state_of
from evalbudget_lm_eval.run.resume import count_cut_off

SAMPLES = "samples_t_2026-01-01T00-00-00.000001.jsonl"
RESULTS = "results_2026-01-01T00-00-00.000001.json"


def begin(path: Path, kind: str) -> Record:
    sampler = EBBernstein(Design.of_items(4), seed=1) if kind == RUN else None
    return Record.open(path, kind, {"task": "numbers"}, sampler)


def answered(asked: Asked) -> Answered:
    record = {"filter": "none", "metrics": ["acc"], "acc": 1.0, "doc_id": asked.doc_id, "epoch": asked.epoch}
    return Answered(*asked, {"acc,none": 1.0}, 1, (record,))


def of_a_run(path: Path) -> None:
    record, sampler = begin(path, RUN), EBBernstein(Design.of_items(4), seed=1)
    kept = record.of()
    assert record.journal is not None
    for _ in range(3):
        (request,) = sampler.ask()
        record.journal.append(Event(request))
        asked = Asked("numbers", request.cell.item, request.cell.epoch)
        kept.ask({asked: 1}, 1)
        kept.hear(asked, 0, "42")
        kept.answer(answered(asked))
        reading = Reading(request, 1.0)
        sampler.tell([reading])
        record.journal.append(Event(request, reading))
    kept.pay(1)
    record.count_by({"score_range": [0, 1]})
    kept.ask({Asked("numbers", 2, 0): 1}, 8)
    record.finish("budget used up")
    record.close()


def of_a_race(path: Path) -> None:
    record = begin(path, RACE)
    for arm in ("a", "b"):
        kept = record.of(arm)
        kept.open({"model": "hf"}, {"frame": {}})
        kept.ask({Asked("numbers", 2, 0): 1, Asked("numbers", 3, 0): 1}, 8)
        kept.hear(Asked("numbers", 1, 0), 0, [-1.0, True])
        kept.answer(answered(Asked("numbers", 2, 0)))
        kept.fail(Asked("numbers", 3, 0), 1.0, "refused", alone=True)
        kept.pay(1)
    record.close()


@pytest.mark.parametrize(("kind", "write"), [(RUN, of_a_run), (RACE, of_a_race)])
def test_a_record_after_any_damage(tmp_path: Path, kind: str, write: Callable[[Path], None]) -> None:
    whole, path = tmp_path / "whole.jsonl", tmp_path / "damaged.jsonl"
    write(whole)

    def go_on(data: bytes) -> None:
        path.write_bytes(data)
        state_of(path)
        record = begin(path, kind)
        try:
            kept = record.of("a" if kind == RACE else "")
            assert sum(bought.cost for bought in kept.bought) >= 0.0
            assert len([bought.answer for bought in kept.bought]) == len(kept.bought)
            count_cut_off(kept, kept.under_way, lambda asked: None)
        finally:
            record.close()

    check_damage(whole.read_bytes(), go_on, path)


def sample(i: int) -> dict[str, Any]:
    return {
        "doc_id": i, "doc": {"q": 1, "category": "a"}, "filtered_resps": ["1"], "filter": "none",
        "metrics": ["acc"], "doc_hash": "h", "acc": float(i % 2), "epoch": 0, "weight": 0.5,
    }  # fmt: skip


def judged(i: int) -> dict[str, Any]:
    said = {"evalbudget_judge": "j", "epoch": 0, "score": 3.0, "reply": "", "error": None}
    return {"doc_id": i, "filtered_resps": [[json.dumps(said)]], "metrics": ["judged"], "judged": 1.0}


OURS = {
    "config": {"model": "hf", "model_args": "pretrained=x"},
    "model_name": "x",
    "configs": {"t": {"metric_list": [{"metric": "acc", "aggregation": "mean"}]}},
    "evalbudget": {"allocation": "weighted", "fixed_repeats": 1, "judges": {"t": {"fixed_repeats": 1}}},
}


@pytest.mark.parametrize("what", ["samples", "judged", "results"])
def test_output_of_the_host_after_any_damage(tmp_path: Path, what: str) -> None:
    lines = [(judged if what == "judged" else sample)(i) for i in range(3)]
    files = {SAMPLES: "".join(json.dumps(line) + "\n" for line in lines), RESULTS: json.dumps(OURS)}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert open_scores(tmp_path) is not None
    damaged = RESULTS if what == "results" else SAMPLES

    def read(data: bytes) -> None:
        (tmp_path / damaged).write_bytes(data)
        open_scores(tmp_path)

    check_damage(files[damaged].encode(), read, tmp_path)


def test_a_block_of_another_version_names_the_file(tmp_path: Path) -> None:
    (tmp_path / SAMPLES).write_text(json.dumps(sample(0)) + "\n")
    (tmp_path / RESULTS).write_text(json.dumps({"evalbudget": {"allocation": "by dice"}}))
    with pytest.raises(InvalidInputError, match=rf"{SAMPLES}.*'by dice' is not a valid Allocation"):
        open_scores(tmp_path)


def test_a_folder_in_place_of_a_record(tmp_path: Path) -> None:
    for read in (state_of, lambda path: begin(path, RACE)):
        with pytest.raises(JournalError, match=str(tmp_path)):
            read(tmp_path)
