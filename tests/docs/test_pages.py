"""The Markdown pages: links lead somewhere, and every page is on the site and on an index."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = ("*.md", "docs/**/*.md", "benchmarks/**/*.md", "real/*/*.md", "real/*/docs/*.md")
PAGES = sorted(page for place in PLACES for page in ROOT.glob(place))
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def without_code(page: Path) -> str:
    """The page's text without blocks and pieces of code, whose brackets are no links."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    headings = re.findall(r"^#+ (.*)$", text, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    broken = []
    for link in LINK.findall(without_code(page)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert not broken


def rows_of_contributing() -> list[str]:
    """The rows of the table that says where to add what."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.split("## How to add a …\n")[1].split("\n## ")[0]
    return [line for line in section.splitlines() if line.startswith("| a")][1:]


@pytest.mark.parametrize("row", rows_of_contributing(), ids=lambda row: row.split(" | ")[0])
def test_the_places_to_add_something_exist(row: str) -> None:
    paths = [path for path in re.findall(r"`([\w./-]+)`", row) if "/" in path]
    for path in paths:
        pattern = re.sub(r"\b(NAME|FOLDER)\b", "*", path.rstrip("/"))
        assert any(ROOT.glob(pattern)), path
    assert paths or "the same" in row


def test_there_are_pages() -> None:
    assert {"README.md", "training.md"} <= {page.name for page in PAGES}


DOCS = Path(__file__).parents[2] / "docs"
ON_THE_SITE = sorted(DOCS.rglob("*.md"))
INDEXES = sorted(DOCS.rglob("index.md"))
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```", flags=re.S | re.M)
INCLUDE = re.compile(r"^```\{include\} (.*)\n```$", flags=re.M)


def entries(page: Path) -> set[Path]:
    """The pages that a page's tables of contents name."""
    found: set[Path] = set()
    for content in TOCTREE.findall(page.read_text(encoding="utf-8")):
        names = [line for line in content.splitlines() if line and not line.startswith(":")]
        for name in names:
            matches = set(page.parent.glob(f"{name}.md")) - {page}
            assert matches or "*" in name, f"{page}: {name} is in the toctree and does not exist"
            found |= matches
    return found


def source(page: Path) -> Path:
    """The file that a page shows: itself, or the file outside docs/ that it includes."""
    included = INCLUDE.match(page.read_text(encoding="utf-8"))
    return (page.parent / included[1]).resolve() if included else page


def test_every_page_is_in_a_toctree() -> None:
    reached, remaining = set[Path](), {DOCS / "index.md"}
    while remaining:
        reached |= remaining
        remaining = {entry for page in remaining for entry in entries(page)} - reached
    assert [page for page in ON_THE_SITE if page not in reached] == []


@pytest.mark.parametrize("index", INDEXES, ids=lambda index: index.parent.name)
def test_an_index_page_says_what_is_on_each_page(index: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", index.read_text(encoding="utf-8"))
    linked = {(index.parent / link).resolve() for link in links}
    assert [page for page in sorted(entries(index)) if source(page) not in linked] == []


def test_the_front_page_has_a_section_for_everything_that_people_want() -> None:
    front = (DOCS / "index.md").read_text(encoding="utf-8")
    captions = re.findall(r"^:caption: (.*)$", front, flags=re.M)
    assert captions == re.findall(r"^## (.*)$", front, flags=re.M)
    assert {"Start", "Train", "Compare", "Simulate", "Environments", "Reports"} <= set(captions)
