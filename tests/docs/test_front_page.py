"""The site's front page, and pages that have their text or their output only when it is built."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers.processes import run_program

DOCS = Path(__file__).parents[2] / "docs"
GENERATOR = (DOCS / "_ext/generated_pages.py").read_text(encoding="utf-8")
FILLED = re.findall(r'^    "((?:environments|reference)/[\w-]+)": ', GENERATOR, re.M)
TUTORIALS = [f"tutorials/{it.stem}" for it in DOCS.glob("tutorials/*.md")]


def test_the_program_of_the_front_page_prints_what_stands_below_it(tmp_path: Path) -> None:
    page = (DOCS / "index.md").read_text(encoding="utf-8")
    ((program, output),) = re.findall(r"^```python\n(.*?)^```\n\n```\n(.*?)^```", page, re.S | re.M)
    (tmp_path / "block.py").write_text(program, encoding="utf-8")
    assert run_program(tmp_path / "block.py", tmp_path).stdout == output


@pytest.mark.parametrize("name", [*FILLED, *TUTORIALS])
def test_a_page_without_text_or_output_in_a_checkout_says_where_they_are(name: str) -> None:
    lines = (DOCS / f"{name}.md").read_text(encoding="utf-8").splitlines()
    title = next(number for number, line in enumerate(lines) if line.startswith("# "))
    assert lines[title + 2].startswith("> In a checkout: `make docs` ")
    assert f"build/docs/html/{name}.html" in lines[title + 2]


def test_there_are_such_pages() -> None:
    assert len(FILLED) == 9 and len(TUTORIALS) >= 5


def test_the_readme_links_to_no_page_that_has_its_text_only_when_it_is_built() -> None:
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(docs/([\w/-]+)\.md", readme))
    assert len(linked) > 20 and linked.isdisjoint(FILLED)
