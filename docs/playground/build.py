"""Makes the playground's page one file: the simulator, the policies and uPlot are put into it.

`make playground` calls it. Whoever gets the file needs no server and no network.
"""

from __future__ import annotations

import argparse
import ast
import base64
import hashlib
import json
import sys
import tarfile
from pathlib import Path

HERE = Path(__file__).parent
PLOT_STYLE = HERE.parents[1] / "src" / "quicgym" / "plot_style.py"
POLICIES = HERE.parents[1] / "agents" / "policies" / "pretrained"
UPLOT_SHA512 = (
    "KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw=="
)


def read_uplot(archive: Path) -> tuple[str, str]:
    """Returns uPlot's script and style from the archive that npm has fetched.

    Raises:
        SystemExit: The archive is not the one that this page was written for.
    """
    found = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if found != UPLOT_SHA512:
        sys.exit(
            f"{archive}: its SHA-512 is {found}, and not {UPLOT_SHA512}; remove it and try again"
        )
    with tarfile.open(archive) as package:

        def text(name: str) -> str:
            member = package.extractfile(f"package/{name}")
            assert member is not None
            return member.read().decode()

        licence = text("LICENSE").replace("*/", "")
        return f"/* uPlot\n{licence}*/\n{text('dist/uPlot.iife.min.js')}", text(
            "dist/uPlot.min.css"
        )


def read_names() -> dict[str, str]:
    """Returns how tables and figures show controllers and policies; nothing is imported for it."""
    for statement in ast.parse(PLOT_STYLE.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "NAMES":
            names: dict[str, str] = ast.literal_eval(statement.value)
            return names
    sys.exit(f"{PLOT_STYLE}: has no NAMES")


def read_policies() -> list[dict[str, str]]:
    """Returns every published policy."""
    return [
        {
            "name": path.stem,
            "description": path.read_text(encoding="utf-8"),
            "weights": base64.b64encode(path.with_suffix(".safetensors").read_bytes()).decode(),
        }
        for path in sorted(POLICIES.glob("*.json"))
    ]


def main() -> None:
    """Writes the page."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("simulator", type=Path, help="The script that Emscripten has made.")
    arguments.add_argument("uplot", type=Path, help="uPlot's archive, as `npm pack` fetches it.")
    arguments.add_argument("page", type=Path, help="The page that is written.")
    given = arguments.parse_args()
    script, style = read_uplot(given.uplot)
    parts = {
        "/* uPlot.min.css */": style,
        "/* uPlot.iife.min.js */": script,
        "/* simulator.js */": given.simulator.read_text(encoding="utf-8"),
        "/* worker.js */": (HERE / "worker.js").read_text(encoding="utf-8"),
        "/* policies */": json.dumps(read_policies()),
        "/* names */": json.dumps(read_names()),
        "/* page.js */": (HERE / "page.js").read_text(encoding="utf-8"),
    }
    page = (HERE / "page.html").read_text(encoding="utf-8")
    for mark, part in parts.items():
        before, after = page.split(mark)
        page = before + part.replace("</script", "<\\/script") + after
    given.page.parent.mkdir(parents=True, exist_ok=True)
    given.page.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
