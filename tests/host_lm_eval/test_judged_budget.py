"""A judged task under a budget: repeats go to the next judges, every call counts, nothing is paid twice."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.host_lm_eval.judged_worlds import evaluate, load, write_judged
from tests.host_lm_eval.worlds import broken_off, rounds_of, samples_in

from evalbudget import Allocation
from evalbudget.errors import InvalidInputError, JournalError, UnknownNameError
from evalbudget.judges.estimates import JudgeScores, judge_biases, judge_corrected, panel_mean
from evalbudget.judges.schedules import Cyclic
from evalbudget.repeats.estimates import mean_over_fixed_items
from evalbudget_lm_eval import budgeted
from evalbudget_lm_eval.judges.asking import Asking
from evalbudget_lm_eval.log_folder import open_scores
from loopback import Server

NAMES = ["a", "b", "c"]
GREEDY = {"until": ["\n"], "do_sample": False, "temperature": 0.0}


def readings_of(found: dict[str, Any]) -> list[tuple[int, int, str, float | None]]:
    return [
        (sample["doc_id"], sample["epoch"], reading.judge, reading.score)
        for sample in found["samples"]["essays"]
        for reading in sample["filtered_resps"][0]
    ]


def test_the_sampler_pays_judges_and_the_estimate_is_the_panels(
    server: Server, judges: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # greedy decoding: only the judges differ from one repeat to the next
    folder = write_judged(tmp_path, judges, n=8, gen_kwargs={"temperature": 1}, generation=GREEDY)
    server.fail(500, model="b", after=2, times=2)
    out = tmp_path / "out"
    with rounds_of(2), budgeted(budget=40, sampler="eb-bernstein", journal=tmp_path / "run.db"):
        found = evaluate(folder, server.chat_args("writer"), output=out)
    said = [(d, e, *map_back(r)) for d, e, r in parsed(out)]
    phases = phases_of(out)
    assert len(said) == len(phases) == 40
    assert sum(server.calls(name) for name in NAMES) == 40  # never above the budget
    assert server.calls("writer") == 40

    schedule = Cyclic([str(i) for i in range(8)], NAMES, categories=["ab"[i % 2] for i in range(8)])
    assert all(NAMES.index(judge) == schedule.judges_for(d, e)[0] for d, e, judge, _ in said)
    assert sum(score is None for *_, score in said) == 2
    assert caplog.text.count("judge 'b' failed") == 1  # not once a round
    counts = Counter(d for d, *_ in said)
    assert max(counts.values()) > min(counts.values()) >= 4

    block = found["evalbudget"]
    assert (block["readings"], block["failed"]) == (38, 2)
    assert block["judges"]["essays"]["per_judge"]["b"]["failed"] == 2
    scores = JudgeScores.of(
        [d for d, *_ in said],
        [e for _, e, *_ in said],
        [NAMES.index(j) for *_, j, _ in said],
        [math.nan if s is None else s for *_, s in said],
        judges=NAMES,
        phase=[phases[d, e] for d, e, *_ in said],
    )
    how = Allocation(block["allocation"])
    estimate = panel_mean(scores, allocation=how, fixed_repeats=block["fixed_repeats"])
    assert block["judges"]["essays"]["method"] == estimate.method
    row = found["results"]["essays"]
    again = mean_over_fixed_items(
        judge_corrected(scores), allocation=how, fixed_repeats=block["fixed_repeats"]
    )
    assert row["judged,panel"] == row["judged_repeats,panel"] == pytest.approx(estimate.value, abs=1e-12)
    assert row["judged_repeats_stderr,panel"] == pytest.approx(again.standard_error, abs=1e-12)
    larger = max(estimate.standard_error, again.standard_error)
    assert row["judged_stderr,panel"] == pytest.approx(larger, abs=1e-12)
    assert 1.0 <= row["judged_lower,panel"] <= row["judged_repeats_lower,panel"] < row["judged,panel"]
    assert row["judged,panel"] < row["judged_repeats_upper,panel"] <= row["judged_upper,panel"] <= 5.0
    assert row["judged_missing,panel"] == 2
    assert found["higher_is_better"]["essays"] == {"judged": True}  # more bias is not better
    said_so = block["summary"]
    assert list(said_so["judges"]) == NAMES
    assert (said_so["readings"], said_so["counted"]) == (38, 38)
    # scores that were bought because of others do not count for the judges either
    biases = judge_biases(scores.where(scores.epoch < block["fixed_repeats"]))
    for judge, value, error in zip(biases.judges, biases.value, biases.standard_error, strict=True):
        assert row[f"judged_bias_{judge},panel"] == pytest.approx(value, abs=1e-12)
        assert row[f"judged_bias_{judge}_stderr,panel"] == pytest.approx(error, abs=1e-12)

    recorded = open_scores(out)
    assert recorded is not None
    assert recorded.purchases is not None
    assert sorted(recorded.raters) == NAMES
    assert (recorded.purchases[0].allocation, recorded.purchases[0].cost) == (how, 40)


def parsed(out: Path) -> list[tuple[int, int, dict[str, Any]]]:
    records = samples_in(out)
    return [(r["doc_id"], r["epoch"], json.loads(text)) for r in records for text in r["filtered_resps"][0]]


def phases_of(out: Path) -> dict[tuple[int, int], int]:
    """Of every answer, by document and repeat."""
    return {(r["doc_id"], r["epoch"]): r["phase"] for r in samples_in(out)}


def map_back(reading: dict[str, Any]) -> tuple[str, float | None]:
    return reading["evalbudget_judge"], reading["score"]


def test_a_run_that_breaks_off_among_judges_pays_nobody_twice(
    server: Server, judges: list[str], tmp_path: Path
) -> None:
    folder = write_judged(tmp_path, judges, n=4, gen_kwargs={"temperature": 1})
    arguments: dict[str, Any] = {"budget": 20, "sampler": "eb-bernstein"}

    def run(journal: Path) -> dict[str, Any]:
        with budgeted(journal=journal, **arguments):
            return evaluate(folder, server.chat_args("writer"))

    whole = run(tmp_path / "whole" / "j.db")
    before = server.calls()
    with broken_off(Asking, "_heard", at=5), pytest.raises(KeyboardInterrupt):
        run(tmp_path / "broken" / "j.db")
    again = run(tmp_path / "broken" / "j.db")
    assert server.calls() - before == 20 + 20
    assert again["results"]["essays"]["judged,panel"] == whole["results"]["essays"]["judged,panel"]
    assert sorted(readings_of(again)) == sorted(readings_of(whole))

    # a finished run is told again from its journal without a call
    calls = server.calls()
    told = run(tmp_path / "broken" / "j.db")
    assert server.calls() == calls
    assert told["results"] == again["results"]

    # scores of another panel are not mixed with these; how fast judges are asked is no matter
    for change in ({"scale": [1, 10]}, {"judges": judges[:2]}, {"prompt": "{{response}}?"}, {"seed": 1}):
        options = {"judges": judges, "gen_kwargs": {"temperature": 1}, **change}
        folder = write_judged(tmp_path / "changed", options.pop("judges"), n=4, **options)
        with pytest.raises(JournalError, match="judges = "):
            run(tmp_path / "broken" / "j.db")
    slower = [server.judge(name, num_concurrent=1, max_retries=2) for name in NAMES]
    folder = write_judged(tmp_path / "slower", slower, n=4, gen_kwargs={"temperature": 1})
    assert run(tmp_path / "broken" / "j.db")["results"] == again["results"]
    assert server.calls() == calls


def test_refused_before_anything_is_spent(server: Server, judges: list[str], tmp_path: Path) -> None:
    def refused(name: str, message: str, **options: Any) -> None:
        folder = write_judged(tmp_path / name, options.pop("judges", judges), n=3, **options)
        with (
            pytest.raises((InvalidInputError, UnknownNameError), match=message),
            budgeted(budget=17, journal="none"),
        ):
            evaluate(folder, server.chat_args("writer"))

    refused("rotation", "cyclic", rotation="cylic")
    refused("alone", "at least 2 judges", judges=judges[:1])
    refused("same", "repeats would be identical", generation=GREEDY)  # deterministic judges
    varied = {"rotation": "all", "gen_kwargs": {"temperature": 1}}
    refused("small", "below the minimum of 18", **varied)  # 3 documents x 2 times x 3 judges
    assert server.calls() == 0


def test_several_judges_of_an_answer_count_each(server: Server, judges: list[str], tmp_path: Path) -> None:
    folder = write_judged(tmp_path, judges, n=3, rotation="all", gen_kwargs={"temperature": 1})
    assert load(folder)
    with budgeted(budget=29, sampler="uniform", journal="none"):
        found = evaluate(folder, server.chat_args("writer"))
    assert Counter(s.model for s in server.served) == Counter(writer=9, a=9, b=9, c=9)
    assert found["evalbudget"]["spent"] == 27

    # the scores of an answer are of its phase
    folder = write_judged(tmp_path / "more", judges, n=5, rotation="all", gen_kwargs={"temperature": 1})
    out = tmp_path / "out"
    with budgeted(budget=75, journal="none"):
        found = evaluate(folder, server.chat_args("writer"), output=out)
    said = [(d, e, *map_back(r)) for d, e, r in parsed(out)]
    phases = phases_of(out)
    assert len(said) == 3 * len(phases) == 75
    assert Counter(phases.values()) == {0: 10, 1: 10, 2: 5}
    scores = JudgeScores.of(
        [d for d, *_ in said],
        [e for _, e, *_ in said],
        [NAMES.index(j) for *_, j, _ in said],
        [s for *_, s in said],
        judges=NAMES,
        phase=[phases[d, e] for d, e, *_ in said],
    )
    estimate = panel_mean(scores, allocation=Allocation.PHASED)
    assert found["results"]["essays"]["judged,panel"] == pytest.approx(estimate.value, abs=1e-12)
    recorded = open_scores(out)
    assert recorded is not None


def test_every_response_of_the_first_answers_counts(
    server: Server, judges: list[str], tmp_path: Path
) -> None:
    folder = write_judged(tmp_path, judges, n=5, repeats=2, gen_kwargs={"temperature": 1})
    out = tmp_path / "out"
    with budgeted(budget=50, sampler="eb-bernstein", journal="none"):
        found = evaluate(folder, server.chat_args("writer"), output=out)
    said = [(d, r["epoch"], *map_back(r)) for d, _, r in parsed(out)]
    columns = [(d, e, NAMES.index(j), s) for d, e, j, s in said]
    phases = phases_of(out)
    assert len(said) == 2 * len(phases) == 50
    assert Counter(phases.values()) == {0: 10, 1: 10, 2: 5}
    scores = JudgeScores.of(
        *zip(*columns, strict=True),
        judges=NAMES,
        phase=[phases[d, e // 2] for d, e, *_ in columns],  # an answer is two responses
    )
    estimate = panel_mean(scores, allocation=Allocation.PHASED)
    row = found["results"]["essays"]
    assert row["judged,panel"] == pytest.approx(estimate.value, abs=1e-12)
    again = mean_over_fixed_items(judge_corrected(scores), allocation=Allocation.PHASED)
    larger = max(estimate.standard_error, again.standard_error)
    assert row["judged_stderr,panel"] == pytest.approx(larger, abs=1e-12)
    recorded = open_scores(out)
    assert recorded is not None
    assert recorded.purchases is not None
    assert recorded.purchases[0].fixed_repeats == 4
