from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.cli.commands import refused, typed
from tests.report.pages import read_site
from tests.report.worlds import panel, recorded

from evalbudget.backtest import RecordedScores

run = typed("report")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "panel.npz"
    recorded(panel()).save(path)
    return path


def test_prints_every_section_and_nothing_else(file: Path) -> None:
    result = run(file)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    titles = ("leaderboard", "against m2 (the leader)", "judges", "where the variance comes from")
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    assert [line for line in lines if line in titles] == list(titles)
    assert max(map(len, lines)) <= 80


def test_json_picture_and_page(file: Path, tmp_path: Path) -> None:
    out = [tmp_path / name for name in ("r.json", "r.PNG", "r.html", "r.svg")]
    result = run(file, "--json", out[0], "--picture", out[1], "--html", out[2], "--against", "m0")
    assert result.exit_code == 0, result.output
    found = json.loads(out[0].read_text())
    assert found["models"] == ["m0", "m1", "m2"]
    assert found["differences"]["against"] == "m0"
    assert {"rank", "estimate", "standard_error", "low", "all_low", "items", "readings", "cost"} <= set(
        found["leaderboard"]["rows"][0]
    )
    assert out[1].read_bytes()[:4] == b"\x89PNG"
    assert out[2].read_text().startswith("<!doctype html>")
    to_stdout = run(file, "--json", "-", "--against", "m0", "--picture", out[3])
    assert json.loads(to_stdout.stdout) == found
    assert "<svg" in out[3].read_text()


def test_a_folder_of_pages(file: Path, tmp_path: Path) -> None:
    for folder in (tmp_path / "report", tmp_path / "v1.2"):
        if folder.suffix:
            folder.mkdir()
        for _ in range(2):  # pages of ours may be written again
            result = run(file, "--html", folder)
            assert result.exit_code == 0, result.output
        files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
        assert {"leaderboard.csv", "models/m0.html", "judges/j3.html"} <= set(files)
        pages = read_site({name: path.read_text(encoding="utf-8") for name, path in files.items()})
        assert len(pages) == 1 + 3 + 4
        assert json.loads(files["report.json"].read_text()) == json.loads(run(file, "--json", "-").stdout)
    index = tmp_path / "mine" / "index.html"
    index.parent.mkdir()
    index.write_text("<p>my site")
    refused(run(file, "--html", index.parent), "holds an index.html that is no report of evalbudget")
    assert index.read_text() == "<p>my site"
    plain = tmp_path / "plain"
    plain.write_text("")
    assert run(file, "--html", plain).exit_code == 0
    assert plain.read_text().startswith("<!doctype html>")
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "models").write_text("")
    late = run(file, "--html", tmp_path / "half")
    assert late.exit_code == 2
    assert "cannot be created" in late.stderr


def test_models_raters_and_several_files(file: Path, tmp_path: Path) -> None:
    rows = json.loads(run(file, "--model", "m0", "--model", "m1", "--rater", "j2", "--json", "-").stdout)
    assert rows["models"] == ["m0", "m1"]
    assert rows["raters"] == ["j2"]
    assert "judges" not in rows
    other = tmp_path / "other.csv"
    lines = [f"new,i{i},j{j},{5 + i % 3}" for i in range(40) for j in range(4)]
    other.write_text("model,item,rater,score\n" + "\n".join(lines))
    both = run(file, other, "--json", "-")
    assert both.exit_code == 0, both.output
    assert json.loads(both.stdout)["models"] == ["m0", "m1", "m2", "new"]
    assert run(file, file).stdout == run(file).stdout


def test_bad_input_exits_with_2(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused(run(tmp_path / "no.npz"), "no.npz does not exist; give a file or folder")
    refused(run(tmp_path), "is not recorded scores that any installed plugin can read")
    refused(run(file, "--model", "n1"), "unknown model 'n1'. Did you mean 'm1'")
    refused(run(file, "--rater", "j9"), "unknown rater 'j9'. Did you mean")
    refused(run(file, "--against", "m"), "unknown model in --against 'm'. Did you mean")
    refused(run(file, "--level", "0"), "level 0 must lie strictly between 0 and 1")
    refused(run(file, "--picture", tmp_path / "x.jpg"), "ends in neither .png nor .svg; rename it")
    refused(run(file, "--picture", tmp_path / "no" / "x.png"), "--picture", "does not exist; create it")
    refused(run(file, "--html", tmp_path / "no" / "x.html"), "--html", "does not exist; create it")
    refused(run(file, "--html", tmp_path / "no" / "folder"), "--html", "does not exist; create it")
    refused(run(file, "--json", tmp_path), "--json", "is a folder; give a file")
    copy = tmp_path / "copy.npz"
    copy.write_bytes(file.read_bytes())
    assert "m0 (copy)" in run(file, copy, "--json", "-").stdout
    assert run().exit_code == 2
    mixed = panel()
    mixed[:, :, 0] *= 10
    recorded(mixed).save(tmp_path / "mixed.npz")
    refused(run(tmp_path / "mixed.npz"), "different scales", "--rater NAME", "--rescale")
    assert run(tmp_path / "mixed.npz", "--rescale").exit_code == 0
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    refused(run(file, "--picture", tmp_path / "x.png"), "matplotlib", "pip install 'evalbudget[report]'")
    assert run(file, "--html", tmp_path / "x.html").exit_code == 0


def test_real_recordings(data_dir: Path) -> None:
    found = json.loads(run(data_dir / "hanna_multijudge.npz", "--json", "-").stdout)
    assert found["leaderboard"]["rows"][0]["model"] == "Human"
    assert found["leaderboard"]["rows"][0]["worst_rank"] == 1
    assert abs(sum(row["bias"] for row in found["judges"]["rows"])) < 1e-9
    assert found["reference"]["rows"][-1]["correlation"] > 0.4
    assert not found["reference"]["other_scale"]
    result = run(data_dir / "cruxeval_models.npz", "--json", "-")
    top, second, *_ = json.loads(result.stdout)["leaderboard"]["rows"]
    scores = RecordedScores.load(data_dir / "cruxeval_models.npz")
    best = scores.scores[:, :, 0, 0].mean(axis=1)
    assert top["model"] == scores.models[int(np.argmax(best))]
    assert (top["best_rank"], top["worst_rank"]) == (1, 2) == (second["best_rank"], second["worst_rank"])
