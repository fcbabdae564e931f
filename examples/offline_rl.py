"""Behaviour cloning and implicit Q-learning from a recorded dataset, in plain PyTorch.

    python offline_rl.py
    quicgym evaluate --policy keep=window_policies.py:keep sometimes=window_policies.py:sometimes \
        offline_rl.py:cloned offline_rl.py:implicit_q --suite training-50 --seeds 1000 --versus keep

Behaviour cloning imitates the policies that recorded. Implicit Q-learning (Kostrikov, Nair and Levine
2021, arXiv:2110.06169) learns from the recorded rewards which of the recorded actions were the better
ones. Neither steps an environment. The dataset has a choice of Window-v1 in each decision: one of
13 factors for the window. Without the name of a dataset the first run records one into ./datasets.
"""  # noqa: E501 (commands)

from __future__ import annotations

import argparse
import os
import time
from dataclasses import dataclass
from pathlib import Path

import minari
import numpy as np
import torch
from torch import Tensor, nn

import quicgym
from quicgym.agents.evaluation.recording import MINARI_FOLDER, record

DECISIONS = quicgym.Decisions("quicgym/Window-v1")
FOLDER = Path(".")
DATASETS = Path("datasets")
POLICIES = Path(__file__).with_name("window_policies.py")
RECORDED = [f"{name}={POLICIES}:{name}" for name in ("keep", "sometimes")]
MINIBATCH, LEARNING_RATE = 512, 1e-3
GAMMA = 0.95  # a reward follows an action within a few round trips
EXPECTILE = 0.8  # of the values that V is for an observation: 0.5 is the mean of the dataset
SHARPNESS = 10.0  # by which advantages weigh actions: 0 is behaviour cloning
LARGEST_WEIGHT = 100.0
TARGET_RATE = 0.005  # by which the target network follows


@dataclass
class Transitions:
    """The decisions of a dataset, each tensor with an axis of them.

    Attributes:
        observations: On which was decided, shape (decisions, features).
        actions: The choices.
        rewards: What was earned until the next decision.
        next_observations: Then.
        goes_on: 0 where the episode was terminated, else 1. A truncated episode goes on unseen.
    """

    observations: Tensor
    actions: Tensor
    rewards: Tensor
    next_observations: Tensor
    goes_on: Tensor


def load(name: str) -> Transitions:
    """Returns all decisions of a Minari dataset of Window-v1."""
    dataset = minari.load_dataset(name)
    columns = [
        (
            episode.observations[:-1],
            episode.actions,
            episode.rewards.astype(np.float32),
            episode.observations[1:],
            1.0 - episode.terminations.astype(np.float32),
        )
        for episode in dataset.iterate_episodes()
    ]
    return Transitions(
        *(torch.as_tensor(np.concatenate(parts)) for parts in zip(*columns, strict=True))
    )


def network(inputs: int, outputs: int) -> nn.Sequential:
    """Returns a network with two hidden layers."""
    return nn.Sequential(
        nn.Linear(inputs, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, outputs)
    )


def make_actor() -> nn.Sequential:
    """Returns an untrained network from observations to the logits of the choices."""
    spec = quicgym.make_vec(DECISIONS.environment, 1, **DECISIONS.arguments)
    shape, choices = spec.single_observation_space.shape, spec.single_action_space
    return network(shape[0], int(choices.n))


