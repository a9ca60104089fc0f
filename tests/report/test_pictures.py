from __future__ import annotations

import struct
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from tests.report.worlds import panel, recorded

from evalbudget.errors import InvalidInputError
from evalbudget.report import draw, page, report


def test_png_is_as_high_as_its_rows_and_always_the_same() -> None:
    few, many = (report(recorded(panel(models=m, judges=2))) for m in (2, 9))
    sizes, drawn = [], [draw(few), draw(many)]
    for png in drawn:
        assert png[:8] == b"\x89PNG\r\n\x1a\n"
        sizes.append(struct.unpack(">II", png[16:24]))
    assert draw(few) == drawn[0]
    assert sizes[0][0] == sizes[1][0]
    assert sizes[1][1] > sizes[0][1] + 200


def test_svg_names_every_model_and_judge() -> None:
    found = report(recorded(panel(), models=("a$b$", "c<d", "e" * 80)))
    root = ElementTree.fromstring(draw(found, "svg"))
    texts = {text.strip() for element in root.iter() if (text := "".join(element.itertext()))}
    for name in ("a$b$", "c<d", "j0", "j3", "leaderboard", "judges"):
        assert name in texts
    assert f"{'e' * 43}…" in texts
    assert draw(found, "svg") == draw(found, "svg")


def test_scores_without_an_interval_can_be_drawn() -> None:
    assert draw(report(recorded(np.ones((1, 4, 1, 1)))))


def test_without_matplotlib_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = report(recorded(panel()))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InvalidInputError, match=r"pip install 'evalbudget\[report\]'"):
        draw(found)
    assert found.table()
    assert "<svg" in page(found)  # which draws its own


def test_other_formats_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="pictures are png or svg, not 'jpg'"):
        draw(report(recorded(panel())), "jpg")
