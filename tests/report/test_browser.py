"""What people open, in a real browser: quiet, no wider than a phone, and nothing from elsewhere."""

from __future__ import annotations

from pathlib import Path

from tests.audits.store.audits import Told
from tests.labelling import chromium
from tests.labelling.serving import serving
from tests.report.worlds import panel, recorded

from evalbudget.report import page, report, site

NAMES = ("openai/a-model-with-a-name-that-no-phone-shows-in-one-line", "b", "<c>", "模型")


def test_pages_are_quiet_and_fit_a_phone(tmp_path: Path) -> None:
    items = tuple(f"i{i}" for i in range(40))
    texts = tuple(f"Write a story of {i} words, none of which is longer than the last." for i in items)
    scores = recorded(
        panel(models=4), models=NAMES, items=items, categories=("x", "y" * 50) * 20, texts=texts
    )
    found = report(scores)
    for name, text in {**site(found), "one.html": page(found)}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    model = next((tmp_path / "models").iterdir())
    told = Told(pilot=8, labels_per_batch=8)
    with (
        told.create(tmp_path / "a.sqlite") as store,
        serving(store, by="ann") as server,
        chromium.Chromium(tmp_path / "profile") as browser,
    ):
        told.draw(store)
        files = [path.as_uri() for path in (tmp_path / "index.html", model, tmp_path / "one.html")]
        for number, url in enumerate((*files, server.url)):
            tab = browser.visit(url, 375, ("light", "dark")[number % 2])
            if url == server.url:
                tab.wait("!document.getElementById('item').hidden")
            assert tab.overflow() == 0, url
            tab.close()
        assert browser.logged == []
        ours = ("file:", "data:", server.url)
        assert [url for url in browser.requested if not url.startswith(ours)] == []
        assert {*files, server.url} <= set(browser.requested)

        tab = browser.visit(files[1], 375)
        pictures = "Array.from(document.querySelectorAll('figure svg'))"
        widths = tab.run(f"{pictures}.map(e => e.getBoundingClientRect().width)")
        assert [width > 0 for width in widths] == [False, True] * (len(widths) // 2)  # the narrow ones
        assert max(widths) <= 375
        # what this test would see, were there something to see
        tab.run("document.body.style.width = '999px'")
        tab.run("console.warn('told')")
        assert tab.overflow() > 500
        assert "told" in browser.logged[0]
