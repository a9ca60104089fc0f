"""Audits in money: the price of a label, what the judge was known to cost, the bill beside the store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.audits.store.audits import Told
from tests.audits.store.test_run import label_all

from evalbudget.audits.store import AuditBudget, AuditSettings, AuditStore, bill_beside, check_money, weigh
from evalbudget.audits.store._run import AuditRun
from evalbudget.errors import AuditStoreError, BudgetError, InvalidInputError


def _settings(store: Path, **given: Any) -> AuditSettings:
    return AuditSettings.of(store=str(store), models=["a", "b"], **given)


def test_the_price_of_a_label_is_a_number_of_scores_or_money(tmp_path: Path) -> None:
    for given, price, in_dollars in (
        (3, 3.0, False),
        ("3", 3.0, False),
        ("$2", 2.0, True),
        (None, 20.0, False),
    ):
        settings = _settings(tmp_path / "a.sqlite", label_price=given)
        assert settings.start(10).config.label_price == price
        assert settings.in_dollars is in_dollars
    # as long as nobody knows what a score costs, a label costs as many as by default
    assert _settings(tmp_path / "a.sqlite", label_price="$2").start(10).config.judge_price == 0.1
    for wrong in ("dear", "2Mtok", "20x", "€2"):
        with pytest.raises(InvalidInputError, match="is no price; write a number of the judge's scores"):
            _settings(tmp_path / "a.sqlite", label_price=wrong)
    with pytest.raises(InvalidInputError, match="finite price"):
        _settings(tmp_path / "a.sqlite", label_price="-1")


def test_what_goes_together(tmp_path: Path) -> None:
    store = tmp_path / "a.sqlite"
    given: dict[str, Any] = {"budget": "$5", "sampler": "human-only"}
    budget = AuditBudget.taken_from(given)
    assert given == {"sampler": "human-only"}
    assert budget is not None
    assert budget.cap.amount == 5.0
    assert AuditBudget.taken_from({}) is None
    for wrong in ("100", "20x", 100):
        with pytest.raises(BudgetError, match="the labels it may ask for: --most N; drop it"):
            AuditBudget.taken_from({"budget": wrong}, "--most N")
    check_money(_settings(store, label_price="$2"), budget)
    with pytest.raises(InvalidInputError, match="only a --budget in dollars"):
        check_money(_settings(store, label_price="$2"), AuditBudget.taken_from({"budget": "2Mtok"}))
    with pytest.raises(AuditStoreError, match="was begun without a budget in money or tokens"):
        check_money(_settings(store), budget, bought=True)
    bill_beside(store).touch()
    check_money(_settings(store), budget, bought=True)
    with pytest.raises(AuditStoreError, match="give --budget again"):
        check_money(_settings(store), None)


def test_a_batch_is_chosen_by_what_the_judge_cost_before_and_stays_as_it_is(tmp_path: Path) -> None:
    drawn = {}
    for name, price in (("cheap", 0.01), ("dear", 300.0), ("unknown", None)):
        told = Told(means=(6.0, 5.5))
        with told.create(tmp_path / f"{name}.sqlite") as store:
            if price is not None:
                store.judge_prices.note(price)
                assert store.judge_prices.all() == {}  # nothing was drawn that it is known after
            told.draw(store)
            if price is not None:
                store.judge_prices.note(price)
                store.judge_prices.note(7.0)  # the first counts
                assert store.judge_prices.all() == {0: price}
            label_all(told, store)
            told.draw(store)
            drawn[name] = [draw for draw in store.draws.all() if draw.policy == 1]
        with AuditStore.open(tmp_path / f"{name}.sqlite", told.design) as again:
            again.judge_prices.note(9.0)  # of the batch that is drawn, for the next one
            assert AuditRun(again).contexts == ()
            assert weigh(again).progress.batch == 1
    mean = {name: sum(draw.propensity for draw in of) / len(of) for name, of in drawn.items()}
    assert mean["cheap"] < mean["unknown"] < mean["dear"] == 1.0  # labels alone


def test_prices_that_are_none_are_told(tmp_path: Path) -> None:
    told = Told()
    with told.create(tmp_path / "a.sqlite") as store:
        for value in ("x", "nan", "-1.0"):
            with store._db.write() as connection:
                for verb in ("update", "delete"):
                    connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS meta_no_{verb}")
                replace = "INSERT OR REPLACE INTO meta VALUES ('judge price after batch 0', ?)"
                connection.exec_driver_sql(replace, (value,))
            with pytest.raises(AuditStoreError, match="is damaged: a price of the judge is no"):
                store.judge_prices.all()


def test_the_budget_is_no_part_of_the_design(tmp_path: Path) -> None:
    design = _settings(tmp_path / "a.sqlite", label_price="$2").design(["x", "y"])
    config = json.loads(design.to_json())["config"]
    assert not {"budget", "prices", "risk"} & set(config)
    assert (config["label_price"], config["judge_price"]) == (2.0, 0.1)
