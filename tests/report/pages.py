"""Pages read strictly: what a browser would forgive is an error here."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import PurePosixPath
from posixpath import normpath

VOID = {"meta", "br", "link", "img", "hr"}


class Page(HTMLParser):
    """Balanced tags, unique ids; tables with captions and scopes; pictures with a title and a description.

    Attributes:
        ids: of all elements.
        links: that are no data.
        data: addresses of data within the page.
        text: of the body, joined.
        tags: how many of each.
    """

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        assert text.startswith("<!doctype html>\n")
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.data: dict[str, str] = {}
        self.words: list[str] = []
        self.tags: dict[str, int] = {}
        self.headings: list[int] = []
        self._open: list[str] = []
        self._named: list[str] = []
        self._children: list[list[str]] = [[]]
        self.feed(text)
        self.close()
        assert self._open == []
        assert set(self._named) <= self.ids
        assert self.tags["h1"] == self.tags["main"] == self.tags["title"] - self.tags.get("svg", 0) == 1
        assert all(b - a <= 1 for a, b in zip(self.headings, self.headings[1:], strict=False))

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        assert len(known) == len(attrs), (tag, attrs)
        assert tag not in ("script", "img", "link", "iframe", "object"), tag
        assert not any(name.startswith("on") or name == "src" for name in known)
        self.tags[tag] = self.tags.get(tag, 0) + 1
        if known.get("id"):
            assert known["id"] not in self.ids, known["id"]
            self.ids.add(str(known["id"]))
        for name in ("aria-labelledby", "aria-describedby"):
            self._named += str(known.get(name) or "").split()
        if tag == "a":
            address = str(known["href"])
            if address.startswith("data:"):
                self.data[str(known["download"])] = address
            else:
                self.links.append(address)
        if tag == "th":
            assert known["scope"] in ("row", "col")
        if tag[0] == "h" and tag[1:].isdigit():
            self.headings.append(int(tag[1:]))
        self._children[-1].append(tag)
        if tag not in VOID and not self.get_starttag_text().endswith("/>"):  # type: ignore[union-attr]
            self._open.append(tag)
            self._children.append([])

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID or ((self.get_starttag_text() or "").endswith("/>") and self._open[-1] != tag):
            return
        assert self._open.pop() == tag, tag
        inside = self._children.pop()
        if tag == "table":
            assert inside[:2] == ["caption", "thead"], inside
        if tag == "svg":
            assert inside[:2] == ["title", "desc"], inside

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.words.append(data)


def read_site(files: dict[str, str]) -> dict[str, Page]:
    """Every page, each of whose links leads to a file or an id that is there."""
    pages = {name: Page(text) for name, text in files.items() if name.endswith(".html")}
    for name, page in pages.items():
        for link in page.links:
            path, _, anchor = link.partition("#")
            target = normpath(str(PurePosixPath(name).parent / path)) if path else name
            assert target in files, (name, link)
            assert not anchor or anchor in pages[target].ids, (name, link)
    reached, rest = set(), ["index.html"]
    while rest:
        name = rest.pop()
        if name in pages and name not in reached:
            reached.add(name)
            rest += [
                normpath(str(PurePosixPath(name).parent / link.partition("#")[0]))
                for link in pages[name].links
                if not link.startswith("#")
            ]
    assert reached == set(pages)
    return pages
