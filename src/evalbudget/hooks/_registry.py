"""Finds plugins, and keeps what they bring; a broken one does not take down the rest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from importlib.metadata import Distribution, EntryPoint, distributions
from typing import Any, Protocol

import pluggy

from evalbudget._third_party import third_party
from evalbudget._version import __version__
from evalbudget.errors import InvalidInputError, PluginError, did_you_mean
from evalbudget.hooks import _hookspecs as hookspecs
from evalbudget.sampler import Kind
from evalbudget.secrets import without_known
from evalbudget.shown import shown_logger

log = shown_logger(__name__)

BUILTIN = "evalbudget.builtin"
"""Loaded by name, as any plugin is."""

DISABLE = "EVALBUDGET_DISABLE_PLUGINS"
"""Environment variable: a comma-separated list of names; ``1`` and the like disable all but the built-ins."""

_ALL = ("1", "true", "yes", "all")
"""What disables all but the built-ins, in large or small letters."""


class _Named(Protocol):
    name: str


@dataclass(frozen=True, slots=True)
class PluginInfo:
    """One plugin found, loaded or not.

    Attributes:
        name: of the entry point.
        distribution: the package that brought it.
        version: of the package.
        module: what the entry point names.
        provides: names of everything it registered, by kind.
        error: why it is not in use; None if it is.
        disabled: switched off by the environment variable.
    """

    name: str
    distribution: str
    version: str
    module: str
    provides: dict[str, tuple[str, ...]] = field(default_factory=dict)
    error: str | None = None
    disabled: bool = False


class Registry:
    """All plugins that are found, and the classes that those in use bring.

    Args:
        entry_points: (distribution, entry point) pairs to load; None to look at what is installed.
        disabled: names to leave out, with commas between them; ``1``, ``true``, ``yes`` or ``all`` leaves out
            all but the built-ins. A name that no plugin has is said.
    """

    def __init__(
        self,
        entry_points: Iterable[tuple[Distribution, EntryPoint]] | None = None,
        *,
        disabled: str = "",
    ) -> None:
        self._manager = pluggy.PluginManager(hookspecs.PROJECT)
        self._manager.add_hookspecs(hookspecs)
        self._found: dict[str, PluginInfo] = {}
        self._owner: dict[tuple[str, str], str] = {}
        self._kinds: dict[Kind, None] = {}  # in the order in which plugins brought them
        self._tables: dict[str, dict[str, Any]] = defaultdict(dict)
        self._unasked: list[tuple[PluginInfo, object]] = []  # plugins that have not said yet what they bring
        self._add(PluginInfo("builtin", "evalbudget", __version__, BUILTIN), lambda: import_module(BUILTIN))
        off = {part.strip() for part in disabled.split(",") if part.strip()}
        names = {name for name in off if name.casefold() not in _ALL}
        found = _installed() if entry_points is None else entry_points
        for distribution, entry_point in found:
            info = PluginInfo(entry_point.name, distribution.name, distribution.version, entry_point.value)
            if names != off or entry_point.name in names:
                self._found[info.name] = replace(info, disabled=True)
            else:
                self._add(info, entry_point.load)
        installed = self._found.keys() - {"builtin"}
        for name in sorted(names - installed):
            hint = did_you_mean(name, installed)
            log.warning("%s: no plugin %r is installed that could be left out.%s", DISABLE, name, hint)

    @property
    def found(self) -> tuple[PluginInfo, ...]:
        """Every plugin, in use or not."""
        self._collect()
        return tuple(self._found.values())

    def _add(self, info: PluginInfo, load: Callable[[], object]) -> None:
        if info.name in self._found:
            other = self._found[info.name]
            raise PluginError(
                f"two distributions bring a plugin named {info.name!r}: {other.distribution} and "
                f"{info.distribution}. Uninstall one, or set {DISABLE}={info.name}"
            )
        self._found[info.name] = info
        with self._disables(info.name):
            plugin = load()
            self._manager.register(plugin, name=info.name)
            self._manager.check_pending()
            self._unasked.append((info, plugin))

    def _table(self, what: str) -> dict[str, Any]:
        self._collect()
        return self._tables[what]

    def _collect(self) -> None:
        """Ask every plugin what it brings: when a name is looked up, since classes take long to import."""
        while self._unasked:
            info, plugin = self._unasked.pop(0)
            try:
                with self._disables(info.name, PluginError):
                    provides = {
                        **self._register_samplers(info, plugin),
                        "samplers of audits": self._register(info, plugin, "audits", "sampler of audits"),
                        "schedules": self._register(info, plugin, "schedules", "schedule"),
                        "estimators": self._register(info, plugin, "estimators", "estimator"),
                        "scorers": self._register(info, plugin, "scorers", "scorer"),
                        "reports": self._register(info, plugin, "reports", "report"),
                        "checks": self._register(info, plugin, "checks", "check"),
                    }
                    provides = {kind: names for kind, names in provides.items() if names}
                    self._found[info.name] = replace(info, provides=provides)
            except PluginError:
                self._unasked.insert(0, (info, plugin))  # whoever asks again is told again
                raise

    def _register_samplers(self, info: PluginInfo, plugin: object) -> dict[str, tuple[str, ...]]:
        by_kind: defaultdict[Kind, list[_Named]] = defaultdict(list)
        for cls in self._classes(plugin, "samplers"):
            kind = getattr(cls, "kind", Kind.REPEATS)
            if not isinstance(kind, Kind):
                raise InvalidInputError(
                    f"the kind of sampler {cls.name!r} is {kind!r}; give an evalbudget.sampler.Kind"
                )
            by_kind[kind].append(cls)
        self._kinds |= dict.fromkeys(by_kind)
        return {
            called(kind, "samplers"): self._enter(info, classes, called(kind, "sampler"))
            for kind, classes in by_kind.items()
        }

    def _register(self, info: PluginInfo, plugin: object, kind: str, what: str) -> tuple[str, ...]:
        return self._enter(info, self._classes(plugin, kind), what)

    def _classes(self, plugin: object, kind: str) -> Sequence[_Named]:
        implementation = getattr(plugin, f"evalbudget_register_{kind}", None)
        if implementation is None:
            return ()
        classes: Sequence[_Named] = implementation()
        for cls in classes:
            name = getattr(cls, "name", None)
            if not isinstance(cls, type) or not isinstance(name, str) or not name:
                raise InvalidInputError(
                    f"evalbudget_register_{kind} must return classes with a name; got {cls!r}"
                )
        return classes

    def _enter(self, info: PluginInfo, classes: Sequence[_Named], what: str) -> tuple[str, ...]:
        table = self._tables[what]
        for cls in classes:
            if cls.name in table:
                first = self._found[self._owner[what, cls.name]]
                raise PluginError(
                    f"{what} {cls.name!r} is registered twice: by {first.distribution} and by "
                    f"{info.distribution}. Uninstall one, or set {DISABLE}={info.name}"
                )
            table[cls.name] = cls
            self._owner[what, cls.name] = info.name
        return tuple(cls.name for cls in classes)

    def _disables(self, name: str, *passes: type[BaseException]) -> AbstractContextManager[None]:
        """Within this block a plugin runs; whatever it raises disables it, and does not end the command."""
        return third_party(partial(self._disable, name), *passes)

    def _disable(self, name: str, reason: str) -> None:
        reason = str(without_known(reason))
        self._unasked = [(info, plugin) for info, plugin in self._unasked if info.name != name]
        if self._manager.has_plugin(name):
            self._manager.unregister(name=name)
        for what, brought in [key for key, owner in self._owner.items() if owner == name]:
            del self._tables[what][brought], self._owner[what, brought]
        self._found[name] = replace(self._found[name], error=reason, provides={})
        log.warning(
            "plugin %r is left out: %s. To leave it out from now on: %s=%s", name, reason, DISABLE, name
        )


def called(kind: Kind, noun: str) -> str:
    """What samplers of a kind are called, in messages and tables."""
    return noun if kind == Kind.REPEATS else f"{noun} of {kind.value}"


def _installed() -> list[tuple[Distribution, EntryPoint]]:
    found: dict[tuple[str, str, str], tuple[Distribution, EntryPoint]] = {}
    for distribution in distributions():
        for entry_point in distribution.entry_points:
            if entry_point.group == hookspecs.PROJECT:
                # one distribution can be found twice when its folder is on the path twice
                found.setdefault(
                    (distribution.name, entry_point.name, entry_point.value), (distribution, entry_point)
                )
    return [found[key] for key in sorted(found)]
