"""A C++ controller of another package: the example of docs/how-to/controllers.md, built and run."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import quicgym

DOCUMENT = Path(__file__).parents[2] / "docs/how-to/controllers.md"


def compile_with(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the compiler with the headers that quicgym installs."""
    compiler = os.environ.get("CXX") or sysconfig.get_config_var("CXX") or "c++"
    return subprocess.run(
        [
            *shlex.split(compiler),
            *("-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror"),
            f"-I{sysconfig.get_path('include')}",
            f"-I{quicgym.get_include()}",
            *arguments,
        ],
        check=True,
        capture_output=True,
        text=True,
    )


def build(source: str, folder: Path) -> None:
    """Compiles a module `aimd` and registers it as a package would."""
    (folder / "aimd.cpp").write_text(source)
    module = folder / f"aimd{sysconfig.get_config_var('EXT_SUFFIX')}"
    compile_with("-shared", "-fPIC", str(folder / "aimd.cpp"), "-o", str(module))
    metadata = folder / "aimd-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: aimd\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[quicgym.controllers]\naimd = aimd:controller\nold = old_module:controller\n"
    )


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    source = re.search(r"```cpp\n(// aimd\.cpp\n.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert source is not None
    build(source.group(1), folder)
    return folder


def run(package: Path, folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_it_runs_by_name_with_its_parameters(package: Path, tmp_path: Path) -> None:
    done = run(
        package,
        tmp_path,
        """
import quicgym
from quicgym import controllers
info = controllers.find("aimd")
assert info.parameter("decrease").default == (0.5,)
print(info.complete({"decrease": 0.7}))
scenario = quicgym.load_scenario("ebcc-single").model_dump(exclude_none=True)
scenario["bottleneck"]["queue"]["limit"] = 5
half = quicgym.run(quicgym.Scenario.model_validate(scenario), "aimd")
scenario["controller_parameters"] = {"aimd": {"decrease": 0.9}}
most = quicgym.run(quicgym.Scenario.model_validate(scenario), "aimd")
print(half.flows[0].controller, half.metrics["goodput_mbps"] > 1)
print(most.metrics["mean_window_packets"] != half.metrics["mean_window_packets"])
simulation = quicgym.Simulation("ebcc-single", controllers="aimd")
for wrong in ({"decrease": 2}, {"increase": 1}):
    try:
        simulation.flows[0].set_parameters(**wrong)
    except ValueError as error:
        print(error)
""",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "{'decrease': [0.7]}",
        "aimd True",
        "True",
        "parameter 'decrease' of controller 'aimd' is 2, outside the range [0.1, 0.9]",
        "controller 'aimd' has no parameter 'increase'; it has: decrease",
    ]


@pytest.mark.ns3
def test_both_engines_deliver_the_same(package: Path, tmp_path: Path) -> None:
    done = run(
        package,
        tmp_path,
        """
import numpy, quicgym
traces = []
for engine in ("native", "ns3"):
    arguments = ("ebcc-flows-3", engine, 1, "aimd")
    with quicgym.Simulation(*arguments, record_deliveries=True) as simulation:
        simulation.run_until(6)
        traces.append(simulation.deliveries())
assert len(traces[0]) > 1000
assert numpy.array_equal(*traces)
""",
    )
    assert done.returncode == 0, done.stderr


def test_it_is_listed_and_runs_in_worker_processes(package: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(package)}

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "quicgym.cli", *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )

    listed = command("controllers")
    assert "One packet more per round, half on loss (none: an example)" in listed.stdout
    ran = command(
        *("baselines", "--scenario", "ebcc-single", "--controller", "aimd", "--seeds", "1"),
        *("--format", "csv"),
    )
    assert ran.returncode == 0, ran.stderr
    assert "ebcc-single,aimd,native,0," in ran.stdout


def test_a_module_for_another_version_is_refused(package: Path, tmp_path: Path) -> None:
    (package / "old_module.py").write_text(
        "import ctypes\n"
        "new = ctypes.pythonapi.PyCapsule_New\n"
        "new.restype = ctypes.py_object\n"
        "new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]\n"
        'NAME = b"quicgym.controller.0"\n'
        "controller = new(1, NAME, None)\n"
    )
    done = run(
        package,
        tmp_path,
        """
from quicgym import controllers
try:
    controllers.find("old")
except ImportError as error:
    print(error)
""",
    )
    assert done.returncode == 0, done.stderr
    assert "entry point old_module:controller of aimd" in done.stdout
    assert "built for quicgym.controller.0, this quicgym takes quicgym.controller.4" in done.stdout
