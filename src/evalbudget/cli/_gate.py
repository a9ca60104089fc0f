"""``evalbudget gate``: did it get worse? For builds: the exit code is the verdict."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from evalbudget.cli._gate_output import show_gate
from evalbudget.cli._output import STDOUT, check_targets, say, write_text
from evalbudget.cli._sources import ACROSS_TASKS
from evalbudget.cli.flags import options_of
from evalbudget.comparisons.flags import BASELINE, BASELINE_MODEL, BATCH, CANDIDATE, FLAGS, OUTPUT
from evalbudget.errors import InvalidInputError
from evalbudget.exit_codes import codes_for_help
from evalbudget.flags import PRICES, RISK, SAMPLER_SEED, refuse_misspelled
from evalbudget.hooks._plugins import plugins
from evalbudget.missing import as_missing
from evalbudget.races.flags import BUDGET

EXAMPLES = """\b
Examples:
  evalbudget gate --baseline main.eval --candidate branch.eval --margin 0.02
  evalbudget gate --baseline main.eval --save-baseline baseline.csv
  evalbudget gate --baseline baseline.csv --candidate openai/new --task my_task.py \\
      --margin 0.02 --budget '$5' --prices prices.yaml --markdown comment.md
  evalbudget gate --baseline results/main --candidate hf:pretrained=my-model --task gsm8k \\
      --margin 0.02 --score exact_match,strict-match

\b
A candidate that is a model is evaluated by its host, item by item, until the verdict is proved; flags
that are not listed go to the host: inspect if TASK is a Python file or a name with a slash, else lm-eval.
See evalbudget inspect gate --help, evalbudget lm-eval gate --help; they are the same on that host.

