"""What is published: wheels that hold what the source holds, and work where they are installed."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Mapping
from email.parser import HeaderParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[2]
PLUGINS = tuple(f"evalbudget-{name}" for name in ("inspect", "lm-eval", "pairwise", "labelling", "example"))
FOLDERS = {"evalbudget": ROOT, **{name: ROOT / "plugins" / name for name in PLUGINS}}
WORKFLOWS = ROOT / ".github" / "workflows"


def project(name: str) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((FOLDERS[name] / "pyproject.toml").read_text())["project"]
    return found


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Each built from its source distribution, as by whoever has no wheel."""
    backend = pytest.importorskip("hatchling.build")
    here = tmp_path_factory.mktemp("dist")
    safely: Any = (
        {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    )  # Python 3.11.4, and distributions'
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        for name, folder in FOLDERS.items():
            patch.chdir(folder)
            with tarfile.open(here / backend.build_sdist(str(here))) as archive:
                archive.extractall(here / "unpacked", **safely)
            patch.chdir(here / "unpacked" / f"{name.replace('-', '_')}-{project(name)['version']}")
            found[name] = here / backend.build_wheel(str(here))
    return found


def files_of(name: str, *of: str) -> set[str]:
    """What is kept in a package's folder, below these paths of it."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *of],
        cwd=FOLDERS[name], capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {line for line in listed.stdout.splitlines() if (FOLDERS[name] / line).is_file()}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_source_distribution_holds_its_own_package_alone(wheels: Mapping[str, Path], name: str) -> None:
    version = project(name)["version"]
    (path,) = wheels[name].parent.glob(f"{name.replace('-', '_')}-{version}.tar.gz")
    with tarfile.open(path) as archive:
        theirs = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    published = ["src", "README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml"]
    ours = files_of(name, *(published if name == "evalbudget" else ["."]))
    assert theirs == {*ours, "PKG-INFO", ".gitignore"}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_wheel_holds_what_the_source_holds(wheels: Mapping[str, Path], name: str) -> None:
    ours = {line.removeprefix("src/") for line in files_of(name, "src")}
    with zipfile.ZipFile(wheels[name]) as wheel:
        theirs = {file for file in wheel.namelist() if ".dist-info/" not in file}
        info = {Path(file).name for file in wheel.namelist() if ".dist-info/" in file}
        (metadata,) = (file for file in wheel.namelist() if file.endswith(".dist-info/METADATA"))
        told = HeaderParser().parsestr(wheel.read(metadata).decode())
    assert theirs == ours
    assert {"LICENSE", "METADATA"} <= info
    assert told["License-Expression"] == "MIT"
    assert told["Description-Content-Type"] == "text/markdown"
    assert told["Requires-Python"] == ">=3.11"
    assert "Typing :: Typed" in told.get_all("Classifier", [])


def test_the_package_index_would_take_them(wheels: Mapping[str, Path]) -> None:
    if find_spec("twine") is None:
        pytest.skip("twine is not installed; the dev group has it")
    folder = next(iter(wheels.values())).parent
    files = sorted(map(str, [*folder.glob("*.whl"), *folder.glob("*.tar.gz")]))
    assert len(files) == 2 * len(FOLDERS)
    done = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *files],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == len(files)


def test_what_is_installed_from_the_wheels_works(wheels: Mapping[str, Path], tmp_path: Path) -> None:
    options = ["--quiet", "--no-deps", "--no-index", "--disable-pip-version-check", "--target", str(tmp_path)]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, *map(str, wheels.values())],
        check=True,
        timeout=120,
    )
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1))\n"
        "import evalbudget, evalbudget_inspect, evalbudget_lm_eval, evalbudget_example\n"
        "import evalbudget_labelling, evalbudget_pairwise\n"
        "from evalbudget.frames import Scores\n"
        "print(evalbudget.__file__, evalbudget_inspect.__file__)\n"
        "from evalbudget.cli.main import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), "plugins"],
        cwd=tmp_path, env={"PATH": "", "PYTHONPATH": str(tmp_path), "COLUMNS": "200"}, capture_output=True,
        text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(str(tmp_path)) >= 2
    assert all(plugin in done.stdout for plugin in PLUGINS)


def test_versions_and_licences_are_the_same_everywhere() -> None:
    version = project("evalbudget")["version"]
    assert {project(name)["version"] for name in FOLDERS} == {version}
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == version
    assert len({(folder / "LICENSE").read_text() for folder in FOLDERS.values()}) == 1
    for extra, needs in project("evalbudget")["optional-dependencies"].items():
        for need in needs:
            assert not need.startswith("evalbudget-") or need.endswith(f"=={version}"), extra


def test_workflows_run_what_there_is() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    found = {path.name: yaml.safe_load(path.read_text()) for path in WORKFLOWS.glob("*.yml")}
    assert set(found) == {"ci.yml", "release.yml"}
    jobs = [job for workflow in found.values() for job in workflow["jobs"].values()]
    commands = [step["run"] for job in jobs for step in job["steps"] if "run" in step]
    (ours,) = (command.split()[0] for command in commands if command.startswith(".ci/"))
    commands += (ROOT / ours).read_text().splitlines()
    made = {command.split()[1] for command in commands if command.startswith("make ")}
    assert made == {"docs", "test", "floors", "next", "audit-dependencies"}
    assert made <= targets
    pythons = found["ci.yml"]["jobs"]["test"]["strategy"]["matrix"]["python"]
    told = [text for text in project("evalbudget")["classifiers"] if re.search(r":: 3\.\d", text)]
    assert [text.rpartition(" ")[2] for text in told] == pythons
    (built,) = (command for command in commands if "-m build" in command)
    for folder in FOLDERS.values():
        assert str(folder.relative_to(ROOT)) in built.split("; do")[0].split()
    (tag,) = (command for command in commands if 'GITHUB_REF_NAME" =' in command)
    for name, code in ((f"v{project('evalbudget')['version']}", 0), ("v9.9.9", 1)):
        done = subprocess.run(
            ["bash", "-c", tag], cwd=ROOT, env={"GITHUB_REF_NAME": name, "PATH": "/usr/bin:/bin"}
        )
        assert done.returncode == code
    assert found["release.yml"]["jobs"]["publish"]["permissions"] == {"id-token": "write"}


def test_the_guide_for_agents_leads_somewhere() -> None:
    text = (ROOT / "llms.txt").read_text(encoding="utf-8")
    assert text.startswith("# evalbudget\n\n> ")
    links = re.findall(r"^- \[[^\]]+\]\(([^)]+)\)", text, flags=re.MULTILINE)
    assert len(links) > 12
    assert all((ROOT / link).is_file() for link in links)
    guides = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert guides <= {Path(link).name for link in links}, "name every guide"
