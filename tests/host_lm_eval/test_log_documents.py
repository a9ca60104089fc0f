"""Which documents a log is about: by what was asked, of which task, and which of them are missing."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.cli.commands import typed
from tests.host_lm_eval.log_worlds import DATE, NAN, averages, declared, mean, notes, read, sample, write_log

from evalbudget.backtest import side_by_side
from evalbudget.cli.main import cli
from evalbudget.comparisons import compare
from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.hooks._plugins import plugins
from evalbudget.recorded._missing import missing_answers, missing_shares
from evalbudget.report import report
from evalbudget_lm_eval.log_folder import open_scores

LATER = "2026-01-03T03-04-05.000000"


# what stands under an id


def test_other_questions_under_the_same_ids_are_paired_by_question(tmp_path: Path) -> None:
    write_log(tmp_path / "a", [1.0, 0.0, 0.0, 0.0], model="a")
    turned = [sample(i, {"acc": float(3 - i == 0)}, question=f"question {3 - i}") for i in range(4)]
    write_log(tmp_path / "b", turned, model="b")
    recorded = read(tmp_path)
    assert recorded.items == ("0", "1", "2", "3")
    assert recorded.true_scores[:, :, 0].tolist() == [[1.0, 0.0, 0.0, 0.0]] * 2
    assert "4 of 4 ids of" in notes(recorded)
    assert "paired by question" in notes(recorded)


def test_questions_that_only_one_log_has_are_paired_with_nothing(tmp_path: Path) -> None:
    write_log(tmp_path / "a", [1.0, 0.0], model="a")
    write_log(tmp_path / "b", [sample(i, {"acc": 1.0}, question=f"another {i}") for i in range(2)], model="b")
    recorded = read(tmp_path)
    assert len(recorded.items) == 4
    assert recorded.counts[:, :, 0].sum(axis=0).tolist() == [1] * 4
    assert f"({tmp_path.name}/b/samples_toy_{DATE}.jsonl)" in recorded.items[2]


def test_a_corrected_right_answer_leaves_the_question_as_it_is(tmp_path: Path) -> None:
    write_log(tmp_path / "a", [1.0, 0.0, 0.0, 0.0])
    corrected = [
        sample(i, {"acc": 1.0}, doc_hash=f"other hash {i}", target_hash=f"other right {i}") for i in range(4)
    ]
    write_log(tmp_path / "b", corrected, date=LATER)
    recorded = read(tmp_path)
    assert recorded.items == ("0", "1", "2", "3")
    # scores by another key are no repeats
    assert [name.partition("=")[0] for name in recorded.models] == ["org/m (right_answers"] * 2
    assert recorded.true_scores[:, :, 0].tolist() == [[1.0, 0.0, 0.0, 0.0], [1.0] * 4]
    assert "4 of 4 ids of" in notes(recorded)
    assert "have another right answer than elsewhere; paired" in notes(recorded)


def test_a_right_answer_that_was_corrected_between_two_folders_leaves_the_question_too(
    tmp_path: Path,
) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    write_log(first, [1.0, 0.0, 0.0, 0.0], model="old")
    corrected = [
        sample(i, {"acc": 1.0}, doc_hash=f"other hash {i}", target_hash=f"other right {i}") for i in range(4)
    ]
    write_log(second, corrected, model="new")
    recorded = side_by_side({str(folder): read(folder) for folder in (first, second)})
    assert (recorded.models, recorded.items) == (("old", "new"), ("0", "1", "2", "3"))
    assert recorded.counts[:, :, 0].tolist() == [[1] * 4] * 2
    assert "4 of 4 ids of b have another right answer than elsewhere; paired." in notes(recorded)


def test_the_same_question_in_an_older_log_has_the_same_digest(tmp_path: Path) -> None:
    import hashlib

    def hashed(text: str) -> str:  # as the host does
        return hashlib.sha256(text.encode("utf-8")).hexdigest()

    new = [
        sample(
            i,
            {"acc": 1.0},
            doc_hash=hashed(json.dumps({"q": f"question {i}"}, indent=2, ensure_ascii=False)),
            target_hash=hashed(f"right question {i}"),
        )
        for i in range(3)
    ]
    old = [{key: value for key, value in one.items() if not key.endswith("_hash")} for one in new]
    write_log(tmp_path / "a", new, model="a")
    write_log(tmp_path / "b", old, model="b")
    recorded = read(tmp_path)
    assert recorded.items == ("0", "1", "2")
    assert notes(recorded) == ""


# what is missing


def test_documents_that_are_not_in_the_file_failed(tmp_path: Path) -> None:
    path = write_log(tmp_path, [1.0] * 8, asked=(10, 10))
    recorded = read(tmp_path)
    assert len(recorded.items) == 10
    assert missing_shares(recorded)[0].tolist() == [0.0] * 8 + [1.0] * 2
    where = f"{tmp_path.name}/{path.name}"
    told = f"2 of the 10 documents of toy that org/m answered are not in {where}: they count as failed."
    assert told in notes(recorded)


def test_what_a_file_lacks_is_unknown_where_results_count_no_documents(tmp_path: Path) -> None:
    write_log(tmp_path / "a", [1.0] * 4)
    write_log(tmp_path / "b", [1.0] * 4, config={"limit": 4.0})
    for file in tmp_path.rglob("results_*.json"):
        told = json.loads(file.read_text())
        del told["n-samples"]
        file.write_text(json.dumps(told))
    assert declared(read(tmp_path / "a")).complete == (False,)
    assert declared(read(tmp_path / "b")).complete == (True,)


def test_a_limit_is_said_and_nothing_of_it_is_missing(tmp_path: Path) -> None:
    write_log(tmp_path / "a", [1.0] * 4, asked=(100, 4), config={"limit": 4.0}, model="a")
    write_log(tmp_path / "b", [1.0] * 8, asked=(8, 8), model="b")
    recorded = read(tmp_path)
    assert "a: 4 of the 100 documents of toy were evaluated (--limit 4)." in notes(recorded)
    assert declared(recorded).complete == (True, True)
    assert (missing_shares(recorded) > 0.0).sum() == 0


def test_two_runs_with_one_limit_are_of_the_same_documents(tmp_path: Path) -> None:
    for day, answer in ((2, "a"), (3, "b")):
        samples = [sample(i, {"acc": 1.0}, resps=[[answer]]) for i in range(4)]
        date = f"2026-01-0{day}T03-04-05.000000"
        write_log(tmp_path, samples, model="a", date=date, asked=(100, 4), config={"limit": 4})
    recorded = read(tmp_path)
    assert recorded.counts.sum() == 8
    assert notes(recorded) == "a: 4 of the 100 documents of toy were evaluated (--limit 4)."


def test_runs_of_other_chosen_documents_add_up(tmp_path: Path) -> None:
    for day, chosen in ((2, (0, 1, 2)), (3, (2, 8, 9))):
        date = f"2026-01-0{day}T03-04-05.000000"
        samples = [sample(i, {"acc": 1.0}, resps=[[f"{day}"]]) for i in chosen]
        write_log(tmp_path, samples, model="a", date=date, asked=(100, 3))
    assert notes(read(tmp_path)) == "a: 5 of the 100 documents of toy were evaluated."


def test_scores_that_are_all_missing_are_no_damage(tmp_path: Path) -> None:
    write_log(tmp_path, [NAN] * 4)
    found = read(tmp_path)
    assert missing_answers(found).tolist() == [4]
    why = r"holds no score: all 4 answers of org/m are missing\. 4 of 4 answers .* by acc \(nan\)"
    with pytest.raises(InvalidInputError, match=why):
        plugins().open_scores(tmp_path)


def test_what_stands_in_place_of_a_score_is_named(tmp_path: Path) -> None:
    write_log(tmp_path, [sample(i, {"acc": value}) for i, value in enumerate((None, NAN, None))])
    why = r"2 of 3 answers .* by acc \(null\): missing\. 1 of 3 answers .* \(nan\): missing\."
    with pytest.raises(InvalidInputError, match=why):
        plugins().open_scores(tmp_path)


def test_a_score_that_applies_to_no_document_is_not_missing(tmp_path: Path) -> None:
    write_log(tmp_path, [NAN] * 4, metrics=averages("acc", aggregation="nanmean"))
    with pytest.raises(InvalidInputError, match=r"acc of toy: it applies to no document \(all are nan\)"):
        plugins().open_scores(tmp_path)


def test_a_cut_under_a_limit_is_of_its_documents(tmp_path: Path) -> None:
    write_log(tmp_path, [1.0] * 3, asked=(100, 5), config={"limit": 5.0})
    recorded = read(tmp_path)
    assert recorded.items == ("0", "1", "2", "3", "4")
    assert recorded.failed is not None
    assert recorded.failed[0, :, 0].tolist() == [0, 0, 0, 1, 1]


def test_a_cut_of_chosen_documents_leaves_open_which(tmp_path: Path) -> None:
    chosen = [sample(i, {"acc": 1.0}) for i in (3, 50, 7)]
    write_log(tmp_path / "a", chosen, asked=(100, 5), model="a")
    write_log(tmp_path / "b", [1.0] * 8, model="b")
    recorded = read(tmp_path)
    assert declared(recorded).complete == (False, True)
    assert "2 of the 5 documents of toy that a answered are not in" in notes(recorded)
    assert "nothing tells which" in notes(recorded)
    assert (missing_shares(recorded)[0] == 1.0).sum() == 6  # b has eight, a two of these


@pytest.mark.parametrize(
    ("version", "row", "lost"), [("0.4.9", {}, 0), ("0.4.8", {}, 2), ("0.4.13", {"sample_len": 5}, 2)]
)
def test_chosen_documents_of_versions_that_count_all_others_are_not_missing(
    tmp_path: Path, version: str, row: dict[str, int], lost: int
) -> None:
    chosen = [sample(i, {"acc": 1.0}) for i in (0, 2, 4)]
    write_log(tmp_path, chosen, asked=(5, 5), lm_eval_version=version, results={"toy": row})
    recorded = read(tmp_path)
    assert recorded.failed is not None
    assert recorded.failed.sum() == lost
    assert declared(recorded).complete == (lost > 0,)


def test_many_notes_of_one_kind_are_few(tmp_path: Path) -> None:
    sizes = {f"t{i}": 3 for i in range(9)}
    write_tasks(
        tmp_path,
        sizes,
        **of_group(sizes, "all"),
        **{"n-samples": {task: {"original": 100, "effective": 3} for task in sizes}},
    )
    assert notes(read(tmp_path)) == "org/m: 27 of the 900 documents of 9 tasks were evaluated."
    for path in tmp_path.glob("samples_*"):
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:2]))
    told = declared(read(tmp_path)).notes
    assert len(told) == 5
    assert told[-1] == "6 more logs lack documents."


def test_more_documents_than_the_results_say_are_said(tmp_path: Path) -> None:
    write_log(tmp_path, [1.0] * 6, asked=(5, 5))
    assert "has 6 documents of toy, and its results say 5; all are read." in notes(read(tmp_path))


def test_all_answers_of_one_model_missing(tmp_path: Path) -> None:
    write_log(tmp_path / "a", [1.0, 0.0, 1.0], model="a")
    failed = [sample(i, {"acc": float("nan")}) for i in range(3)]
    write_log(tmp_path / "b", failed, model="b")
    recorded = read(tmp_path)
    assert recorded.models == ("a", "b")
    assert missing_shares(recorded).tolist() == [[0.0] * 3, [1.0] * 3]


def test_a_log_without_samples_of_documents_that_were_answered(tmp_path: Path) -> None:
    write_log(tmp_path / "a", [1.0, 0.0, 1.0], model="a")
    rows = {"toy": {"acc,none": 0.5, "acc_stderr,none": 0.1}}
    write_log(tmp_path / "b", [], model="b", asked=(3, 3), results=rows)
    recorded = read(tmp_path)
    assert recorded.models == ("a", "b")
    assert missing_shares(recorded).tolist() == [[0.0] * 3, [1.0] * 3]


# tasks and groups


def write_tasks(folder: Path, sizes: dict[str, int], **results: Any) -> None:
    """One run of several tasks, whose results are one file."""
    told: dict[str, Any] = {}
    for task, n in sizes.items():
        scores = [sample(i, {"acc": float(i % 2)}, question=f"{task} {i}") for i in range(n)]
        write_log(folder, scores, task=task, results={task: {"acc,none": sum(i % 2 for i in range(n)) / n}})
        own = json.loads((folder / f"results_{DATE}.json").read_text())
        told = {
            key: {**value, **told.get(key, {})} if isinstance(value, dict) else value
            for key, value in own.items()
        }
    (folder / f"results_{DATE}.json").write_text(json.dumps({**told, **results}))


def test_unrelated_tasks_are_never_one_mean(tmp_path: Path) -> None:
    write_tasks(tmp_path, {"arc": 4, "boolq": 3})
    told = r"holds 2 tasks \(arc, boolq\), and their scores are no one mean; choose one with --task"
    with pytest.raises(InvalidInputError, match=told):
        read(tmp_path)
    assert read(tmp_path, task="arc").items == ("0", "1", "2", "3")
    with pytest.raises(UnknownNameError, match="Did you mean 'boolq'"):
        read(tmp_path, task="boolqq")
    done = CliRunner().invoke(cli, ["report", str(tmp_path)])
    assert done.exit_code == 2
    assert "--task" in done.output
    assert CliRunner().invoke(cli, ["report", str(tmp_path), "--task", "boolq"]).exit_code == 0


def test_what_is_told_of_a_task_that_was_renamed_works(tmp_path: Path) -> None:
    write_log(tmp_path / "a", [1.0, 0.0, 0.0, 1.0] * 3, model="old", task="toy")
    write_log(tmp_path / "a", [1.0, 0.0, 1.0, 1.0] * 3, model="new", task="toy_2", date=LATER)
    refused = CliRunner().invoke(cli, ["compare", str(tmp_path)])
    assert refused.exit_code == 2
    assert "give the samples_*.jsonl of each, with --across-tasks" in refused.output
    files = [str(file) for file in sorted(tmp_path.rglob("samples_*.jsonl"))]
    done = CliRunner().invoke(cli, ["compare", *files, "--across-tasks"])
    assert done.exit_code == 0, done.output
    assert "12 items. First less second, paired by item." in " ".join(done.output.split())


def of_group(sizes: dict[str, int], group: str = "both", *, by_size: bool = True) -> dict[str, Any]:
    """What results say of a group of these tasks."""
    means = {task: sum(i % 2 for i in range(n)) / n for task, n in sizes.items()}
    whole = sum(means[task] * n for task, n in sizes.items()) / sum(sizes.values())
    value = whole if by_size else sum(means.values()) / len(means)
    return {"group_subtasks": {group: list(sizes)}, "groups": {group: {"alias": group, "acc,none": value}}}


def test_a_group_that_the_results_declare_is_read_together(tmp_path: Path) -> None:
    sizes = {"arc": 5, "boolq": 3}
    write_tasks(tmp_path, sizes, **of_group(sizes))
    recorded = read(tmp_path)
    assert recorded.items[:2] == ("arc/0", "arc/1")
    assert recorded.categories == ("arc",) * 5 + ("boolq",) * 3
    assert recorded.task is not None
    assert recorded.task.name == "both"
    assert mean(recorded) == pytest.approx(3 / 8)
    assert read(tmp_path, task="both").items == recorded.items
    assert read(tmp_path, task="boolq").items == ("0", "1", "2")
    assert notes(recorded) == ""


def test_a_task_beside_a_group_needs_a_name(tmp_path: Path) -> None:
    sizes = {"arc": 5, "boolq": 3}
    write_tasks(tmp_path, {**sizes, "gsm": 4}, **of_group(sizes))
    told = r"holds 3 tasks \(arc, boolq, gsm\).*--task \(task=\) or of a group of them \(both\)"
    with pytest.raises(InvalidInputError, match=told):
        read(tmp_path)
    assert len(read(tmp_path, task="both").items) == 8


def test_a_group_of_groups_and_a_part_of_it(tmp_path: Path) -> None:
    sizes = {"arc": 5, "boolq": 3, "copa": 4}
    said = of_group(sizes, "all")
    said["group_subtasks"] = {"all": ["two", "copa"], "two": ["arc", "boolq"]}
    write_tasks(tmp_path, sizes, **said)
    assert len(read(tmp_path).items) == 12
    next(tmp_path.glob("samples_copa*")).unlink()
    recorded = read(tmp_path)
    assert len(recorded.items) == 8
    assert "2 of the 3 tasks of group all are here." in notes(recorded)


def test_a_group_without_a_mean_is_none(tmp_path: Path) -> None:
    sizes = {"arc": 5, "boolq": 3}
    write_tasks(tmp_path, sizes, group_subtasks={"both": list(sizes)})
    with pytest.raises(InvalidInputError, match="no one mean"):
        read(tmp_path)


def test_a_group_that_weighs_its_tasks_alike_is_read_task_by_task(tmp_path: Path) -> None:
    sizes = {"arc": 5, "boolq": 3}
    write_tasks(tmp_path, sizes, **of_group(sizes, by_size=False))
    recorded = read(tmp_path)
    assert recorded.raters == ("arc/acc", "boolq/acc")
    assert recorded.categories is None
    assert declared(recorded).ranges == ((0.0, 1.0),) * 2
    assert declared(recorded).lower_is_better == (False, False)
    assert "Group both weighs its tasks alike" in notes(recorded)
    for task, n in sizes.items():
        found = report(recorded, rater=f"{task}/acc").to_dict()
        assert found["items"] == n
        assert (
            found["leaderboard"]["rows"] == report(read(tmp_path, task=task)).to_dict()["leaderboard"]["rows"]
        )
    done = CliRunner().invoke(cli, ["report", str(tmp_path)])
    assert done.exit_code == 0
    assert "boolq/acc" in done.output
    with pytest.raises(InvalidInputError, match="whose mean means nothing"):
        recorded.as_panel()


def test_what_a_group_does_not_average_is_not_read(tmp_path: Path) -> None:
    sizes = {"arc": 5, "boolq": 3}
    write_tasks(tmp_path, sizes, **of_group(sizes))
    for path in tmp_path.glob("samples_*"):
        records = [json.loads(line) for line in path.read_text().splitlines()]
        path.write_text(
            "".join(json.dumps({**r, "metrics": ["acc", "length"], "length": 7}) + "\n" for r in records)
        )
    recorded = read(tmp_path)
    assert recorded.raters == ("acc",)
    assert "length of 2 tasks is not read: the group has no mean of it." in notes(recorded)


def test_settings_of_a_task_of_a_group_are_named_with_the_task(tmp_path: Path) -> None:
    sizes = {"arc": 5, "boolq": 3}
    for name, version in (("x", 1.0), ("y", 2.0)):
        versions = {"arc": version, "boolq": 1.0}
        write_tasks(tmp_path / name, sizes, **of_group(sizes), versions=versions)
    assert read(tmp_path).models == ("org/m (version of arc=1.0)", "org/m (version of arc=2.0)")


@pytest.mark.parametrize("answered", [False, True], ids=["no answer", "answers without a score"])
def test_documents_that_a_run_of_ours_asked_in_vain_are_missing(answered: bool, tmp_path: Path) -> None:
    block = {
        "allocation": "adaptive",
        "fixed_repeats": 2,
        "in_vain": {"toy": [2]},
        "score": {"toy": "acc,none"},
    }
    scores = [sample(i, {"acc": 1.0}, epoch=epoch) for i in range(2) for epoch in range(2)]
    scores += [sample(2, {"acc": None}, epoch=epoch) for epoch in range(2 * answered)]
    write_log(tmp_path, scores, evalbudget=block)
    recorded = read(tmp_path)
    assert missing_shares(recorded)[0].tolist() == [0.0, 0.0, 1.0]
    assert "1 document of toy has no score of org/m: every call failed." in notes(recorded)


def test_clusters_of_a_run_of_ours_are_declared(tmp_path: Path) -> None:
    block = {"allocation": "fixed", "fixed_repeats": 1, "cluster": "topic"}
    scores = [sample(i, {"acc": 1.0}, doc={"q": i, "topic": "ab"[i % 2], "by": "x"}) for i in range(4)]
    write_log(tmp_path, scores, evalbudget=block)
    recorded = read(tmp_path)
    assert (declared(recorded).cluster, declared(recorded).clusters) == ("topic", ("a", "b", "a", "b"))
    other = read(tmp_path, category="by")
    assert (declared(other).clusters, other.categories) == (None, ("x",) * 4)


def test_a_category_that_documents_lack_is_refused_with_their_names(tmp_path: Path) -> None:
    for lacking in ({}, {"by": ""}):
        write_log(tmp_path, [sample(0, {"acc": 1.0}, doc={"by": "x"}), sample(1, {"acc": 1.0}, doc=lacking)])
        with pytest.raises(InvalidInputError, match=r"document 1 in .* has no 'by'.*or leave --cluster"):
            read(tmp_path, category="by")
    write_log(tmp_path, [sample(0, {"acc": 1.0}, doc={"by": "x"})], asked=(3, 3))
    with pytest.raises(
        InvalidInputError, match=r"no log has the document 1 and 1 more, .* its 'by'; evaluate"
    ):
        read(tmp_path, category="by")


# damaged files, and many of them


def test_one_log_of_many_that_is_cut_off_is_left_out_and_said(tmp_path: Path) -> None:
    for number in range(1000):
        day, hour = divmod(number, 24)
        date = f"2026-{1 + day // 28:02}-{1 + day % 28:02}T{hour:02}-00-00.000000"
        model = f"m{number % 50}"
        scores = [sample(i, {"acc": float((i + number) % 3 == 0)}, said=number) for i in range(4)]
        path = write_log(tmp_path, scores, model=model, date=date)
    path.write_text(path.read_text()[:-30])
    began = time.process_time()
    recorded = read(tmp_path)
    took = time.process_time() - began
    assert took < 10.0, took
    assert len(recorded.models) == 50
    assert "Left out: " in notes(recorded)
    assert path.name in notes(recorded)
    with pytest.raises(InvalidInputError, match="line 4 is no JSON"):
        read(path)


def test_a_lost_log_leaves_its_model_with_missing_documents(tmp_path: Path) -> None:
    sizes = {"arc": 5, "boolq": 3}
    for model in ("a", "b"):
        write_tasks(tmp_path / model, sizes, **of_group(sizes), model_name=model)
    path = next((tmp_path / "a").glob("samples_boolq*"))
    path.write_text(path.read_text()[:-30])
    recorded = read(tmp_path)
    assert declared(recorded).complete == (False, True)
    assert (missing_shares(recorded) == 1.0).sum(axis=1).tolist() == [3, 0]


def test_results_beside_logs_of_another_host_are_left_to_it(tmp_path: Path) -> None:
    write_log(tmp_path).unlink()
    (tmp_path / "one.eval").write_bytes(b"")
    assert open_scores(tmp_path) is None


def test_results_that_are_cut_off_take_their_samples_with_them(tmp_path: Path) -> None:
    write_log(tmp_path, model="a")
    path = write_log(tmp_path, [1.0] * 4, model="b", date=LATER)
    beside = path.parent / f"results_{LATER}.json"
    beside.write_text(beside.read_text()[:-30])
    recorded = read(tmp_path)
    assert recorded.models == ("a",)
    assert f"Left out: {beside} is not readable as results" in notes(recorded)
    with pytest.raises(InvalidInputError, match="not readable as results"):
        read(path)


def said(result: Result) -> str:
    """Without line breaks."""
    return " ".join(result.output.split())


def test_models_of_one_folder_whose_documents_nothing_shows_to_be_the_same(tmp_path: Path) -> None:
    for model, date in (("old", "2026-01-02T03-04-05.000000"), ("new", "2026-01-03T03-04-05.000000")):
        asked = {"target": "0", "target_hash": "0"}
        rows = [sample(i, {"acc": float(i % 2)}, question=f"{model} {i}", **asked) for i in range(8)]
        write_log(tmp_path / model, rows, model=f"org/{model}", date=date)
    with pytest.raises(InvalidInputError, match="give each log by itself, with --across-tasks"):
        compare(read(tmp_path))
    words = ("compare", f"{tmp_path / 'old'}", f"{tmp_path / 'new'}", "--across-tasks")
    assert "8 of 8 ids of new hold another text; paired by id, as asked." in said(typed(*words)())
    words = ("--baseline", f"{tmp_path / 'old'}", "--candidate", f"{tmp_path / 'new'}", "--margin=.1")
    assert "give --across-tasks" in said(typed("gate", *words)())
    assert "paired by id, as asked." in said(typed("gate", *words)("--across-tasks"))
    words = (*words[:2], "--candidate", "openai/m", "--task=t", "--margin=.1", "--across-tasks")
    assert "--across-tasks is for a candidate that is a log" in said(typed("gate", *words)())
    words = (*words[:2], "--save-baseline", f"{tmp_path / 'kept.csv'}", "--across-tasks")
    assert "candidate that is a log, and there is none; drop it" in said(typed("gate", *words)())
    assert not (tmp_path / "kept.csv").exists()


def test_a_document_under_two_ids_is_said_unless_a_field_tells_it(tmp_path: Path) -> None:
    again = [
        sample(n, {"acc": float(n % 3 == 0)}, question=f"question {n // 2}", doc={"source": f"s{n // 2}"})
        for n in range(10)
    ]
    write_log(tmp_path, again)
    assert "5 of 10 items ask what another one asks" in notes(read(tmp_path))
    assert "what another one asks" not in notes(read(tmp_path, category="source"))
