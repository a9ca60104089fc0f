"""The report for a browser, read strictly."""

from __future__ import annotations

import csv
import json
import re
from base64 import b64decode
from dataclasses import dataclass, replace
from html import escape
from io import StringIO
from typing import Any, ClassVar, Self
from xml.etree import ElementTree

import numpy as np
import pytest
from tests.claims import variant
from tests.report.pages import Page, read_site
from tests.report.worlds import panel, recorded

from evalbudget import Allocation
from evalbudget.backtest import HowBought
from evalbudget.report import SECTIONS, Report, Section, Study, page, report, site
from evalbudget.report._charts import Chart
from evalbudget.report._slugs import slugs
from evalbudget.spreadsheets import names_from_cells
from evalbudget.tables import NotedTable

NAMES = ("a/b", "A b", "<script>b", "c & \"d'", "\x1b[2Jé", "模型", "con", "../../etc", "a-b-2")


def named() -> Report:
    """Names with slashes, markup, quotes, controls, and some that only case or markup tells apart."""
    x = panel(models=len(NAMES))
    items = tuple(f"<i>{i}" for i in range(40))
    texts = ("What is <b>1 & 1</b>?", *("?" * 20,) * 39)
    categories = ("<u>", "two") * 20
    return report(
        replace(
            recorded(x, models=NAMES, raters=("j/0", "J 0", "<s>", "j&3"), items=items),
            texts=texts,
            categories=categories,
        )
    )


def test_a_page_is_sound_and_needs_nothing_else() -> None:
    found = named()
    text = page(found, title="my & page")
    assert "<title>my &amp; page</title>" in text
    read = read_site({"index.html": text})["index.html"]
    assert not re.findall(r"https?://[^\"' <]+", text)
    assert not re.search(r"url\(|@import|\x1b", text)
    own = [chart for name in NAMES for section in found.sections for chart in section.model_charts(name)]
    assert read.tags["svg"] == 2 * len([*found.charts(), *own])  # for wide and for narrow screens
    for table in found.table().parts:
        assert escape(str(table.title)) in text
        assert escape(table.note) in text
    for name in (*NAMES[:4], "../../etc"):
        assert read.text.count(name) > 3
    assert read.links[0] == "#main"
    assert {"prefers-color-scheme", "currentColor"} <= set(re.findall(r"[a-zA-Z-]+", text))
    assert '<th scope="row" class="word"><a href="#model-script-b">&lt;script&gt;b</a></th>' in text


def test_the_data_is_in_the_page() -> None:
    found = named()
    data = Page(page(found)).data
    told = {name: b64decode(address.partition(",")[2]).decode() for name, address in data.items()}
    assert json.loads(told["report.json"]) == found.to_dict()
    rows = list(csv.DictReader(StringIO(told["leaderboard.csv"])))
    assert set(names_from_cells([row["model"] for row in rows])) == set(NAMES)
    assert float(rows[0]["estimate"]) == found.to_dict()["leaderboard"]["rows"][0]["estimate"]


def test_every_model_and_judge_has_a_page() -> None:
    found = named()
    files = site(found)
    pages = read_site(files)
    assert sum(name.startswith("models/") for name in pages) == len(NAMES)
    assert sum(name.startswith("judges/") for name in pages) == 4
    assert all(re.fullmatch(r"(models/|judges/)?[a-z0-9._-]+", name) for name in files)
    assert set(files) - set(pages) == {"report.json", "leaderboard.csv"}
    assert json.loads(files["report.json"]) == found.to_dict()
    for name in pages:
        if name != "index.html":
            assert "../index.html" in pages[name].links
    one = pages["models/a-b.html"]
    row = next(
        row for row in found.to_dict()["leaderboard"]["rows"] if row["model"] == "A b"
    )  # the better one
    for told in (
        "a/b",
        f"{row['estimate']:.2f}",
        "standard error",
        "all 9 models at once",
        "differences from",
    ):
        assert told in one.text
    assert "Items known least well" in one.text
    assert "<u>" in one.text
    judge = pages["judges/s.html"]
    for told in ("bias", "agreement and scale", "correlation", "lowest", "all 4 judges at once"):
        assert told in judge.text
    assert all("What is <b>1 & 1</b>?" not in text for text in files.values() if "<html" in text)


def test_the_texts_of_the_least_known_items_are_shown() -> None:
    x = np.random.default_rng(0).random((2, 30, 1, 6)).round()
    x[:, 3, 0] = [0, 1, 0, 1, 0, 1]
    x[:, 3, 0, 4:] = np.nan
    texts = tuple(f"question <b>{i}" for i in range(30))
    found = report(replace(recorded(x), texts=texts))
    rows = found.to_dict()["least_known"]["rows"]
    assert next(row["item"] for row in rows if row["model"] == "m0") == "i3"
    assert (rows[0]["text"], rows[0]["readings"]) == ("question <b>3", 4)
    read = Page(page(found))
    assert "question <b>3" in read.text
    for left_out in (np.ones((2, 30, 1, 1)), x[:, :, :, :1]):
        assert "least_known" not in report(recorded(left_out)).to_dict()
    assert "question" not in str(found.table())


