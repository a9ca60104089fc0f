"""What the pages' reader has: a task, logs, recorded scores, labels, and services, which answer on loopback.

Commands are run as printed, but for what only the reader can have: a provider's models are those of a server
here, ``...`` stands for a model there, and budgets are smaller.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from csv import DictReader, DictWriter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from tests.audits.store.audits import Told
from tests.labelling.label_studio import LEGACY, FakeLabelStudio

from evalbudget.backtest import RecordedScores
from loopback import Asked, Server, number, rating

HERE = Path(__file__).with_name("reader")
MODEL = "openai-api/here/"  # the host's way to a server that speaks as OpenAI's
SMALL = 24  # scores
_SERVER = "http://localhost:8000"
_CHAT = f"base_url={_SERVER}/v1/chat/completions"
_ARGUMENTS = f"--model local-chat-completions --model_args model=m,{_CHAT}"
_GENERATES = "--gen_kwargs temperature=1.0 --apply_chat_template"


@dataclass(frozen=True)
class Reader:
    """Somebody with a folder and two services.

    Attributes:
        folder: where commands run.
        url: of the server of models.
        studio: of the server of labels.
    """

    folder: Path
    url: str
    studio: str

    def environment(self) -> dict[str, str]:
        """Beside that of this process."""
        labels = {"LABEL_STUDIO_URL": self.studio, "LABEL_STUDIO_API_KEY": LEGACY}
        return {
            "HERE_BASE_URL": f"{self.url}/v1",
            "HERE_API_KEY": "unused",
            "OPENAI_API_KEY": "unused",
        } | labels

    def own(self, text: str) -> str:
        """A command, or a file, with the reader's models, arguments and money."""
        lm_eval = "evalbudget lm-eval" in text
        if lm_eval:
            text = re.sub(r"--model hf --model_args pretrained=\w+", _ARGUMENTS, text)
            text = re.sub(r"(--model_args) \.\.\.", rf"\1 model=m,{_CHAT}", text)
            text = re.sub(r"(model=[\w-]+),\.\.\.", rf"\1,{_CHAT}", text)
            text = re.sub(r"base_url=\.\.\.", _CHAT, text)
            text = re.sub(r"(openai-chat-completions:model=[\w-]+)", rf"\1,{_CHAT}", text)
            named = " --model" in text or " --arm" in text
            text = text.replace(" ...", "" if named else f" {_ARGUMENTS}")
            text += "" if "--gen_kwargs" in text or " run " not in text else f" {_GENERATES}"
            text += "" if "--tasks" in text or " run " not in text else " --tasks stories"
        else:
            text = re.sub(r"\b(?:openai|anthropic|google)/", MODEL, text)
            text = re.sub(
                r"(--model) (\w+(?:,\w+)*)(?= |$)",
                lambda found: f"{found[1]} " + ",".join(MODEL + name for name in found[2].split(",")),
                text,
            )
        text = re.sub(r"(--budget) (\d+)(?= |$)", lambda f: f"{f[1]} {min(int(f[2]), SMALL)}", text)
        text = text.replace("-T budget=2000", f"-T budget={SMALL}")
        text = re.sub(r"(--budget) 20x", r"\1 4x", text)
        if " backtest " not in text:
            text = re.sub(r"(--budget) '\$\d+'", r"\1 '$0.05'", text)
            text = text.replace("2Mtok", "0.01Mtok")
        return text.replace("http://localhost:8080", self.studio).replace(_SERVER, self.url)

    def prepare(self, command: str, run: Callable[[str], None]) -> None:
        """Have what a command names, and what people do before it.

        Args:
            command: as printed.
            run: a command that makes some of it.
        """
        for name, make in _MADE.items():
            named = re.search(rf"(?<![\w.-]){re.escape(name)}", command)
            written = re.search(
                rf"(?:-o|--save-baseline|--html|--json|(?:inspect|lm-eval) audit) {name}", command
            )
            if named and not written and not (self.folder / name).exists():
                make(self, run)
        if "my_task.py" in command:
            variant = "rated" if "1..10" in command else "rubric" if "rubric." in command else "my"
            shutil.copy(HERE / f"{variant}_task.py", self.folder / "my_task.py")
        if re.search(r"audit import \S+ labels.csv", command):
            self._fill_in()

    def _fill_in(self) -> None:
        path = self.folder / "labels.csv"
        with path.open(newline="") as file:
            rows = list(DictReader(file))
        with path.open("w", newline="") as file:
            writer = DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(row | {"score": "1", "by": "ann"} for row in rows[:2])


