"""Every page of docs/ is on the site: in a table of contents and on the index of its folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
INDEXES = sorted(DOCS.glob("*/index.md"))
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```", flags=re.S | re.M)


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


def test_every_page_is_in_a_toctree() -> None:
    reached, remaining = set[Path](), {DOCS / "index.md"}
    while remaining:
        reached |= remaining
        remaining = {entry for page in remaining for entry in entries(page)} - reached
    assert [page for page in PAGES if page not in reached] == []


@pytest.mark.parametrize("index", INDEXES, ids=lambda index: index.parent.name)
def test_an_index_page_says_what_is_on_each_page(index: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", index.read_text(encoding="utf-8"))
    linked = {(index.parent / link).resolve() for link in links}
    named = TOCTREE.search(index.read_text(encoding="utf-8"))
    if named is None or ":glob:" not in named[1]:
        assert [page for page in sorted(entries(index)) if page not in linked] == []


def test_each_kind_of_documentation_has_an_index() -> None:
    kinds = {"tutorials", "how-to", "reference", "explanation", "reports"}
    assert kinds <= {index.parent.name for index in INDEXES}
