"""Training configurations that take seconds, one for each algorithm."""

from __future__ import annotations

from typing import Any

_SB3: dict[str, Any] = {"learning_starts": 80, "batch_size": 32, "buffer_size": 1000}
_LEARNED: dict[str, Any] = {"paths": 2, "rollouts": 2, "n_updates": 3, "batch_size": 16}
_HYPERPARAMETERS: dict[str, dict[str, Any]] = {
    "ppo": {"n_steps": 10, "batch_size": 40, "n_epochs": 2},
    "sac": {**_SB3, "train_freq": 2},
    "td3": {**_SB3, "train_freq": 2},
    "aggrevate": {**_LEARNED, "windows": [-2, 0, 2]},
    "coordinate-aggrevate": {**_LEARNED, "values": {"cwnd_gain": [-0.5, 0, 0.5]}},
    "choice-aggrevate": {**_LEARNED, "controllers": ["cubic", "vegas"]},
    "grpo": {"paths": 2, "replays": 2, "batch_size": 16},
}
_START: dict[str, dict[str, Any]] = {
    "ppo": {"std": 0.5},
    "td3": {"std": 0.2},
    "coordinate-aggrevate": {"preset": "bbr"},
    "choice-aggrevate": {"preset": "cubic"},
}
_IDS = {
    "aggrevate": "quicgym/Window-v1",
    "choice-aggrevate": "quicgym/Switch-v1",
    "grpo": "quicgym/Window-v1",
}


def tiny_training(algorithm: str) -> dict[str, Any]:
    """Returns a configuration over ./path.yaml that writes a checkpoint each 160 of 480 steps."""
    environment: dict[str, Any] = {"scenario": "./path.yaml", "simulations": 4, "threads": 1}
    if algorithm in _IDS:
        environment |= {"id": _IDS[algorithm]}
    return {
        "name": "tiny",
        "algorithm": algorithm,
        "hyperparameters": _HYPERPARAMETERS.get(algorithm, {}),
        "environment": environment,
        "start": _START.get(algorithm, {}),
        "network": {"extractor_sizes": [16], "hidden_sizes": [16]},
        "steps": 480,
        "evaluation": {"suite": "./short.yaml", "interval_steps": 160, "comparison_paths": 16},
    }
