"""HTML pages of one file: they load nothing, so they can be sent to somebody as they are."""

from __future__ import annotations

import base64
import mimetypes
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2

BASE_TEMPLATE = "page.html.jinja"
"""Which the other templates extend; it stands next to this module."""


def render(package: str, template: str, **values: Any) -> str:
    """Returns a page from the template of a package, which is of HTML or of Markdown."""

    def source(name: str) -> str:
        folder = files("quicgym" if name == BASE_TEMPLATE else package)
        return (folder / name).read_text(encoding="utf-8")

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(source),
        autoescape=template.endswith(".html.jinja"),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(**values)


def embedded(file: Path) -> dict[str, str]:
    """Returns the kind of a picture or a PDF, and a URL that holds its bytes."""
    kind = mimetypes.guess_type(file.name)[0] or ""
    return {"kind": kind, "url": data_url(file.read_bytes(), kind)}


def data_url(content: bytes, kind: str) -> str:
    """Returns a URL that holds the content."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
