"""Imports that earlier versions documented work, and say what to write instead."""

from __future__ import annotations

import importlib
import subprocess
import sys
import warnings

import pytest
from helpers.training import NEEDS_TRAIN

from quicgym.moved import MOVED, SCRIPTS

NAMES = [
    ("quicgym.benchmarks.verdicts", "judge", "quicgym.benchmarks.papers.verdicts"),
    ("quicgym.configs", "load_paper", "quicgym.benchmarks.papers.model"),
    ("quicgym.envs.cellular_trace", "MODELS", "quicgym.envs.scenarios.cellular_trace"),
    ("quicgym.envs.distributions", "Distribution", "quicgym.envs.scenarios.distributions"),
    ("quicgym.envs.distributions", "load_suite", "quicgym.envs.scenarios.suites"),
    ("quicgym.envs.result", "Result", "quicgym.envs.simulation.result"),
    ("quicgym.envs.result", "jain", "quicgym.envs.simulation.metrics"),
    ("quicgym.envs.result", "METRICS", "quicgym.envs.simulation.metrics"),
    ("quicgym.envs.scenario", "Scenario", "quicgym.envs.scenarios.model"),
    ("quicgym.envs.scenario", "ENGINES", "quicgym.envs.scenarios.engines"),
    ("quicgym.envs.scenario", "Flow", "quicgym.envs.scenarios.flows"),
    ("quicgym.envs.scenario", "BernoulliLoss", "quicgym.envs.scenarios.links"),
    ("quicgym.envs.scenario", "ScenarioError", "quicgym.envs.scenarios.fields"),
    pytest.param(
        "quicgym.agents.learned", "load_policy", "quicgym.agents.policies.learned",
        marks=NEEDS_TRAIN,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("module", "name", "now"), NAMES)
def test_a_name_of_before_is_the_one_of_now_and_warns(module: str, name: str, now: str) -> None:
    expected = getattr(importlib.import_module(now), name)
    with pytest.warns(DeprecationWarning, match=f"^{module}.{name} is now {now}.{name}$") as caught:
        namespace: dict[str, object] = {}
        exec(f"from {module} import {name}", namespace)
    assert namespace[name] is expected
    assert all(warning.filename == "<string>" for warning in caught)  # where it is written


def test_every_module_of_before_is_tested() -> None:
    tested = {getattr(entry, "values", entry)[0] for entry in NAMES}
    assert tested == set(MOVED)


@pytest.mark.parametrize("module", [name for name in MOVED if name != "quicgym.agents.learned"])
def test_names_that_never_were_are_not_there(module: str) -> None:
    with pytest.raises(ImportError, match="nonsense"):
        exec(f"from {module} import nonsense")


def test_names_of_now_do_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec("from quicgym.agents.policies import hand_coded")
        exec("from quicgym.envs.simulation.result import jain")


@pytest.mark.parametrize(("module", "script"), SCRIPTS.items())
def test_a_command_of_before_names_the_script(module: str, script: str) -> None:
    done = subprocess.run([sys.executable, "-m", module], capture_output=True, text=True)
    assert done.returncode != 0 and f"python {script}" in done.stderr
