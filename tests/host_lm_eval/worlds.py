"""A model without latency, and tasks whose data are a file beside them."""

from __future__ import annotations

import json
import os
import random
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import lm_eval.models  # noqa: F401  (before @register_model, or the host's own models vanish)
import pytest
from lm_eval.api.model import LM
from lm_eval.api.registry import get_model, register_model
from lm_eval.models.openai_completions import LocalChatCompletion

from evalbudget import Cell, Reading, Request
from evalbudget.book._notes import unpacked
from evalbudget_lm_eval.host.answers import Asked

if TYPE_CHECKING:
    from loopback import Server

# without the host's own thousands of tasks, whose index takes seconds
OWN_TASKS_ONLY = """
import sys
from lm_eval.tasks import TaskManager
init = TaskManager.__init__
TaskManager.__init__ = lambda self, *args, **more: init(self, *args, **more | {"include_defaults": False})
"""
EVALBUDGET = f"""{OWN_TASKS_ONLY}
from evalbudget.cli.main import main
sys.argv[0] = "evalbudget"
main()
"""


def environment() -> dict[str, str]:
    """Of a process of its own; the other host takes seconds to import."""
    return {**os.environ, "EVALBUDGET_DISABLE_PLUGINS": "inspect", "COLUMNS": "80"}


@contextmanager
def rounds_of(documents: int) -> Iterator[None]:
    """Within this block runs give the host so many documents at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evalbudget_lm_eval.repeats.run.ROUND", documents)
        patch.setattr("evalbudget_lm_eval.repeats.run.LARGER", 1)
        yield


class TextModel(LM):  # type: ignore[misc]
    """Asked for text alone, prompt by prompt."""

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        return [self._answer(*request.args) for request in requests]

    def loglikelihood(self, requests: list[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        return [(-float(len(request.args[1])), False) for request in requests]

    def loglikelihood_rolling(self, requests: list[Any], disable_tqdm: bool = False) -> list[float]:
        raise NotImplementedError

    def _answer(self, prompt: str, kwargs: dict[str, Any]) -> str:
        raise NotImplementedError


@register_model("evalbudget-test-coin")
class CoinModel(TextModel):
    """Says the number it was asked for, or not: the further down the data, the less often.

    Args:
        seed: of its answers.
        noise: whether repeats differ.
        fail_at: the call that raises; 0 for none.
        log: path of a file that gets one line per call: the prompt, as JSON.
    """

    def __init__(
        self, seed: int = 0, noise: bool = True, fail_at: int = 0, log: str | None = None, **_: Any
    ) -> None:
        super().__init__()
        self._random = random.Random(seed)
        self._noise = noise
        self._fail_at = int(fail_at)
        self._log = log
        self.calls: list[str] = []

    def apply_chat_template(
        self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
    ) -> str:
        return "\n".join(f"<{m['role']}>{m['content']}" for m in chat_history)

    @property
    def tokenizer_name(self) -> str:
        return "coin"

    def _answer(self, prompt: str, kwargs: dict[str, Any]) -> str:
        self.calls.append(prompt)
        if self._log is not None:
            with Path(self._log).open("a") as file:
                file.write(json.dumps(prompt) + "\n")
        if len(self.calls) == self._fail_at:
            raise ConnectionError("the server went away")
        number = int(prompt.rsplit("say ", 1)[1].split()[0])
        wrong = self._random.random() < (number % 10) / 18 if self._noise else number % 3 == 0
        answer = f"{number + 1}" if wrong else f"{number}"
        self.cache_hook.add_partial("generate_until", (prompt, kwargs), answer)
        kwargs.pop("until", None)  # as some models do, which must not harm the next round
        return answer


def chat_model(server: Server, model: str = "m", **more: Any) -> LM:
    """The host's model of a server's."""
    return get_model("local-chat-completions").create_from_arg_obj(server.args_of(model, **more), {})


@register_model("evalbudget-test-seedless")
class Seedless(LocalChatCompletion):  # type: ignore[misc]
    """Of a service that knows no seeds, as Anthropic's."""

    def _create_payload(self, *given: Any, seed: int = 0, **named: Any) -> dict[str, Any]:
        payload = dict(super()._create_payload(*given, seed=None, **named))
        return {name: value for name, value in payload.items() if name != "seed" or value is not None}


@contextmanager
def broken_off(owner: type, method: str, at: int) -> Iterator[None]:
    """The user presses Ctrl-C at a call of this method, the ``at``-th of all, which does nothing then."""
    stock, count = getattr(owner, method), 0

    def counted(*given: Any, **named: Any) -> Any:
        nonlocal count
        count += 1
        if count == at:
            raise KeyboardInterrupt
        return stock(*given, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, method, counted)
        yield


def averaged(*names: str) -> list[dict[str, Any]]:
    """A list of metrics that are averaged."""
    return [{"metric": name, "aggregation": "mean", "higher_is_better": True} for name in names]


def choice(*choices: str, target: Any = 0, metrics: Sequence[str] = ("acc",)) -> dict[str, Any]:
    """What makes a task one of multiple choice."""
    return {
        "output_type": "multiple_choice",
        "doc_to_choice": list(choices),
        "doc_to_target": target,
        "generation_kwargs": None,
        "metric_list": averaged(*metrics),
    }


