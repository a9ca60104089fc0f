"""Sections of benchmarks/papers.py run at reduced sizes, and print the figures that must hold at any size."""

from __future__ import annotations

import importlib
import itertools
from typing import Any

import numpy as np
import pytest
from tests.benchmarks.quick import check_table, written


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    """Data and page of a quick run."""
    return written("papers", "cyclicjudge", "pp-lucb", docs=tmp_path_factory.mktemp("papers"))[:2]


def rows(section: dict[str, Any], title: str) -> list[dict[str, str]]:
    """Of the table whose title begins so; of columns with the same name, the last."""
    (table,) = [table for table in section["tables"] if table["title"].startswith(title)]
    return [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]


@pytest.mark.variant
def test_every_table_of_both_sections_is_on_the_page(quick: tuple[dict[str, Any], str]) -> None:
    kept, page = quick
    assert set(kept) == {"cyclicjudge", "pp-lucb"}
    for section in kept.values():
        for table in (section, *section["tables"]):
            check_table(table, page)
        assert [table["title"] for table in section["tables"]][-2:] == ["Claims", "Errata"]
        assert section["targets"]


@pytest.mark.variant
def test_cyclicjudge_gives_the_figures_that_follow_from_the_published_components(
    quick: tuple[dict[str, Any], str],
) -> None:
    section = quick[0]["cyclicjudge"]
    figure = {(row["model"], row["B"]): row["Eqs. 3-5: A / B / C"] for row in rows(section, "Figure 2")}
    assert figure["Qwen", "5"] == "7.04 / 6.75 / 4.38"
    assert figure["Llama", "5"] == "5.80 / 4.68 / 3.42"
    assert figure["GPT", "5"] == "2.36 / 2.45 / 1.60"
    cuts = {row["model"]: row for row in rows(section, "Random judges to judges in turn")}
    assert {name: row["scenarios left out"] for name, row in cuts.items()} == {
        "Qwen": "35.1%",
        "Llama": "26.9%",
        "GPT": "34.6%",
    }
    assert {name: row["scenarios counted"] for name, row in cuts.items()} == {
        "Qwen": "9.2%",
        "Llama": "8.0%",
        "GPT": "8.2%",
    }
    implied = {row["model"]: row["Table 2 implies, m = 1"] for row in rows(section, "Table 1")}
    assert implied == {"Qwen": "±0.40", "Llama": "±0.33", "GPT": "±0.25"}
    assert all(target["reached"] for target in section["targets"]), section["targets"]


@pytest.mark.variant
def test_pp_lucb_counts_the_published_costs_and_stops_far_later(quick: tuple[dict[str, Any], str]) -> None:
    section = quick[0]["pp-lucb"]
    after = {row["allocator"]: row for row in rows(section, "After 500 pulls")}
    assert after["label all"]["cost"] == "10,500"
    assert after["judge only"]["cost"] == "500"
    stops = {row["rule"]: row for row in rows(section, "Until it stops")}
    assert {name: row["decided"] for name, row in stops.items() if "neyman" in name} == {
        "pp-lucb, neyman, no T_max": "1.000",
        "pp-lucb, neyman, T_max": "0.000",
    }
    cost = {name: float(row["cost"].replace(",", "")) for name, row in stops.items()}
    assert cost["audit-eprocess"] < cost["pp-lucb, uniform, no T_max"] / 3
    misled = {(row["world"], row["rule"]): row for row in rows(section, "Where the judge misleads")}
    judge = misled["bias by system, gap 0.1", "judge only, 2,500 pulls per system"]
    assert judge["leader is best"] == "0.000"
    assert misled["bias by system, gap 0.1", "audit-eprocess"]["leader is best"] == "1.000"


def test_the_rebuilt_judges_have_the_published_components_and_means() -> None:
    models = importlib.import_module("papers_sections.judge_world").MODELS
    for model in models.values():
        gamma = model.gamma
        assert sum(gamma) == pytest.approx(0.0, abs=0.011)
        assert sum(x * x for x in gamma) / 5 == pytest.approx(model.judge, abs=0.005)
        for place, (mean, _) in enumerate(model.single.values()):
            assert model.mean + gamma[place] == pytest.approx(mean, abs=0.006)
        assert 1 + 800 * 5 * model.judge / (4 * model.residual) == pytest.approx(model.f, rel=0.001)


def test_constants_of_a_pool_are_the_exact_variances_of_its_subsamples() -> None:
    """One scenario, five judges, two generations: every draw listed."""
    turns = importlib.import_module("papers_sections.judge_turns")
    table = np.random.default_rng(0).normal(size=(1, 5, 2))
    pool, item = table[0], table.mean()
    means_a = [pool[:, g].mean() for g in range(2)]
    means_b = pool.ravel()
    means_c = [pool[range(5), list(g)].mean() for g in itertools.product(range(2), repeat=5)]
    exact = [np.mean((np.asarray(means) - item) ** 2) for means in (means_a, means_b, means_c)]
    # calls per scenario: all five judges once, one random judge, every judge in turn
    assert turns.pool_constants(table) / [5, 1, 5] == pytest.approx(exact)
