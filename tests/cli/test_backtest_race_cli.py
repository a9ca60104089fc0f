"""``evalbudget backtest`` with samplers that race models."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.cli.commands import typed

from evalbudget.backtest import Declared, RecordedScores

invoke = typed("backtest", "races")


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EVALBUDGET_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    scores = (rng.random((5, 60, 1, 1)) < np.linspace(0.3, 0.8, 5)[:, None, None, None]).astype(np.float32)
    names = tuple(f"m{i}" for i in range(5)), tuple(f"i{i}" for i in range(60)), ("exact",)
    RecordedScores(scores, *names).save(tmp_path / "models.npz")
    return tmp_path / "models.npz"


def test_a_racing_sampler_races(models: Path) -> None:
    result = invoke(models, "--sampler", "uniform,ucb-e", "--budget", "20%,50%", "--batch", 4, "--seeds", 3)
    assert result.exit_code == 0, result.output
    assert "p(best)" in result.output
    assert "5 models x 60 items, 3 seeds" in result.output
    assert max(map(len, result.output.splitlines())) <= 80


def test_a_share_of_the_grid(models: Path) -> None:
    result = invoke(models, "--sampler", "uniform", "--budget", "20%", "--seeds", 2, "--json", "-")
    (row,) = json.loads(result.output)
    assert (row["sampler"], row["budget"], row["evaluations"]) == ("uniform", 60, 60)


def test_until_proved(models: Path) -> None:
    options = ("--sampler", "uniform,race,paired-eprocess", "--until-proved", "--seeds", 4, "--no-intervals")
    rows = {row["sampler"]: row for row in json.loads(invoke(models, *options, "--json", "-").output)}
    assert {row["budget"] for row in rows.values()} == {300}
    assert rows["uniform"]["evaluations"] == 300  # knows no proof: there to compare with
    fewest = rows["paired-eprocess"]["evaluations"]  # in more rounds
    assert fewest <= rows["race"]["evaluations"] <= min(1.2 * fewest, 250)
    assert rows["race"]["p_best"] == 1.0


def test_history(models: Path, tmp_path: Path) -> None:
    recorded = RecordedScores.load(models)
    earlier = tuple(f"old {i}" for i in range(5))
    RecordedScores(recorded.scores, earlier, recorded.items, recorded.raters).save(tmp_path / "earlier.npz")
    options = ("--sampler", "pulse", "--budget", "50%", "--batch", 4, "--seeds", 2, "--no-intervals")
    result = invoke(models, *options, "--history", tmp_path / "earlier.npz")
    assert result.exit_code == 0, result.output
    assert "History has 60 of the 60 items" in " ".join(result.output.split())
    np.savez(tmp_path / "factors.npz", V=np.ones((60, 1)), items=np.array(recorded.items))
    assert invoke(models, *options, "--history", tmp_path / "factors.npz").exit_code == 0


def test_a_race_of_errors_is_that_of_their_opposites(models: Path, tmp_path: Path) -> None:
    """Also where the tables use other parts of their range, and only one of them says which way is better."""
    right = RecordedScores.load(models)
    right = replace(right, scores=0.5 + right.scores / 4.0)
    old = replace(right, scores=right.scores[::-1] - 0.4, models=tuple(f"old {i}" for i in range(5)))
    options = ("--sampler", "pulse,race", "--budget", "30%", "--batch", 4, "--seeds", 2, "--json", "-")

    def raced(name: str, said: str) -> list[dict[str, object]]:
        for kind, scores in (("new", right), ("old", old)):
            turned = 1.0 - scores.scores if name == "errors" else scores.scores
            ways = {"exact": name == "errors"} if said in ("both", kind) else {}
            declared = Declared.of(scores.models, scores.items, scores.raters, lower_is_better=ways)
            replace(scores, scores=turned, declared=declared).save(tmp_path / f"{kind}.npz")
        found = invoke(tmp_path / "new.npz", *options, "--history", tmp_path / "old.npz")
        return [{k: v for k, v in row.items() if k != "seconds"} for row in json.loads(found.stdout)]

    expected = raced("scores", "both")
    for said in ("both", "new", "old"):
        for found, row in zip(raced("errors", said), expected, strict=True):
            assert found == pytest.approx(row)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--sampler", "ucb-e,eb-bernstein"), "unknown sampler of models 'eb-bernstein'"),
        (("--sampler", "ucb-e", "--score-range", "high"), "is not a range"),
        (("--sampler", "ucb-e", "--history", "nowhere.npz"), "nowhere.npz does not exist"),
        (("--sampler", "ucb-e", "--budget", "1%"), "is too small for ucb-e"),
    ],
)
def test_bad_options_say_what_to_do(models: Path, options: tuple[str, ...], says: str) -> None:
    result = invoke(models, *options)
    assert result.exit_code != 0
    assert says in str(result.exception or "") + result.output