def test_recordings_side_by_side_keep_the_texts_they_have() -> None:
    x = panel(models=2, judges=1, repeats=3)
    first, second = (recorded(x[[m]], models=(f"m{m}",)) for m in (0, 1))
    told = tuple(f"ask {i}" if i % 2 else "" for i in range(40))
    found = report({"a": first, "b": replace(second, texts=told)}).to_dict()["least_known"]["rows"]
    assert {row["text"] for row in found if int(row["item"][1:]) % 2 == 0} <= {""}
    for row in found:
        if int(row["item"][1:]) % 2:
            assert row["text"] == f"ask {row['item'][1:]}"
    assert any(row["text"] for row in found if row["model"] == "m0")
    assert not any(row["text"] for row in report({"a": first}).to_dict()["least_known"]["rows"])


@pytest.mark.parametrize(("models", "sections", "pages"), [(12, 12, 12), variant(13, 12, 13), (201, 12, 200)])
def test_of_many_models_only_the_first_have_a_place(models: int, sections: int, pages: int) -> None:
    x = np.random.default_rng(1).random((models, 20, 1, 1))
    found = report(recorded(x))
    read = Page(page(found))
    assert sum(each.startswith("model-") and not each.endswith("-heading") for each in read.ids) == sections
    assert (f"12 of {models} models" in read.text) == (models > 12)
    files = site(found)
    assert sum(name.startswith("models/") for name in files) == pages
    assert ("200 of 201 models" in Page(files["index.html"]).text) == (models > 200)
    assert len(found.to_dict()["differences"]["pairs"]) == (0 if models > 60 else models * (models - 1) // 2)


def test_verdicts_are_in_words_or_signs_for_all_pairs() -> None:
    few = Page(page(report(recorded(panel(models=3)))))
    assert "every pair" in few.text
    assert "better" in few.text
    many = Page(page(report(recorded(panel(models=13, judges=1)))))
    assert "+: the model of the row is better" in many.text
    assert "undecided pairs" in many.text


def test_where_the_budget_went() -> None:
    x = panel(models=2, judges=1, repeats=6)
    x[1, :4, 0, 0] = np.nan
    purchases = (HowBought(Allocation.ADAPTIVE, 2, cost=300.0, usd=1.5), HowBought(cost=240.0))
    epochs = np.broadcast_to(np.arange(6), x.shape)
    spent = report(recorded(x, purchases=purchases, epochs=epochs)).to_dict()["spent"]
    rows = {row.pop("model"): row for row in spent["models"]}
    assert rows["m0"] == {"counted": 80, "not_counted": 160, "failed": 60, "usd": 1.5}
    assert rows["m1"] == {"counted": 236, "not_counted": 0, "failed": 4, "usd": None}
    assert spent["judges"] == []
    assert "spent" not in report(recorded(x)).to_dict()
    read = Page(page(report(recorded(x, purchases=purchases, epochs=epochs))))
    assert "Where the budget went" in read.text


def test_dollars_by_judge_where_each_answer_has_one() -> None:
    x = panel(models=1, items=20, judges=2, repeats=2)
    x[:, :, 0, 1] = x[:, :, 1, 0] = np.nan
    costs = np.where(np.isnan(x), np.nan, np.array([[0.01], [0.03]]))
    spent = report(recorded(x, costs=costs)).to_dict()["spent"]
    assert [(row["judge"], row["readings"], row["share"]) for row in spent["judges"]] == [
        ("j0", 20, 0.5),
        ("j1", 20, 0.5),
    ]
    assert [row["usd"] for row in spent["judges"]] == pytest.approx([0.2, 0.6])
    assert spent["models"][0]["usd"] == pytest.approx(0.8)
    whole = panel(models=1, items=20, judges=2, repeats=2)
    shared = report(recorded(whole, costs=np.full(whole.shape, 0.01))).to_dict()["spent"]
    assert [row["usd"] for row in (*shared["judges"], *shared["models"])] == [None] * 3


def test_agreement_of_judges() -> None:
    rng = np.random.default_rng(2)
    truth = rng.integers(1, 6, (2, 200))
    x = np.empty((2, 200, 3, 1))
    x[:, :, 0, 0] = truth
    x[:, :, 1, 0] = truth + 1
    x[:, :, 2, 0] = rng.integers(1, 6, (2, 200))
    rows = {row["judge"]: row for row in report(recorded(x)).to_dict()["agreement"]["rows"]}
    others = ((truth + 1 - (truth + 1).mean()) + (x[:, :, 2, 0] - x[:, :, 2, 0].mean())) / 2
    mine = truth - truth.mean()
    assert rows["j0"]["correlation"] == pytest.approx(np.corrcoef(mine.ravel(), others.ravel())[0, 1])
    assert rows["j0"]["apart"] == pytest.approx(np.abs(mine - others).mean())
    assert abs(rows["j2"]["correlation"]) < 0.15
    assert (rows["j1"]["low"], rows["j1"]["high"], rows["j1"]["values"]) == (2.0, 6.0, 5)
    assert rows["j1"]["deviation"] == pytest.approx(truth.std())


def test_a_plugins_section_has_its_place_on_every_page() -> None:
    @dataclass(frozen=True)
    class Mine(Section):
        name: ClassVar[str] = "my <own> part"

        @classmethod
        def of(cls, study: Study) -> Self | None:
            return cls()

        def tables(self) -> tuple[NotedTable, ...]:
            table = NotedTable("model", "judge", title="mine")
            table.add_row("m0", "j1")
            return (table,)

        def about_judge(self, judge: str) -> tuple[NotedTable, ...]:
            return self.tables()

        def to_dict(self) -> dict[str, Any]:
            return {}

    found = report(recorded(panel()), sections=[*SECTIONS, Mine])
    assert "My <own> part" in read_site({"index.html": page(found)})["index.html"].text
    pages = read_site(site(found))
    assert {"models/m0.html", "judges/j1.html"} <= set(pages["index.html"].links)
    assert "My <own> part" in pages["judges/j0.html"].text
    assert "My <own> part" not in pages["models/m0.html"].text


def test_names_of_files_are_safe_and_unique() -> None:
    names = ["a/b", "A b", "a-b-2", "", "///", "con", "x" * 300, "x" * 301, "..", "é", ".hidden"]
    found = slugs(names, "model")
    assert len(set(found.values())) == len(names)
    assert found["a/b"] == "a-b"
    assert found["é"] == "e"
    for slug in found.values():
        assert re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,65}", slug)
        assert slug != "con"


