"""Packages as pip leaves them, and programs that run where they are installed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

import quicgym

DOCUMENT = Path(__file__).parents[2] / "docs/how-to/controllers.md"


def write_metadata(site: Path, package: str, entry_points: str) -> None:
    """Writes a distribution's metadata into the folder `site`.

    Args:
        site: The folder, which stands for site-packages.
        package: The distribution's name.
        entry_points: The lines of its group `quicgym.controllers`.
    """
    folder = site / f"{package.replace('-', '_')}-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(f"[quicgym.controllers]\n{entry_points}\n")


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


def compile_example(library: Path) -> None:
    """Compiles the C++ controller `aimd` of the manual with the headers that quicgym installs."""
    example = re.search(r"```cpp\n(// aimd\.cpp\n.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert example is not None
    source = library.with_name("aimd.cpp")
    source.write_text(example.group(1))
    compiler = os.environ.get("CXX") or sysconfig.get_config_var("CXX") or "c++"
    options = shlex.split("-std=c++20 -O1 -Wall -Wextra -Werror -shared -fPIC")
    includes = [f"-I{sysconfig.get_path('include')}", f"-I{quicgym.get_include()}"]
    command = [*shlex.split(compiler), *options, *includes, str(source), "-o", str(library)]
    subprocess.run(command, check=True)
