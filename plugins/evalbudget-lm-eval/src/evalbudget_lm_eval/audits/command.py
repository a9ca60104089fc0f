"""``evalbudget lm-eval audit``: which of several models is best, as people see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from evalbudget.audits.flags import FLAGS as OF_AUDITS
from evalbudget.audits.flags import JUDGE, LABELS_FROM
from evalbudget.cli import say
from evalbudget.errors import InvalidInputError
from evalbudget.exit_codes import ExitCode, codes_for_help
from evalbudget.flags import DRY_RUN, SAMPLER_OPTION, refuse_elsewhere
from evalbudget.flags import sampler_options as read_options
from evalbudget.races.flags import FLAGS as OF_RACES
from evalbudget_lm_eval.arms.flags import ARM, KEEP
from evalbudget_lm_eval.arms.spelled_command import TYPED, host_command
from evalbudget_lm_eval.host.flag_spelling import refuse_misspelled_flags, spelled
from evalbudget_lm_eval.repeats.flags import FLAGS as OF_REPEATS

EXAMPLES = """\b
Examples:
  evalbudget lm-eval audit audit.sqlite --tasks essays --judge judged,panel --score_range 1..5 \\
      --arm a=local-chat-completions:model=a,base_url=http://localhost:8000/v1/chat/completions \\
      --arm b=local-chat-completions:model=b,base_url=http://localhost:8000/v1/chat/completions \\
      --apply_chat_template
  evalbudget audit serve audit.sqlite
  (then the first command again)

Every other flag is lm-eval's own and holds for all arms: see lm-eval run --help.

Every answer is kept beside STORE, in a file .answers.db, or in its database: after a kill the same command
goes on, and what was answered is not asked again.

""" + codes_for_help(done="a verdict", no="over without one", undecided="labels are wanted")
_JUDGE = replace(JUDGE, help="Score to check; needed if the task has several.", metavar="METRIC[,FILTER]")
FLAGS = (
    ARM,
    *(_JUDGE if flag is JUDGE else flag for flag in OF_AUDITS if flag is not LABELS_FROM),
    *(KEEP, DRY_RUN),
)
_IN_PART = "is not for audits, which ask part of a task: the answers are kept with STORE; drop it"
_REFUSED = {
    LABELS_FROM.option: "is not on lm-eval, which computes all scores of an answer at once: the one that "
    "labels would be paid for every answer. Have people label, or use inspect",
    "--output-path": _IN_PART,
    "-o": _IN_PART,
}


@host_command("audit", FLAGS, EXAMPLES, click.argument("store", metavar="STORE"))
def audit_command(ctx: click.Context, /, **given: Any) -> None:
    """Compare models of lm-eval by a judge, and have people check it by labelling a few answers.

    STORE, a .sqlite file or postgresql://user@host/database#name, keeps answers and labels; evalbudget audit
    serve STORE opens the page to label on. When the labels are in, the same command goes on.
    """
    ctx.exit(_run(**given))


def beside_results(arguments: Sequence[str]) -> list[str]:
    """Arguments of ``run`` as those of this command: the store is ``audit.sqlite`` in the output folder."""
    left, folder = list(arguments), Path()
    for place, argument in enumerate(left):
        flag, equals, value = argument.partition("=")
        if flag.replace("_", "-") in ("--output-path", "-o"):
            folder = Path(value if equals else "".join(left[place + 1 : place + 2]))
            del left[place : place + 1 + (not equals)]
            break
    folder = folder.parent if folder.suffix == ".json" else folder  # as the host takes a file's name
    folder.mkdir(parents=True, exist_ok=True)
    return [str(folder / "audit.sqlite"), *left]


def _run(
    *,
    arms: tuple[str, ...],
    store: str,
    keep: int | None,
    sampler_options: tuple[str, ...],
    args: tuple[str, ...],
    dry_run: bool = False,
    **given: Any,
) -> int:
    if store.startswith("-"):
        raise InvalidInputError(
            f"{store} stands where the store belongs: write evalbudget lm-eval audit STORE ..., with a file "
            "like audit.sqlite as STORE"
        )
    for argument in args:
        flag = argument.partition("=")[0].replace("_", "-")
        if flag in _REFUSED:
            raise InvalidInputError(f"{argument.partition('=')[0]} {_REFUSED[flag]}")
    names = {flag.name for flag in FLAGS}
    others = [flag for flag in (*OF_REPEATS, *OF_RACES) if flag.name not in names]
    refuse_elsewhere(args, others, "has no meaning in an audit; drop it")
    refuse_misspelled_flags(args, FLAGS)
    from evalbudget.audits.store import AuditBudget, AuditSettings, used_up
    from evalbudget.secrets import shown

    options = read_options(sampler_options, (*FLAGS, LABELS_FROM), spelled(SAMPLER_OPTION))
    from evalbudget_lm_eval.arms.arm import check_arms, parse_arm
    from evalbudget_lm_eval.arms.host_flags import read_flags
    from evalbudget_lm_eval.audits.batches import Order, foresee, go_on

    models = [parse_arm(text) for text in arms]
    check_arms(models, least=1)
    AuditSettings.check_options(options)
    budget = AuditBudget.taken_from(given, "--max_labels N")
    settings = AuditSettings.of(store=store, models=[model.name for model in models], **given, **options)
    flags = read_flags(args, models)
    if flags.tracker.get("output_path"):  # abbreviated, or from a --config file
        raise InvalidInputError(f"--output_path {_IN_PART}")
    again = shown(["evalbudget", "lm-eval", "audit", *click.get_current_context().meta[TYPED]])
    order = Order(flags.arms, flags.task, settings, keep, flags.options, again, budget)
    settings.store.check_usable()
    if dry_run:
        say(f"{foresee(order, flags.manager)}\n\nNo call was made.")
        return 0
    try:
        found = go_on(order, flags.manager)
    except KeyboardInterrupt:
        say("interrupted; the same command goes on where it stopped", err=True)
        return ExitCode.INTERRUPTED
    told, code = found.standing.told(settings.store), found.standing.stage.exit_code
    if found.lacking and budget is not None:
        told, code = used_up(found.standing, settings.store, budget.cap, found.lacking)
    say("\n".join(["", told, *[found.paid] * bool(found.paid)]))
    return code
