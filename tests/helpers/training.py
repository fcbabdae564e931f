"""What the tests of training share: configurations that take seconds, and how they are run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import yaml

NEEDS_TRAIN = pytest.mark.train

START: dict[str, dict[str, Any]] = {
    "ppo": {"std": 0.5},
    "sac": {},
    "td3": {"std": 0.2},
    "dqn": {},
    "aggrevate": {},
    "coordinate-aggrevate": {"preset": "bbr"},
    "grpo": {},
}
_REPLAYS = {"learning_starts": 80, "batch_size": 32, "buffer_size": 1000, "train_freq": 2}
_LEARNS = {"paths": 2, "rollouts": 2, "n_updates": 3, "batch_size": 16}
HYPERPARAMETERS: dict[str, dict[str, Any]] = {
    "ppo": {"n_steps": 10, "batch_size": 40, "n_epochs": 2, "learning_rate": 0.02},
    "sac": _REPLAYS,
    "td3": _REPLAYS,
    "dqn": {**_REPLAYS, "target_update_interval": 24},
    "aggrevate": {**_LEARNS, "windows": [-2, 0, 2]},
    "coordinate-aggrevate": {**_LEARNS, "settings": [{"cwnd_gain": -0.5}, {}, {"cwnd_gain": 0.5}]},
    "grpo": {"paths": 2, "replays": 2, "batch_size": 16},
}
# One agent and a competitor.
WINDOW: dict[str, Any] = {
    "id": "quicgym/Window-v1",
    "scenario": "./rival.yaml",
    "simulations": 4,
    "threads": 1,
    "decision_interval_ms": 100,
    "reward_interval_ms": 100,
}
TUNING = {**WINDOW, "id": "quicgym/Tuning-v1", "history_length": 4, "coordinates": ["all"]}
ENVIRONMENT: dict[str, dict[str, Any]] = {
    "aggrevate": WINDOW,
    "dqn": WINDOW,
    "coordinate-aggrevate": TUNING,
    "grpo": WINDOW,
}


def scenario(name: str, flows: int = 2, duration_s: float = 1.0) -> dict[str, Any]:
    return {
        "name": name,
        "duration_s": duration_s,
        "bottleneck": {"rate_mbps": 3, "delay_ms": 5, "queue": {"limit": 20}},
        "access": {"rate_mbps": 50, "delay_ms": 1},
        "flows": [{"name": f"flow-{number}"} for number in range(flows)],
    }


def write_config(folder: Path, algorithm: str = "ppo", **changes: Any) -> Path:
    """Writes scenario, suite and configuration; returns the configuration's path."""
    (folder / "pair.yaml").write_text(yaml.safe_dump(scenario("pair")))
    rival = scenario("rival")
    rival["flows"][1]["controller"] = "cubic"
    (folder / "rival.yaml").write_text(yaml.safe_dump(rival))
    suite = [scenario("short", 1, 0.5), scenario("pair-again")]
    (folder / "suite.yaml").write_text(yaml.safe_dump(suite))
    config = {
        "name": "tiny",
        "algorithm": algorithm,
        "hyperparameters": HYPERPARAMETERS[algorithm],
        "environment": ENVIRONMENT.get(
            algorithm, {"scenario": "./pair.yaml", "simulations": 4, "threads": 1}
        ),
        "start": START[algorithm],
        "network": {"extractor_sizes": [16], "hidden_sizes": [16]},
        "steps": 480,
        "evaluation": {"suite": "./suite.yaml", "interval_steps": 160, "comparison_paths": 16},
        **changes,
    }
    path = folder / "tiny.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


def make_trainer(
    algorithm: str,
    id: str,
    simulations: int,
    scenario: Any,
    *,
    environment: Mapping[str, Any] = MappingProxyType({}),
    privileged_critic: bool = False,
    **arguments: Any,
) -> Any:
    """Makes an algorithm that plays episodes itself, with a small network over four decisions."""
    import torch

    from quicgym.agents.algorithms.registry import find
    from quicgym.agents.policies.networks import Actor, Architecture, draw_weights
    from quicgym.agents.training.configuration import ConfigError
    from quicgym.envs.batch import EpisodeBatch
    from quicgym.envs.decisions import Decisions
    from quicgym.envs.episodes import EpisodeSource
    from quicgym.envs.registration import find_environment
    from quicgym.validation import validated

    played, settings = find_environment(id), dict(environment)
    reward = settings.pop("reward", "fair-throughput")
    per_flow = settings.pop("reward_per_flow", False)
    decisions = Decisions(id, history_length=4, **settings)
    source = EpisodeSource(scenario, "native", decisions, every_flow=True)
    batch = EpisodeBatch(source, simulations, 1, reward=reward, reward_per_flow=per_flow)
    architecture = Architecture((16,), (16,), output="argmax" if batch.choices else "clip")
    torch.manual_seed(1)
    actor = Actor(architecture, decisions)
    found = find(algorithm).implementation_class
    return found(
        batch,
        draw_weights(actor),
        validated(found.Settings, arguments, "test", ConfigError),
        acts_in_slow_start=played.acts_in_slow_start,
        device="cpu",
        **({"critic": architecture} if privileged_critic else {}),
    )


def made(folder: Path, *changes: str, algorithm: str = "ppo") -> tuple[Any, Any]:
    """Makes a configuration with changes, and its trainer."""
    from quicgym.agents.training.configuration import load_training
    from quicgym.agents.training.model import make_trainer as make_configured

    config = load_training(str(write_config(folder, algorithm)), changes)
    return config, make_configured(config)


class Unwatched:
    """A watch that keeps what it is told."""

    def __init__(self) -> None:
        self.values: dict[tuple[int, str], float] = {}
        self.events: list[str] = []

    def rollout_begins(self) -> None:
        self.events.append("begins")

    def rollout_ended(self) -> None:
        self.events.append("ended")

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        self.values |= {(step, name): value for name, value in values.items()}


def learned(trainer: Any, steps: int) -> Any:
    """Trains in this process, with the same random numbers for every caller."""
    trainer.reseed(np.random.SeedSequence(5))
    until = trainer.step + steps
    trainer.learn(until, until, Unwatched())
    return trainer


def install_algorithm(site: Path, package: str, code: str, *names: str) -> None:
    """Puts a package with entry points into a folder, as pip does."""
    (site / f"{package}.py").write_text(code)
    information = site / f"{package}-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    entries = "".join(f"{name} = {package}:ALGORITHM\n" for name in names)
    (information / "entry_points.txt").write_text(f"[quicgym.algorithms]\n{entries}")


def hparams_of(run: Path) -> tuple[Any, dict[str, Any]]:
    """Events of a TensorBoard run, and the values of its row of the page HParams."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    events = EventAccumulator(str(run)).Reload()
    data = events.PluginTagToContent("hparams")["_hparams_/session_start_info"]
    start = HParamsPluginData.FromString(data).session_start_info
    return events, {
        name: getattr(value, value.WhichOneof("kind")) for name, value in start.hparams.items()
    }
