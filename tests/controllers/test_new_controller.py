"""A pair of files is a new controller: the recipe of docs/how-to/controllers.md, followed."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from quicgym import _core

ROOT = Path(__file__).parents[2]
EXAMPLE = Path(__file__).parent / "new_controller"
SOME = ["newreno", "cubic"]  # two for speed: no controller needs another's registration
# The environment's own first; where it has none, the system's.
CMAKE = shutil.which("cmake", path=sysconfig.get_path("scripts")) or "cmake"


def lines(show: Path, *arguments: str) -> dict[str, str]:
    """Returns what the program prints, by the word before the colon."""
    result = subprocess.run([show, *arguments], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    return dict(line.split(": ", 1) for line in result.stdout.splitlines())


def build(source: Path) -> Path:
    """Builds what is new or has changed."""
    folder = source / "build"
    if not folder.exists():
        subprocess.run(
            [CMAKE, "-S", source, "-B", folder, "-DCMAKE_CXX_FLAGS=-O0 -Wall -Wextra -Werror"],
            check=True,
        )
    subprocess.run([CMAKE, "--build", folder, "--parallel", "2"], check=True)
    return folder / "show"


def others(_: str, names: list[str]) -> list[str]:
    """Returns what is left out of the copy: all but the headers, the catalogue and two."""
    kept = {f"{name}.cpp" for name in ("catalogue", *SOME)}
    return [name for name in names if not name.endswith(".hpp") and name not in kept]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the controllers need, built without the new one."""
    source = tmp_path_factory.mktemp("checkout")
    shutil.copytree(ROOT / "sim/base", source / "sim/base")
    shutil.copytree(ROOT / "controllers", source / "controllers", ignore=others)
    for name in ("CMakeLists.txt", "show.cpp"):
        shutil.copy(EXAMPLE / name, source)
    build(source)
    return source


def test_a_file_is_all_it_takes(checkout: Path) -> None:
    before = lines(checkout / "build/show")
    for title in ("catalogue", "baselines"):
        assert before[title].split() == SOME
    for name in SOME:
        assert int(before[name]) == _core.make_controller(name).window_bytes

    shutil.copy(EXAMPLE / "halving.cpp", checkout / "controllers")
    after = lines(build(checkout))
    assert after == {
        **before,
        "catalogue": before["catalogue"] + " halving",
        "baselines": before["baselines"] + " halving",
        "halving": "12000",
    }


def test_two_controllers_cannot_share_a_name(checkout: Path) -> None:
    result = subprocess.run(
        [checkout / "build/show", "taken name"], capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 1
    assert "two controllers are named 'newreno'; rename one of them" in result.stderr
