"""Real runs whose files cannot grow: they stop, ask nothing that cannot be kept, and go on later."""

from __future__ import annotations

import os
import random
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.claims import variant

import warm
from chaos_sections.bill import missing, over, twice
from chaos_sections.inspect_side import INSPECT
from chaos_sections.lm_eval_side import LM_EVAL
from chaos_sections.plan import Capability, Plan
from loopback import Answer, Server

LIMIT = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({}, resource.RLIM_INFINITY))\n"


def started(plan: Plan, command: list[str], host: str, folder: Path, limit: int | None = None) -> str:
    """Run one command of a plan; what it prints."""
    python, c, code, *arguments = command
    if limit is not None:
        code = LIMIT.format(limit) + code
    done = warm.run(
        [python, c, code, *arguments],
        host=host,
        cwd=folder,
        env={**os.environ, **plan.environment},
        stderr=subprocess.STDOUT,
    )
    return str(done.stdout)


def longer(answer: Answer) -> Answer:
    return lambda asked: f"{answer(asked)} " + "x" * 3000


@pytest.mark.host
@pytest.mark.parametrize(
    ("capability", "limit"),
    [
        variant(LM_EVAL[0], 200_000),
        (LM_EVAL[2], 200_000),
        pytest.param(
            *(INSPECT[0], 150_000),
            marks=pytest.mark.skipif(find_spec("openai") is None, reason="inspect asks through openai"),
        ),
    ],
    ids=lambda given: f"{given.host} {given.name}" if isinstance(given, Capability) else str(given),
)
def test_a_full_disk(capability: Capability, limit: int, tmp_path: Path) -> None:
    with Server(latency=0.02) as server:
        plan = capability.prepare(tmp_path, server, random.Random(1))
        if capability.host == "lm-eval":  # so that answers are most of the file
            server.answer = longer(server.answer)
            server.answers.update({model: longer(said) for model, said in server.answers.items()})
        said = started(plan, plan.command, capability.host, tmp_path, limit)
        assert "Traceback" not in said
        if capability.host == "lm-eval":  # inspect says it on its display, which is off here
            assert "cannot be written: disk I/O error. Make room" in said, said[-2000:]
        at_first = server.calls()
        assert 0 < at_first < sum(plan.billed.values())
        started(plan, plan.again(), capability.host, tmp_path)
        assert plan.done(0)
        served = list(server.served)
    lost, _ = missing([one for one in served if one.model in plan.recorded], plan.kept(), [])
    assert len(lost) <= plan.caught  # on their way as the file broke; spent all the same
    assert len(twice(served, lost)) == 0
    spent = plan.spent()
    assert spent is not None
    for models, budget in plan.billed.items():
        assert over(served, models, budget, spent) == 0
