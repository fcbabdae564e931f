"""examples/controller-package: a controller in C++ that pip installs, used by its name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("scikit_build_core")
EXAMPLE = Path(__file__).parents[2] / "examples/controller-package"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, built from a copy and installed into a folder of its own."""
    folder = tmp_path_factory.mktemp("site")
    source = tmp_path_factory.mktemp("source") / "package"
    source.mkdir()
    for file in EXAMPLE.iterdir():
        (source / file.name).write_bytes(file.read_bytes())
    flags = {"CXXFLAGS": "-O1 -Wall -Wextra -Werror"}
    options = ("--quiet", "--no-build-isolation", "--no-deps", "--target", str(folder))
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, str(source)],
        env={**os.environ, **flags},
        check=True,
        timeout=300,
    )
    return folder


def test_it_is_known_by_name_with_its_parameters(package: Path, tmp_path: Path) -> None:
    script = """
import quicgym
from quicgym import controllers
assert "scalable" in controllers.names()
print(controllers.find("scalable").parameter("legacy_window_packets").default)
for name in ("scalable", "scalable:decrease=0.9", "newreno"):
    result = quicgym.run("ebcc-single", name)
    print(result.flows[0].controller, result.metrics["mean_window_packets"])
"""
    inherited = os.environ.get("PYTHONPATH", "")
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{package}{os.pathsep}{inherited}"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    default, *rows = done.stdout.splitlines()
    assert default == "(16.0,)"
    windows = {name: float(packets) for name, packets in map(str.split, rows)}
    assert list(windows) == ["scalable", "scalable:decrease=0.9", "newreno"]
    # A cut by an eighth keeps more of the window than one by half, and that more than one by 0.9.
    assert windows["scalable"] > windows["newreno"] > windows["scalable:decrease=0.9"]
