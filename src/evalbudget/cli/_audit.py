"""``evalbudget audit``: label what an audit wants labelled, and see what the labels prove."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape

from evalbudget.cli._groups import PluginsGroup
from evalbudget.cli._output import TEXT_OR_JSON, json_option, say, write_json
from evalbudget.cli._shared_options import store_argument
from evalbudget.errors import InvalidInputError, reason
from evalbudget.exit_codes import codes_for_help
from evalbudget.shown import shown
from evalbudget.tables import NotedTable

if TYPE_CHECKING:
    from evalbudget.audits.store import AuditStore, Standing

EXAMPLES = """\b
Examples:
  evalbudget audit status audit.sqlite
  evalbudget audit serve audit.sqlite
  evalbudget audit export audit.sqlite --format csv -o labels.csv
  evalbudget audit import audit.sqlite labels.csv --by ann
  evalbudget audit sync audit.sqlite --url http://localhost:8080
  evalbudget audit verdict audit.sqlite --json | jq .outcome
  evalbudget audit status postgresql://ann@db.example.org/evals#essays

Status, next and verdict say by their exit code what happens next.

""" + codes_for_help(
    done="the verdict is reached",
    no="over without a verdict: labels or items are used up",
    undecided="labels are wanted, or another run of the evaluation, which draws the next batch",
    failed="",
)
IMPORT_EXAMPLES = """\b
Examples:
  evalbudget audit import audit.sqlite labels.csv
  evalbudget audit import audit.sqlite export.json --format label-studio
  my_labeller < todo.jsonl | evalbudget audit import audit.sqlite - --format jsonl --by ann
