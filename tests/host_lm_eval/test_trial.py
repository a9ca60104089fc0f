"""Metrics that are functions: what they return is found out before anything is asked."""

from __future__ import annotations

import io
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from tests.host_lm_eval.worlds import CoinModel, load, simple_evaluate, write_task

from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget_lm_eval import budgeted
from evalbudget_lm_eval.host.host_evaluate import PrimedTasks
from evalbudget_lm_eval.host.trial import names_in_trial, names_its_own
from evalbudget_lm_eval.repeats.forecast import Foreseen

RATES = """
def rates(references, predictions, k=(1,)):
    right = float(predictions[0].strip() == references[0])
    return {f"pass@{j}": right for j in k}

def plain(references, predictions, **more):
    return float(predictions[0].strip() == references[0])

def picky(references, predictions, **more):
    return {"score": float(int(predictions[0]) > 3)}

def silent(references, predictions, **more):
    return float(predictions[0] == references[0]) if predictions[0] else None

def late(references, predictions, **more):
    right = float(predictions[0] == references[0])
    return {"parsed": 1.0, "late": right} if predictions[0] else {"parsed": 0.0}

def broken(references, predictions, **more):
    raise ValueError("never")

def word(references, predictions, **more):
    return "good"

def lost(references, predictions, **more):
    return float("nan")

def seldom(references, predictions, **more):
    return 1.0 if int(references[0]) % 4 == 2 else None

def strict(references, predictions, **more):
    if not predictions[0].startswith("ANS:"):
        raise ValueError("no ANS")
    return float(predictions[0][4:] == references[0])

def lenient(references, predictions, **more):
    return strict(references, predictions) if predictions[0].startswith("ANS:") else float("nan")

def told(doc, results):
    right = float(results[0].strip() == str(doc["number"]))
    return {"right": right, "length": len(results[0])}

def parts(doc, results):
    return told(doc, results) | {"parts": {"a": 1.0}}

def share(values):
    'Of all.'
    return sum(values) / len(values)

def largest(values):
    return max(values)

def failing(values):
    raise RuntimeError("no such thing")
"""


def written(folder: Path, function: str, **options: Any) -> Path:
    """A task whose metric is one of these functions."""
    path = write_task(folder, "rated")
    (path / "rates.py").write_text(RATES)
    text = (path / "rated.yaml").read_text()
    begin = text.index("metric_list:")
    end = text.index("num_fewshot:")
    given = "".join(f", {name}: {value}" for name, value in options.items())
    entry = f"metric_list:\n  - {{metric: !function rates.{function}, aggregation: mean{given}}}\n"
    (path / "rated.yaml").write_text(text[:begin] + entry + text[end:])
    return path


def bought(folder: Path, **ours: Any) -> tuple[CoinModel, dict[str, Any]]:
    lm = CoinModel()
    with budgeted(budget=60, journal="none", sampler="uniform", **ours):
        return lm, simple_evaluate(folder, lm, "rated")


def test_a_run_goes_by_the_first_name_that_the_function_gives(tmp_path: Path) -> None:
    lm, results = bought(written(tmp_path, "rates", k="[1, 2]"))
    assert len(lm.calls) == 60
    assert results["evalbudget"]["score"] == {"rated": "pass@1,none"}
    row = results["results"]["rated"]
    assert 0.0 < row["pass@1,none"] < 1.0
    assert row["pass@2,none"] == pytest.approx(row["pass@1,none"])


@pytest.mark.parametrize("score", ["pass@2", "pass@2,none"])
def test_another_may_be_named(tmp_path: Path, score: str) -> None:
    _, results = bought(written(tmp_path, "rates", k="[1, 2]"), score=score)
    assert results["evalbudget"]["score"] == {"rated": "pass@2,none"}


@pytest.mark.parametrize(
    ("score", "kind", "said"),
    [
        ("pass@3", UnknownNameError, "Did you mean 'pass@2' or 'pass@1'"),
        ("pass@2,strict", UnknownNameError, "unknown filter"),
        ("rates", InvalidInputError, "returns pass@1,none and pass@2,none; use --score pass@1,none"),
    ],
)
def test_what_is_none_is_refused_before_anything_is_asked(
    tmp_path: Path, score: str, kind: type[Exception], said: str
) -> None:
    lm = CoinModel()
    folder = written(tmp_path, "rates", k="[1, 2]")
    with pytest.raises(kind, match=said), budgeted(budget=60, journal="none", score=score):
        simple_evaluate(folder, lm, "rated")
    assert lm.calls == []


def test_a_function_that_gives_a_number_is_what_it_is_called(tmp_path: Path) -> None:
    lm, results = bought(written(tmp_path, "plain"))
    assert results["evalbudget"]["score"] == {"rated": "plain,none"}
    assert len(lm.calls) == 60


@pytest.mark.parametrize("function", ["silent", "late"])
def test_what_an_empty_answer_does_not_show_the_target_does(tmp_path: Path, function: str) -> None:
    folder = written(tmp_path, function)
    for score in (None, function):
        _, results = bought(folder, score=score)
        assert results["evalbudget"]["score"] == {"rated": f"{function},none"}


