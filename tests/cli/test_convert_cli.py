"""evalbudget convert: any recorded scores, as a folder that every command reads."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from evalbudget.backtest import RecordedScores
from evalbudget.cli.main import cli


def test_a_folder_gives_what_its_source_gives(small: RecordedScores, tmp_path: Path) -> None:
    source, folder = tmp_path / "scores.npz", tmp_path / "scores"
    small.save(source)
    done = CliRunner().invoke(cli, ["convert", str(source), str(folder)])
    assert done.exit_code == 0, done.output
    assert "2 models x 12 items x 2 raters" in done.stderr
    told = [CliRunner().invoke(cli, ["report", str(path), "--json", "-"]).stdout for path in (source, folder)]
    assert told[1] == told[0].replace(str(source), str(folder))
    assert '"estimate"' in told[0]


def test_what_is_no_such_folder_is_left_alone(small: RecordedScores, tmp_path: Path) -> None:
    small.save(tmp_path / "scores.npz")
    done = CliRunner().invoke(cli, ["convert", str(tmp_path / "scores.npz"), str(tmp_path)])
    assert done.exit_code == 2
    assert "exists and is no folder of recorded scores; name another folder" in done.output
    assert (tmp_path / "scores.npz").is_file()
