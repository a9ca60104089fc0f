from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.audits.store.audits import Told, audit
from tests.cli.commands import refused, typed

from evalbudget.audits.store import AuditStore
from evalbudget.audits.store._store_verdict import weigh

run = typed("audit")


@pytest.fixture(scope="module")
def told() -> Told:
    return Told(pilot=8, labels_per_batch=8)


@pytest.fixture
def path(tmp_path: Path, told: Told) -> Path:
    with told.create(tmp_path / "a.sqlite") as store:
        told.draw(store)
    return tmp_path / "a.sqlite"


def label_all(told: Told, path: Path, by: str = "ann") -> None:
    with AuditStore.open(path) as store:
        for task in store.draws.tasks(labelled=False):
            store.labels.add(task.draw, told.score(store, task.draw), by)


def finish(told: Told, path: Path) -> None:
    for _ in range(30):
        label_all(told, path)
        with AuditStore.open(path) as store:
            if told.draw(store).over:
                return
    raise AssertionError("no verdict")


def test_exit_codes_tell_a_verdict_from_none_yet_and_none(path: Path, told: Told, tmp_path: Path) -> None:
    for command in ("status", "next", "verdict"):
        assert run(command, path).exit_code == 3, command
    label_all(told, path)
    for command in ("status", "next", "verdict"):
        assert run(command, path).exit_code == 3, command
    assert "run evalbudget inspect eval t.py for the next batch" in " ".join(
        run("status", path).stdout.split()
    )
    finish(told, path)
    for command in ("status", "next", "verdict"):
        assert run(command, path).exit_code == 0, command
    short = Told((5.0, 5.0), max_labels=4)
    with short.create(tmp_path / "b.sqlite") as store:
        short.draw(store)
        for draw in sorted(d.index for d in store.draws.all() if d.wanted)[:4]:
            store.labels.add(draw, short.score(store, draw), "ann")
    for command in ("status", "verdict"):
        assert run(command, tmp_path / "b.sqlite").exit_code == 1, command
    for command in ("status", "next", "verdict"):
        refused(run(command, tmp_path / "none.sqlite"), "none.sqlite does not exist")


def test_the_verdict_as_text_and_as_json(path: Path, told: Told) -> None:
    finish(told, path)
    text = run("verdict", path).stdout
    words = " ".join(text.split())
    assert text.startswith("alpha is the best\n")
    assert "95% intervals, anytime" in words
    assert "The judge alone would say alpha, which proves nothing" in words
    found = json.loads(run("verdict", path, "--json").stdout)
    assert (found["outcome"], found["winner"], found["stage"]) == ("best", "alpha", "verdict")
    alpha, beta = found["models"]
    assert alpha["low"] < alpha["value"] < alpha["high"]
    assert not beta["racing"]
    row = next(line.split() for line in text.splitlines()[1:] if line.startswith("alpha "))
    assert row[1:] == [f"{alpha[name]:.3f}" for name in ("value", "low", "high")] + ["best"]


def test_status_reports_labellers_and_contradictions(path: Path) -> None:
    with AuditStore.open(path) as store:
        task = store.draws.tasks()[0]
        store.labels.add(task.draw, 7, "ann")
        store.labels.add(task.draw, 2, "bob")
        total = store.progress().wanted
    text = " ".join(run("status", path).stdout.split())
    assert f"1 of {total} labels" in text
    assert "by ann 1" in text
    assert f"contradictory labels of {task.item} ({task.id}): ann 7, bob 2; the first counts" in text
    assert f"{total - 1} labels wanted" in text.lower()
    found = json.loads(run("status", path, "--json").stdout)
    assert found["conflicts"] == [
        {
            "draw": task.draw,
            "item": task.item,
            "labels": [{"score": 7, "by": "ann"}, {"score": 2, "by": "bob"}],
        }
    ]
    assert found["progress"]["labelled"] == 1


def test_next_shows_what_to_label_and_reserves_it(path: Path) -> None:
    with AuditStore.open(path) as store:
        tasks = store.draws.tasks()
    text = run("next", path).stdout
    assert tasks[0].id in text
    assert tasks[0].response in text
    assert "Reason" not in text
    assert "alpha" not in text

    def ids(*options: str) -> list[str]:
        return [task["task"] for task in json.loads(run("next", path, "--json", *options).stdout)]

    assert ids("-n", "3") == [t.id for t in tasks[:3]]
    assert ids("-n", "2", "--by", "ann") == [t.id for t in tasks[:2]]
    assert ids("--by", "bob") == [tasks[2].id]
    assert ids("-n", "999", "--by", "eve") == [t.id for t in tasks[3:]]
    assert ids("--by", "eve") == []