def drawn(text: str, section: str) -> list[ElementTree.Element]:
    """Pictures of a section of a page: for wide screens, then for narrow ones."""
    body = text.partition(f'<section id="part-{section}"')[2].partition("</section>")[0]
    return [ElementTree.fromstring(found) for found in re.findall(r"<svg.*?</svg>", body, re.DOTALL)]


def test_a_page_of_a_model_shows_it_among_its_neighbours() -> None:
    found = report(recorded(panel(models=12)))
    files = site(found)
    rows = found.to_dict()["leaderboard"]["rows"]
    order = [row["model"] for row in rows]
    for at, first in ((0, 0), (5, 1), (11, 3)):
        text = files[f"models/{order[at]}.html"]
        for picture in drawn(text, "leaderboard"):
            names = [each.text for each in picture.iter("text") if (each.text or "").startswith("m")]
            assert [name for name in names if name != "mean score"] == order[first : first + 9]
            (own,) = (each.text for each in picture.iter("text") if each.get("class") == "marked")
            assert own == order[at]
            assert picture.find("title").text == "among its neighbours"  # type: ignore[union-attr]
            told = picture.find("desc").text or ""  # type: ignore[union-attr]
            for row in rows[first : first + 9]:
                assert (
                    f"{row['model']}: {row['estimate']:.4g}, {row['low']:.4g} to {row['high']:.4g}." in told
                )
        assert f"thin bar: all 12 at once. Filled point: {order[at]}." in text
    points = [
        float(each.get("cx", 0)) for each in drawn(files["models/m5.html"], "leaderboard")[0].iter("circle")
    ]
    assert points == sorted(points, reverse=True)


def test_a_page_of_a_model_shows_its_categories() -> None:
    found = report(recorded(panel(models=2), categories=("<x>", "y", "z", "y") * 10))
    text = site(found)["models/m0.html"]
    (chart,) = found["categories"].model_charts("m0")
    assert isinstance(chart, Chart)
    assert [bar.name for bar in chart.bars] == ["<x>", "y", "z"]
    for picture in drawn(text, "categories"):
        assert len(picture.findall("circle")) == 3
        assert "<x>: " in (picture.find("desc").text or "")  # type: ignore[union-attr]
    assert "thin bar: all 6 at once" in text.partition('id="part-categories"')[2]
    assert found["categories"].model_charts("nobody") == ()
    assert found["leaderboard"].model_charts("nobody") == ()


def test_of_one_model_the_picture_has_one_row_that_nothing_marks() -> None:
    text = site(report(recorded(panel(models=1))))["models/m0.html"]
    for picture in drawn(text, "leaderboard"):
        assert [each.get("class") for each in picture.iter("circle")] == ["point"]
    assert "Filled" not in text