def test_a_function_that_fails_on_an_empty_answer_is_tried_on_the_target(tmp_path: Path) -> None:
    lm, results = bought(written(tmp_path, "picky"))
    assert results["evalbudget"]["score"] == {"rated": "score,none"}
    assert len(lm.calls) == 60


def test_where_a_trial_tells_nothing_the_first_answers_do(tmp_path: Path) -> None:
    folder = written(tmp_path, "broken")
    with PrimedTasks(CoinModel(), load(folder, "rated")) as primed:
        assert names_its_own(primed.task("rated"))
        assert names_in_trial(primed, "rated") == ()
        assert primed.answered("rated") == ()
    with pytest.raises(ValueError, match="never"):
        bought(folder)


@pytest.mark.parametrize("function", ["broken", "word", "lost"])
def test_what_no_score_can_be_made_of_costs_one_answer_each_time(tmp_path: Path, function: str) -> None:
    folder, lm = written(tmp_path, function), CoinModel()
    for times in (1, 2):
        with pytest.raises(InvalidInputError, match="its own target"), budgeted(budget=60):
            simple_evaluate(folder, lm, "rated")
        assert len(lm.calls) == times


class Formal(CoinModel):
    """Says its answers in a form that targets do not have, but for the first."""

    def __init__(self, first: str = "ANS:3") -> None:
        super().__init__()
        self.first = first

    def _answer(self, prompt: str, kwargs: dict[str, Any]) -> str:
        said = super()._answer(prompt, kwargs)
        return self.first if len(self.calls) == 1 else f"ANS:{said}"


@pytest.mark.parametrize("function", ["strict", "lenient"])
def test_one_answer_that_has_no_score_is_not_the_task(tmp_path: Path, function: str) -> None:
    folder, lm = written(tmp_path, function), Formal(first="odd")
    with pytest.raises(InvalidInputError, match="its own target"), budgeted(budget=60):
        simple_evaluate(folder, lm, "rated")
    assert len(lm.calls) == 1
    with budgeted(budget=60):
        block = simple_evaluate(folder, lm, "rated")["evalbudget"]
    assert len(lm.calls) == block["spent"] == 60
    assert block["readings"] == 59


