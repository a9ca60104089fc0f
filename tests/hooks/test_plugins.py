from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import click
import pytest

from evalbudget import hookimpl
from evalbudget.audits.policies import AuditEProcess
from evalbudget.backtest import RecordedScores
from evalbudget.cli import PluginsGroup
from evalbudget.errors import InvalidInputError, PluginError, UnknownNameError
from evalbudget.hooks._plugins import DISABLE, Plugins, plugins
from evalbudget.races.samplers import UCBE, UniformRacing
from evalbudget.repeats.samplers import Uniform
from evalbudget.report import SECTIONS, Section
from evalbudget.sampler import Kind

BUILT_IN = {"auto", "uniform", "robin", "robin-hood", "eb-bernstein", "rating-kernel", "sample"}

Found = tuple[Any, EntryPoint]
Install = Callable[..., Found]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Pretend that a distribution with a plugin of these functions is installed."""

    def install(name: str, *, distribution: str | None = None, **functions: Any) -> Found:
        module = ModuleType(f"fake_{name}_{distribution}")
        for attribute, value in functions.items():
            setattr(module, attribute, value)
        monkeypatch.setitem(__import__("sys").modules, module.__name__, module)
        package = SimpleNamespace(name=distribution or f"dist-{name}", version="1.2")
        return package, EntryPoint(name, module.__name__, "evalbudget")

    return install


def registers(*classes: object) -> Callable[[], list[object]]:
    @hookimpl
    def evalbudget_register_samplers() -> list[object]:
        return list(classes)

    return evalbudget_register_samplers


def sampler(name: str) -> type[Uniform]:
    return type("Mine", (Uniform,), {"name": name})


def error(found: Plugins, name: str) -> str:
    (info,) = [info for info in found.found if info.name == name]
    return info.error or ""


def test_built_ins_register_through_the_same_hooks() -> None:
    found = Plugins([])
    assert set(found.samplers) == BUILT_IN
    assert [info.name for info in found.found] == ["builtin"]
    assert set(found.found[0].provides["samplers"]) == BUILT_IN
    assert set(found.found[0].provides["samplers of models"]) == set(found.racers)


def test_reports_register_through_the_hook(install: Install) -> None:
    class Mine(Section):
        name = "mine"

    @hookimpl
    def evalbudget_register_reports() -> list[type[Section]]:
        return [Mine]

    found = Plugins([install("mine", evalbudget_register_reports=evalbudget_register_reports)])
    ours = ["leaderboard", "differences", *(cls.name for cls in SECTIONS[1:])]
    assert list(found.reports) == [*ours, "mine"]
    assert found.found[0].provides["reports"] == tuple(ours)
    assert found.found[1].provides == {"reports": ("mine",)}


def test_a_plugin_is_found_and_described(install: Install) -> None:
    mine = sampler("mine")
    found = Plugins([install("good", evalbudget_register_samplers=registers(mine))])
    assert found.sampler("mine") is mine
    info = found.found[-1]
    assert (info.name, info.distribution, info.version) == ("good", "dist-good", "1.2")
    assert (info.provides, info.error, info.disabled) == ({"samplers": ("mine",)}, None, False)


@hookimpl
def evalbudget_register_sampler() -> list[object]:
    """A hook that does not exist."""
    return []


@hookimpl
def _raises() -> list[object]:
    raise RuntimeError("boom")


@hookimpl
def _wrong_argument(file: object) -> None:
    """evalbudget_open_scores has ``path``."""


@pytest.mark.parametrize(
    ("functions", "complaint"),
    [
        ({"evalbudget_register_samplers": registers(object)}, "must return classes with a name"),
        ({"evalbudget_register_samplers": registers(sampler("x"), Uniform)}, None),
        (
            {"evalbudget_register_samplers": registers("uniform")},
            "must return classes with a name; got 'uniform'",
        ),
        ({"evalbudget_register_samplers": registers(sampler(""))}, "must return classes with a name"),
        (
            {
                "evalbudget_register_samplers": registers(
                    type("Odd", (Uniform,), {"name": "x", "kind": "models"})
                )
            },
            "the kind of sampler 'x' is 'models'; give an evalbudget.sampler.Kind",
        ),
        ({"evalbudget_register_samplers": _raises}, "RuntimeError: boom"),
        (
            {"evalbudget_register_sampler": evalbudget_register_sampler},
            "unknown hook 'evalbudget_register_sampler'",
        ),
        ({"evalbudget_open_scores": _wrong_argument}, "file"),
    ],
)
def test_a_broken_plugin_does_not_take_down_the_rest(
    install: Install, functions: dict[str, Any], complaint: str | None
) -> None:
    entry_points = [
        install("broken", **functions),
        install("good", evalbudget_register_samplers=registers(sampler("mine"))),
    ]
    if complaint is None:  # a second sampler of one name is no accident of one plugin
        with pytest.raises(PluginError, match="'uniform' is registered twice"):
            Plugins(entry_points).sampler("uniform")
        return
    found = Plugins(entry_points)
    assert complaint in error(found, "broken")
    assert error(found, "good") == ""
    assert set(found.samplers) == {*BUILT_IN, "mine"}


def test_a_plugin_that_cannot_be_imported_is_reported(install: Install) -> None:
    absent: Found = (
        SimpleNamespace(name="dist-absent", version="3"),
        EntryPoint("absent", "no_such_module_x", "evalbudget"),
    )
    found = Plugins([absent, install("good", evalbudget_register_samplers=registers(sampler("mine")))])
    assert "ModuleNotFoundError: No module named 'no_such_module_x'" in error(found, "absent")
    assert "mine" in found.samplers


def test_an_instance_is_not_a_class(install: Install) -> None:
    running = SimpleNamespace(name="running")
    found = Plugins([install("broken", evalbudget_register_samplers=registers(running))])
    assert "must return classes" in error(found, "broken")


def test_duplicate_sampler_names_raise_naming_both_distributions(install: Install) -> None:
    entry_points = [
        install(name, evalbudget_register_samplers=registers(sampler("mine"))) for name in ("first", "second")
    ]
    with pytest.raises(
        PluginError, match="'mine' is registered twice: by dist-first and by dist-second"
    ) as raised:
        Plugins(entry_points).sampler("mine")
    assert f"{DISABLE}=second" in str(raised.value)
    assert "mine" in Plugins(entry_points, disabled="second").samplers


def test_duplicate_plugin_names_raise_naming_both_distributions(install: Install) -> None:
    entry_points = [install("same", distribution=d) for d in ("one", "two")]
    with pytest.raises(PluginError, match="named 'same': one and two"):
        Plugins(entry_points)
    assert all(info.disabled for info in Plugins(entry_points, disabled="same").found[1:])


@pytest.mark.parametrize(
    ("disabled", "left"),
    [
        ("1", set()),
        ("true", set()),
        ("YES", set()),
        ("a,All", set()),
        ("a", {"b"}),
        (" a , b ", set()),
        ("", {"a", "b"}),
    ],
)
def test_plugins_can_be_disabled(install: Install, disabled: str, left: set[str]) -> None:
    entry_points = [install(n, evalbudget_register_samplers=registers(sampler(n))) for n in ("a", "b")]
    found = Plugins(entry_points, disabled=disabled)
    assert set(found.samplers) == BUILT_IN | left
    assert {info.name for info in found.found if info.disabled} == {"a", "b"} - left


@pytest.mark.parametrize(
    ("disabled", "hint"),
    [
        ("exmaple", "Did you mean 'example'?"),
        ("false", "Available: example."),
        ("builtin", "Available: example."),
    ],
)
def test_a_name_to_leave_out_that_no_plugin_has_is_said(
    install: Install, caplog: pytest.LogCaptureFixture, disabled: str, hint: str
) -> None:
    found = Plugins(
        [install("example", evalbudget_register_samplers=registers(sampler("a")))], disabled=disabled
    )
    assert "a" in found.samplers
    (told,) = caplog.messages
    assert told == f"{DISABLE}: no plugin {disabled!r} is installed that could be left out. {hint}"


def test_the_environment_variable_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DISABLE, "1")
    plugins.cache_clear()
    try:
        assert set(plugins().samplers) == BUILT_IN
    finally:
        plugins.cache_clear()


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("unifrom", "Did you mean 'uniform'?"),
        ("EB_Bernstein", "Did you mean 'eb-bernstein'?"),
        ("zzz", "Available: audit-eprocess"),
    ],
)
def test_unknown_names_get_a_hint(name: str, hint: str) -> None:
    with pytest.raises(UnknownNameError) as raised:
        plugins().sampler(name)
    assert str(raised.value).startswith(f"unknown sampler {name!r}. {hint}")


def test_a_name_and_a_kind_identify_a_sampler() -> None:
    assert plugins().sampler("uniform") is plugins().sampler("uniform", Kind.REPEATS) is Uniform
    assert plugins().sampler("uniform", Kind.MODELS) is UniformRacing
    assert plugins().sampler("ucb-e") is plugins().sampler("ucb-e", Kind.MODELS) is UCBE
    with pytest.raises(UnknownNameError, match="unknown sampler of models 'eb-bernstein'"):
        plugins().sampler("eb-bernstein", Kind.MODELS)
    with pytest.raises(UnknownNameError, match="unknown sampler of repeats 'ucb-e'"):
        plugins().sampler("ucb-e", Kind.REPEATS)


def test_one_name_may_be_registered_once_per_kind(install: Install) -> None:
    of_models = type("OfModels", (UniformRacing,), {"name": "mine"})
    both = install("good", evalbudget_register_samplers=registers(sampler("mine"), of_models))
    found = Plugins([both])
    assert found.sampler("mine", Kind.MODELS) is of_models
    assert found.found[-1].provides == {"samplers": ("mine",), "samplers of models": ("mine",)}
    with pytest.raises(PluginError, match="sampler of models 'mine' is registered twice"):
        Plugins([both, install("again", evalbudget_register_samplers=registers(of_models))]).sampler("mine")


def test_samplers_may_be_of_a_kind_that_only_a_plugin_knows(install: Install) -> None:
    prompts = Kind("prompts", "decides which prompt is tried next: my-tool tune")
    of_prompts = type("OfPrompts", (Uniform,), {"name": "climb", "kind": prompts})
    found = Plugins([install("tuner", evalbudget_register_samplers=registers(sampler("mine"), of_prompts))])
    assert found.found[-1].provides == {"samplers": ("mine",), "samplers of prompts": ("climb",)}
    assert found.samplers_of(prompts) == {"climb": of_prompts}
    assert found.sampler("climb", prompts) is of_prompts
    assert "climb" not in found.samplers
    for kind in (None, Kind.REPEATS, Kind.MODELS):
        with pytest.raises(
            InvalidInputError, match="'climb' decides which prompt is tried next: my-tool tune"
        ):
            found.sampler("climb", kind)
    with pytest.raises(UnknownNameError, match=r"unknown sampler of prompts 'clim'\. Did you mean 'climb'"):
        found.sampler("clim", prompts)


def test_audit_policies_register_through_a_hook_of_their_own(install: Install) -> None:
    class Mine(AuditEProcess):
        name = "uniform"  # a sampler may have the same name

    @hookimpl
    def evalbudget_register_audits() -> list[object]:
        return [Mine]

    mine = install("mine", evalbudget_register_audits=evalbudget_register_audits)
    found = Plugins([mine])
    assert found.found[0].provides["samplers of audits"] == ("audit-eprocess", "pp-lucb", "human-only")
    assert found.found[1].provides == {"samplers of audits": ("uniform",)}
    assert found.audit_policy("uniform") is Mine
    assert found.sampler("uniform") is Uniform
    with pytest.raises(PluginError, match="sampler of audits 'uniform' is registered twice"):
        Plugins([mine, install("again", evalbudget_register_audits=evalbudget_register_audits)]).audit_policy(
            "x"
        )
    with pytest.raises(UnknownNameError, match=r"sampler of audits 'human'\. Did you mean 'human-only'"):
        plugins().audit_policy("human")
    assert plugins().audit_policy("audit-eprocess") is AuditEProcess
    with pytest.raises(InvalidInputError, match=r"'pp-lucb' decides audits.*inspect audit"):
        plugins().sampler("pp-lucb")


def test_commands_of_other_plugins_survive_one_that_fails(install: Install) -> None:
    @hookimpl
    def adds(cli: click.Group) -> None:
        cli.add_command(click.Command("hello"))

    @hookimpl
    def fails(cli: click.Group) -> None:
        raise RuntimeError("boom")

    found = Plugins(
        [install("bad", evalbudget_add_commands=fails), install("good", evalbudget_add_commands=adds)]
    )
    group = click.Group()
    found.add_commands(group)
    assert set(group.commands) == {"hello"}
    assert error(found, "bad") == "RuntimeError: boom"


def test_plugins_add_commands_to_those_of_a_group(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    @hookimpl
    def adds(name: str, group: click.Group) -> None:
        asked.append(name)
        if name == "audit":
            group.add_command(click.Command("hello"))

    @hookimpl
    def fails(name: str, group: click.Group) -> None:
        raise RuntimeError("boom")

    found = Plugins(
        [
            install("bad", evalbudget_add_commands_to=fails),
            install("good", evalbudget_add_commands_to=adds),
        ]
    )
    monkeypatch.setattr("evalbudget.cli._groups.plugins", lambda: found)
    groups = {name: type("Mine", (PluginsGroup,), {"known_as": name})(name) for name in ("audit", "lm-eval")}
    context = click.Context(groups["audit"])
    assert groups["audit"].get_command(context, "hello") is not None
    assert groups["audit"].list_commands(context) == ["hello"]
    assert groups["lm-eval"].list_commands(context) == []
    assert asked == ["audit", "lm-eval"]
    assert error(found, "bad") == "RuntimeError: boom"


def test_a_reader_that_breaks_leaves_the_others_working(tmp_path: Path) -> None:
    class Broken:
        @hookimpl
        def evalbudget_open_scores(self, path: Path) -> None:
            raise KeyError("my bug")

    found = Plugins([])
    found._manager.register(Broken(), name="broken")
    file = tmp_path / "scores.csv"
    file.write_text("item,score\na,1\nb,2\n")
    assert found.open_scores(file).items == ("a", "b")


def _reader(suffix: str, *, damaged: bool = False, task: str | None = None) -> Any:
    """A hook that reads folders with files of that suffix."""

    @hookimpl
    def evalbudget_open_scores(path: Path, task: str | None) -> RecordedScores | None:
        if not list(path.glob(f"*{suffix}")):
            return None
        if damaged:
            raise InvalidInputError(f"{path} is damaged")
        if task not in (None, known):
            raise UnknownNameError("task", str(task), [known])
        return RecordedScores.from_readings(["x"], [1.0])

    known = task or "quiz"
    return evalbudget_open_scores


def test_a_folder_of_two_formats_is_not_read_in_part(install: Install, tmp_path: Path) -> None:
    for name in ("a.one", "b.two"):
        (tmp_path / name).write_text("")
    one = install("one", evalbudget_open_scores=_reader(".one"))
    for damaged in (False, True):
        two = install("two", evalbudget_open_scores=_reader(".two", damaged=damaged))
        with pytest.raises(InvalidInputError, match="logs of several formats, which the plugins one and two"):
            Plugins([two, one]).open_scores(tmp_path)
    other = install("other", evalbudget_open_scores=_reader(".two", task="essays"))
    assert Plugins([other, one]).open_scores(tmp_path, "quiz").items == ("x",)
    (tmp_path / "b.two").unlink()
    assert Plugins([two, one]).open_scores(tmp_path).items == ("x",)
