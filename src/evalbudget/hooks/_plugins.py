"""All plugins of this process: what they bring, by name, and what they read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pluggy

from evalbudget.errors import EvalbudgetError, InvalidInputError, UnknownNameError
from evalbudget.hooks._registry import DISABLE, Registry, called
from evalbudget.sampler import Kind
from evalbudget.secrets import without_known
from evalbudget.shown import shown_logger

if TYPE_CHECKING:
    import click

    from evalbudget.audits.policies import AuditPolicy
    from evalbudget.doctor import Check
    from evalbudget.judges.schedules import JudgeSchedule
    from evalbudget.prices import Price
    from evalbudget.recorded._scores import RecordedScores
    from evalbudget.repeats.estimates import Estimator
    from evalbudget.report._section import Section
    from evalbudget.sampler import Sampler
    from evalbudget.scorer import Scorer

log = shown_logger(__name__)

T = TypeVar("T")

_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+):/+", re.IGNORECASE)
"""How an address begins; a path has lost all slashes but one."""

_PACKED = (".bz2", ".gz", ".xz", ".zst")

_LOGS = {"inspect": ("*.eval",), "lm-eval": ("results_*.json", "samples_*.jsonl")}
"""How hosts name their files, by the extra that brings the plugin."""


def _not_here(path: Path) -> str:
    """Why there are no scores at a path that does not exist."""
    address = _ADDRESS.match(str(path))
    if address is None:
        return f"{path} does not exist; give a file or folder of recorded scores"
    scheme, rest = address[1].lower(), str(path)[address.end() :]
    if scheme == "file":
        return f"file:///{rest} is an address; give the path alone: /{rest}"
    return (
        f"{scheme}://{rest} is an address, and scores are read from files here: copy them to a folder "
        "of this machine, and give its path"
    )


class Plugins(Registry):
    """All plugins of this process."""

    @property
    def samplers(self) -> Mapping[str, type[Sampler]]:
        """Samplers of repeats, by name."""
        return self.samplers_of(Kind.REPEATS)

    @property
    def racers(self) -> Mapping[str, type[Sampler]]:
        """Samplers of models, by name."""
        return self.samplers_of(Kind.MODELS)

    @property
    def auditors(self) -> Mapping[str, type[AuditPolicy]]:
        """Audit policies, by name."""
        return self._table("sampler of audits")

    @property
    def schedules(self) -> Mapping[str, type[JudgeSchedule]]:
        """Judge schedules, by name."""
        return self._table("schedule")

    @property
    def estimators(self) -> Mapping[str, type[Estimator]]:
        """Further estimators, by name."""
        return self._table("estimator")

    @property
    def scorers(self) -> Mapping[str, type[Scorer]]:
        """Scorers, by name."""
        return self._table("scorer")

    @property
    def reports(self) -> Mapping[str, type[Section]]:
        """Sections of reports, by name."""
        return self._table("report")

    @property
    def checks(self) -> Mapping[str, type[Check]]:
        """Checks of scores that are there, by name."""
        return self._table("check")

    def samplers_of(self, kind: Kind) -> Mapping[str, type[Sampler]]:
        """Samplers of a kind, by name."""
        return self._table(called(kind, "sampler"))

    def sampler(self, name: str, kind: Kind | None = None) -> type[Sampler]:
        """The sampler class of that name.

        Args:
            name: as registered; samplers of different kinds may share one.
            kind: what it must spread its budget over; None for repeats or models, in this order.

        Raises:
            UnknownNameError: there is none; suggests the nearest.
            InvalidInputError: it is the name of an audit policy, or of a sampler of a plugin's own kind.
        """
        kinds = (Kind.REPEATS, Kind.MODELS) if kind is None else (kind,)
        sought = [self.samplers_of(each) for each in kinds]
        for table in sought:
            if name in table:
                return table[name]
        if kind is None and name in self.auditors:
            raise InvalidInputError(
                f"{name!r} decides audits, in which a judge scores answers and humans label some: evalbudget "
                "inspect audit or lm-eval audit, or replay recorded labels with evalbudget backtest audits"
            )
        for other in self._kinds:
            if other.told and name in self.samplers_of(other):
                raise InvalidInputError(f"{name!r} {other.told}")
        what = "sampler" if kind is None else f"sampler of {kind.value}"
        known = {known for table in sought for known in table} | (
            set(self.auditors) if kind is None else set()
        )
        raise UnknownNameError(what, name, known)

    def audit_policy(self, name: str) -> type[AuditPolicy]:
        """The audit policy of that name.

        Raises:
            UnknownNameError: there is none; suggests the nearest.
        """
        return _named("sampler of audits", name, self.auditors)

    def question(self, name: str) -> str:
        """What a sampler or an audit policy of that name is for: ``repeats``, ``races`` or ``audits``.

        A name of several is the first of them, and an unknown one ``repeats``.
        """
        if name not in self.samplers:
            if name in self.racers:
                return "races"
            if name in self.auditors:
                return "audits"
        return "repeats"

    def schedule(self, name: str) -> type[JudgeSchedule]:
        """The judge schedule of that name.

        Raises:
            UnknownNameError: there is none; suggests the nearest.
        """
        return _named("rotation", name, self.schedules)

    def estimator(self, name: str) -> type[Estimator]:
        """The further estimator of that name.

        Raises:
            UnknownNameError: there is none; suggests the nearest.
        """
        return _named("estimator", name, self.estimators)

    def scorer(self, name: str) -> type[Scorer]:
        """The scorer of that name.

        Raises:
            UnknownNameError: there is none; suggests the nearest.
        """
        return _named("scorer", name, self.scorers)

    def open_scores(
        self,
        path: Path,
        task: str | None = None,
        *,
        category: str | None = None,
        may_be_empty: bool = False,
    ) -> RecordedScores:
        """Read recorded scores with the first plugin that knows the format.

        Args:
            path: of a file or a folder.
            task: of several in a folder of logs, the one to read.
            category: the field of items that says what they belong to; None for the usual one.
            may_be_empty: every answer may be missing.

        Raises:
            InvalidInputError: the path does not exist, nobody knows its format, the format knows no tasks,
                or there is no score and must be one.
            UnknownNameError: there is no such task.
        """
        if not path.exists():
            raise InvalidInputError(_not_here(path))
        # pluggy calls the last registered first, and the built-in, marked trylast, at the end
        readers = self._manager.hook.evalbudget_open_scores.get_hookimpls()[::-1]
        known = {"path": path, "task": task, "category": category}
        for number, reader in enumerate(readers):
            scores = self._read(reader, known)
            if scores is None:
                continue
            if task is not None and "task" not in reader.argnames:
                raise InvalidInputError(
                    f"{path} is of a format that knows no tasks, so there is no {task!r}; leave --task out"
                )
            if category is not None and "category" not in reader.argnames:
                raise InvalidInputError(
                    f"{path} is of a format that says nothing of {category!r}; leave --cluster out"
                )
            if path.is_dir():
                self._require_one_format(reader, readers[number + 1 :], known)
            scores = _without_keys(scores)
            if not may_be_empty:
                _require_scores(scores, path)
            return scores
        empty = path.is_dir() and not any(path.iterdir())
        what = "is an empty folder" if empty else "is not recorded scores that any installed plugin can read"
        if path.suffix.lower() in _PACKED:
            what = "is packed, and read when it is not: unpack it"
        raise InvalidInputError(
            f"{path} {what}. Known are .npz, .csv, .tsv, .json, .jsonl and .parquet files of recorded "
            "scores, and the logs of the installed host plugins (see: evalbudget "
            f"plugins){self._what_brings(path)}"
        )

    def _what_brings(self, path: Path) -> str:
        """What to install, where the names of files look like those of a host whose plugin is missing."""
        for host, patterns in _LOGS.items():
            if host not in self._found and any(map(path.match, patterns)):
                return f". Logs of {host} are read by its plugin: pip install 'evalbudget[{host}]'"
            if host not in self._found and any(next(path.rglob(each), None) for each in patterns):
                return f". It has logs of {host}, which its plugin reads: pip install 'evalbudget[{host}]'"
        return ""

    def _read(self, reader: pluggy.HookImpl, known: Mapping[str, Any]) -> RecordedScores | None:
        """What a plugin reads; None if it does not know the format."""
        try:
            with self._disables(reader.plugin_name, Exception):
                arguments = [known[name] for name in reader.argnames]
                return _scores_or_none(reader.function(*arguments))
        except EvalbudgetError:
            raise
        except Exception:  # perhaps of this file only; the next one is read again
            log.exception("plugin %r failed to look at %s", reader.plugin_name, known["path"])
        return None

    def _require_one_format(
        self, first: pluggy.HookImpl, others: Iterable[pluggy.HookImpl], known: Mapping[str, Any]
    ) -> None:
        """Refuse a folder of which another plugin would read a part that the first one left out."""
        for other in others:
            try:
                more = self._read(other, known) is not None
            except UnknownNameError:  # its logs are of other tasks than the one that is asked for
                continue
            except EvalbudgetError:
                more = True
            if more:
                raise InvalidInputError(
                    f"{known['path']} holds logs of several formats, which the plugins {first.plugin_name} "
                    f"and {other.plugin_name} read; give each its own folder, or name the files one by one"
                )

    def price_of(self, model: str) -> Price | None:
        """What a plugin knows of the price of a model; None if none does."""
        for knows in self._manager.hook.evalbudget_price_of.get_hookimpls()[::-1]:
            with self._disables(knows.plugin_name, EvalbudgetError):
                price = cast("Price | None", knows.function(*(model for _ in knows.argnames)))
                if price is not None:
                    return price
        return None

    def add_commands(self, group: click.Group, name: str = "") -> None:
        """Let every plugin add its commands; one that fails is reported, the rest go on.

        Args:
            group: to add them to.
            name: of the group; empty for that of ``evalbudget`` itself.
        """
        hook = "evalbudget_add_commands_to" if name else "evalbudget_add_commands"
        for plugin_name, plugin in self._manager.list_name_plugin():
            with self._disables(plugin_name):
                implementation = getattr(plugin, hook, None)
                if implementation is not None:
                    implementation(*((name, group) if name else (group,)))


def _require_scores(scores: RecordedScores, path: Path) -> None:
    from evalbudget.recorded._missing import require_scores  # numpy takes longer to import than options do

    require_scores(scores, path)


def _without_keys(scores: RecordedScores) -> RecordedScores:
    """Keys in what a source calls and says are masked: all that reads scores shows and writes them."""
    names = (scores.models, scores.items, scores.raters, scores.categories, scores.texts)
    parts = map(repr, (*names, scores.task, scores.declared, scores.race))  # one at a time: items may be many
    is_clean = all(without_known(said) == said for said in parts)
    return scores if is_clean else cast("RecordedScores", without_known(scores))


def _named(what: str, name: str, table: Mapping[str, T]) -> T:
    if name not in table:
        raise UnknownNameError(what, name, table)
    return table[name]


@cache
def plugins() -> Plugins:
    """The plugins installed in this environment, loaded once."""
    return Plugins(disabled=os.environ.get(DISABLE, ""))


def _scores_or_none(found: Any) -> RecordedScores | None:
    from evalbudget.recorded._scores import RecordedScores  # takes long to import

    if found is None or isinstance(found, RecordedScores):
        return found
    raise TypeError(f"evalbudget_open_scores returned {type(found).__name__}, and not RecordedScores or None")
