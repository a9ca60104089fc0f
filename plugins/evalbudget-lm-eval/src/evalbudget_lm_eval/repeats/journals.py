"""Where the journal of a run is."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalbudget_lm_eval.repeats.config import Config

FOLDER = "evalbudget-journals"


def journal_path(config: Config, tasks: Sequence[str], run: Mapping[str, Any], folder: Path) -> Path:
    """The journal the user named, or the one of this run in ``folder``.

    The same command finds the journal of a run that did not end, and begins another one after one that did.
    """
    if config.journal is not None:
        path = Path(config.journal)
        return path if path.suffix else path.with_suffix(".jsonl")
    arguments = {
        "sampler": config.sampler,
        "seed": config.seed,
        "options": dict(config.options),
        "budget": config.budget,
        "run": dict(run),
    }
    digest = hashlib.sha256(json.dumps(arguments, sort_keys=True, default=str).encode()).hexdigest()[:8]
    name = re.sub(r"[^\w.-]+", "-", "+".join(tasks))[:60].strip("-.") or "run"
    number = 1
    while True:
        path = folder / FOLDER / f"{name}-{digest}-{number}.jsonl"
        if not path.exists() or not _finished(path):
            return path
        number += 1


def _finished(path: Path) -> bool:
    answers = path.with_suffix(".answers.jsonl")
    if not answers.exists():
        return False
    with answers.open("rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - 4096))
        return file.read().rstrip().rsplit(b"\n", 1)[-1].startswith(b'{"finished":')
