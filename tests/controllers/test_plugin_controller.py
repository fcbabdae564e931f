"""A C++ controller of another package: the example of docs/how-to/controllers.md, built and run."""

from __future__ import annotations

import shutil
import sysconfig
from pathlib import Path

import pytest
from helpers.packages import run_python, write_metadata


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory, compiled_aimd: Path) -> Path:
    """A folder with a module `aimd`, registered as a package would."""
    site = tmp_path_factory.mktemp("site")
    shutil.copy(compiled_aimd, site / f"aimd{sysconfig.get_config_var('EXT_SUFFIX')}")
    write_metadata(site, "aimd", "aimd = aimd:controller\nold = old_module:controller")
    return site


def test_it_runs_by_name_with_its_parameters(package: Path, tmp_path: Path) -> None:
    done = run_python(
        tmp_path,
        package,
        "-c",
        """
import quicgym
from quicgym import controllers
info = controllers.find("aimd")
assert info.parameter("decrease").default == (0.5,)
print(info.description, info.complete({"decrease": 0.7}))
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
        "One packet more per round, half on loss {'decrease': [0.7]}",
        "aimd True",
        "True",
        "parameter 'decrease' of controller 'aimd' is 2, outside the range [0.1, 0.9]",
        "controller 'aimd' has no parameter 'increase'; it has: decrease",
    ]


@pytest.mark.ns3
def test_both_engines_deliver_the_same(package: Path, tmp_path: Path) -> None:
    done = run_python(
        tmp_path,
        package,
        "-c",
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


def test_it_runs_in_worker_processes(package: Path, tmp_path: Path) -> None:
    options = "--scenario ebcc-single --controller aimd --seeds 1 --jobs 1 --format csv"
    command = ["-m", "quicgym_start", "baselines", *options.split()]
    ran = run_python(tmp_path, package, *command)
    assert ran.returncode == 0, ran.stderr
    assert "ebcc-single,native,0,aimd," in ran.stdout


def test_a_module_for_another_version_is_refused(package: Path, tmp_path: Path) -> None:
    (package / "old_module.py").write_text(
        "import ctypes\n"
        "new = ctypes.pythonapi.PyCapsule_New\n"
        "new.restype = ctypes.py_object\n"
        "new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]\n"
        'NAME = b"quicgym.controller.0"\n'
        "controller = new(1, NAME, None)\n"
    )
    done = run_python(
        tmp_path,
        package,
        "-c",
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
    assert "built for quicgym.controller.0, this quicgym takes quicgym.controller.6" in done.stdout
