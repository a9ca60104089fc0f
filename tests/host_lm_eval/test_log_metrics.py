"""Which metrics of a log are read, which way they are better, and between what they lie."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lm_eval.api import metrics as of_the_host  # noqa: F401  (registers them)
from lm_eval.api.registry import get_metric_aggregation, is_higher_better
from tests.cli.commands import typed
from tests.host_lm_eval.log_worlds import (
    DATE,
    NAN,
    averages,
    declared,
    mean,
    notes,
    read,
    sample,
    write_log,
)

from evalbudget.backtest import RecordedScores, side_by_side
from evalbudget.comparisons import Baseline, compare, gate
from evalbudget.errors import InvalidInputError
from evalbudget.recorded._missing import missing_answers, missing_shares
from evalbudget_lm_eval.logs.metrics import HIGHER_IS_BETTER, LOWER_IS_BETTER, NO_MEANS

LATER = "2026-01-03T03-04-05.000000"


def test_the_hosts_own_metrics_are_known() -> None:
    means = {"mean", "nanmean"}
    for name in HIGHER_IS_BETTER | LOWER_IS_BETTER | NO_MEANS:
        assert is_higher_better(name) == (name not in LOWER_IS_BETTER), name
        assert (get_metric_aggregation(name).__name__ not in means) == (name in NO_MEANS), name


@pytest.mark.parametrize(
    "said",
    [
        {"higher_is_better": {"toy": {"error_rate": False}}, "metrics": averages("error_rate")},
        {"metrics": averages("error_rate", better=False)},
        {"metrics": averages("error_rate", better=False), "higher_is_better": {"toy": {}}},
    ],
    ids=["results", "configuration", "neither in results"],
)
def test_less_is_better(tmp_path: Path, said: dict[str, Any]) -> None:
    write_log(tmp_path, [sample(i, {"error_rate": float(i % 2)}) for i in range(6)], **said)
    assert declared(read(tmp_path)).lower_is_better == (True,)


def test_a_direction_that_nobody_tells_is_unknown(tmp_path: Path) -> None:
    write_log(tmp_path, [sample(i, {"quality": i / 6}) for i in range(6)], metrics=[])
    assert declared(read(tmp_path)).lower_is_better == (None,)


@pytest.mark.parametrize(
    "words",
    [
        ["compare", "a", "b"],
        ["gate", "--baseline", "a", "--candidate", "b", "--margin", "0.1"],
        ["plan", ".", "--race", "--max-items", "2"],
        ["report", "a", "b"],
    ],
    ids=lambda words: words[0],
)
def test_commands_say_that_no_direction_is_declared(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for model, every in (("a", 2), ("b", 3)):
        samples = [sample(i, {"error_rate": float(i % every == 0)}) for i in range(60)]
        log = write_log(Path(model), samples, model=model)
        next(log.parent.glob("results_*")).unlink()
    told = (
        "No direction is declared for error_rate: higher is taken as better. If lower is better, give --lower"
    )
    in_json = typed(*words)("--json", "-")
    assert told in in_json.stdout
    printed = in_json if words[0] == "plan" else typed(*words)()  # a plan says it on stderr
    assert told in " ".join(printed.output.split())
    assert "No direction" not in typed(*words)("--lower-is-better").output


def test_a_direction_that_one_side_of_a_gate_declares_is_known(tmp_path: Path) -> None:
    samples = [sample(i, {"rate": i / 6}) for i in range(6)]
    write_log(tmp_path / "a", samples, model="a", metrics=averages("rate"))
    write_log(tmp_path / "b", samples, model="b", metrics=[])
    given = [f"--baseline={tmp_path / 'a'}", f"--candidate={tmp_path / 'b'}", "--margin=0.1"]
    assert "No direction" not in typed("gate")(*given).output


def test_two_logs_that_disagree_on_direction_are_refused(tmp_path: Path) -> None:
    samples = [sample(i, {"rate": i / 6}) for i in range(6)]
    for model, better in (("a", True), ("b", False)):
        write_log(tmp_path / model, samples, model=model, metrics=averages("rate", better=better))
    with pytest.raises(
        InvalidInputError, match=r"disagree on which way 'rate' is better: less by .*b/samp.*a/samp"
    ):
        read(tmp_path)


@pytest.mark.parametrize("aggregation", ["perplexity", "bleu", "median", "matthews_corrcoef"])
def test_what_is_aggregated_otherwise_is_left_out_and_said(tmp_path: Path, aggregation: str) -> None:
    write_log(
        tmp_path,
        [sample(i, {"acc": 1.0, "other": -float(i)}) for i in range(4)],
        metrics=[*averages("acc"), *averages("other", aggregation=aggregation)],
    )
    recorded = read(tmp_path)
    assert recorded.raters == ("acc",)
    assert f"other of toy is not read: it is aggregated by {aggregation}, which is no mean." in notes(
        recorded
    )


def test_what_is_no_number_is_left_out_and_said(tmp_path: Path) -> None:
    own = {"bleu": ["right", "said"], "f1": [1, 0], "grade": "good", "parts": {"a": 1.0}}
    samples = [sample(i, {"acc": float(i % 2), **own}) for i in range(4)]
    metrics = [*averages("acc", "grade", "parts"), *averages("bleu", aggregation="bleu"), {"metric": "f1"}]
    write_log(tmp_path, samples, metrics=metrics)
    recorded = read(tmp_path)
    assert recorded.raters == ("acc",)
    for told in (
        "bleu of toy is not read: it is aggregated by bleu, which is no mean.",
        "f1 of toy is not read: its total is no mean of the documents' numbers.",
        "grade of toy is not read: its values are text, and no numbers.",
        "parts of toy is not read: its values are dicts, and no numbers.",
    ):
        assert told in notes(recorded)


def test_perplexity_is_no_mean_even_where_nothing_says_so(tmp_path: Path) -> None:
    samples = [sample(i, {"perplexity": -float(i), "acc": float(i % 2)}) for i in range(6)]
    path = write_log(tmp_path, samples, metrics=[{"metric": "perplexity"}, {"metric": "acc"}])
    assert read(tmp_path).raters == ("acc",)
    (path.parent / f"results_{DATE}.json").unlink()
    recorded = read(tmp_path)
    assert (recorded.raters, mean(recorded)) == (("acc",), 0.5)
    assert "perplexity of toy is not read" in notes(recorded)


@pytest.mark.parametrize(
    ("code", "is_mean"),
    [
        ("<function mean at 0x7f2cc4fe6fc0>", True),
        ("<function nanmean at 0x7f2cc4fe6fc0>", True),
        ("def agg(items):\n    return sum(items)/len(items)\n", True),
        ('def agg(arr):\n    """Of all."""\n    return float(np.mean(arr))\n', True),
        ("    def agg(arr):\n        return np.nanmean(arr)\n", True),
        ("def agg(items):\n    return max(items)\n", False),
        ("<function corpus_score at 0x7f2cc4fe6fc0>", False),
        ("def mean(items):\n    return max(items)\n", False),
        ("def broken(", False),
    ],
)
def test_an_aggregation_of_the_tasks_own_code(tmp_path: Path, code: str, is_mean: bool) -> None:
    write_log(
        tmp_path,
        [sample(i, {"acc": 1.0, "score": i / 10}) for i in range(10)],
        metrics=[*averages("acc"), *averages("score", aggregation=code)],
    )
    recorded = read(tmp_path)
    assert recorded.raters == (("acc", "score") if is_mean else ("acc",))
    assert ("score of toy is not read" in notes(recorded)) is not is_mean


def test_what_a_run_of_ours_went_by_is_a_mean(tmp_path: Path) -> None:
    code = "def mean(items):\n    items = list(items)\n    return sum(items) / len(items)\n"
    block = {"allocation": "fixed", "fixed_repeats": 1, "score": {"toy": "score,none"}}
    samples = [sample(i, {"score": i / 10}) for i in range(10)]
    write_log(tmp_path, samples, metrics=averages("score", aggregation=code), evalbudget=block)
    assert mean(read(tmp_path)) == pytest.approx(0.45)


@pytest.mark.parametrize(("total", "is_mean"), [(0.45, True), (0.9, False)])
def test_what_code_does_is_told_by_its_total(tmp_path: Path, total: float, is_mean: bool) -> None:
    write_log(
        tmp_path,
        [sample(i, {"acc": 1.0, "score": i / 10}) for i in range(10)],
        metrics=[*averages("acc"), *averages("score", aggregation="<function of_all at 0x7f2cc4fe6fc0>")],
        results={"toy": {"score,none": total}},
    )
    assert read(tmp_path).raters == (("acc", "score") if is_mean else ("acc",))


def test_a_metric_that_is_not_configured_and_no_mean(tmp_path: Path) -> None:
    write_log(
        tmp_path,
        [sample(i, {"acc": 1.0, "f": i / 10, "g": i / 10}) for i in range(10)],
        results={"toy": {"acc,none": 1.0, "f,none": 0.9, "g,none": 0.45}},
    )
    recorded = read(tmp_path)
    assert recorded.raters == ("acc", "g")
    assert "f of toy is not read: its total is 0.9, and the mean of its documents 0.45." in notes(recorded)


def test_results_that_contradict_the_samples_are_said(tmp_path: Path) -> None:
    write_log(tmp_path, [1.0, 0.0, 1.0, 1.0], results={"toy": {"acc,none": 0.9}})
    recorded = read(tmp_path)
    assert mean(recorded) == 0.75
    assert re.search(r"results beside \S+jsonl say acc 0.9, and its samples average 0.75", notes(recorded))


def test_a_total_in_single_precision_contradicts_nothing(tmp_path: Path) -> None:
    scores = [0.1, 0.9, 0.9]
    total = float(np.mean(np.array(scores, dtype=np.float32)))
    assert total != sum(scores) / 3
    write_log(tmp_path, scores, results={"toy": {"acc,none": total}})
    assert notes(read(tmp_path)) == ""


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("none", [{"f": NAN}, {}])
def test_what_does_not_apply_is_missing_where_another_model_has_a_number(
    tmp_path: Path, none: dict[str, float], *, apart: bool
) -> None:
    metrics = averages("f", aggregation="nanmean")
    of = {"x": [1.0] * 40 + [None] * 25, "y": [1.0] * 20 + [0.0] * 20 + [1.0] * 20 + [None] * 5}
    for name, scores in of.items():
        samples = [sample(i, none if score is None else {"f": score}) for i, score in enumerate(scores)]
        write_log(tmp_path / name, samples, metrics=metrics, model=f"org/{name}")
    parts = {name: read(tmp_path / name) for name in of}
    whole = side_by_side(parts) if apart else read(tmp_path)
    assert missing_answers(whole).tolist() == [20, 0]
    (row,) = compare(whole).rows
    assert (row.items, row.missing) == (40, (20, 0))
    assert row.low < 0.0 < row.difference
    worse, better = (gate(Baseline.of(parts[a], name=a), parts[b], margin=0.1) for a, b in ("xy", "yx"))
    assert (worse.missing, worse.not_asked, worse.n_items) == ((20, 0), 0, 60)
    assert (better.missing, better.not_asked, better.n_items) == ((0, 20), 0, 60)
    for a, b, lost in (("x", "y", (20, 0)), ("y", "x", (0, 20))):
        kept = Baseline.of(parts[a], name=a)
        zero = gate(kept, parts[b], margin=0.1, missing="zero")
        assert (zero.difference, zero.verdict) == (0.0, None)
        assert (zero.missing, zero.not_asked, zero.n_items) == (lost, 0, 60)
    (row,) = compare(whole, missing="zero").rows
    assert (row.difference, row.verdict, row.items) == (0.0, "undecided", 60)
    assert compare(whole, missing="drop").rows[0].missing == (0, 0)
    dropped = gate(Baseline.of(parts["x"], name="x"), parts["y"], margin=0.1, missing="drop")
    assert (dropped.missing, dropped.not_asked, dropped.n_items) == ((20, 0), 0, 40)
    with_file = tmp_path / "kept.npz"
    whole.save(with_file)
    assert missing_answers(RecordedScores.load(with_file)).tolist() == [20, 0]


def test_nan_under_nanmean_does_not_apply(tmp_path: Path) -> None:
    samples = [sample(i, {"acc": float(i < 3), "acc_a": float(i < 3) if i % 2 else NAN}) for i in range(10)]
    write_log(tmp_path, samples, metrics=[*averages("acc"), *averages("acc_a", aggregation="nanmean")])
    recorded = read(tmp_path)
    assert declared(recorded).complete == (True,)
    assert recorded.failed is not None
    assert recorded.failed.sum() == 0
    assert (mean(recorded, "acc"), mean(recorded, "acc_a")) == (0.3, 0.2)
    assert (missing_shares(recorded.select(rater="acc_a"))[0] > 0.0).sum() == 0


def test_a_metric_that_applies_nowhere_is_none_of_the_scores(tmp_path: Path) -> None:
    samples = [sample(i, {"acc": float(i < 3), "acc_a": NAN}) for i in range(10)]
    write_log(tmp_path, samples, metrics=[*averages("acc"), *averages("acc_a", aggregation="nanmean")])
    assert read(tmp_path).raters == ("acc",)


@pytest.mark.parametrize(
    ("value", "aggregation", "told"),
    [
        ("1", "mean", "acc of toy: its values are text, and no numbers"),
        ([1.0, 0.0], "mean", "acc of toy: its values are lists, and no numbers"),
        ({"pass@1": 1.0}, "mean", "acc of toy: its values are dicts, and no numbers"),
        (0.5, "median", "acc of toy: it is aggregated by median, which is no mean"),
    ],
)
def test_a_log_without_a_score_names_each_metric_and_why(
    tmp_path: Path, value: object, aggregation: str, told: str
) -> None:
    samples = [sample(i, {"acc": value}) for i in range(4)]
    write_log(tmp_path, samples, metrics=averages("acc", aggregation=aggregation))
    with pytest.raises(InvalidInputError, match=re.escape(told)):
        read(tmp_path)


@pytest.mark.parametrize("value", [NAN, float("inf"), None])
def test_no_number_elsewhere_is_a_failure(tmp_path: Path, value: float | None) -> None:
    write_log(tmp_path, [sample(i, {"acc": value if i < 3 else 1.0}) for i in range(10)])
    recorded = read(tmp_path)
    assert recorded.failed is not None
    assert recorded.failed[0, :, 0].tolist() == [1] * 3 + [0] * 7
    assert missing_shares(recorded)[0].tolist() == [1.0] * 3 + [0.0] * 7


def test_a_document_without_a_metric_is_outside_it(tmp_path: Path) -> None:
    samples = [sample(i, {"acc": 1.0} | ({"strict": 0.0} if i % 2 else {})) for i in range(6)]
    write_log(tmp_path, samples, metrics=averages("acc", "strict"))
    recorded = read(tmp_path)
    assert recorded.failed is not None
    assert recorded.failed.sum() == 0
    assert recorded.counts[0].sum(axis=0).tolist() == [6, 3]
    assert declared(recorded).complete == (True,)


@pytest.mark.parametrize(
    ("metric", "values", "config", "known"),
    [
        ("exact_match", [0.0] * 5, {}, (0.0, 1.0)),
        ("acc", [1.0] * 5, {}, (0.0, 1.0)),
        ("exact_match", [0.0] * 5, {"process_results": "def own(doc, results): ..."}, None),
        ("exact_match", [0.0, 50.0, 100.0], {"process_results": "def own(doc, results): ..."}, None),
        ("mine", [0.0, 1.0], {}, (0.0, 1.0)),
        ("mine", [0.0] * 5, {}, None),
        ("mine", [0.2, 0.7], {}, None),
    ],
)
def test_the_range_of_scores(
    tmp_path: Path,
    metric: str,
    values: list[float],
    config: dict[str, Any],
    known: tuple[float, float] | None,
) -> None:
    samples = [sample(i, {metric: value}) for i, value in enumerate(values)]
    write_log(tmp_path, samples, metrics=averages(metric), task_config=config)
    assert declared(read(tmp_path)).ranges == (known,)


FIRST = {"function": "take_first"}
VOTE = {"function": "majority_vote"}


@pytest.mark.parametrize(
    ("steps", "named"),
    [
        ([{"function": "regex"}, FIRST], None),
        ([{"function": "regex"}, VOTE, FIRST], "majority_vote of 8"),
        ([{"function": "take_first_k", "k": 4}, VOTE, FIRST], "majority_vote of 4"),
        ([{"function": "custom", "filter_fn": "<function build at 0x7f>"}], "custom of 8"),
    ],
)
def test_a_filter_that_makes_one_score_of_several_answers(
    tmp_path: Path, steps: list[dict[str, Any]], named: str | None
) -> None:
    config = {"repeats": 8, "filter_list": [{"name": "mine", "filter": steps}]}
    write_log(tmp_path, [sample(i, {"acc": 1.0}, filter="mine") for i in range(4)], task_config=config)
    assert declared(read(tmp_path)).reducers == (named,)


def test_samples_without_metrics_of_older_versions(tmp_path: Path) -> None:
    samples = []
    for i in range(40):
        one = sample(i, {"acc": float(i % 5 < 3), "acc_norm": float(i % 4 < 3)})
        for key in ("metrics", "filter"):
            del one[key]
        samples.append({**one, "arguments": [[f"question {i}", " yes"], [f"question {i}", " no"]]})
    path = write_log(tmp_path, samples, metrics=averages("acc", "acc_norm"))
    recorded = read(tmp_path)
    assert recorded.raters == ("acc", "acc_norm")
    assert (mean(recorded, "acc"), mean(recorded, "acc_norm")) == (0.6, 0.75)
    assert recorded.texts is not None
    assert recorded.texts[0] == "question 0"
    # and as an array, as for some weeks of 2024
    path.with_suffix(".json").write_text(json.dumps(samples))
    path.unlink()
    again = read(tmp_path)
    assert (mean(again, "acc"), mean(again, "acc_norm")) == (0.6, 0.75)


def test_samples_without_filters_of_older_versions(tmp_path: Path) -> None:
    config = {"filter_list": [{"name": "strict", "filter": [FIRST]}, {"name": "loose", "filter": [FIRST]}]}
    samples = [sample(i, {"acc": score}) for score in (0.0, 1.0) for i in range(4)]
    for one in samples:
        del one["filter"]
    write_log(tmp_path, samples, task_config=config)
    recorded = read(tmp_path)
    assert recorded.raters == ("acc,strict", "acc,loose")
    assert (mean(recorded, "acc,strict"), mean(recorded, "acc,loose")) == (0.0, 1.0)


@pytest.mark.parametrize("named", [".", f"results_{DATE}.json"])
def test_results_without_samples_say_what_to_do(tmp_path: Path, named: str) -> None:
    write_log(tmp_path).unlink()
    with pytest.raises(InvalidInputError, match=r"results without samples.*Run lm-eval with --log_samples"):
        read(tmp_path / named)


def test_results_beside_packed_samples_say_what_to_do(tmp_path: Path) -> None:
    path = write_log(tmp_path)
    path.rename(f"{path}.gz")
    with pytest.raises(InvalidInputError, match=rf"{path.name}\.gz beside it is packed: unpack it"):
        read(tmp_path)


def test_numbers_of_numpy_that_earlier_hosts_wrote_as_text(tmp_path: Path) -> None:
    texts = {
        "acc": ["True", "False", "True", "True"],
        "f": ["0.5", "0.25", "nan", "0.75"],
        "word": list("abcd"),
    }
    samples = [sample(i, {name: own[i] for name, own in texts.items()}) for i in range(4)]
    metrics = averages(*texts)
    for totals in ({"acc,none": 0.75, "f,none": NAN, "word,none": 1.0}, {"acc,none": "N/A"}):
        write_log(tmp_path, samples, metrics=metrics, results={"toy": totals})
        if totals["acc,none"] == "N/A":
            with pytest.raises(InvalidInputError, match="its values are text, and no numbers"):
                read(tmp_path)
            continue
        recorded = read(tmp_path)
        assert recorded.raters == ("acc", "f")
        assert (mean(recorded, "acc"), mean(recorded, "f")) == (0.75, 0.5)
        assert "word of toy is not read: its values are text, and no numbers." in notes(recorded)


def test_files_that_begin_with_a_mark_of_their_encoding(tmp_path: Path) -> None:
    path = write_log(tmp_path)
    for file in (path, tmp_path / f"results_{DATE}.json"):
        file.write_text(file.read_text(), encoding="utf-8-sig")
    assert mean(read(tmp_path)) == 0.75


@pytest.mark.parametrize("strict", [{"acc": 1.0, "f": NAN}, {"acc": 1.0}])
def test_a_metric_that_one_filter_has_no_score_by_is_read_of_the_other(
    tmp_path: Path, strict: dict[str, float]
) -> None:
    samples = [
        sample(i, scores, filter=chosen)
        for i in range(6)
        for chosen, scores in (("strict", strict), ("loose", {"acc": 1.0, "f": float(i % 2)}))
    ]
    write_log(tmp_path, samples, metrics=[*averages("acc"), *averages("f", aggregation="nanmean")])
    assert set(read(tmp_path).raters) == {"acc,strict", "acc,loose", "f,loose"}


def test_a_direction_that_results_and_configuration_contradict_is_said(tmp_path: Path) -> None:
    write_log(tmp_path, metrics=averages("acc", better=False), higher_is_better={"toy": {"acc": True}})
    found = read(tmp_path)
    assert declared(found).lower_is_better == (False,)
    assert "say that higher acc is better, and the task's metric_list in them that lower is" in notes(found)
    write_log(tmp_path, metrics=averages("acc"), higher_is_better={"toy": {"acc": True}})
    assert "metric_list" not in notes(read(tmp_path))
