"""Runs a budgeted evaluation whose model is slow, for tests that kill it: FOLDER LOG SECONDS BUDGET."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import lm_eval.evaluator
from tests.host_lm_eval.worlds import CoinModel, simple_evaluate

from evalbudget_lm_eval import budgeted


class SlowModel(CoinModel):
    """Takes its time for every answer."""

    seconds = 0.0

    def _answer(self, prompt: str, kwargs: dict[str, Any]) -> str:
        time.sleep(self.seconds)
        return super()._answer(prompt, kwargs)


def main() -> None:
    folder, log, seconds, budget = sys.argv[1:]
    stock = lm_eval.evaluator.evaluate
    SlowModel.seconds = float(seconds)
    lm = SlowModel(noise=False, log=log)
    try:
        with budgeted(sampler="eb-bernstein", budget=int(budget)):
            results = simple_evaluate(Path(folder), lm, rounds=10)
    except KeyboardInterrupt:
        restored = lm_eval.evaluator.evaluate is stock
        print(f"interrupted, host state restored: {restored}", flush=True)
        sys.exit(130)
    table = {"results": results["results"], "evalbudget": results["evalbudget"]}
    print(json.dumps({**table, "samples": len(results["samples"]["numbers"])}, default=str))


if __name__ == "__main__":
    main()