"""
_SHOWN = 10


class _Group(PluginsGroup):
    """Our commands, and those of plugins: where people label."""

    known_as = "audit"
    extras = MappingProxyType(dict.fromkeys(("serve", "export", "sync"), "labelling"))


@click.group(name="audit", cls=_Group, epilog=EXAMPLES)
def audit() -> None:
    """Label what an audit wants labelled, and see what the labels prove.

    STORE is the file that an audited evaluation writes, or postgresql://user@host/database#name. Several
    people and processes may use it at once.
    """


def _on_a_store(command: Callable[..., Any]) -> Callable[..., Any]:
    return store_argument(json_option(TEXT_OR_JSON, alone=True)(command))


@audit.command(
    epilog="\b\nExamples:\n  evalbudget audit status audit.sqlite\n"
    "  evalbudget audit status audit.sqlite --json"
)
@_on_a_store
@click.pass_context
def status(ctx: click.Context, where: str, json_path: Path | None) -> None:
    """Say how far labelling is and what happens next.

    Who labelled how much, which labels contradict each other, who has to do what.
    """
    with _open(where) as store:
        found = _weigh(store)
        if json_path is not None:
            write_json(_status_as_json(store, found), json_path)
        else:
            _print_status(store, found)
    ctx.exit(found.stage.exit_code)


@audit.command(
    name="next",
    epilog="\b\nExamples:\n  evalbudget audit next audit.sqlite\n"
    "  evalbudget audit next audit.sqlite -n 5 --json\n"
    "  evalbudget audit next audit.sqlite --by ann --minutes 30 --json",
)
@_on_a_store
@click.option("-n", "count", type=click.IntRange(min=1), default=1, show_default=True, help="Items to show.")
@click.option("--by", metavar="NAME", help="Reserve them for this labeller.")
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True),
    default=30.0,
    show_default=True,
    help="With --by: how long they are reserved.",
)
@click.pass_context
def next_command(
    ctx: click.Context, where: str, json_path: Path | None, count: int, by: str | None, minutes: float
) -> None:
    """Show what to label next, in the order the verdict waits for.

    Labels go back with evalbudget audit import. With --by the items are reserved: no page and no other call
    is given them meanwhile.
    """
    with _open(where) as store:
        found = _weigh(store)
        if by:
            tasks = _reserved(store, found, count, by, minutes * 60.0)
        else:
            tasks = [store.draws.task(draw) for draw in found.wanted[:count]]
        if json_path is not None:
            write_json([task.as_row() for task in tasks], json_path)
        else:
            for task in tasks:
                _say(f"[bold]{_quoted(task.id)}[/]  {_quoted(task.item)}")
                for what, text in (("Prompt", task.prompt), ("Response", task.response)):
                    _say(f"[bold]{what}[/]")
                    say(text)
                _say(f"[dim]Score: {_quoted(str(store.design.scale))}[/]")
                _say("")
        if not tasks and json_path is None:
            say(f"Nothing to show: {found.next_step}.", err=True)
    ctx.exit(found.stage.exit_code)


@audit.command(
    epilog="\b\nExamples:\n  evalbudget audit verdict audit.sqlite\n"
    "  evalbudget audit verdict audit.sqlite --json"
)
@_on_a_store
@click.pass_context
def verdict(ctx: click.Context, where: str, json_path: Path | None) -> None:
    """Say what the labels prove.

    The outcome and every system's interval; they hold however often you look.
    """
    with _open(where) as store:
        found = _weigh(store)
    if json_path is not None:
        write_json(found.as_json(), json_path)
    else:
        _print_verdict(found)
    ctx.exit(found.stage.exit_code)


@audit.command(name="import", epilog=IMPORT_EXAMPLES)
@store_argument
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--format",
    "kind",
    type=click.Choice(("csv", "jsonl", "label-studio")),
    help="Of the file.  [default: by its suffix: .csv, .jsonl, .json (Label Studio)]",
)
@click.option("--by", metavar="NAME", help="Who labelled, where the file does not say.")
@json_option(TEXT_OR_JSON, alone=True)
def import_command(where: str, file: Path, kind: str | None, by: str | None, json_path: Path | None) -> None:
    """Read labels: all of a file's, or none.

    None if one of its lines cannot be used: an item that was not drawn for labelling, a score that is not on
    the scale; exit code 2. Importing a file again changes nothing. A score that contradicts an earlier one is
    kept and reported; the earlier one counts.
    """
    from evalbudget.audits.store import import_labels, still_wanted
    from evalbudget.audits.store._importing import format_of

    kind = format_of("standard input" if file == Path("-") else file.name, kind)
    try:
        content = sys.stdin.buffer.read() if file == Path("-") else file.read_bytes()
        text = content.decode("utf-8-sig")
    except OSError as ex:
        raise InvalidInputError(f"{file} cannot be read: {reason(ex)}") from ex
    except UnicodeDecodeError as ex:
        line = content.count(b"\n", 0, ex.start) + 1
        raise InvalidInputError(f"{file}, line {line} is not UTF-8; save the file as UTF-8") from ex
    with _open(where) as store:
        address = store.address
        try:
            found = import_labels(store, text, kind, by)
        except InvalidInputError as ex:
            raise InvalidInputError(f"{file}: {ex}") from ex
        outstanding = len(still_wanted(store))
    if json_path is not None:
        write_json(asdict(found) | {"outstanding": outstanding}, json_path)
        return
    parts = [f"{found.new} new label{'s' * (found.new != 1)}"]
    parts += [f"{found.known} known"] if found.known else []
    parts += [f"{found.agrees} that agree"] if found.agrees else []
    parts += [f"{found.empty} rows without a score"] if found.empty else []
    click.echo(f"{', '.join(parts)}; {outstanding} still wanted")
    if told := found.warning(address):
        say(told, err=True)


def _open(where: str) -> AuditStore:
    from evalbudget.audits.store import AuditStore

    return AuditStore.open(where)


def _weigh(store: AuditStore) -> Standing:
    from evalbudget.audits.store import go_on  # numpy takes its time: not for --help

    return go_on(store)


def _reserved(store: AuditStore, found: Standing, count: int, by: str, seconds: float) -> list[Any]:
    from secrets import token_hex

    tasks = []
    for _ in range(count):  # a session holds one draw: each of these is one of its own
        task = store.leases.next(f"next-{token_hex(6)}", by, seconds=seconds, among=found.wanted)
        if task is None:
            break
        tasks.append(task)
    return tasks


def _say(markup: str) -> None:
    """A line whose brackets are ours, but for those that are quoted."""
    Console(highlight=False, emoji=False).print(markup)


def _quoted(text: str) -> str:
    """Other people's text in such a line."""
    return escape(shown(text))