def clone(data: Transitions, steps: int) -> nn.Sequential:
    """Returns an actor that chooses as the dataset does: behaviour cloning."""
    actor = make_actor()
    optimizer = torch.optim.Adam(actor.parameters(), lr=LEARNING_RATE)
    for _ in range(steps):
        rows = torch.randint(len(data.actions), (MINIBATCH,))
        loss = nn.functional.cross_entropy(actor(data.observations[rows]), data.actions[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return actor


class ImplicitQ(nn.Module):
    """The networks of implicit Q-learning, and one step of their training.

    Attributes:
        actor: The logits of the choices.
        critics: Two estimates of the discounted return of each choice; the smaller one counts.
        value: The expectile of the critics over the choices that the dataset has.
    """

    def __init__(self) -> None:
        """Makes untrained networks."""
        super().__init__()
        self.actor = make_actor()
        self.critics = nn.ModuleList([make_actor(), make_actor()])
        self.targets = nn.ModuleList([make_actor(), make_actor()]).requires_grad_(False)
        self.targets.load_state_dict(self.critics.state_dict())
        inputs = self.actor[0].in_features
        self.value = network(inputs, 1)

    def loss(self, data: Transitions, rows: Tensor) -> Tensor:
        """Returns the sum of the three losses of a minibatch; they share no weights."""
        observations, actions = data.observations[rows], data.actions[rows][:, None]
        with torch.no_grad():
            chosen = [target(observations).gather(1, actions) for target in self.targets]
            q = torch.min(*chosen).flatten()
            after = self.value(data.next_observations[rows]).flatten()
            wanted = data.rewards[rows] + GAMMA * data.goes_on[rows] * after
        value = self.value(observations).flatten()
        advantages = q - value
        sides = torch.where(advantages > 0, EXPECTILE, 1 - EXPECTILE)
        value_loss = (sides * advantages.square()).mean()
        critic_loss = sum(
            (critic(observations).gather(1, actions).flatten() - wanted).square().mean()
            for critic in self.critics
        )
        weights = (SHARPNESS * advantages.detach()).exp().clamp(max=LARGEST_WEIGHT)
        surprise = nn.functional.cross_entropy(
            self.actor(observations), actions.flatten(), reduction="none"
        )
        return value_loss + critic_loss + (weights * surprise).mean()

    @torch.no_grad()
    def follow(self) -> None:
        """Moves the target networks towards the critics."""
        for target, critic in zip(
            self.targets.parameters(), self.critics.parameters(), strict=True
        ):
            target.lerp_(critic, TARGET_RATE)


def learn_implicit_q(data: Transitions, steps: int) -> nn.Sequential:
    """Returns an actor that prefers the recorded choices that earned more than expected."""
    networks = ImplicitQ()
    optimizer = torch.optim.Adam(networks.parameters(), lr=LEARNING_RATE)
    for _ in range(steps):
        rows = torch.randint(len(data.actions), (MINIBATCH,))
        optimizer.zero_grad()
        networks.loss(data, rows).backward()
        optimizer.step()
        networks.follow()
    return networks.actor


ALGORITHMS = {"cloned": clone, "implicit_q": learn_implicit_q}


def trained(name: str) -> nn.Sequential:
    """Returns the actor that the last training in this folder has saved."""
    actor = make_actor()
    actor.load_state_dict(torch.load(FOLDER / f"{name}.pt", weights_only=True))
    return actor


def cloned() -> nn.Sequential:
    """Returns what behaviour cloning has saved, for `quicgym evaluate`."""
    return trained("cloned")


def implicit_q() -> nn.Sequential:
    """Returns what implicit Q-learning has saved, for `quicgym evaluate`."""
    return trained("implicit_q")


decisions = DECISIONS  # of both, for `quicgym evaluate`


def recorded() -> str:
    """Returns the name of this example's own dataset, which the first call records."""
    os.environ[MINARI_FOLDER] = str(DATASETS.resolve())
    known = minari.list_local_datasets()
    return next(iter(known)) if known else record(RECORDED, "training-50", 300, DATASETS)[0]


def main() -> None:
    """Trains both from the same dataset, and saves the actors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", nargs="?", help="Minari's name of it")
    parser.add_argument("--steps", type=int, default=4000, help="of the optimizer")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)  # the networks are small
    dataset = options.dataset or recorded()
    data = load(dataset)
    print(f"{dataset}: {len(data.actions):,} decisions, reward {data.rewards.mean():.4f}")
    for name, learn in ALGORITHMS.items():
        torch.manual_seed(options.seed)
        begin_cpu_s = time.process_time()
        actor = learn(data, options.steps)
        cpu_s = time.process_time() - begin_cpu_s
        torch.save(actor.state_dict(), FOLDER / f"{name}.pt")
        print(
            f"{name}: {options.steps:,} steps in {cpu_s:.0f} s of CPU time; {name}.pt", flush=True
        )


if __name__ == "__main__":
    main()
