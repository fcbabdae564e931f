"""Classes of table cells that need room, for site.css.

A browser makes a column as narrow as its longest word, and as wide as its longest code.
"""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

MANY_CHARACTERS = 40


class WideCells(SphinxPostTransform):
    """Marks long cells with the class `text`, and long code in cells with `long`."""

    default_priority = 900

    def run(self, **arguments: object) -> None:
        """Called by Sphinx."""
        for cell in self.document.findall(nodes.entry):
            if len(cell.astext()) > MANY_CHARACTERS:
                cell["classes"].append("text")
            for code in cell.findall(nodes.literal):
                if len(code.astext()) > MANY_CHARACTERS:
                    code["classes"].append("long")


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_post_transform(WideCells)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
