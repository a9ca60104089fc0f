"""A model without latency, and tasks whose data are a file beside them."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import lm_eval.models  # noqa: F401  (before @register_model, or the host's own models vanish)
from lm_eval.api.model import LM
from lm_eval.api.registry import register_model

from evalbudget.journal import Header, Journal
from evalbudget.run import JournalReader
from evalbudget_lm_eval.host.answers import Asked


@register_model("evalbudget-test-coin")
class CoinModel(LM):
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

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        return [self._answer(*request.args) for request in requests]

    def loglikelihood(self, requests: list[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        return [(-float(len(request.args[1])), False) for request in requests]

    def loglikelihood_rolling(self, requests: list[Any], disable_tqdm: bool = False) -> list[float]:
        raise NotImplementedError

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


def write_task(folder: Path, name: str = "numbers", n: int = 12, **changes: Any) -> Path:
    """A folder with a generation task of ``n`` documents; give it to ``--include_path``."""
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
        "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
        "num_fewshot": 0,
        "metadata": {"version": 1.0},
    }
    config.update(changes)
    lines = [f"class: !function {config.pop('class')}\n"] if "class" in config else []
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(config, sort_keys=False) + "".join(lines))
    return folder


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


def journal_of(path: str | Path) -> Journal:
    """The sampler's decisions and readings in the record of a run."""
    first, *lines = map(json.loads, Path(path).read_text().splitlines())
    reader = JournalReader(Header(first["sampler"]["config"], first["sampler"]["design"], first["version"]))
    for line in lines:
        if not line.keys().isdisjoint(("ask", "tell", "note")):
            reader.take(line)
    return reader.journal


def simple_evaluate(folder: Path, model: Any, *names: str, **options: Any) -> dict[str, Any]:
    """The host's ``simple_evaluate`` on the tasks of a folder."""
    import lm_eval
    from lm_eval.tasks import TaskManager

    found = lm_eval.simple_evaluate(
        model=model,
        tasks=list(names or ("numbers",)),
        task_manager=TaskManager(include_path=str(folder), include_defaults=False),
        bootstrap_iters=0,
        **options,
    )
    assert found is not None
    return dict(found)