def said(asked: Asked) -> str:
    """What models here answer: a grade, a rating or a preference where one is asked for, else a number."""
    if "GRADE" in asked.prompt:
        return f"GRADE: {'C' if asked.luck < 0.6 else 'I'}"
    if "1 to 10" in asked.prompt:
        return rating(1, 10)(asked)
    if "[[A]]" in asked.prompt:
        return "[[A]]" if asked.luck < 0.7 else "[[B]]"
    return rating()(asked) if "RATING" in asked.prompt else number(asked)


@contextmanager
def reader(folder: Path) -> Iterator[Reader]:
    """One whose services answer within the context."""
    (folder / "tasks").mkdir()
    with Server(answer=said) as server, FakeLabelStudio() as studio:
        one = Reader(folder, server.url, studio.url)
        for path in HERE.glob("tasks/*.*"):
            (folder / "tasks" / path.name).write_text(path.read_text().replace(_SERVER, server.url))
        yield one


# What there is, by its name; each is made when a command names it.


def _logs(reader: Reader, run: Callable[[str], None]) -> None:
    shutil.copy(HERE / "my_task.py", reader.folder / "my_task.py")
    run("inspect eval my_task.py --model openai/b,openai/c --epochs 3 --log-dir logs")


def _log(name: str, which: int) -> Callable[[Reader, Callable[[str], None]], None]:
    def make(reader: Reader, run: Callable[[str], None]) -> None:
        if not (reader.folder / "logs").exists():
            _logs(reader, run)
        shutil.copy(sorted((reader.folder / "logs").glob("*.eval"))[which], reader.folder / name)

    return make


def _judged_log(reader: Reader, run: Callable[[str], None]) -> None:
    run(
        "evalbudget inspect eval my_task.py --model openai/c --judges openai/b,openai/d --epochs 4 "
        "--log-dir judged-logs"
    )
    (log,) = (reader.folder / "judged-logs").glob("*.eval")
    shutil.copy(log, reader.folder / "judged.eval")


def _host_results(reader: Reader, run: Callable[[str], None]) -> None:
    for model in ("a", "b", "my-model"):
        run(
            f"evalbudget lm-eval run --model local-chat-completions --model_args model={model},{_CHAT} "
            f"{_GENERATES} --tasks gsm8k --sampler uniform --budget 6x --output_path results --log_samples"
        )
    for folder in (reader.folder / "results").iterdir():
        shutil.move(folder, folder.with_name(folder.name.rpartition("__")[2]))


def _out(reader: Reader, run: Callable[[str], None]) -> None:
    if not (reader.folder / "results").exists():
        _host_results(reader, run)
    to = reader.folder / "out" / "my-model"
    shutil.copytree(reader.folder / "results" / "my-model", to)
    (samples,) = to.glob("samples_*.jsonl")
    for path in list(to.glob("*20??-*")):
        shutil.move(path, str(path).replace(_date(samples), "2026-01-31T12-00-00.000000"))


def _judged(reader: Reader, run: Callable[[str], None]) -> None:
    run("evalbudget lm-eval score out/my-model --judges judges.yaml --output_path judged --log_samples")


def _date(path: Path) -> str:
    (found,) = re.findall(r"20\d\d-[\d.T-]+\d", path.name)
    return str(found)


def _scores(
    models: int, raters: tuple[str, ...], repeats: int, *, human: bool = False, n: int = 40, first: int = 0
) -> RecordedScores:
    """Whole numbers 1 to 5; later models are better, and a person agrees with them on the whole."""
    rng = np.random.default_rng(0)
    item = rng.normal(3.0, 0.8, (models, n, 1, 1)) + 0.3 * np.arange(models)[:, None, None, None]
    noise = rng.normal(0.0, 0.7, (models, n, len(raters), repeats))
    scores = np.clip(np.round(item + noise), 1, 5)
    truth = np.clip(np.round(item[..., 0] + rng.normal(0.0, 0.5, (models, n, 1))), 1, 5)
    names = tuple(f"m{first + i}" for i in range(models))
    items = tuple(f"item {i}" for i in range(n))
    return RecordedScores(scores, names, items, raters, reference=truth if human else None)


def _save(name: str, found: Callable[[], RecordedScores]) -> Callable[[Reader, Callable[[str], None]], None]:
    return lambda reader, run: found().save(reader.folder / name)


