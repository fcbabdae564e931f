"""The examples that train agents, run as a user runs them, and evaluated by the names they save."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from quicgym.agents.evaluation.rollouts import play
from quicgym.agents.policies.by_name import find_policy
from quicgym.envs import load_suite
from quicgym.envs.scenarios.suites import episodes_of

EXAMPLES = Path(__file__).parents[2] / "examples"
PATHS = 4
NUMBER = r"(-?\d+\.\d{4})"
NEEDS = {"cleanrl_ppo": (), "rllib_ppo": ("tree", "ormsgpack"), "torchrl_ppo": ("torchrl",)}
"""Packages that the extra `train` does not bring; the extra `examples` does."""
MORE = {"rllib_ppo": ("--env-runners", "1")}


@pytest.mark.train
@pytest.mark.parametrize(
    "name", ["cleanrl_ppo", "torchrl_ppo", pytest.param("rllib_ppo", marks=pytest.mark.long)]
)
def test_an_example_trains_and_is_evaluated_by_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing := [package for package in NEEDS[name] if find_spec(package) is None]:
        pytest.skip(f"needs {', '.join(missing)}")
    script = EXAMPLES / f"{name}.py"
    done = subprocess.run(
        [sys.executable, script, "--steps", "1", "--paths", str(PATHS), *MORE.get(name, ())],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    start = re.search(rf"^start: reward {NUMBER}, mean over {PATHS} paths$", done.stdout, re.M)
    end = re.search(rf"^end: reward {NUMBER}$", done.stdout, re.M)
    difference = re.search(
        rf"^difference: {NUMBER} ± {NUMBER} \(95% interval, same paths\)$", done.stdout, re.M
    )
    assert start and end and difference, done.stdout
    assert float(difference[1]) == pytest.approx(float(end[1]) - float(start[1]), abs=2e-4)
    monkeypatch.chdir(tmp_path)
    policy = find_policy(f"{script}:trained")
    cells = episodes_of(load_suite("training-50"), PATHS)
    rewards = [play(policy, scenario, seed=seed).metrics["reward"] for scenario, seed in cells]
    assert np.mean(rewards) == pytest.approx(float(end[1]), abs=1e-4)


@pytest.mark.train
@pytest.mark.parametrize(
    ("options", "model", "environment"),
    [
        ((), "window-ppo", "window"),
        (("--environment", "quicgym/Rate-v1", "--recurrent"), "rate-recurrent-ppo", "rate"),
    ],
)
def test_the_example_of_stable_baselines3_draws_its_curve_and_its_model_is_evaluated(
    options: tuple[str, ...], model: str, environment: str, tmp_path: Path
) -> None:
    if "--recurrent" in options:
        pytest.importorskip("sb3_contrib", reason="it comes with the extra examples")
    script = EXAMPLES / "sb3_ppo.py"
    figure = tmp_path / "curve.svg"
    done = subprocess.run(
        [sys.executable, script, *options, "--steps", "1", "--paths", "4", "--figure", figure],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    steps = re.findall(r"^step +([\d,]+)  reward .* minus bbr ", done.stdout, re.M)
    assert steps == ["0", "12,800"]
    assert "seed 1: 12,800 steps" in done.stdout and figure.read_text().startswith("<?xml")
    with pytest.warns(UserWarning, match="runs code"):
        policy = find_policy(str(tmp_path / f"{model}-seed1.zip"), trust_zip=True)
    assert policy.decisions.environment == environment


@pytest.mark.parametrize("name", ["keep", "random"])
def test_policies_that_look_at_nothing_are_evaluated_by_name(name: str) -> None:
    policy = find_policy(f"{EXAMPLES / 'window_policies.py'}:{name}")
    assert policy.decisions.environment == "window"
    ((scenario, seed),) = episodes_of(load_suite("ebcc-single"), 1)
    assert play(policy, scenario, seed=seed).metrics["reward"] < 1


def test_random_choices_do_not_depend_on_the_episodes_before_so_nor_on_the_jobs() -> None:
    policy = find_policy(f"{EXAMPLES / 'window_policies.py'}:random")
    ((scenario, _),) = episodes_of(load_suite("ebcc-single"), 1)
    first, second, again = (
        play(policy, scenario, seed=seed).metrics["reward"] for seed in (0, 1, 0)
    )
    assert first == again != second


@pytest.mark.train
def test_torchrl_makes_an_environment_by_its_id() -> None:
    """TorchRL tries the argument frameskip, and takes a refusal in Python's words alone."""
    gym = pytest.importorskip("torchrl.envs")
    environment = gym.GymEnv("quicgym/Window-v1", scenario="ebcc-single")
    assert environment.reset()["observation"].shape == (98,)
