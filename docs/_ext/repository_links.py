"""Links of Markdown pages to files of the repository that are no pages of the site.

Pages name such files relative to themselves, as GitHub wants it: `../../envs/window.py`. Here they
become links

- to the page that shows the file (CONTRIBUTING.md, the pages of a plug-in),
- to a copy beside the pages (HTML and JSON files of docs/),
- else into the repository: on GitHub at the commit that the site was built from where GitHub
  Actions builds it, and into this checkout where it is built elsewhere.

A file that does not exist is left to MyST, which reports it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from urllib.parse import quote

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
INCLUDED = {
    "CHANGELOG.md": "project/changelog",
    "CONTRIBUTING.md": "project/contributing",
    "SECURITY.md": "project/security",
    "real/linux/docs/manual.md": "how-to/linux",
    "real/linux/docs/report.md": "reports/linux-kernel",
    "real/noq/docs/report.md": "reports/reality",
}
"""Files outside docs/ -> the page that includes each."""
FILES = {page: file for file, page in INCLUDED.items()}
COPIED = (".html", ".json")
"""Endings of files of docs/ that are copied beside the pages."""


class RepositoryLinks(SphinxTransform):
    """Replaces the links of one page; runs before Sphinx collects files to download."""

    default_priority = 100

    def apply(self, **arguments: object) -> None:
        """Called by Sphinx."""
        for kind in (addnodes.pending_xref, addnodes.download_reference):
            for link in list(self.document.findall(kind)):
                known = link.get("refdomain") == "doc" and link["reftarget"] in self.env.found_docs
                if link.get("reftype") == "myst" and not known:
                    self._replace(link)

    def _replace(self, link: nodes.Element) -> None:
        page = self.env.docname
        # An included file names its targets relative to itself.
        base = (ROOT / FILES.get(page, f"docs/{page}.md")).parent
        path, _, anchor = link["reftarget"].partition("#")
        if link.get("refdomain") == "doc":  # MyST has looked for a page, by its absolute path
            path, anchor = f"{path}.md", link.get("reftargetid") or ""
        target = Path(os.path.normpath(base / path))
        if not path or not target.exists() or not target.is_relative_to(ROOT):
            return
        name = target.relative_to(ROOT).as_posix()
        shown = INCLUDED.get(name)
        if target.is_relative_to(DOCS) and target.suffix == ".md":
            shown = target.relative_to(DOCS).with_suffix("").as_posix()
        if shown is not None:
            self._to_page(link, shown, anchor)
        elif target.is_relative_to(DOCS) and target.suffix in COPIED:
            self._to_address(link, quote(os.path.relpath(target, (DOCS / page).parent)))
        else:
            self._to_address(link, self._in_repository(target, name) + (anchor and f"#{anchor}"))

    def _in_repository(self, target: Path, name: str) -> str:
        if "GITHUB_REPOSITORY" in os.environ:
            kind = "tree" if target.is_dir() else "blob"
            return "/".join(
                [
                    os.environ["GITHUB_SERVER_URL"],
                    os.environ["GITHUB_REPOSITORY"],
                    kind,
                    os.environ["GITHUB_SHA"],
                    quote(name),
                ]
            )
        folder = Path(self.env.config.repository_links_output) / self.env.docname
        return quote(os.path.relpath(target, folder.parent))

    def _to_page(self, link: nodes.Element, page: str, anchor: str) -> None:
        found = addnodes.pending_xref(
            "",
            *link.children,
            refdomain="doc",
            refdoc=self.env.docname,
            reftype="myst",
            reftarget=page,
            reftargetid=anchor or None,
            refexplicit=link["refexplicit"],
        )
        found.source, found.line = link.source, link.line
        link.replace_self(found)

    def _to_address(self, link: nodes.Element, address: str) -> None:
        for child in link.children:
            if isinstance(child, nodes.Element):
                child["classes"] = []
        link.replace_self(nodes.reference("", "", *link.children, refuri=address))


def _remember_output(app: Sphinx) -> None:
    app.config.repository_links_output = str(app.outdir)


def _copy_files(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        for file in (file for ending in COPIED for file in DOCS.rglob(f"*{ending}")):
            copy = Path(app.outdir) / file.relative_to(DOCS)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_config_value("repository_links_output", "", "")
    app.add_transform(RepositoryLinks)
    app.connect("builder-inited", _remember_output)
    app.connect("build-finished", _copy_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
