"""docs/_static/sortable.js in a browser: columns sort, and rows are chosen by name and kind."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "docs/_static/sortable.js"
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
PAGE = """<!doctype html><html><head><meta charset="utf-8"><script src="{script}"></script></head>
<body><article><h1>Board</h1>
<table id="kinds"><thead><tr><th><p>policy</p></th><th><p>kind</p></th></tr></thead><tbody>
<tr><td>CUBIC</td><td>baseline</td></tr><tr><td>Window</td><td>learned</td></tr>
<tr><td>Window v1</td><td>learned</td></tr></tbody></table>
<table id="rewards"><thead><tr><th><p>policy</p></th><th><p>IQM</p></th></tr></thead><tbody>
<tr><td>CUBIC</td><td>0.9000</td></tr><tr><td>Window</td><td>–</td></tr>
<tr><td>Window v1</td><td>−10.5</td></tr></tbody></table></article>
<script>addEventListener("load", () => {{ {actions} }});</script></body></html>"""

pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs Chromium")


def rows_after(actions: str, folder: Path, table: str = "rewards") -> list[str]:
    """Returns the policies that the table shows after the actions, in their order."""
    page = folder / "page.html"
    page.write_text(PAGE.format(script=SCRIPT.as_uri(), actions=actions), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    done = subprocess.run(
        [
            str(BROWSER),
            *options,
            f"--user-data-dir={folder / 'profile'}",
            "--dump-dom",
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    part = done.stdout.partition(f'<table id="{table}"')[2].partition("</table>")[0]
    assert part, done.stderr
    return re.findall(r"<tr><td>([^<]*)</td>", part)


CLICK = 'document.querySelectorAll("#rewards button")[{column}].click();'


def test_a_click_sorts_numbers_from_the_largest_and_a_second_one_the_other_way(
    tmp_path: Path,
) -> None:
    once = CLICK.format(column=1)
    assert rows_after("", tmp_path) == ["CUBIC", "Window", "Window v1"]
    assert rows_after(once, tmp_path) == ["CUBIC", "Window v1", "Window"]
    assert rows_after(once * 2, tmp_path) == ["Window", "Window v1", "CUBIC"]


def test_a_click_sorts_words_by_the_alphabet(tmp_path: Path) -> None:
    column = CLICK.format(column=0)
    assert rows_after(CLICK.format(column=1) + column, tmp_path) == ["CUBIC", "Window", "Window v1"]
    assert rows_after(column * 2, tmp_path) == ["Window v1", "Window", "CUBIC"]


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("input", "V1", ["Window v1"]),
        ("select", "baseline", ["CUBIC"]),
        ("select", "learned", ["Window", "Window v1"]),
        ("select", "", ["CUBIC", "Window", "Window v1"]),
    ],
)
def test_policies_are_chosen_by_name_and_by_kind_in_all_tables(
    field: str, value: str, expected: list[str], tmp_path: Path
) -> None:
    actions = (
        f'const field = document.querySelector("form.filter {field}"); field.value = "{value}";'
        'field.dispatchEvent(new Event("input", {bubbles: true}));'
    )
    assert rows_after(actions, tmp_path) == expected
    assert rows_after(actions, tmp_path, "kinds") == expected