def _passed(models: int, first: int = 0) -> RecordedScores:
    """Right or wrong."""
    found = _scores(models, ("gpt",), 1, n=1000, first=first)
    return replace(found, scores=(found.scores > 3).astype(float))


def _table(reader: Reader, run: Callable[[str], None]) -> None:
    found = _scores(2, ("judge-a", "judge-b"), 2)
    with (reader.folder / "scores.csv").open("w") as file:
        file.write("model,item,document,rater,repeat,score\n")
        for m, i, r, k in np.ndindex(found.scores.shape):
            place = f"{found.models[m]},{found.items[i]},text {i // 4},{found.raters[r]},{k}"
            file.write(f"{place},{found.scores[m, i, r, k]:g}\n")


def _preferences(reader: Reader, run: Callable[[str], None]) -> None:
    lines = [f"item {i},{'a,b' if i % 2 else 'b,a'},{'a' if i % 4 else 'b'}" for i in range(40)]
    (reader.folder / "preferences.csv").write_text("\n".join(["item,first,second,winner", *lines]) + "\n")


def _audit(reader: Reader, run: Callable[[str], None]) -> None:
    told = Told(pilot=8, labels_per_batch=8)
    with told.create(reader.folder / "audit.sqlite") as store:
        told.draw(store)


def _project(reader: Reader, run: Callable[[str], None]) -> None:
    run("evalbudget audit export audit.sqlite --format label-studio -o made.json")
    tasks = json.loads((reader.folder / "made.json").read_text())
    for task in tasks:
        result = {"from_name": "score", "to_name": "response", "type": "choices", "value": {"choices": ["7"]}}
        task["annotations"] = [{"result": [result], "completed_by": {"email": "bob"}, "lead_time": 3.0}]
    (reader.folder / "project-1.json").write_text(json.dumps(tasks[-2:]))


def _write(name: str, text: str) -> Callable[[Reader, Callable[[str], None]], None]:
    def make(reader: Reader, run: Callable[[str], None]) -> None:
        (reader.folder / name).write_text(text.replace(_SERVER, reader.url))

    return make


_JUDGES = f"""\
gen_kwargs: {{temperature: 1}}
judges:
  - {{name: strict, model: "local-chat-completions:model=strict,{_CHAT}"}}
  - {{name: kind, model: "local-chat-completions:model=kind,{_CHAT}"}}
"""
_LABELLER = """\
#!/usr/bin/env python3
import json, sys
for task in json.load(sys.stdin):
    print(json.dumps(task | {"score": 5}))
"""


def _labeller(reader: Reader, run: Callable[[str], None]) -> None:
    path = reader.folder / "my_labeller"
    path.write_text(_LABELLER)
    path.chmod(0o755)


_MADE: dict[str, Callable[[Reader, Callable[[str], None]], None]] = {
    "audit.sqlite": _audit,
    "examples/": lambda reader, run: shutil.copytree(
        HERE.parents[2] / "examples", reader.folder / "examples"
    ),
    "labels.csv": lambda reader, run: run("evalbudget audit export audit.sqlite --format csv -o labels.csv"),
    "logs/": _logs,
    **{name: _log(name, 0) for name in ("main.eval", "before.eval", "a.eval")},
    **{name: _log(name, 1) for name in ("branch.eval", "after.eval", "b.eval")},
    "judged.eval": _judged_log,
    "results/": _host_results,
    "out/": _out,
    "judged/": _judged,
    "scores.npz": _save("scores.npz", lambda: _scores(1, ("gpt", "haiku", "opus"), 12)),
    "pilot.npz": _save("pilot.npz", lambda: _scores(1, ("gpt", "haiku"), 2)),
    "models.npz": _save("models.npz", lambda: _passed(4)),
    "earlier.npz": _save("earlier.npz", lambda: _passed(8, first=20)),
    "labelled.npz": _save("labelled.npz", lambda: _scores(3, ("gpt",), 1, human=True)),
    "scores.csv": _table,
    "preferences.csv": _preferences,
    "prices.yaml": _write("prices.yaml", '"*": {input: 20, output: 100, max_output: 20}\n'),
    "judges.yaml": _write("judges.yaml", _JUDGES),
    "my_agent.py": _write("my_agent.py", (HERE / "my_task.py").read_text()),
    "project-1.json": _project,
    "my_labeller": _labeller,
}