def _status_as_json(store: AuditStore, found: Standing) -> dict[str, Any]:
    conflicts = [
        {
            "draw": draw,
            "item": store.draws.task(draw).item,
            "labels": [{"score": label.score, "by": label.by} for label in labels],
        }
        for draw, labels in store.labels.conflicts().items()
    ]
    alike = store.labels.agreement()
    beside = {"agreement": None if alike is None else asdict(alike)}
    return found.as_json() | {"store": str(store.address), "conflicts": conflicts} | beside


def _print_status(store: AuditStore, found: Standing) -> None:
    progress, design = found.progress, store.design
    _say(f"[bold]{_quoted(found.as_sentence(found.headline))}[/]")
    _say(
        f"{len(design.models)} systems, {len(design.items):,} items, {_quoted(design.policy)}; "
        f"scores: {_quoted(str(design.scale))}"
    )
    _say(f"{progress.drawn:,} answers judged on {progress.contexts:,} items")
    for line in found.of_judge:
        _say(found.as_sentence(line))
    batch = f"; batch {progress.batch + 1}: {progress.batch_labelled} of {progress.batch_wanted}"
    batch *= progress.batch > 0
    leased = f"; {progress.leased} being read now" if progress.leased else ""
    _say(f"{progress.labelled} of {progress.wanted} labels{batch}{leased}")
    if progress.by:
        _say("by " + ", ".join(f"{_quoted(name)} {count}" for name, count in progress.by.items()))
    if progress.corrections:
        _say(f"{progress.corrections} corrected")
    alike = store.labels.agreement()
    if alike is not None:
        alpha = "" if math.isnan(alike.alpha) else f"; Krippendorff's alpha {alike.alpha:.2f}"
        _say(
            f"{alike.things:,} answers labelled twice or more: {alike.equal:.0%} of pairs equal, "
            f"{alike.difference:.3g} apart on average{alpha}"
        )
    conflicts = store.labels.conflicts()
    for draw, labels in list(conflicts.items())[:_SHOWN]:
        said = ", ".join(f"{_quoted(label.by)} {label.score:g}" for label in labels)
        task = store.draws.task(draw)
        about = f"{_quoted(task.item)} ({_quoted(task.id)})"
        _say(f"[yellow]contradictory labels[/] of {about}: {said}; the first counts")
    if len(conflicts) > _SHOWN:
        _say(f"  and {len(conflicts) - _SHOWN} more")
    _say(_quoted(found.as_sentence(found.next_step)))


def _print_verdict(found: Standing) -> None:
    _say(f"[bold]{_quoted(found.as_sentence(found.headline))}[/]")
    if found.reason and found.reason != found.next_step:
        _say(_quoted(found.as_sentence(found.reason)))
    table = NotedTable(box=None, pad_edge=False)
    table.add_column("system", overflow="fold")
    for column in ("mean label", "lower", "upper"):
        table.add_column(column, justify="right")
    table.add_column("")
    for model in found.models:
        numbers = ["–" if x is None else f"{x:.3f}" for x in (model.value, model.low, model.high)]
        state = "best" if model.model == found.winner else "" if model.racing else "out"
        table.add_row(model.model, *numbers, state)
    conflicts = found.progress.conflicts
    said = [found.as_sentence(found.interval), f"{found.progress.labelled} labels, cost {found.cost:,.6g}"]
    if found.judge_says:
        said.append(f"The judge alone would say {found.judge_says}, which proves nothing")
    said += map(found.as_sentence, found.of_judge)
    if conflicts:
        said.append(f"Contradictory labels of {conflicts}, of which the first count")
    table.note = ". ".join([*said, found.as_sentence(found.next_step)])
    Console().print(table)
