"""What notebooks show, and pictures on somebody's axes."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from tests.frames.worlds import MARKUP, panel, plain

from evalbudget import Allocation
from evalbudget.backtest import HowBought, backtest
from evalbudget.errors import InvalidInputError
from evalbudget.frames import Scores
from evalbudget.report import report


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ("p", "table", "thead", "tbody", "tr", "th", "td", "h2", "div"), tag
        assert {name for name, _ in attrs} <= {"style", "class"}
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(shown: Any) -> str:
    """The text of what a notebook shows, which must be whole HTML."""
    reader = _Reader()
    reader.feed(shown._repr_html_())
    reader.close()
    assert reader.open == []
    return reader.text


def hostile() -> Scores:
    recorded = panel()
    return Scores(
        replace(
            recorded,
            models=(MARKUP, "[red]b"),
            items=(MARKUP, *recorded.items[1:]),
            raters=(MARKUP, "fair", "\x1b[31mlenient"),
            purchases=(HowBought(Allocation.ADAPTIVE, 1), HowBought()),
            epochs=np.broadcast_to(np.arange(2), recorded.scores.shape).copy(),
        )
    )


def test_names_are_shown_as_they_are() -> None:
    scores = hostile()
    comparison = scores.compare(margin=0.5)
    plan = scores.plan(half_width=0.3, model="[red]b")
    shown = [scores, scores.estimate(), report(scores.recorded), comparison]
    for one in shown:
        assert MARKUP in read(one)
        assert "\x1b" not in one._repr_html_()
    assert "rotation" in read(plan)
    assert comparison.sentence in read(comparison)
    assert "[red]b" in read(scores.estimate())


def test_tables_of_replays_show_themselves_too() -> None:
    found = backtest(plain(1, 10, 1, 4), samplers=["uniform"], budgets=[20], seeds=range(2))
    assert "uniform" in read(found.table())


def test_names_of_a_large_recording_are_not_all_shown() -> None:
    text = read(Scores(plain(3000, 4, 1, 1)))
    assert "and 2,992 more" in text
    assert len(text) < 1000
    assert repr(Scores(plain(3000, 4, 1, 1))) == "<Scores: 3,000 models, 4 items, 1 raters, 12,000 readings>"


def test_pictures_are_on_the_axes_that_are_given() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")
    pyplot.switch_backend("agg")
    scores = Scores(plain())
    figure, (left, right) = pyplot.subplots(1, 2)
    assert scores.plot(left) is left
    labels = [text.get_text() for text in left.get_yticklabels()]
    assert labels == [row.model for row in scores.estimate().rows]
    assert [text.get_text() for text in left.get_legend().get_texts()] == [
        "95%, all 3 at once",
        "95%, each by itself",
    ]
    assert scores.compare(level=0.9).plot(right) is right
    assert [text.get_text() for text in right.get_legend().get_texts()] == ["90%, all 3 at once"]
    points = right.lines[-1].get_xdata()
    assert list(points) == [row.difference for row in scores.compare().rows]
    own = scores.plot(level=0.9)
    assert own.get_legend().get_texts()[-1].get_text() == "90%, each by itself"
    assert report(panel())["judges"].plot().get_xlabel() == "bias against the panel's mean"
    assert report(panel())["items"].plot().get_ylabel() == "items"
    pyplot.close("all")
    del figure


def test_a_picture_of_thousands_shows_the_first() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")
    pyplot.switch_backend("agg")
    axes = Scores(plain(200, 5, 1, 1)).plot()
    assert len(axes.get_yticklabels()) == 60
    assert "the first 60 of 200" in axes.get_title(loc="left")
    assert "all 200 at once" in axes.get_legend().get_texts()[0].get_text()
    pyplot.close("all")


def test_pictures_need_matplotlib_and_something_to_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInputError, match="there is nothing to draw here"):
        report(panel())["components"].plot()
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(InvalidInputError, match=r"pip install 'evalbudget\[report\]'"):
        Scores(plain()).plot()