""" + codes_for_help(done="not worse", no="worse")


@click.command(epilog=EXAMPLES, context_settings={"ignore_unknown_options": True})
@options_of((*FLAGS, CANDIDATE))
@click.option("--task", metavar="TASK", help="Of a candidate that is a model: what it is evaluated on.")
@ACROSS_TASKS
@click.option(
    "--save-baseline",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="Write the baseline as a small table of text, to keep with the code.",
)
@click.argument("args", nargs=-1, type=click.UNPROCESSED, metavar="[HOST'S FLAGS]...")
@click.pass_context
def gate(
    ctx: click.Context,
    /,
    args: tuple[str, ...],
    candidate: str | None,
    task: str | None,
    across_tasks: bool,
    save_baseline: Path | None,
    **given: Any,
) -> None:
    """Say whether a candidate got worse than a baseline, by a margin that matters.

    "Not worse" and "worse" are wrong with a probability of at most 5% each. A candidate that is a model is
    evaluated until one of them is proved, however often one looks.
    """
    is_log = candidate is not None and Path(candidate).exists()
    if given["baseline"] is None and (
        save_baseline is not None or given[BASELINE_MODEL.name] is None or is_log
    ):
        raise InvalidInputError(f"{BASELINE.option} is missing: give a log, for example --baseline main.eval")
    check_targets([("--save-baseline", save_baseline), *((flag.option, given[flag.name]) for flag in OUTPUT)])
    if save_baseline == STDOUT and candidate is not None:
        raise InvalidInputError("--save-baseline - is standard output, where the verdict goes; give a file")
    if across_tasks and not is_log:
        what = "there is none" if candidate is None else f"{candidate} is a model"
        raise InvalidInputError(f"--across-tasks is for a candidate that is a log, and {what}; drop it")
    if save_baseline is not None:
        _save(given, task if is_log or candidate is None else None, save_baseline)
    if candidate is None:
        if save_baseline is None:
            raise InvalidInputError("--candidate is missing: give a log, or a model and its --task")
        return
    if not is_log:
        _on_host(ctx, candidate, task, args, given)
    if args:
        refuse_misspelled(args, [param.opts[0] for param in ctx.command.params], ())
        raise InvalidInputError(f"{args[0]} is for the host of a candidate that is a model; drop it")
    sys.exit(_of_logs(candidate, task, given, across_tasks=across_tasks))


def _save(given: dict[str, Any], task: str | None, path: Path) -> None:
    from evalbudget.comparisons import as_csv, read_baseline

    baseline = read_baseline(
        given["baseline"],
        score=given["score"],
        cluster=given["cluster"],
        task=task,
        lower_is_better=bool(given["lower_is_better"]),
    )
    if not baseline.scores:
        raise InvalidInputError(
            f"{given['baseline']} is no baseline to keep: all {baseline.answers_missing:,} answers of "
            f"{baseline.name} are missing; give a log with scores"
        )
    write_text(path, as_csv(baseline, given["cluster"]), "--save-baseline")
    items = len(baseline.items) + len(baseline.outside)
    without = items - len(baseline.scores)
    lacking = f", {without:,} of them without a score" if without else ""
    say(f"Wrote {path}: {items:,} items of {baseline.name}{lacking}.", err=True)


def _of_logs(candidate: str, task: str | None, given: dict[str, Any], *, across_tasks: bool) -> int:
    """Both are there: nothing is bought."""
    from evalbudget.comparisons import GateConfig, read_baseline
    from evalbudget.comparisons import gate as judged
    from evalbudget.recorded._direction import with_lower_better

    for flag in (BASELINE_MODEL, BUDGET, PRICES, RISK, BATCH, SAMPLER_SEED):
        if given[flag.name] is not None:
            raise InvalidInputError(
                f"{flag.option} is for a candidate that is a model, and {candidate} is a log, which costs "
                "nothing; drop it"
            )
    outputs = {name: given.pop(name) for name in ("json_path", "markdown_path", "junit_path")}
    config = GateConfig.of(**{name: value for name, value in given.items() if value is not None})
    scores = plugins().open_scores(Path(candidate), task, may_be_empty=True)
    found = judged(
        read_baseline(
            config.baseline,
            score=config.score,
            cluster=config.cluster,
            task=task,
            lower_is_better=config.lower_is_better,
        ),
        with_lower_better(scores, config.score) if config.lower_is_better else scores,
        margin=config.options["margin"],
        delta=config.options.get("delta", 0.05),
        score=config.score,
        score_range=config.bounds,
        these_items=bool(config.options.get("these_items")),
        cluster=config.cluster,
        missing=as_missing(config.missing),
        across_tasks=across_tasks,
    )
    return show_gate(found, **outputs)


def _as_typed(host: str, candidate: str, task: str) -> list[str]:
    """Model and task as the host has them; on lm-eval a model's arguments follow its kind and a colon."""
    if host == "inspect":
        return [task, f"--model={candidate}"]
    kind, _, arguments = candidate.partition(":")
    return [f"--tasks={task}", f"--model={kind}", *([f"--model_args={arguments}"] if arguments else [])]


def _on_host(
    ctx: click.Context,
    candidate: str,
    task: str | None,
    args: tuple[str, ...],
    given: dict[str, Any],
) -> None:
    """Hand over to the command of the host."""
    if task is None:
        raise InvalidInputError(
            f"--candidate {candidate} is no log that exists, and for a model to evaluate there is no --task; "
            "give one of them"
        )
    file = Path(task.partition("@")[0])
    of_lm_eval = file.suffix in (".yaml", ".yml") or not (file.exists() or "/" in task)
    host = "lm-eval" if of_lm_eval else "inspect"
    root = ctx.find_root()
    group = root.command.get_command(root, host) if isinstance(root.command, click.Group) else None
    if group is None:
        raise InvalidInputError(f"the host {host} is not installed: pip install 'evalbudget[{host}]'")
    flags = {flag.name: flag for flag in FLAGS}
    words = ["gate", *_as_typed(host, candidate, task)]
    for name, value in given.items():
        if value is None or value is False:
            continue
        option = flags[name].option
        words.append(option if value is True else f"{option}={value}")
    with group.make_context(host, [*words, *args], parent=root) as there:
        there.command.invoke(there)
