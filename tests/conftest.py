"""What several test files share."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest
from helpers.commands import check_end, run_jobs_here
from helpers.packages import compile_example
from helpers.scenarios import packaged_suite
from hypothesis import settings

from quicgym import Scenario, cli
from quicgym.envs.simulation.simulation import ns3_version
from quicgym.jobs import LocalProcesses
from quicgym.plot_style import STYLE

# The tests share the cores; PyTorch's threads would get into each other's way.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# The same examples in every run, so that what passes once passes again, on a loaded machine too;
# `make test ARGS=--hypothesis-profile=default` looks for new ones.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

Command = Callable[..., "subprocess.CompletedProcess[str]"]
NEEDS = {
    "ns3": [] if ns3_version() else ["quicgym-ns3"],
    "train": [
        package
        for package in ("torch", "stable_baselines3", "ray", "optuna", "tensorboard")
        if find_spec(package) is None
    ],
}
"""What is missing here of what the tests with a marker need."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for marker, missing in NEEDS.items():
        for item in items:
            if missing and item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=f"needs {', '.join(missing)}"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """Ends the output with how many tests were skipped, and why."""
    yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(session.config, "workerinput"):
        return
    reasons: Counter[str] = Counter()
    for report in reporter.stats.get("skipped", []):
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons[text.removeprefix("Skipped: ")] += 1
    why = "; ".join(f"{count}: {reason}" for reason, count in reasons.most_common())
    reporter.write_line(f"skipped: {reasons.total()}" + (f" ({why})" if why else ""))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the test, in which it runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def jobs_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets jobs run in this process: a new one needs seconds for its imports."""
    monkeypatch.setattr(LocalProcesses, "run", run_jobs_here)


@pytest.fixture
def plain_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets figures have few pixels and no layout, which would take most of a command's time."""
    monkeypatch.setitem(STYLE, "savefig.dpi", 50)
    monkeypatch.setitem(STYLE, "figure.constrained_layout.use", False)
    if find_spec("matplotlib"):
        layout = "matplotlib.figure.Figure.draw_without_rendering"
        monkeypatch.setattr(layout, lambda figure: None)


@pytest.fixture
def quicgym(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    jobs_here: None,
    plain_figures: None,
) -> Command:
    """Runs a command in this process, and its jobs too.

    The command runs in tmp_path, and the test fails where it ends with another `status` than 0;
    None stands for any.
    """
    monkeypatch.chdir(tmp_path)

    def run(
        *arguments: str | Path | float, status: int | None = 0, main: Callable[[], None] = cli.main
    ) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["quicgym", *map(str, arguments)])
        capfd.readouterr()  # what was written before is not the command's
        with pytest.raises(SystemExit) as end:
            main()
        done = subprocess.CompletedProcess(sys.argv, int(end.value.code or 0), *capfd.readouterr())
        return check_end(done, status)

    return run


@pytest.fixture(scope="session")
def compiled_aimd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The C++ controller of the manual as a library, which takes a second to compile."""
    library = tmp_path_factory.mktemp("compiled") / "libaimd.so"
    compile_example(library)
    return library


@pytest.fixture(scope="session")
def stress() -> Sequence[Scenario]:
    """The networks of the suite stress."""
    return packaged_suite("stress")


IN_CLUSTER = pytest.mark.xdist_group("in the Ray cluster")
"""Marks what joins the cluster: with `--dist loadgroup` one process runs it, and starts one."""


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[str]:
    """The address of a Ray cluster of one node on this machine."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # read by Ray when it is imported
    import ray
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 2, "include_dashboard": False, "object_store_memory": 80 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args=node)
    yield cluster.address
    ray.shutdown()
    cluster.shutdown()
