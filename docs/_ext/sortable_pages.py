"""Pages whose tables a reader sorts and filters in the browser, by the script of docs/_static."""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx

PAGES = ("reports/leaderboard",)


def _add_script(app: Sphinx, page: str, *others: Any) -> None:
    if page in PAGES:
        app.add_js_file("sortable.js")


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("html-page-context", _add_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
