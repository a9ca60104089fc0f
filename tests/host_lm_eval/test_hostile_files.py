"""Records and the host's output that broke or that something else wrote: a result, or our own error."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from time import thread_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.claims import replications
from tests.hostile.damage import FULL, always_the_same, check_damage, check_linear, refusal

from evalbudget.errors import EvalbudgetError, InvalidInputError, JournalError
from evalbudget_lm_eval.host.answers import Answered, Asked
from evalbudget_lm_eval.host.logfiles import samples_files
from evalbudget_lm_eval.judges.grading import Grading
from evalbudget_lm_eval.judges.typed import typed_panel
from evalbudget_lm_eval.log_folder import open_scores
from evalbudget_lm_eval.run.record import RACE, RUN, Record, look
from evalbudget_lm_eval.run.resume import count_cut_off
from evalbudget_pairwise.lm_eval.answers import read_answers

SAMPLES = "samples_t_2026-01-01T00-00-00.000001.jsonl"
RESULTS = "results_2026-01-01T00-00-00.000001.json"


def begin(path: Path, kind: str) -> Record:
    return Record.open(path, kind, {"task": "numbers"})


def answered(asked: Asked) -> Answered:
    record = {"filter": "none", "metrics": ["acc"], "acc": 1.0, "doc_id": asked.doc_id, "epoch": asked.epoch}
    return Answered(*asked, {"acc,none": 1.0}, 1, (record,))


def of_a_run(path: Path) -> None:
    record = begin(path, RUN)
    kept = record.of()
    assert record.worker
    for item in range(3):
        asked = Asked("numbers", item, 0)
        kept.ask({asked: 1}, 1)
        kept.hear(asked, 0, "42")
        kept.answer(answered(asked))
    kept.pay(1)
    record.count_by({"score_range": [0, 1]})
    kept.ask({Asked("numbers", 2, 0): 1}, 8)
    record.finish()
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


@pytest.mark.claim
@pytest.mark.parametrize(("kind", "write"), [(RUN, of_a_run), (RACE, of_a_race)])
def test_a_record_after_any_damage(tmp_path: Path, kind: str, write: Callable[[Path], None]) -> None:
    whole, path = tmp_path / "whole.db", tmp_path / "damaged.db"
    write(whole)

    def go_on(data: bytes) -> None:
        path.write_bytes(data)
        if kind == RUN:
            look(path)
        record = begin(path, kind)
        try:
            kept = record.of("a" if kind == RACE else "")
            assert sum(bought.cost for bought in kept.bought) >= 0.0
            assert len([bought.answer for bought in kept.bought]) == len(kept.bought)
            count_cut_off(kept, lambda asked: None)
        finally:
            record.close()

    check_damage(whole.read_bytes(), go_on, path)


def sample(i: int) -> dict[str, Any]:
    return {
        "doc_id": i, "doc": {"q": 1, "category": "a"}, "filtered_resps": ["1"], "filter": "none",
        "metrics": ["acc"], "doc_hash": "h", "acc": float(i % 2), "epoch": 0, "phase": 0,
    }  # fmt: skip


def judged(i: int) -> dict[str, Any]:
    said = {"evalbudget_judge": "j", "epoch": 0, "score": 3.0, "reply": "", "error": None}
    return {"doc_id": i, "filtered_resps": [[json.dumps(said)]], "metrics": ["judged"], "judged": 1.0}


OURS = {
    "config": {"model": "hf", "model_args": "pretrained=x"},
    "model_name": "x",
    "configs": {"t": {"metric_list": [{"metric": "acc", "aggregation": "mean"}]}},
    "evalbudget": {
        "allocation": "phased",
        "fixed_repeats": 1,
        "phase_sizes": [2.0],
        "judges": {"t": {"fixed_repeats": 1}},
    },
}


@pytest.mark.claim
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


@pytest.mark.claim
def test_answers_to_compare_after_any_damage(tmp_path: Path) -> None:
    asked = {"arguments": {"gen_args_0": {"arg_0": "question", "arg_1": {"until": []}}}, "resps": [["said"]]}
    text = "".join(json.dumps(sample(i) | asked) + "\n" for i in range(3))
    folders = [tmp_path / name for name in ("a", "b")]
    for folder in folders:
        folder.mkdir()
        (folder / RESULTS).write_text(json.dumps(OURS | {"model_name": folder.name}))
        (folder / SAMPLES).write_text(text)

    def read(data: bytes) -> None:
        (folders[1] / SAMPLES).write_bytes(data)
        read_answers([str(folder) for folder in folders])

    read(text.encode())
    check_damage(text.encode(), read, tmp_path)


def test_a_block_of_another_version_names_the_file(tmp_path: Path) -> None:
    (tmp_path / SAMPLES).write_text(json.dumps(sample(0)) + "\n")
    (tmp_path / RESULTS).write_text(json.dumps({"evalbudget": {"allocation": "by dice"}}))
    with pytest.raises(InvalidInputError, match=rf"{SAMPLES}.*'by dice' is not a valid Allocation"):
        open_scores(tmp_path)


def test_a_folder_in_place_of_a_record(tmp_path: Path) -> None:
    for read in (look, lambda path: begin(path, RACE)):
        with pytest.raises(JournalError, match=str(tmp_path)):
            read(tmp_path)


def test_what_is_no_file_in_a_folder_of_output_is_left_out_and_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name, model in (("whole", "a"), ("pipe", "b"), ("results", "c")):
        (tmp_path / name).mkdir()
        (tmp_path / name / RESULTS).write_text(json.dumps(OURS | {"model_name": model}))
        (tmp_path / name / SAMPLES).write_text("".join(json.dumps(sample(i)) + "\n" for i in range(3)))
    for pipe in (tmp_path / "pipe" / SAMPLES, tmp_path / "results" / RESULTS):
        pipe.unlink()
        os.mkfifo(pipe)
    (tmp_path / "up").symlink_to("..")
    (tmp_path / SAMPLES).symlink_to(SAMPLES)
    other = tmp_path / "whole" / SAMPLES.replace("_t_", "_other_")
    os.mkfifo(other)
    found = open_scores(tmp_path)
    assert found is not None
    assert found.models == ("a",)
    assert found.declared is not None
    told = " ".join(found.declared.notes)
    assert f"{tmp_path / 'pipe' / SAMPLES} is no file, but a pipe" in told
    assert f"{tmp_path / 'results' / RESULTS} is not readable as results of lm-eval (it is no file" in told
    assert f"{other} is no file, but a pipe" in told
    assert found.declared.complete == (True,)
    assert [file.model for file in samples_files(tmp_path)] == ["a"]
    assert caplog.text.count("is no file, but a pipe") == 4
    assert f"left out: {other} is no file" in caplog.text
    with pytest.raises(InvalidInputError, match="is no file, but a pipe"):
        samples_files(tmp_path / "pipe")


DEEP = ("-" * 2500, "-" * 30_000, "(" * 30_000, "1+" * 2500, "x**" * 9000, "lambda: " * 2500, '"\\d"+')


@pytest.mark.parametrize("code", DEEP, ids=lambda code: f"{code[:4]} {len(code)}")
def test_code_of_an_aggregation_that_nobody_could_read(tmp_path: Path, code: str) -> None:
    metric = {"metric": "acc", "aggregation": f"def own(x):\n    return {code}1\n"}
    told = OURS | {"configs": {"t": {"metric_list": [metric]}}}
    (tmp_path / RESULTS).write_text(json.dumps(told))
    (tmp_path / SAMPLES).write_text("".join(json.dumps(sample(i)) + "\n" for i in range(3)))
    refusal(lambda: open_scores(tmp_path), tmp_path)


OPTIONS = b"""\
judges: [{name: a, model: 'dummy:model=a'}]
scale: 1..5
rotation: single
prices: {a: 1}
prompt: x
"""
JUDGES = b"- dummy:model=a\n- {name: b, model: 'dummy:model=b'}\n- dummy:model=c\n"


@pytest.mark.claim
def test_a_file_of_judges_after_any_damage(tmp_path: Path) -> None:
    path = tmp_path / "judges.yaml"

    def read(data: bytes) -> dict[str, Any]:
        path.write_bytes(data)
        try:
            return typed_panel({"judges": str(path)})
        except EvalbudgetError as ex:  # of a judge, which is named
            raise InvalidInputError(f"{path}: {ex}") from ex

    assert len(read(JUDGES)["judges"]) == 3
    check_damage(JUDGES, read, path)
    check_damage(OPTIONS, read, path)
    for price in (b"''", b"{}", b"x", b"9" * 399):
        with pytest.raises(InvalidInputError, match="give every judge a number"):
            read(OPTIONS.replace(b"a: 1", b"a: " + price))
    with pytest.raises(EvalbudgetError, match="judge in prices '7'"):
        read(OPTIONS.replace(b"a: 1", b"7: 1"))
    with pytest.raises(InvalidInputError, match="is no regular expression"):
        read(OPTIONS + b"pattern: '" + b"(" * 3000 + b"'\n")
    check_linear(read, (b"- a\n", b"[", b"{", b"a: ", b"- dummy:x=1\n", b"a,", b"'"), size=2_000)
    began = thread_time()
    assert len(read("".join(f"- dummy:model=a{i}\n" for i in range(20_000)).encode())["judges"]) == 20_000
    assert thread_time() - began < 4.0


PIECES = (
    "RATING",
    "rating: ",
    "RATING: 3",
    "1",
    "-",
    ".",
    ",",
    "–",
    "*",
    "_",
    ":",
    "=",
    " ",
    "\n",
    "4.5",
    "x",
    "٣",
)


def test_the_end_of_a_long_reply_counts() -> None:
    grading = Grading.of(None, "1..5", r"(\d+)\s*stars")
    assert grading.read("2 stars" + " good" * 2_000_000 + " 4 stars") == 4.0
    assert grading.read("2 stars" + " good" * 2_000_000) is None
    assert grading.read("2 stars" + " good" * 10_000) == 2.0


@pytest.mark.claim
def test_any_reply_of_a_judge_is_a_number_on_the_scale_or_none() -> None:
    grading = Grading.of(None, "1..5", None)

    @always_the_same(replications(120, FULL), seconds=1.0)
    @given(
        st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=12), st.integers(1, 300)
    )
    def each(pieces: list[str], times: int) -> None:
        value = grading.read("".join(pieces) * times)
        assert value is None or 1.0 <= value <= 5.0

    each()
    check_linear(lambda data: grading.read(data.decode()), [*map(str.encode, PIECES), b"RATING ", b"1.5"])
