"""What answers cost, by the bill in the record of their run."""

from __future__ import annotations

import math
from pathlib import Path

from evalbudget.budget import Unit
from evalbudget.errors import EvalbudgetError
from evalbudget.run import kept_name, spent_on
from evalbudget.shown import shown_logger
from evalbudget_lm_eval.host.answers import Asked, key_of
from evalbudget_lm_eval.host.logfiles import SamplesFile
from evalbudget_lm_eval.run.record import FILE, FOLDER

log = shown_logger(__name__)


class PaidAnswers:
    """Costs of answers in dollars, their judges' calls included; only runs and races in money have any."""

    def __init__(self) -> None:
        self._billed: dict[str, dict[str, float]] = {}

    def cost(self, file: SamplesFile, document: int, epoch: int) -> float:
        """Of one; nan where nobody knows.

        Args:
            file: that holds it.
            document: id.
            epoch: which answer to the document, from 0.
        """
        block = file.block or {}
        arm = f"{block['arm']} " if block.get("arm") else ""
        return self._of(file).get(kept_name(arm) + key_of(Asked(file.task, document, epoch)), math.nan)

    def _of(self, file: SamplesFile) -> dict[str, float]:
        journal = str((file.block or {}).get("journal") or "")
        if not journal:
            return {}
        if journal not in self._billed:
            self._billed[journal] = {}
            for folder in (Path(journal).parent, *(up / FOLDER for up in file.path.resolve().parents[:3])):
                path = folder / Path(journal).name
                if path.exists():
                    self._billed[journal] = _read(path)
                    break
        return self._billed[journal]


def _read(path: Path) -> dict[str, float]:
    try:
        unit, costs = spent_on(path, FILE)
    except (EvalbudgetError, OSError) as ex:
        log.warning("evalbudget: %s tells nothing of what was paid: %s", path, ex)
        return {}
    return costs if unit is Unit.USD else {}
