"""Judges in a task's YAML, asked over HTTP through the host's own model classes."""

from __future__ import annotations

import json
import logging
import math
import pickle
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lm_eval.utils import make_table
from tests.host_lm_eval.judged_worlds import PROCESS, evaluate, load, write_judged
from tests.host_lm_eval.worlds import chat_model, numbered

from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.judges.estimates import JudgeScores, judge_biases, panel_mean
from evalbudget.judges.schedules import Cyclic
from evalbudget_lm_eval.host.host_evaluate import PrimedTasks
from evalbudget_lm_eval.judges.filter import check_judges, panel_of
from evalbudget_lm_eval.judges.grading import Grading
from evalbudget_lm_eval.judges.judge_models import read_judges
from evalbudget_lm_eval.judges.readings import Judged, Reading, Readings
from evalbudget_lm_eval.judges.rows import judged, panel
from evalbudget_lm_eval.log_folder import open_scores
from loopback import Asked, Server, rating

NAMES = ["a", "b", "c"]


def readings_of(found: dict[str, Any], name: str = "essays") -> list[list[Reading]]:
    return [list(sample["filtered_resps"][0]) for sample in found["samples"][name]]


def test_what_other_threads_say_while_judges_are_asked_is_shown(
    server: Server, judges: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here, seen, answer = sys.stderr, list[bool](), server.answers["a"]

    def looks(asked: Asked) -> str:
        seen.append(sys.stderr is here)
        return answer(asked)

    server.answers["a"] = looks
    evaluate(write_judged(tmp_path, judges, n=6), server.chat_args("writer"))
    assert seen == [True] * 2
    assert capsys.readouterr().err.count("Requesting API:   0%") <= 1  # of the writer, and of no judge


def test_stock_run_rotates_judges_and_reports_the_panel(
    server: Server, judges: list[str], tmp_path: Path
) -> None:
    folder = write_judged(tmp_path, judges, n=30)
    server.gather(5, *NAMES)
    found = evaluate(folder, server.chat_args("writer", num_concurrent=4))
    said = readings_of(found)

    # the schedule, not the position modulo the judges
    schedule = Cyclic([str(i) for i in range(30)], NAMES, categories=["ab"[i % 2] for i in range(30)])
    assert [[NAMES.index(r.judge) for r in own] for own in said] == [
        list(schedule.judges_for(i)) for i in range(30)
    ]
    assert server.count() == Counter(writer=30, a=10, b=10, c=10)
    assert server.most_at_once > 4  # judges are asked side by side

    # every judge saw the document and the answer it was to score
    prompts = [s.prompt for s in server.served if s.model in NAMES]
    assert all("from 1 (worst) to 5" in prompt and "Answer: " in prompt for prompt in prompts)
    assert sorted(int(re.findall(r"topic: topic (\d+)", p)[0]) for p in prompts) == list(range(30))

    # the estimates, against the estimators themselves
    scores = JudgeScores.of(
        range(30),
        [0] * 30,
        [NAMES.index(own[0].judge) for own in said],
        [own[0].score for own in said],
        judges=NAMES,
    )
    row, estimate, biases = found["results"]["essays"], panel_mean(scores), judge_biases(scores)
    interval = estimate.confidence_interval(0.95)
    assert row["judged,panel"] == pytest.approx(estimate.value, abs=1e-12)
    assert row["judged_stderr,panel"] == pytest.approx(estimate.standard_error, abs=1e-12)
    assert row["judged_lower,panel"] == pytest.approx(interval.low, abs=1e-12)
    assert row["judged_upper,panel"] == pytest.approx(interval.high, abs=1e-12)
    assert row["judged_missing,panel"] == 0
    for name, bias, error in zip(NAMES, biases.value, biases.standard_error, strict=True):
        assert row[f"judged_bias_{name},panel"] == pytest.approx(bias, abs=1e-12)
        assert row[f"judged_bias_{name}_stderr,panel"] == pytest.approx(error, abs=1e-12)
    assert f'"judged": {said[0][0].score}' in json.dumps(found["samples"], default=str)  # in the host's files


def test_repeats_of_a_document_go_to_the_next_judges(
    server: Server, judges: list[str], tmp_path: Path
) -> None:
    folder = write_judged(tmp_path, judges, n=8, repeats=3, gen_kwargs={"temperature": 1})
    found = evaluate(folder, server.chat_args("writer"))
    for own in readings_of(found):
        assert {r.judge for r in own} == set(NAMES)  # each judge once in the first K answers
        assert [r.epoch for r in own] == [0, 1, 2]
    seeds = [s.body["seed"] for s in server.served if s.model in NAMES]
    assert len(set(seeds)) == len(seeds) == 24
    assert server.calls("a") == 8
    row = found["results"]["essays"]
    assert row["judged_repeats,panel"] == row["judged,panel"]
    assert 0 < row["judged_repeats_stderr,panel"] <= row["judged_stderr,panel"]
    assert row["judged_lower,panel"] <= row["judged_repeats_lower,panel"] < row["judged,panel"]
    assert row["judged,panel"] < row["judged_repeats_upper,panel"] <= row["judged_upper,panel"]


def test_a_judge_whose_service_knows_no_seeds_is_sent_none(server: Server, tmp_path: Path) -> None:
    judge = f"evalbudget-test-seedless:{server.chat_args('a')}"
    options: dict[str, Any] = {"model": judge, "name": "a", "apply_chat_template": True}
    folder = write_judged(tmp_path, [options], n=3, rotation="single", gen_kwargs={"temperature": 1})
    evaluate(folder, server.chat_args("writer"))
    asked = [one.body for one in server.served if one.model == "a"]
    assert len(asked) == 3
    assert not any("seed" in body for body in asked)


def test_few_documents_have_no_interval_and_it_says_why(
    server: Server, judges: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "evalbudget_lm_eval"):
        found = evaluate(write_judged(tmp_path, judges, n=2), server.chat_args("writer"))
    row = found["results"]["essays"]
    assert 1.0 <= row["judged,panel"] <= 5.0
    assert row["judged_lower,panel"] == row["judged_upper,panel"] == row["judged_stderr,panel"] == "N/A"
    assert "judged_repeats,panel" not in row
    assert caplog.text.count("judged has no interval: an interval needs at least 3 items, and 2") == 1
    assert "|judged " in make_table(found)


def test_intervals_stay_on_the_scale(server: Server, judges: list[str], tmp_path: Path) -> None:
    def nearly_always_best(asked: Asked) -> str:
        return "RATING: 4" if "topic 2" in asked.prompt else "RATING: 5"

    server.answers |= dict.fromkeys(NAMES, nearly_always_best)
    row = evaluate(write_judged(tmp_path, judges, n=12), server.chat_args("writer"))["results"]["essays"]
    assert row["judged_lower,panel"] < row["judged,panel"] < row["judged_upper,panel"] == 5.0


def test_failed_and_unreadable_calls_are_missing_and_counted(
    server: Server, judges: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def sometimes(asked: Asked) -> str:
        return "RATING: 9" if "topic 3" in asked.prompt else rating()(asked)

    server.answers |= dict.fromkeys(NAMES, sometimes)
    server.fail(500, when=lambda body: "topic 5" in str(body) and body["model"] != "writer", times=math.inf)
    folder = write_judged(tmp_path, judges, n=12)
    with caplog.at_level(logging.WARNING, "evalbudget_lm_eval"):
        found = evaluate(folder, server.chat_args("writer"))
    said = readings_of(found)
    missing = {i for i, own in enumerate(said) if own[0].score is None}
    assert missing == {3, 5}
    assert said[5][0].error is not None
    ours = [r.getMessage() for r in caplog.records if r.name.startswith("evalbudget")]
    assert "Bearer" not in json.dumps(found["samples"], default=str) + str(ours)  # no key in any file
    assert said[3][0].reply == "RATING: 9"
    row = found["results"]["essays"]
    assert row["judged_missing,panel"] == 2
    per_judge = [
        np.mean([own[0].score for own in said if own[0].judge == n and own[0].score is not None])
        for n in NAMES
    ]
    assert row["judged,panel"] == pytest.approx(np.mean(per_judge))  # no zeros in it
    assert "missing from the estimate, not zero" in caplog.text


def test_a_dead_judge_is_dropped_and_the_others_are_kept(
    server: Server, judges: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server.fail(500, model="b", times=math.inf)
    folder = write_judged(tmp_path, [f"{j},num_concurrent=1" for j in judges], n=60)
    with caplog.at_level(logging.WARNING, "evalbudget_lm_eval"):
        found = evaluate(folder, server.chat_args("writer", num_concurrent=8))
    said = readings_of(found)
    assert 8 <= server.calls("b") < 20  # its share; on a busy machine some go out until it is heard of
    assert "judge 'b' failed in all of its first" in caplog.text
    scored = Counter(own[0].judge for own in said if own[0].score is not None)
    assert set(scored) == {"a", "c"}
    assert scored.total() == 60 - server.calls("b")
    assert abs(scored["a"] - scored["c"]) <= 2
    row = found["results"]["essays"]
    assert row["judged_missing,panel"] == server.calls("b")
    assert math.isfinite(row["judged,panel"])
    assert row["judged_bias_b,panel"] == "N/A"


def test_a_judge_that_cannot_be_loaded_leaves_the_others(
    server: Server, judges: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = write_judged(tmp_path, [*judges[:2], "no-such-kind:model=x"], n=6)
    with caplog.at_level(logging.ERROR, "evalbudget_lm_eval"):
        found = evaluate(folder, server.chat_args("writer"))
    assert {own[0].judge for own in readings_of(found)} == {"a", "b"}
    assert "judge 'x' cannot be loaded" in caplog.text
    with pytest.raises(InvalidInputError, match="judge 'x' cannot be loaded"):
        check_judges(load(folder)["tasks"]["essays"])


def test_options_that_cannot_be_used_lose_no_answer(
    server: Server, judges: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = write_judged(tmp_path, judges, n=4, rotation="cylic")
    with caplog.at_level(logging.ERROR, "evalbudget_lm_eval"):
        found = evaluate(folder, server.chat_args("writer"))
    assert "unknown rotation 'cylic'" in caplog.text
    assert "No judge was asked" in caplog.text
    assert [s["resps"][0][0][:8] for s in found["samples"]["essays"]] == ["Answer: "] * 4
    assert math.isnan(found["results"]["essays"]["judged,panel"])
    with pytest.raises(UnknownNameError, match="cyclic"):
        panel_of(load(folder)["tasks"]["essays"])


def test_all_judges_score_every_answer(server: Server, judges: list[str], tmp_path: Path) -> None:
    folder = write_judged(tmp_path, judges, n=5, rotation="all", metrics=PROCESS, target="{{names}}")
    task = load(folder)["tasks"]["essays"]
    assert check_judges(task) is not None
    found = evaluate(folder, server.chat_args("writer"))
    assert [[r.judge for r in own] for own in readings_of(found)] == [NAMES] * 5
    scores = np.array([[r.score for r in own] for own in readings_of(found)], dtype=float)
    assert found["results"]["essays"]["judged,panel"] == pytest.approx(scores.mean(axis=0).mean())


def test_several_targets_with_the_metric_are_refused_before_the_run(
    judges: list[str], tmp_path: Path
) -> None:
    folder = write_judged(tmp_path, judges, target="{{names}}")
    with pytest.raises(InvalidInputError, match="process_judged"):
        check_judges(load(folder)["tasks"]["essays"])


def test_rounds_deal_a_document_to_its_next_judge(server: Server, judges: list[str], tmp_path: Path) -> None:
    """Documents asked several times, in one round and over rounds, as a budgeted run does."""
    folder = write_judged(tmp_path, judges, n=9, gen_kwargs={"temperature": 1})
    lm = chat_model(server, "writer")
    cells = [("essays", 4), ("essays", 4), ("essays", 1), ("essays", 7)]
    with PrimedTasks(lm, load(folder), apply_chat_template=True) as primed:
        first = primed.run(numbered(cells))
        second = primed.run([*numbered([("essays", 7)], first=1), *numbered([("essays", 4)], first=2)])
        total = primed.results()
    schedule = Cyclic([str(i) for i in range(9)], NAMES, categories=["ab"[i % 2] for i in range(9)])
    asked = [(a.doc_id, a.epoch, a.records[0]["filtered_resps"][0][0]) for a in [*first, *second]]
    assert [cell[:2] for cell in asked] == [(4, 0), (4, 1), (1, 0), (7, 0), (7, 1), (4, 2)]
    for doc_id, epoch, reading in asked:
        assert NAMES.index(reading.judge) == schedule.judges_for(doc_id, epoch)[0]
        assert reading.epoch == epoch
    assert {r.judge for d, _, r in asked if d == 4} == set(NAMES)
    assert all(a.metrics["judged,panel"] == a.records[0]["filtered_resps"][0][0].score for a in first)

    # totals have the readings of all rounds
    item = {1: 0, 4: 1, 7: 2}
    scores = JudgeScores.of(
        [item[d] for d, _, _ in asked],
        [e for _, e, _ in asked],
        [NAMES.index(r.judge) for *_, r in asked],
        [r.score for *_, r in asked],
        judges=NAMES,
    )
    row = total["results"]["essays"]
    assert row["judged,panel"] == pytest.approx(panel_mean(scores).value, abs=1e-12)


def test_the_example_runs_offline(tmp_path: Path) -> None:
    folder = Path(__file__).parents[2] / "examples" / "lm_eval_judged"
    found = evaluate(folder, "", "judged_stories", model="dummy", output=tmp_path, apply_chat_template=False)
    row = found["results"]["judged_stories"]
    assert row["judged_missing,panel"] == 0
    assert row["judged_bias_strict,panel"] < row["judged_bias_fair,panel"] < row["judged_bias_lenient,panel"]
    recorded = open_scores(tmp_path)
    assert recorded is not None
    assert recorded.models == ("dummy",)
    assert recorded.scores.shape[1:3] == (60, 3)


class TestReplies:
    @pytest.mark.parametrize(
        ("reply", "score"),
        [
            ("Good. RATING: 4", 4.0),
            ("rating: 2\nOn reflection:\n**RATING:** 3.5", 3.5),
            ("RATING: 4/5", 4.0),
            (" 3 ", 3.0),
            ("RATING: 4.", 4.0),
            ("RATING: 7", None),
            ("RATING: 4,5", None),
            ("RATING: 3-4", None),
            ("RATING: -3", None),
            ("I would say 4 or so", None),
            ("", None),
        ],
    )
    def test_numbers_on_the_scale(self, reply: str, score: float | None) -> None:
        assert Grading.of(None, [1, 5], None).read(reply) == score

    def test_a_pattern_of_ones_own(self) -> None:
        grading = Grading.of("{{topic}}: {{response}}", [0, 1], r"grade=(\S+)")
        assert grading.read("grade=0.2 grade=1") == 1.0
        assert grading.read("grade=x") is None
        assert grading.read("1") is None
        assert grading.render({"topic": "t", "response": "gold"}, "said") == "t: said"

    @pytest.mark.parametrize(
        ("prompt", "scale", "pattern", "message"),
        [
            (None, [5, 1], None, "scale is"),
            (None, 5, None, "scale is"),
            (None, [1, 5], "(", "no regular expression"),
            (None, [1, 5], "a", "0 groups"),
            (7, [1, 5], None, "prompt is 7"),
        ],
    )
    def test_bad_options(self, prompt: Any, scale: Any, pattern: Any, message: str) -> None:
        with pytest.raises(InvalidInputError, match=message):
            Grading.of(prompt, scale, pattern)

    def test_a_field_that_documents_lack(self) -> None:
        with pytest.raises(InvalidInputError, match=r"'qestion' is undefined.* has question"):
            Grading.of("{{qestion}}", [1, 5], None).render({"question": "?"}, "r")


class TestPanels:
    def test_names_and_options(self) -> None:
        first, second = read_judges(
            [
                "local-chat-completions:model=m,base_url=http://h:1/v1/chat/completions",
                {
                    "name": "strict",
                    "model": "hf",
                    "model_args": "pretrained=p",
                    "gen_kwargs": {"temperature": 1},
                },
            ],
            {"max_gen_toks": 9},
        )
        assert (first.name, first.kind, first.is_chat) == ("m", "local-chat-completions", True)
        assert first.args == {"model": "m", "base_url": "http://h:1/v1/chat/completions"}
        assert first.gen_kwargs == {"max_gen_toks": 9, "temperature": 0.0}
        assert (second.name, second.model, second.is_chat) == ("strict", "p", False)
        assert second.temperature == 1.0

    @pytest.mark.parametrize(
        ("judges", "message"),
        [
            ("a,b", "give a list"),
            (["k:model=m", "k:model=m"], "two judges are named 'm'"),
            ([{"name": "x"}], "names no model"),
            (["model=m"], "names no kind"),
            ([{"model": "k:model=m", "temprature": 1}], "temprature"),
        ],
    )
    def test_bad_judges(self, judges: Any, message: str) -> None:
        with pytest.raises((InvalidInputError, UnknownNameError), match=message):
            read_judges(judges)


class TestRows:
    def test_values_survive_other_processes(self) -> None:
        value = Judged("bias a", Readings([Reading("a", 0, 3.0), Reading("b", 1, 5.0)], judges=NAMES))
        again = pickle.loads(pickle.dumps(value))
        assert (again, again.about, again.readings) == (3.0, "bias a", value.readings)
        assert again.readings.judges == tuple(NAMES)
        assert json.dumps(value) == "3.0"

    def test_readings_are_read_again_from_files(self) -> None:
        for reading in (Reading("a", 2, 3.5, 'said "so"'), Reading("b", 0, None, error="gone")):
            assert Reading.parse(str(reading)) == reading
        assert Reading.parse("an answer") is None
        assert Reading.parse('{"evalbudget_judge": ') is None

    def test_wrong_neighbours_are_named(self) -> None:
        with pytest.raises(InvalidInputError, match="CyclicJudgeFilter"):
            judged(predictions=["text"])  # type: ignore[list-item]
        with pytest.raises(InvalidInputError, match=r"evalbudget_lm_eval\.judged"):
            panel([1.0, 2.0])  # type: ignore[list-item]
