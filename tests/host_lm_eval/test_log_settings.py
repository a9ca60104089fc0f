"""Logs of one model with other settings are of two models; one log twice counts once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.host_lm_eval.log_worlds import DATE, averages, declared, notes, read, sample, write_log

from evalbudget.comparisons import compare
from evalbudget.errors import InvalidInputError
from evalbudget.recorded._direction import notes_of

LATER = "2026-01-03T03-04-05.000000"


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        ({"version": 2.0}, {"version": 3.0}, ["version=2.0", "version=3.0"]),
        ({"shots": 0}, {"shots": 5}, ["num_fewshot=0", "num_fewshot=5"]),
        (
            {"args": "pretrained=org/m,dtype=float16"},
            {"args": {"pretrained": "org/m", "load_in_4bit": True}},
            ["dtype=float16, load_in_4bit=default", "dtype=default, load_in_4bit=True"],
        ),
        (
            {"args": "pretrained=org/m,revision=step1"},
            {"args": "pretrained=org/m"},
            ["revision=step1", "revision=default"],
        ),
        (
            {"args": "pretrained=org/m,lora_local_path=a"},
            {"args": "pretrained=org/m,lora_local_path=b"},
            ["lora_local_path=a", "lora_local_path=b"],
        ),
        (
            {"config": {"model_sha": "1a"}},
            {"config": {"model_sha": "2b"}},
            ["model_sha=1a", "model_sha=2b"],
        ),
        (
            {"config": {"model": "hf"}},
            {"config": {"model": "vllm"}},
            ["model_source=hf", "model_source=vllm"],
        ),
        (
            {"config": {"gen_kwargs": "temperature=0.7,do_sample=True"}},
            {"config": {"gen_kwargs": {"temperature": 0.2, "do_sample": True}}},
            ["gen_kwargs.temperature=0.7", "gen_kwargs.temperature=0.2"],
        ),
        (
            {"task_config": {"generation_kwargs": {"max_gen_toks": 10}}},
            {"task_config": {"generation_kwargs": {"max_gen_toks": 20}}},
            ["gen_kwargs.max_gen_toks=10", "gen_kwargs.max_gen_toks=20"],
        ),
        (
            {"system_instruction": None},
            {"system_instruction": "Be brief."},
            ["system_instruction=none", "system_instruction=Be brief."],
        ),
        (
            {"chat_template_sha": None},
            {"chat_template_sha": "0123456789abcdef"},
            ["chat_template=none", "chat_template=0123456789ab"],
        ),
        (
            {"metrics": [*averages("acc"), {"metric": "exact_match", "ignore_case": True}]},
            {"metrics": [*averages("acc"), {"metric": "exact_match"}]},
            ["exact_match.ignore_case=True", "exact_match.ignore_case=default"],
        ),
        (
            {"task_config": {"process_results": "def process(doc, results):\n    return 1\n"}},
            {"task_config": {"process_results": "def process(doc, results):\n    return 2\n"}},
            ["process_results=", "process_results="],
        ),
    ],
    ids=lambda given: "",
)
def test_other_settings_are_another_model(
    tmp_path: Path, one: dict[str, Any], other: dict[str, Any], told: list[str]
) -> None:
    write_log(tmp_path, [1.0, 0.0], **one)
    write_log(tmp_path, [1.0, 1.0], date=LATER, **other)
    recorded = read(tmp_path)
    assert len(recorded.models) == 2
    for model, part in zip(recorded.models, told, strict=True):
        assert model.startswith(f"org/m ({part}")
    assert recorded.true_scores[:, :, 0].tolist() == [[1.0, 0.0], [1.0, 1.0]]


@pytest.mark.parametrize(
    "changes",
    [
        {"args": "pretrained=org/m,num_concurrent=8,max_retries=3,timeout=60,seed=7,batch_size=4"},
        {"args": {"pretrained": "org/m", "device": "cuda:1", "tensor_parallel_size": 2, "parallelize": True}},
        {"config": {"batch_size": 16, "device": "cuda", "random_seed": 5, "use_cache": "there"}},
        {"config": {"gen_kwargs": "seed=5"}},
        {"config": {"model_sha": "1a"}},  # the other one does not tell
        {"git_hash": "abc", "lm_eval_version": "0.4.9"},
    ],
    ids=range(6),
)
def test_repeats_of_a_model_differ_in_none_of_these(tmp_path: Path, changes: dict[str, Any]) -> None:
    write_log(tmp_path, [1.0, 0.0])
    write_log(tmp_path, [1.0, 1.0], date=LATER, **changes)
    recorded = read(tmp_path)
    assert recorded.models == ("org/m",)
    assert recorded.counts[0, :, 0].tolist() == [2, 2]


def test_a_setting_that_one_log_does_not_tell_is_unknown_where_others_differ(tmp_path: Path) -> None:
    for day, sha in enumerate(("1a", "2b", None), start=1):
        config = {} if sha is None else {"model_sha": sha}
        write_log(tmp_path, [1.0, float(day == 1)], date=f"2026-01-0{day}T03-04-05.000000", config=config)
    assert read(tmp_path).models == (
        "org/m (model_sha=1a)",
        "org/m (model_sha=2b)",
        "org/m (model_sha=unknown)",
    )


def test_keys_are_in_no_name(tmp_path: Path) -> None:
    write_log(tmp_path, [1.0, 0.0], args="model=org/m,api_key=sk-secret,revision=a")
    write_log(tmp_path, [1.0, 1.0], date=LATER, args="model=org/m,api_key=sk-other,revision=b")
    recorded = read(tmp_path)
    assert recorded.models == ("org/m (revision=a)", "org/m (revision=b)")
    assert "sk-" not in str(declared(recorded))


def test_other_prompts_are_another_model(tmp_path: Path) -> None:
    def asked(how: str, score: float) -> list[dict[str, Any]]:
        return [sample(i, {"acc": score}, prompt_hash=f"{how} {i}") for i in range(4)]

    write_log(tmp_path, asked("plainly", 1.0))
    write_log(tmp_path, asked("politely", 0.0), date=LATER)
    # a part of the documents, with the prompts of the first
    write_log(tmp_path, asked("plainly", 0.0)[:2], date="2026-01-04T03-04-05.000000")
    recorded = read(tmp_path)
    assert len(recorded.models) == 2
    assert all(model.startswith("org/m (prompt=") for model in recorded.models)
    assert recorded.counts[:, :, 0].sum(axis=1).tolist() == [6, 4]


def test_other_documents_under_the_same_ids_are_another_model(tmp_path: Path) -> None:
    write_log(tmp_path, [1.0] * 4)
    new = [sample(i, {"acc": 0.0}, question=f"{'new ' if i < 2 else ''}question {i}") for i in range(4)]
    write_log(tmp_path, new, date=LATER)
    recorded = read(tmp_path)
    assert len(recorded.models) == 2
    assert all(model.startswith("org/m (questions=") for model in recorded.models)
    assert sorted(recorded.counts[:, :, 0].sum(axis=0).tolist()) == [1, 1, 1, 1, 2, 2]


def test_the_same_documents_in_another_order_are_repeats(tmp_path: Path) -> None:
    write_log(tmp_path, [1.0, 0.0, 0.0, 0.0])
    turned = [sample(i, {"acc": float(i == 3)}, question=f"question {3 - i}") for i in range(4)]
    write_log(tmp_path, turned, date=LATER)
    recorded = read(tmp_path)
    assert recorded.models == ("org/m",)
    assert recorded.true_scores[0, :, 0].tolist() == [1.0, 0.0, 0.0, 0.0]
    assert "paired by question" in notes(recorded)


def test_arguments_of_a_task_are_settings(tmp_path: Path) -> None:
    for date, length in ((LATER, 4096), ("2026-01-04T03-04-05.000000", 8192)):
        metadata = {
            "version": 1.0,
            "config_source": f"/home/{length}",
            "pretrained": "org/m",
            "length": length,
        }
        write_log(tmp_path, [1.0, 0.0], task_config={"metadata": metadata}, date=date)
    assert read(tmp_path).models == ("org/m (metadata.length=4096)", "org/m (metadata.length=8192)")


def test_logs_without_the_hosts_name_are_named_by_the_arguments(tmp_path: Path) -> None:
    for name, date in (("a", LATER), ("b", "2026-01-04T03-04-05.000000")):
        write_log(tmp_path, args=f"pretrained=org/{name},dtype=float16", model_name=None, date=date)
    assert read(tmp_path).models == ("org/a", "org/b")


def test_one_log_twice_counts_once(tmp_path: Path) -> None:
    write_log(tmp_path / "x")
    shutil.copytree(tmp_path / "x", tmp_path / "y")
    recorded = read(tmp_path)
    assert recorded.counts.tolist() == [[[1]] * 4]
    assert f"{tmp_path.name}/y/samples_toy_" in notes(recorded)
    assert "again: counted once" in notes(recorded)


def test_a_part_of_the_same_run_counts_once(tmp_path: Path) -> None:
    whole = write_log(tmp_path / "x")
    part = tmp_path / "y" / whole.name
    part.parent.mkdir()
    records = [json.loads(line) for line in whole.read_text().splitlines()]
    part.write_text("".join(json.dumps(record, sort_keys=True) + "\n" for record in records[:2]))
    (part.parent / f"results_{whole.name[12:-1]}").write_text(
        (whole.parent / f"results_{whole.name[12:-1]}").read_text()
    )
    recorded = read(tmp_path)
    assert recorded.counts.tolist() == [[[1]] * 4]
    assert "again: counted once" in notes(recorded)


def test_the_same_scores_with_other_answers_are_a_repeat(tmp_path: Path) -> None:
    write_log(tmp_path)
    scores = [1.0, 0.0, 1.0, 1.0]
    again = [sample(i, {"acc": score}, resps=[["in other words"]]) for i, score in enumerate(scores)]
    write_log(tmp_path, again, date=LATER)
    recorded = read(tmp_path)
    assert recorded.counts.tolist() == [[[2]] * 4]
    assert notes(recorded) == ""


def test_a_run_that_went_on_counts_once(tmp_path: Path) -> None:
    block = {"allocation": "fixed", "fixed_repeats": 1, "journal": "/there/run.db"}
    write_log(tmp_path, [1.0, 0.0], evalbudget=block)
    write_log(tmp_path, [1.0, 0.0, 1.0], date=LATER, evalbudget=block)
    recorded = read(tmp_path)
    assert recorded.counts[0, :, 0].tolist() == [1, 1, 1]
    assert "1 log of a run that went on is left out" in notes(recorded)


def test_samples_without_results_are_of_the_model_that_their_folder_is_called_after(tmp_path: Path) -> None:
    write_log(tmp_path / "org__m", date="2024-05-01T00-00-00.000001")
    write_log(tmp_path / "org__m", (0.0, 0.0, 1.0, 1.0), date="2024-05-02T00-00-00.000001")
    for results in (tmp_path / "org__m").glob("results_2024-05-02*.json"):
        results.unlink()
    found = read(tmp_path)
    assert found.models == ("org/m",)
    assert found.counts.sum(axis=2).tolist() == [[2, 2, 2, 2]]


def test_a_renamed_copy_without_results_counts_once(tmp_path: Path) -> None:
    write_log(tmp_path / "org__m")
    (tmp_path / "again").mkdir()
    (samples,) = (tmp_path / "org__m").glob("samples_*.jsonl")
    copy = tmp_path / "again" / samples.name.replace("2026", "2025")
    copy.write_bytes(samples.read_bytes())
    found = read(tmp_path)
    assert found.models == ("org/m",)
    assert found.counts.sum(axis=2).tolist() == [[1, 1, 1, 1]]
    assert found.declared is not None
    assert any("again: counted once" in note for note in found.declared.notes)
    (first,) = (tmp_path / "org__m").glob("results_*.json")
    first.unlink()  # and of two that nobody names, one is read
    assert len(read(tmp_path).models) == 1


def test_answers_that_failed_and_were_asked_again_are_told(tmp_path: Path) -> None:
    own = {"doc_id": [0, 1, 2, 3], "readings": [1, 1, 1, 1], "failed": [1, 0, 0, 3], "range": [0.0, 1.0]}
    write_log(tmp_path, evalbudget={"tasks": {"toy": own}, "score": {"toy": "acc,none"}})
    # 1, 0, 1, 1: a half and a quarter are left of two of them
    assert notes(read(tmp_path)) == (
        "4 of 8 answers of org/m failed and were asked again: if wrong ones fail more often, scores are too "
        "high: 0.438 in place of 0.75, were each of them worth 0."
    )


@pytest.mark.parametrize("tasks", [["toy"], ["one", "two"]])
def test_models_on_other_versions_of_a_task_are_named_and_not_compared(
    tasks: list[str], tmp_path: Path
) -> None:
    for model, version, date in (("org/a", 1.0, DATE), ("org/b", 2.0, LATER)):
        for task in tasks:
            own = {"version": version if task == tasks[-1] else 1.0, "shots": int(version)}
            write_log(tmp_path / model / task, model=model, task=task, date=date, **own)
    found = read(tmp_path, of_tasks=tasks)
    of = "" if len(tasks) == 1 else " of two"
    assert found.models == (f"org/a (version{of}=1.0)", f"org/b (version{of}=2.0)")
    with pytest.raises(InvalidInputError, match=f"org/a is of version 1.0{of} of the task and org/b of"):
        compare(found)
    said = compare(found, across_tasks=True).notes
    assert any(note.startswith(f"Versions of the task differ: 1.0{of} (org/a)") for note in said)
    assert any(note.startswith("Settings differ: num_fewshot=1 (org/a (") for note in notes_of(found))