def test_labels_come_through_a_pipe(path: Path) -> None:
    tasks = json.loads(run("next", path, "--json", "-n", "2").stdout)
    text = "".join(json.dumps({"task": t["task"], "score": 4}) + "\n" for t in tasks)
    by = "ann##[error]"
    assert "2 new labels" in run("import", path, "-", "--format", "jsonl", "--by", by, stdin=text).stdout
    refused(run("import", path, "-", stdin=text), "--format csv, jsonl or label-studio")
    with AuditStore.open(path) as store:
        labels = store.labels.counting().values()
    assert [(label.score, label.by) for label in labels] == [(4, by), (4, by)]


def test_files_that_cannot_be_used_are_refused(path: Path, tmp_path: Path) -> None:
    refused(run("import", path, tmp_path / "none.csv"), "cannot be read")
    (tmp_path / "x.csv").write_bytes(b"task,score\n\xff,1\n")
    refused(run("import", path, tmp_path / "x.csv"), "line 2 is not UTF-8")
    (tmp_path / "x.txt").write_text("")
    refused(run("import", path, tmp_path / "x.txt"), "give --format")


def test_help_has_examples_and_typos_a_hint() -> None:
    text = run("--help").output
    assert "evalbudget audit serve audit.sqlite" in text
    assert "3 labels are wanted" in text
    for command in ("import", "status", "next", "verdict"):
        assert f"evalbudget audit {command} audit.sqlite" in run(command, "--help").output, command
    refused(run("statsu", "x"), "no such command 'statsu'", "Did you mean 'status'?")
    refused(run("status", "x", "--jsno"), "--json")


def test_a_verdict_that_cannot_be_given_is_refused(tmp_path: Path) -> None:
    audit(tmp_path / "a.sqlite", policy="gone").close()
    refused(run("verdict", tmp_path / "a.sqlite"), "'gone'", "cannot be replayed")


def test_a_pool_used_up_goes_on_without_the_run(tmp_path: Path) -> None:
    told, path = Told((5.0, 5.1), n_items=12, pilot=8, labels_per_batch=8), tmp_path / "a.sqlite"
    with told.create(path) as store:
        told.draw(store)
        while not weigh(store).pool_used_up:
            for task in store.draws.tasks(labelled=False):
                store.labels.add(task.draw, told.score(store, task.draw), "ann")
            told.draw(store)
    for command in ("status", "next", "verdict"):
        assert run(command, path).exit_code == 3, command
    words = " ".join(run("verdict", path).stdout.split())
    assert words.startswith("Undecided, the pool is used up: ")
    assert "a second pass labels their other answers until it is decided: at most " in words
    found = json.loads(run("status", path, "--json").stdout)
    assert found["pool_used_up"]
    assert found["second_pass_cost"] == 20 * found["second_pass_labels"] > 0
    for _ in range(10):  # labels alone, through files: nobody runs the evaluation again
        rows = json.loads(run("next", path, "-n", "999", "--json").stdout)
        if not rows:
            break
        with AuditStore.open(path) as store:
            for row in rows:
                row["score"] = told.score(store, store.draws.index(row["task"]))
        text = "".join(json.dumps(row) + "\n" for row in rows)
        done = run("import", path, "-", "--format", "jsonl", "--by", "ann", stdin=text)
        assert done.exit_code == 0, done.output
    assert run("verdict", path).exit_code == 0
    winner = ("alpha", "beta")[int(told.human.mean(axis=0).argmax())]
    assert f"{winner} is the best on these items" in run("verdict", path).stdout.lower()


def test_a_judge_that_is_not_worth_its_price_is_told(tmp_path: Path) -> None:
    path, told = (
        tmp_path / "a.sqlite",
        Told((5.0, 4.8), n_items=300, pilot=20, labels_per_batch=20, judge_price=15.0),
    )
    told.judge = np.random.default_rng(2).integers(1, 11, told.human.shape).astype(np.float64)
    with told.create(path) as store:
        told.draw(store)
        assert not weigh(store).without_judge
        for draw in weigh(store).wanted:
            store.labels.add(draw, told.score(store, draw), "ann")
        told.draw(store)
        assert "\nThe judge is not worth its price here" in weigh(store).told(store.address)
    for command in ("status", "verdict"):
        assert "The judge is not worth its price here" in " ".join(run(command, path).output.split())
    assert json.loads(run("status", path, "--json").stdout)["without_judge"] is True
