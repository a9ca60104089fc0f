"""``evalbudget backtest``: what a sampler would have saved on recorded scores."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from evalbudget.cli.backtest_audit import audits_on
from evalbudget.cli.backtest_race import race_on
from evalbudget.cli.output import check_target, write_text
from evalbudget.cli.prices import parse_prices
from evalbudget.errors import InvalidInputError
from evalbudget.hooks.plugins import plugins

if TYPE_CHECKING:
    from evalbudget.backtest import AuditResult, BacktestResult, RaceResult, RotationResult

EXAMPLES = """\b
Examples:
  evalbudget backtest scores.npz
  evalbudget backtest scores.csv --sampler uniform,auto --budget 10x,5000
  evalbudget backtest scores.npz --rater gpt-5 --seeds 50 --json result.json
  evalbudget backtest scores.npz --rotation cyclic,random,single --budget 500
  evalbudget backtest models.npz --sampler uniform,ucb-e,race --budget 5%,10%
  evalbudget backtest models.npz --sampler race,pulse --history earlier.npz
  evalbudget backtest labelled.npz --sampler audit-eprocess --prices 1,20
  evalbudget backtest scores.npz --objective mean --json - | jq '.[].ratio'

\b
A .csv has the columns item and score and, optionally, model, rater and repeat.
"""


@click.command(epilog=EXAMPLES)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--sampler",
    "samplers",
    metavar="NAME,...",
    multiple=True,
    default=("uniform,auto",),
    help="Samplers to compare (see: evalbudget plugins); those that race models race the models of FILE.  "
    "[default: uniform,auto; of races uniform,race]",
)
@click.option(
    "--rotation",
    "rotations",
    metavar="NAME,...",
    multiple=True,
    help="Compare judge rotations instead: all, random, cyclic, priced, single. The raters are the judges.",
)
@click.option(
    "--prices",
    metavar="JUDGE=P,...",
    help="With --rotation: price of one call of each judge. Audits: of a judge's score and of a label, "
    "1,20.  [default of audits: 1,20]",
)
@click.option(
    "--allocator",
    "allocators",
    metavar="NAME,...",
    multiple=True,
    default=("uniform",),
    help="Audits, pp-lucb: uniform, price-of-precision, uncertainty-weighted, neyman, oracle.  "
    "[default: uniform]",
)
@click.option(
    "--delta",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="Audits: probability of a wrong verdict.",
)
@click.option(
    "--margin",
    metavar="E",
    type=float,
    default=0.0,
    show_default=True,
    help="Audits: also stop when no system can be better by this share of the score range.",
)
@click.option(
    "--max-labels", metavar="N", type=click.IntRange(min=1), help="Audits: never ask for more labels."
)
@click.option("--judge-range", metavar="LOW..HIGH", help="Audits: of the judge, if not that of the labels.")
@click.option("--rescale", is_flag=True, help="With --rotation: map each judge's observed range to 0..1.")
@click.option(
    "--budget",
    "budgets",
    metavar="N|Nx|N%,...",
    multiple=True,
    default=("10x,20x,50x",),
    help="Readings per pool (5000) or per item (20x); of races also a share of models x items (5%).  "
    "[default: 10x,20x,50x; with --rotation 1x; of races 5%,10%,20%]",
)
@click.option("--history", metavar="PATH", help="Races: scores of earlier models, or a file of factors.")
@click.option(
    "--score-range",
    metavar="LOW..HIGH",
    help="Races, audits: smallest and largest possible score.  [default: 0..1]",
)
@click.option(
    "--epsilon",
    metavar="E",
    type=float,
    default=0.01,
    show_default=True,
    help="Races, audits: how far below the best is still near enough, as a share of the score range.",
)
@click.option(
    "--until-proved",
    is_flag=True,
    help="Races: samplers that can go on until the best is proved do so.  [default of --budget then: 100%]",
)
@click.option("--no-intervals", is_flag=True, help="Races: leave intervals out, which takes less time.")
@click.option(
    "--seeds",
    metavar="N",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Replays per sampler and pool.",
)
@click.option("--model", metavar="NAME", help="Only this model; all of them otherwise.")
@click.option("--rater", metavar="NAME", help="Only this rater; all of them otherwise.")
@click.option(
    "--objective",
    metavar="NAME",
    default="worst-item",
    show_default=True,
    help="What to minimise: worst-item, mse or mean. The ratio to uniform is that of worst-item "
    "error, rmse or mean error.",
)
@click.option(
    "--min-repeats",
    metavar="N",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="Drop items with fewer recorded repeats.",
)
@click.option(
    "--batch",
    metavar="N",
    type=click.IntRange(min=1),
    default=1,
    help="Readings asked before any is answered; of races, items per decision.  [default: 1; of races the "
    "sampler's own]",
)
@click.option("--workers", metavar="N", type=click.IntRange(min=1), help="Processes; chosen otherwise.")
@click.option(
    "--json",
    "json_path",
    metavar="PATH",
    type=click.Path(path_type=Path, allow_dash=True),
    help="Write the result as JSON; - writes it to stdout instead of the table.",
)
@click.pass_context
def backtest(
    ctx: click.Context,
    files: tuple[Path, ...],
    samplers: tuple[str, ...],
    rotations: tuple[str, ...],
    prices: str | None,
    allocators: tuple[str, ...],
    delta: float,
    margin: float,
    max_labels: int | None,
    judge_range: str | None,
    rescale: bool,
    budgets: tuple[str, ...],
    history: str | None,
    score_range: str | None,
    epsilon: float,
    until_proved: bool,
    no_intervals: bool,
    seeds: int,
    model: str | None,
    rater: str | None,
    objective: str,
    min_repeats: int,
    batch: int,
    workers: int | None,
    json_path: Path | None,
) -> None:
    """Replay recorded scores: which sampler gets how close with how many readings?

    Samplers of repeats: each model and rater of FILE is a pool of items of its own; results are means over
    pools and seeds. Readings are drawn from the recorded repeats, the same ones for every sampler.

    Samplers of models (race, ucb-e, ...): who finds the best model of FILE with how many evaluations?

    Samplers of audits (audit-eprocess, ...): who finds it with a judge and how few human labels? FILE needs a
    reference.
    """
    to_stdout = json_path == Path("-")
    if json_path is not None and not to_stdout:
        check_target(json_path)
    if rotations:
        _refuse_unused(ctx, "--rotation", _OF_SAMPLERS)
        recorded = _only(files)
        asked = _listed(budgets) if _is_given(ctx, "budgets") else ["1x"]
        _show(_rotation(recorded, _listed(rotations), asked, seeds, model, prices, rescale), json_path)
        return
    _refuse_unused(ctx, None, ("rescale",))
    if any(name in plugins().auditors for name in _listed(samplers)):
        unused = (
            "model",
            "objective",
            "min_repeats",
            "budgets",
            "history",
            "until_proved",
            "no_intervals",
            "batch",
            "workers",
        )
        _refuse_unused(ctx, "samplers of audits", unused)
        labelled = plugins().open_scores(_only(files, "a sampler of audits"))
        with _progress() as report:
            result_of_audits = audits_on(
                labelled,
                _listed(samplers),
                _listed(allocators),
                seeds=seeds,
                rater=rater,
                score_range=score_range,
                judge_range=judge_range,
                prices=prices,
                delta=delta,
                margin=margin,
                epsilon=epsilon,
                max_labels=max_labels,
                progress=report,
            )
        _show(result_of_audits, json_path)
        return
    _refuse_unused(ctx, None, ("prices",))
    _refuse_unused(ctx, None, _OF_AUDITS, "a sampler of audits (evalbudget plugins lists them)")
    asked = _listed(budgets)
    if _is_race(ctx, _listed(samplers), asked):
        _refuse_unused(ctx, "a race", ("model", "objective", "min_repeats"))
        models = plugins().open_scores(_only(files, "a race"))
        with _progress() as report:
            result_of_race = race_on(
                models,
                _listed(samplers) if _is_given(ctx, "samplers") else ["uniform", "race"],
                asked if _is_given(ctx, "budgets") else ["100%"] if until_proved else ["5%", "10%", "20%"],
                seeds=seeds,
                rater=rater,
                score_range=score_range,
                batch=batch if _is_given(ctx, "batch") else None,
                history=history,
                epsilon=epsilon,
                until_proved=until_proved,
                intervals=not no_intervals,
                workers=workers,
                progress=report,
            )
        _show(result_of_race, json_path)
        return
    _refuse_unused(ctx, None, _OF_RACES, "a sampler that races models (evalbudget plugins lists them)")
    from evalbudget.backtest import backtest as run  # numpy and rich tables take their time: not for --help

    names = [plugins().sampler(name) for name in _listed(samplers)]
    recordings = [plugins().open_scores(path) for path in files]
    with _progress() as report:
        result = run(
            recordings,
            samplers=names,
            budgets=_listed(budgets),
            seeds=seeds,
            objective=objective,
            model=model,
            rater=rater,
            min_repeats=min_repeats,
            batch=batch,
            workers=workers,
            progress=report,
        )
    _show(result, json_path)


_OF_RACES = ("history", "score_range", "epsilon", "until_proved", "no_intervals")
_OF_AUDITS = ("allocators", "delta", "margin", "max_labels", "judge_range")
_OF_SAMPLERS = ("samplers", "rater", "objective", "min_repeats", "batch", "workers", *_OF_RACES, *_OF_AUDITS)


def _is_race(ctx: click.Context, samplers: list[str], budgets: list[str]) -> bool:
    """Whether models are raced: some sampler does nothing else, or an option speaks of a race."""
    known = plugins()
    if any(name in known.racers and name not in known.samplers for name in samplers):
        return True
    return any(budget.endswith("%") for budget in budgets) or any(_is_given(ctx, name) for name in _OF_RACES)


def _rotation(
    path: Path,
    rotations: list[str],
    budgets: list[str],
    seeds: int,
    model: str | None,
    prices: str | None,
    rescale: bool,
) -> RotationResult:
    from evalbudget.backtest import backtest_rotation

    classes = [plugins().schedule(name) for name in rotations]
    recorded = plugins().open_scores(path)
    price = None if prices is None else parse_prices(prices, recorded.raters).tolist()
    with _progress() as report:
        return backtest_rotation(
            recorded,
            classes,
            budgets,
            seeds,
            model=model,
            prices=price,
            rescale=rescale,
            progress=report,
        )


def _only(files: tuple[Path, ...], what: str = "--rotation") -> Path:
    if len(files) > 1:
        raise InvalidInputError(f"{what} takes one FILE, not {len(files)}; run it once per file")
    return files[0]


def _is_given(ctx: click.Context, parameter: str) -> bool:
    return ctx.get_parameter_source(parameter) is click.core.ParameterSource.COMMANDLINE


def _refuse_unused(
    ctx: click.Context, switch: str | None, parameters: tuple[str, ...], needs: str = "--rotation"
) -> None:
    """An option that would change nothing is a misunderstanding."""
    for option in ctx.command.params:
        if option.name in parameters and _is_given(ctx, option.name):
            reason = f"has no effect with {switch}; leave it out" if switch else f"needs {needs}"
            raise InvalidInputError(f"{option.opts[0]} {reason}")


def _show(result: BacktestResult | RotationResult | RaceResult | AuditResult, json_path: Path | None) -> None:
    if json_path == Path("-"):
        click.echo(result.to_json())
        return
    Console().print(result.table())
    if json_path is not None:
        write_text(json_path, result.to_json() + "\n")


def _listed(values: tuple[str, ...]) -> list[str]:
    return [part.strip() for value in values for part in value.split(",") if part.strip()]


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr while it is a terminal, and nothing in logs and pipes."""
    with Progress(
        TextColumn("replays"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    ) as progress:
        task = progress.add_task("replays", total=None)

        def report(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        yield report
