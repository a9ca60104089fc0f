"""Every relative link of every Markdown file leads somewhere."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def text_of(file: Path) -> str:
    """The file without its blocks of code."""
    return _FENCED.sub("", file.read_text(encoding="utf-8"))


def anchors(file: Path) -> set[str]:
    """Of the headings, as pages made of Markdown name them."""
    headings = re.findall(r"^#+ (.+)$", text_of(file), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_somewhere() -> None:
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = [ROOT / name for name in listed.stdout.splitlines()]
    assert ROOT / "README.md" in files
    broken = []
    for file in files:
        for link in _LINK.findall(text_of(file)):
            path, _, anchor = link.partition("#")
            target = file.parent / path if path else file
            if re.match(r"[a-z]+:", link):
                continue  # another site
            if not target.exists() or (anchor and anchor not in anchors(target)):
                broken.append(f"{file.relative_to(ROOT)}: {link}")
    assert not broken
