"""``evalbudget lm-eval score``: judges score the answers of a finished run."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import click

from evalbudget.errors import InvalidInputError
from evalbudget.exit_codes import codes_for_help
from evalbudget_lm_eval.arms.spelled_command import TYPED, host_command
from evalbudget_lm_eval.repeats.flags import FLAGS as OF_RUNS

EXAMPLES = """\b
Examples:
  evalbudget lm-eval score out/my-model --include_path my_tasks --output_path judged --log_samples \\
      --judges local-chat-completions:model=a,base_url=URL,local-chat-completions:model=b,base_url=URL
  evalbudget lm-eval score out/my-model/samples_essays_2026-01-31T12-00-00.000000.jsonl \\
      --judges judges.yaml --rotation all
  evalbudget lm-eval score out/my-model --judges judges.yaml --sampler auto --budget 5x

PATH is what lm-eval wrote with --log_samples: a folder, or one samples_*.jsonl. The model is not asked.
Of several answers to a document the first is scored: once without --budget; with one, again where that
teaches most.
Every other flag is lm-eval's own: see lm-eval run --help.

""" + codes_for_help(no="", undecided="not known yet, with --until")

_GIVEN = ("--model", "--model_args", "--tasks", "--samples", "--limit", "--predict_only", "--repeat")
FLAGS = tuple(flag for flag in OF_RUNS if flag.name not in ("repeat", "scorer", "store"))


@host_command("score", FLAGS, EXAMPLES, click.argument("path", type=click.Path(exists=True, path_type=Path)))
def score_command(ctx: click.Context, /, path: Path, **given: Any) -> None:
    """Have judges score the answers of a finished run.

    PATH comes first. The task may have other metrics, or be judged already: the judges named here score in
    place of them.
    """
    from evalbudget_lm_eval.host.unloaded import RECORDED
    from evalbudget_lm_eval.repeats.finished_run import answers_in
    from evalbudget_lm_eval.repeats.host_cli import run_host

    typed: list[str] = list(ctx.meta[TYPED])
    typed.remove(next(word for word in typed if Path(word) == path))
    for name in _GIVEN:
        if any(word.partition("=")[0].replace("-", "_") == name.replace("-", "_") for word in typed):
            raise InvalidInputError(f"{name} follows from the finished run in {path}; drop it")
    model, answers = answers_in(path)
    documents: dict[str, list[int]] = defaultdict(list)
    for task, doc_id in sorted(answers.said):
        documents[task].append(doc_id)
    arguments = ["run", "--model", RECORDED, "--model_args", json.dumps({"model": model})]
    arguments += ["--tasks", ",".join(documents), "--samples", json.dumps(documents), "--repeat", "judge"]
    if given["budget"] is None:
        if given["sampler"] is not None:
            raise InvalidInputError(
                "--sampler needs a --budget; write a number of scores (2000) or scores per answer (5x)"
            )
        arguments += ["--budget", "1x", "--sampler", "uniform"]
    ctx.exit(run_host([*arguments, *typed], answers))