def test_a_task_that_has_no_score_is_refused_again_though_another_has(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    folder, lm = written(tmp_path / "tasks", "strict"), Formal()
    text = (folder / "rated.yaml").read_text()
    (folder / "worse.yaml").write_text(text.replace("task: rated", "task: worse").replace("strict", "lost"))
    for times in (2, 3):
        with pytest.raises(InvalidInputError, match=r"'worse'.*its own target"), budgeted(budget=60):
            simple_evaluate(folder, lm, "rated", "worse")
        assert len(lm.calls) == times


def test_a_task_with_few_scores_is_not_one_without(tmp_path: Path) -> None:
    lm, results = bought(written(tmp_path, "seldom"))
    assert len(lm.calls) == 60
    assert results["results"]["rated"]["seldom,none"] == 1.0


def declared(folder: Path, metrics: str) -> Path:
    """A task whose own code scores, and gives what it likes."""
    path = written(folder, "rates")
    text = (path / "rated.yaml").read_text()
    begin, end = text.index("metric_list:"), text.index("num_fewshot:")
    own = f"process_results: !function rates.told\nmetric_list:\n{metrics}\n"
    (path / "rated.yaml").write_text(text[:begin] + own + text[end:])
    return path


def test_a_score_that_is_suggested_may_be_named(tmp_path: Path) -> None:
    folder = declared(tmp_path, "  - {metric: acc, aggregation: mean}")
    with pytest.raises(InvalidInputError, match="use --score length,none or right,none"):
        bought(folder)
    lm, results = bought(folder, score="right,none")
    assert len(lm.calls) == 60
    assert 0.0 < results["results"]["rated"]["right,none"] < 1.0
    with pytest.raises(UnknownNameError, match="Did you mean 'right'"):
        bought(folder, score="rihgt")


def test_what_cannot_be_aggregated_costs_its_own_row_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    more = "  - {metric: length, aggregation: !function rates.failing, higher_is_better: true}"
    _, results = bought(declared(tmp_path, f"  - {{metric: right, aggregation: mean}}\n{more}"))
    assert 0.0 < results["results"]["rated"]["right,none"] < 1.0
    assert "length,none" not in results["results"]["rated"]
    assert "metric length of task rated has no row" in caplog.text


def test_dicts_that_are_to_be_averaged_cost_their_own_row_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    metrics = "".join(f"  - {{metric: {name}, aggregation: mean}}\n" for name in ("right", "parts"))
    folder = declared(tmp_path, metrics)
    text = (folder / "rated.yaml").read_text().replace("rates.told", "rates.parts")
    (folder / "rated.yaml").write_text(text)
    lm, results = bought(folder)
    assert len(lm.calls) == 60
    assert 0.0 < results["results"]["rated"]["right,none"] < 1.0
    assert "parts,none" not in results["results"]["rated"]
    assert "metric parts of task rated has no row" in caplog.text


def test_a_mean_of_the_tasks_own_is_known_by_its_code(tmp_path: Path) -> None:
    entry = "  - {{metric: right, aggregation: !function rates.{}}}"
    lm, results = bought(declared(tmp_path / "a", entry.format("share")))
    assert len(lm.calls) == 60
    assert 0.0 < results["results"]["rated"]["right,none"] < 1.0
    with pytest.raises(InvalidInputError, match=r"no metric that is .* averaged \(right: largest\)"):
        bought(declared(tmp_path / "b", entry.format("largest")))


def test_what_aggregates_runs_once(tmp_path: Path) -> None:
    more = "  - {metric: length, aggregation: !function rates.counting, higher_is_better: true}"
    folder = declared(tmp_path, f"  - {{metric: right, aggregation: mean}}\n{more}")
    code = folder / "rates.py"
    code.write_text(code.read_text() + "\n\ndef counting(values):\n    print('AGGREGATED')\n    return 1.0\n")
    said = io.StringIO()
    with redirect_stdout(said):
        _, results = bought(folder)
    assert results["results"]["rated"]["length,none"] == 1.0
    assert said.getvalue().count("AGGREGATED") == 1


def test_a_trial_prints_nothing_of_what_the_task_does(tmp_path: Path) -> None:
    folder = written(tmp_path, "rates", k="[1]")
    code = folder / "rates.py"
    code.write_text(code.read_text().replace("    right =", "    print('SCORED')\n    right ="))
    said = io.StringIO()
    with redirect_stdout(said):
        bought(folder)
    assert said.getvalue().count("SCORED") == 60


@pytest.mark.filterwarnings("default::FutureWarning")
def test_what_a_task_warns_of_once_is_not_used_up_by_the_trial(tmp_path: Path) -> None:
    folder = written(tmp_path, "rates", k="[1]")
    code = folder / "rates.py"
    warns = "    import warnings\n    warnings.warn('OLD', FutureWarning)\n    right ="
    code.write_text(code.read_text().replace("    right =", warns))
    said, shown = io.StringIO(), warnings.showwarning
    with redirect_stderr(said), warnings.catch_warnings():
        warnings.showwarning = lambda *about, **more: sys.stderr.write(str(about[0]))
        bought(folder)
    assert warnings.showwarning is shown
    assert said.getvalue().count("OLD") == 1


@pytest.mark.parametrize("score", [None, "rates", "pass@1"])
def test_a_dry_run_runs_no_code_of_the_task(
    tmp_path: Path, score: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = written(tmp_path, "rates", k="[1]")
    with budgeted(budget=60, sampler="uniform", score=score and score.replace("rates", "pass@1")):
        simple_evaluate(folder, CoinModel(), "rated")
    code = folder / "rates.py"
    code.write_text(code.read_text().replace("    right =", "    open('ran', 'w').close()\n    right ="))
    with pytest.raises(Foreseen) as told, budgeted(budget=60, score=score, dry_run=True):
        simple_evaluate(folder, CoinModel(), "rated")
    assert told.value.forecast.seconds is not None, "of the earlier run"
    assert not Path("ran").exists()


def test_a_metric_that_is_no_mean_does_not_drive_in_place_of_a_function(tmp_path: Path) -> None:
    folder = written(tmp_path, "rates")
    config = tmp_path / "rated.yaml"
    metrics = "metric_list:\n  - {metric: exact_match, aggregation: median, higher_is_better: true}\n"
    config.write_text(config.read_text().replace("metric_list:\n", metrics))
    with budgeted(budget=60, journal="none", sampler="uniform"):
        found = simple_evaluate(folder, CoinModel(), "rated")
    assert found["evalbudget"]["score"] == {"rated": "pass@1,none"}


def test_a_trial_leaves_nothing_behind(tmp_path: Path) -> None:
    with PrimedTasks(CoinModel(), load(written(tmp_path, "rates", k="[1]"), "rated")) as primed:
        assert names_in_trial(primed, "rated") == ("pass@1,none",)
        assert primed.answered("rated") == ()
        assert primed.numbers("rated") == {}


def test_metrics_of_the_host_need_no_trial(tmp_path: Path) -> None:
    with PrimedTasks(CoinModel(), load(write_task(tmp_path), "numbers")) as primed:
        assert not names_its_own(primed.task("numbers"))


def test_a_dry_run_refuses_what_it_can_tell_without_the_tasks_code(tmp_path: Path) -> None:
    lm, folder = CoinModel(), written(tmp_path, "broken")
    text = (folder / "rated.yaml").read_text()
    (folder / "rated.yaml").write_text(text.replace("aggregation: mean", "aggregation: median"))
    with pytest.raises(InvalidInputError, match="broken: median"), budgeted(budget=60, dry_run=True):
        simple_evaluate(folder, lm, "rated")
    assert not lm.calls


def test_a_dry_run_says_which_name_it_could_not_look_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = written(tmp_path, "told")
    with pytest.raises(Foreseen), budgeted(budget=60, dry_run=True, score="lenght"):
        simple_evaluate(folder, CoinModel(), "rated")
    assert "gives a score lenght is for its own code to say" in caplog.text
