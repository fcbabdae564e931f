"""Imports go one way, also those inside functions and for types alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PLUGINS = [file.parent for top in ("real", "sim") for file in ROOT.glob(f"{top}/*/pyproject.toml")]
RANKS = {"controllers": 0, "envs": 1, "agents": 2, "real": 3, "benchmarks": 3, "cli": 4}
FOLDERS = {layer: ROOT / layer for layer in RANKS} | {"cli": ROOT / "src/quicgym/cli"}


def imports(folder: Path, pattern: str = "**/*.py") -> Iterator[tuple[Path, str]]:
    """Each file of a folder with what it imports; the plug-ins inside the folder are left out."""
    for file in folder.glob(pattern):
        if any(plugin in file.parents for plugin in PLUGINS):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from ((file, name.name) for name in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from ((file, f"{node.module}.{name.name}") for name in node.names)


def layer_of(name: str) -> str | None:
    found = re.match(rf"quicgym\.({'|'.join(RANKS)})\b", name)
    return found[1] if found else None


@pytest.mark.parametrize("layer", RANKS)
def test_a_layer_imports_only_what_is_below_it(layer: str) -> None:
    for file, name in imports(FOLDERS[layer]):
        other = layer_of(name) or layer
        assert other == layer or RANKS[other] < RANKS[layer], f"{file} imports {name}"


def test_what_all_layers_use_imports_none_of_them() -> None:
    for file, name in imports(ROOT / "src/quicgym", "*.py"):
        if file.name != "__init__.py":  # which offers what users import most
            assert layer_of(name) is None, f"{file} imports {name}"


def test_the_core_imports_no_plug_in() -> None:
    packages = [path.name for folder in PLUGINS for path in folder.glob("quicgym_*")]
    assert len(packages) == len(PLUGINS) == 4
    for folder in FOLDERS.values():
        for file, name in imports(folder):
            assert name.partition(".")[0] not in packages, f"{file} imports {name}"
