"""How large the house is, and how far a reading has to go in it.

Prints lines and files of each part, the classes that count what is spent or under way, the formats on disk,
names that several classes have, and how many of our files one reading passes on each host (one at a time, in
scores, without judges of ours).

    python benchmarks/house.py
    python benchmarks/house.py --names
"""

from __future__ import annotations

import ast
import logging
import os
import re
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

HOME = Path(__file__).resolve().parent.parent
PARTS = {
    "core": "src/evalbudget",
    "inspect": "plugins/evalbudget-inspect/src",
    "lm-eval": "plugins/evalbudget-lm-eval/src",
    "pairwise": "plugins/evalbudget-pairwise/src",
    "labelling": "plugins/evalbudget-labelling/src",
    "tests": "tests",
}
_PRODUCT = ("core", "inspect", "lm-eval")
COUNTS = frozenset({"spent", "held", "promised", "under_way", "outstanding", "in_flight", "reserved"})
"""What a class counts that keeps books; it sets one of these of its own, or adds it up."""
_FORMAT = re.compile(r"^(_?FORMAT) = |^(\w+) = Layout\(", re.MULTILINE)
_FEW, _MORE = 30, 50  # readings of the two runs that are compared


class Named(NamedTuple):
    """Something that has a name.

    Attributes:
        name: of a class or a constant.
        file: in which it is, from the home of all parts.
    """

    name: str
    file: str


def files(home: Path, part: str) -> list[Path]:
    """Python files of a part."""
    return sorted((home / PARTS[part]).rglob("*.py"))


def lines(home: Path, part: str) -> int:
    """Of a part: code, docstrings and blanks."""
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files(home, part))


def classes(home: Path) -> Iterator[tuple[Named, ast.ClassDef]]:
    """All of the product."""
    for part in _PRODUCT:
        for path in files(home, part):
            where = str(path.relative_to(home))
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    yield Named(node.name, where), node


def bookkeepers(home: Path) -> list[Named]:
    """Classes that count what is spent or under way: they change such a number themselves."""
    return [named for named, node in classes(home) if any(map(_counts, ast.walk(node)))]


def _counts(node: ast.AST) -> bool:
    """Whether this adds to one of the numbers that only bookkeepers have: ``self.spent += cost``."""
    if not isinstance(node, ast.AugAssign):
        return False
    target: Any = node.target
    if isinstance(target, ast.Subscript):
        key = target.slice
        return isinstance(key, ast.Constant) and str(key.value).strip("_") in COUNTS
    return isinstance(target, ast.Attribute) and target.attr.strip("_") in COUNTS


def formats(home: Path) -> list[Named]:
    """What is written to be read again: constants that name a format or the layout of tables."""
    found = []
    for part in _PRODUCT:
        for path in files(home, part):
            text = path.read_text(encoding="utf-8")
            where = str(path.relative_to(home))
            found += [Named(match[1] or match[2], where) for match in _FORMAT.finditer(text)]
    return found


def twice(home: Path) -> dict[str, list[str]]:
    """Public classes of one name in several modules, and these."""
    places: dict[str, list[str]] = {}
    for named, _ in classes(home):
        if not named.name.startswith("_"):
            places.setdefault(named.name, []).append(named.file)
    return {name: where for name, where in sorted(places.items()) if len(where) > 1}


class Route:
    """Which of our files are entered, and how often one follows another, within the block."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.changes = 0
        self._ours: dict[Any, str] = {}
        self._last = ""

    def __enter__(self) -> Route:
        threading.setprofile(self._seen)
        sys.setprofile(self._seen)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _seen(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        name = frame.f_code.co_filename
        if name not in self._ours:
            places = (str(HOME / PARTS[part]) for part in _PRODUCT)
            self._ours[name] = name if name.startswith(tuple(places)) else ""
        if not self._ours[name]:
            return
        self.calls[name] += 1
        self.changes += name != self._last
        self._last = name


def hops(run: Callable[[int], object]) -> tuple[int, float]:
    """Files that one reading more passes, and changes of file."""
    run(_FEW)  # what is done once is done
    routes = []
    for readings in (_FEW, _MORE):
        with Route() as route:
            run(readings)
        routes.append(route)
    few, more = routes
    # what is not done for every reading is not on its way
    passed = [name for name, calls in more.calls.items() if calls - few.calls[name] >= _MORE - _FEW]
    return len(passed), (more.changes - few.changes) / (_MORE - _FEW)


def on_inspect(folder: Path) -> Callable[[int], object]:
    """A run of so many readings, one at a time."""
    from inspect_ai import eval as host_eval

    from evalbudget_inspect import budgeted
    from evalbudget_inspect.demo.story_rating import story_rating

    quiet: dict[str, Any] = {"display": "none", "log_dir": str(folder), "score_display": False}

    def run(readings: int) -> object:
        task = budgeted(story_rating(10), budget=readings, sampler="uniform")
        roles = {"grader": "simulated/judge"}
        return host_eval(task, model="simulated/writer", model_roles=roles, max_samples=1, **quiet)

    return run


def on_lm_eval(folder: Path) -> Callable[[int], object]:
    """A run of so many readings, one at a time."""
    import lm_eval
    from lm_eval.tasks import TaskManager

    from evalbudget_lm_eval import budgeted
    from evalbudget_lm_eval.repeats import run as rounds
    from lm_eval_overhead import EchoModel, write_task

    name = write_task(folder, 10)
    manager = TaskManager(include_path=str(folder), include_defaults=False)
    rounds.ROUND = rounds.LARGER = 1

    def run(readings: int) -> object:
        with budgeted(sampler="uniform", budget=readings, journal="none"):
            return lm_eval.simple_evaluate(
                model=EchoModel(), tasks=[name], task_manager=manager, bootstrap_iters=0
            )

    return run


def main() -> None:
    """Measure and print."""
    os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
    os.environ.setdefault("TQDM_DISABLE", "1")
    logging.disable(logging.WARNING)
    for part in PARTS:
        print(f"{part:8} {lines(HOME, part):7,} lines in {len(files(HOME, part)):4,} files")
    print(f"product  {sum(lines(HOME, part) for part in _PRODUCT):7,} lines")
    shown = "--names" in sys.argv[1:]
    for what, found in (
        ("classes that count what is spent or under way", bookkeepers(HOME)),
        ("formats on disk", formats(HOME)),
    ):
        print(f"{what}: {len(found)}")
        for name, file in found if shown else ():
            print(f"  {name} ({file})")
    several = twice(HOME)
    print(f"names that several public classes have: {len(several)}")
    for name, where in several.items() if shown else ():
        print(f"  {name} ({', '.join(where)})")
    with tempfile.TemporaryDirectory() as folder:
        for host, begun in (("inspect", on_inspect), ("lm-eval", on_lm_eval)):
            passed, changes = hops(begun(Path(folder)))
            print(f"one reading on {host}: {passed} of our files, {changes:.0f} changes of file")


if __name__ == "__main__":
    main()
