"""What several test files share."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from quicgym.envs.simulation.simulation import ns3_version

# The tests share the cores; PyTorch's threads would get into each other's way.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# The same examples in every run, so that what passes once passes again, on a loaded machine too;
# `make test ARGS=--hypothesis-profile=default` looks for new ones.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

Command = Callable[..., "subprocess.CompletedProcess[str]"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if ns3_version() is None:
        for item in items:
            if item.get_closest_marker("ns3"):
                item.add_marker(pytest.mark.skip(reason="needs quicgym-ns3"))


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
def quicgym(tmp_path: Path) -> Command:
    """Runs the command as a user does, in a folder of its own."""

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "quicgym.cli", *map(str, arguments)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
        )

    return run