def write_task(folder: Path, name: str = "numbers", n: int = 12, *, own: str = "", **changes: Any) -> Path:
    """A folder with a generation task of ``n`` documents; give it to ``--include_path``.

    Args:
        folder: may hold other tasks.
        name: of the task.
        n: documents.
        own: code of its own in ``own.py``, whose ``process(doc, results)`` gives the metrics.
        changes: of its configuration.
    """
    import yaml

    folder.mkdir(parents=True, exist_ok=True)
    data = folder.resolve() / f"{name}.jsonl"
    data.write_text("".join(json.dumps({"number": i, "text": f"{i}"}) + "\n" for i in range(n)))
    config: dict[str, Any] = {
        "task": name,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(data), "train": str(data)}},
        "test_split": "test",
        "fewshot_split": "train",
        "output_type": "generate_until",
        "doc_to_text": "say {{number}} please",
        "doc_to_target": "{{text}}",
        "generation_kwargs": {"until": ["\n"], "do_sample": True, "temperature": 1.0},
        "metric_list": averaged("exact_match"),
        "num_fewshot": 0,
        "metadata": {"version": 1.0},
    }
    config.update(changes)
    lines = [f"class: !function {config.pop('class')}\n"] if "class" in config else []
    if own:
        (folder / "own.py").write_text(own)
        lines.append("process_results: !function own.process\n")
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(config, sort_keys=False) + "".join(lines))
    return folder


def write_scored(folder: Path, metric: str, code: str, **options: Any) -> Path:
    """A task whose own code computes its metric of ``doc`` and ``results``."""
    own = f"def process(doc, results):\n    return {{{metric!r}: {code}}}\n"
    return write_task(folder, own=own, metric_list=averaged(metric), **options)


def write_group(folder: Path, name: str, members: list[str], *, by_size: bool = True, **entry: Any) -> None:
    """A group of tasks beside them."""
    import yaml

    entry |= {"metric": "exact_match", "aggregation": "mean", "weight_by_size": by_size}
    group = {"group": name, "task": members, "aggregate_metric_list": [entry], "metadata": {"version": 1.0}}
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(group))


def load(folder: Path, *names: str) -> dict[str, Any]:
    """Tasks as the host loads them, with the few-shot seed of its command."""
    from lm_eval.tasks import TaskManager

    loaded = TaskManager(include_path=str(folder), include_defaults=False).load(list(names or ("numbers",)))
    for task in loaded["tasks"].values():
        task.set_fewshot_seed(1234)
    return dict(loaded)


def numbered(documents: Iterable[tuple[str, int]], first: int = 0) -> list[Asked]:
    """Cells of these documents; one that comes again is a repeat."""
    seen: Counter[tuple[str, int]] = Counter()
    cells = []
    for document in documents:
        cells.append(Asked(*document, first + seen[document]))
        seen[document] += 1
    return cells


def samples_in(out: Path) -> list[dict[str, Any]]:
    """Every line of the sample files below a folder."""
    files = sorted(out.rglob("samples_*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


class Bought(NamedTuple):
    """What the book of a run says of its calls.

    Attributes:
        requests: in the order of asking, those that are under way among them.
        readings: that came back or were lost, with a score or without.
        spent: in units of the budget.
    """

    requests: tuple[Request, ...]
    readings: tuple[Reading, ...]
    spent: float

    @property
    def pending(self) -> tuple[Request, ...]:
        """Requests that are under way."""
        return tuple(set(self.requests) - {reading.request for reading in self.readings})


class Written(NamedTuple):
    """A row of a record."""

    arm: str
    kind: str
    asked: Asked
    what: Any


def written_in(record: str | Path) -> list[Written]:
    """What stands in a record, in order."""
    with closing(sqlite3.connect(record)) as db:
        rows = db.execute(
            "select arm, kind, task, document, epoch, what from answers order by number"
        ).fetchall()
    return [Written(arm, kind, Asked(*cell), json.loads(what)) for arm, kind, *cell, what in rows]


def bought_in(record: str | Path) -> Bought:
    """What was bought in the run of a record, read without its sampler."""
    with closing(sqlite3.connect(record)) as db:
        rounds = [unpacked(text, ()) for (text,) in db.execute("select planned from rounds order by round")]
        calls = db.execute(
            "select calls.call, calls.cell, calls.cost, calls.error, cells.call, cells.value from calls "
            "join cells on calls.cell = cells.cell where calls.error is not 'never sent' order by calls.call"
        ).fetchall()
        (spent,) = db.execute("select spent from about").fetchone()
    asked, epochs = [], Counter[int]()
    for planned in rounds:
        for item in planned[1].tolist():
            asked.append((Cell(item=item, epoch=epochs[item]), planned[2]))
            epochs[item] += 1
    requests = [Request(call, asked[cell][0], None, asked[cell][1]) for call, cell, *_ in calls]
    readings = [
        Reading(request, value if call == last else None, cost, error)
        for request, (call, _, cost, error, last, value) in zip(requests, calls, strict=True)
        if cost is not None
    ]
    return Bought(tuple(requests), tuple(readings), spent)


def simple_evaluate(
    folder: Path, model: Any, *names: str, rounds: int | None = None, **options: Any
) -> dict[str, Any]:
    """The host's ``simple_evaluate`` on the tasks of a folder; in rounds of so many documents if told."""
    import lm_eval
    from lm_eval.tasks import TaskManager

    with nullcontext() if rounds is None else rounds_of(rounds):
        found = lm_eval.simple_evaluate(
            model=model,
            tasks=list(names or ("numbers",)),
            task_manager=TaskManager(include_path=str(folder), include_defaults=False),
            bootstrap_iters=0,
            **options,
        )
    assert found is not None
    return dict(found)
