"""Rounds through the host's own evaluate: same prompts, same records, nothing left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lm_eval.evaluator import evaluate
from lm_eval.utils import env
from tests.host_lm_eval.worlds import CoinModel, load, numbered, write_task

from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget_lm_eval.host.host_evaluate import Asked, PrimedTasks, asked_now

FEWSHOT = {"num_fewshot": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write_task(tmp_path_factory.mktemp("tasks"), n=10, **FEWSHOT)
    return write_task(path, "others", n=6)


def _stable(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key != "epoch"}


def test_every_document_once_is_the_stock_run(folder: Path) -> None:
    stock_lm, ours_lm = CoinModel(noise=False), CoinModel(noise=False)
    stock = evaluate(stock_lm, load(folder), bootstrap_iters=100)
    with PrimedTasks(ours_lm, load(folder), bootstrap_iters=100) as primed:
        documents = primed.documents("numbers")
        shuffled = [*documents[7:], *reversed(documents[:7])]
        for start in range(0, 10, 3):
            primed.run(numbered([("numbers", doc) for doc in shuffled[start : start + 3]]))
        ours = primed.results()

    assert [_stable(record) for record in ours.pop("samples")["numbers"]] == stock.pop("samples")["numbers"]
    assert ours == stock
    assert sorted(ours_lm.calls) == sorted(stock_lm.calls)


def test_templates_are_compiled_once_and_not_for_every_score(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[str] = []
    of_jinja = env.overlay().from_string

    def counted(source: str) -> Any:
        compiled.append(source)
        return of_jinja(source)

    monkeypatch.setattr(env, "from_string", counted)
    with PrimedTasks(CoinModel(), load(folder, "numbers")) as primed:
        compiled.clear()
        primed.run(numbered([("numbers", doc) for doc in range(10)] * 3))
    assert len(compiled) == len(set(compiled)) > 0
    assert env.from_string is counted


def test_repeats_in_any_order_belong_to_their_documents(folder: Path) -> None:
    lm = CoinModel(noise=False)
    with PrimedTasks(lm, load(folder, "numbers", "others")) as primed:
        cells = [("others", 5), ("numbers", 9), ("numbers", 3), ("numbers", 9), ("others", 0)]
        answered = primed.run(numbered(cells))
        again = primed.run(numbered([("numbers", 9)], first=2))
        results = primed.results()

    assert [(a.task, a.doc_id) for a in answered] == cells
    assert [a.epoch for a in answered] == [0, 0, 0, 1, 0]
    assert again[0].epoch == 2
    # a third of the numbers is said wrongly: those that 3 divides
    assert [a.metrics["exact_match,none"] for a in answered] == [1, 0, 0, 0, 0]
    for answer in answered:
        (record,) = answer.records
        assert record["doc_id"] == record["doc"]["number"] == answer.doc_id
        assert record["resps"][0][0] == f"{answer.doc_id + (answer.doc_id % 3 == 0)}"
    assert results["n-samples"]["numbers"] == {"original": 10, "effective": 2}
    assert [(r["doc_id"], r["epoch"]) for r in results["samples"]["numbers"]] == [
        (3, 0),
        (9, 0),
        (9, 1),
        (9, 2),
    ]


def test_limit_and_samples_choose_the_documents(folder: Path) -> None:
    for options, chosen in (({"limit": 4}, (0, 1, 2, 3)), ({"samples": {"numbers": [2, 5, 9]}}, (2, 5, 9))):
        stock_lm, lm = CoinModel(), CoinModel()
        evaluate(stock_lm, load(folder), **options)
        with PrimedTasks(lm, load(folder), **options) as primed:
            assert primed.documents("numbers") == chosen
            answered = primed.run(numbered([("numbers", doc) for doc in chosen]))
            assert [a.records[0]["doc"]["number"] for a in answered] == list(chosen)
        assert lm.calls == stock_lm.calls


def test_chat_templates_and_system_instructions_reach_the_prompts(folder: Path) -> None:
    options = {"apply_chat_template": True, "fewshot_as_multiturn": True, "system_instruction": "Be brief."}
    stock_lm, lm = CoinModel(), CoinModel()
    evaluate(stock_lm, load(folder), **options)
    with PrimedTasks(lm, load(folder), **options) as primed:
        primed.run(numbered([("numbers", doc) for doc in primed.documents("numbers")]))
    assert lm.calls == stock_lm.calls
    assert lm.calls[0].startswith("<system>Be brief.")


def test_filters_are_told_who_asked(folder: Path) -> None:
    tasks = load(folder)
    task = tasks["tasks"]["numbers"]
    seen: list[Any] = []
    original = task._filters[0].apply
    task._filters[0].apply = lambda instances: (seen.append(asked_now.get()), original(instances))[1]
    with PrimedTasks(CoinModel(), tasks) as primed:
        primed.run(numbered([("numbers", 4), ("numbers", 4)]))
    assert seen == [(("numbers", 4, 0), ("numbers", 4, 1))]
    assert asked_now.get() is None


def test_nothing_is_left_on_the_tasks(folder: Path) -> None:
    tasks = load(folder)
    task = tasks["tasks"]["numbers"]
    mine = task.aggregation = lambda: {"exact_match": max}
    lm = CoinModel(fail_at=2)
    with PrimedTasks(lm, tasks) as primed:
        before = set(vars(task))
        hook = lm.cache_hook
        said: dict[Asked, dict[int, list[Any]]] = {}
        with pytest.raises(ConnectionError):
            primed.run(
                numbered([("numbers", 1), ("numbers", 2), ("numbers", 3)]),
                received=lambda one, number, text: (
                    said.setdefault(one, {}).setdefault(number, []).append(text)
                ),
            )
        assert set(vars(task)) == before
        assert task.aggregation is mine
        assert lm.cache_hook is hook
        (had,) = primed.replay(said)
        assert (had.doc_id, had.requests) == (1, 1)
        assert len(lm.calls) == 2
    assert len(task.instances) == 10


def test_what_is_not_there(folder: Path) -> None:
    with PrimedTasks(CoinModel(), load(folder)) as primed:
        assert primed.run([]) == []
        with pytest.raises(UnknownNameError, match=r"unknown task 'number'\. Did you mean 'numbers'"):
            primed.run(numbered([("number", 1)]))
        with pytest.raises(InvalidInputError, match="no document 10"):
            primed.run(numbered([("numbers", 10)]))


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ({"numbers": [3, 1]}, r'not ascending.*write "numbers": \[1, 3\]'),
        ({"numbers": [1, 1, 3]}, r'twice.*write "numbers": \[1, 3\]'),
        ({"other": [1]}, "no entry for task 'numbers'.*add \"numbers\""),
        ({"numbers": []}, "chooses no document"),
        ({"numbers": [4, 10]}, r"document 10, but it has 10 \(0\.\.9\)"),
        ({"numbers": [-1]}, "write document ids from 0"),
    ],
)
def test_samples_that_the_host_would_mistake(folder: Path, samples: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        PrimedTasks(CoinModel(), load(folder), samples=samples)


def test_several_processes_are_refused(folder: Path) -> None:
    lm = CoinModel()
    lm._world_size = 2
    with pytest.raises(InvalidInputError, match=r"2 processes.*without accelerate"):
        PrimedTasks(lm, load(folder))


def test_samples_with_the_request_cache_are_refused(folder: Path) -> None:
    with pytest.raises(InvalidInputError, match="drop --cache_requests"):
        PrimedTasks(CoinModel(), load(folder), samples={"numbers": [1]}, cache_requests=True)
