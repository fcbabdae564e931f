"""The policies of a run: taken out of what is trained, and written into the run's folder."""

from __future__ import annotations

from pathlib import Path

from quicgym import __version__, _core
from quicgym.agents.algorithms.trainer import Trainer
from quicgym.agents.policies.learned import LearnedPolicy, PolicyDescription, save_policy
from quicgym.agents.training.configuration import TrainingConfig
from quicgym.agents.training.model import architecture_of, decisions_of


def policy_of(trainer: Trainer, config: TrainingConfig) -> LearnedPolicy:
    """Returns a copy of the policy as it is now, without exploration."""
    return LearnedPolicy(config.name, decisions_of(config), trainer.export())


def write_policy(
    path: Path,
    policy: LearnedPolicy,
    config: TrainingConfig,
    command: str,
    step: int,
    reward: float | None = None,
) -> PolicyDescription:
    """Writes a policy and where it comes from; returns the description.

    The weights go next to `path`. `reward` is the interquartile mean on the evaluations' suite;
    None: not measured.
    """
    about = {
        "command": command,
        "config": config.model_dump(mode="json"),
        "seed": config.seed,
        "step": step,
        "reward": reward,
        "version": __version__,
        "commit": _core.commit,
    }
    return save_policy(path, policy, architecture_of(config), about)
