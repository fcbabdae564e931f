"""Packages as pip leaves them, and programs that run where they are installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def write_metadata(site: Path, package: str, entry_points: str) -> None:
    """Writes a distribution's metadata into the folder `site`.

    Args:
        site: The folder, which stands for site-packages.
        package: The distribution's name.
        entry_points: The content of entry_points.txt.
    """
    folder = site / f"{package.replace('-', '_')}-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(entry_points)


def run_python(folder: Path, site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Python in a folder, with the packages of `site` besides all others."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        timeout=300,
    )
