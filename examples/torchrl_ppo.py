"""PPO with the parts of TorchRL: its collector, advantages and loss over a vector environment.

    pip install '.[examples]'      # in a checkout
    python torchrl_ppo.py
    quicgym evaluate --policy ibcca torchrl_ppo.py:trained --suite training-50 --seeds 1000

TorchRL's GymWrapper takes vector environments that begin a new episode in the step that ends the
last one (SAME_STEP), and finds the last observation in `info`. The agent is the controller of
Window-v1 on paths of `training-50`, as in cleanrl_ppo.py beside this file.

The training takes about 85 s of CPU time. The mean reward rises from 0.086 to
0.132 (seed 1).
"""

from __future__ import annotations

import argparse
import logging
import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from tensordict.nn import TensorDictModule
from torch import nn
from torch.distributions import Categorical
from torchrl.collectors import Collector
from torchrl.envs import GymWrapper
from torchrl.modules import ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

import quicgym
from quicgym.agents.evaluation.rollouts import play_all
from quicgym.envs import load_suite
from quicgym.envs.actions import WINDOW_EXPONENTS
from quicgym.envs.observations import observation_names
from quicgym.envs.scenarios.suites import episodes_of

SCENARIOS = "training-50"
DECISIONS = quicgym.Decisions("quicgym/Window-v1")
WEIGHTS = Path("torchrl_ppo.pt")

ROWS, LENGTH = 64, 200  # of a rollout: environments, and decisions of each, a whole episode
EPOCHS, MINIBATCH, LEARNING_RATE, LARGEST_GRADIENT = 8, 3200, 1e-3, 0.5


def network(outputs: int, gain: float) -> nn.Sequential:
    """Returns a network with two hidden layers and orthogonal weights, `gain` for the last one."""
    inputs = len(observation_names(DECISIONS.history_length, DECISIONS.environment))
    layers = [nn.Linear(inputs, 128), nn.Linear(128, 128), nn.Linear(128, outputs)]
    for layer, scale in zip(layers, (2**0.5, 2**0.5, gain), strict=True):
        nn.init.orthogonal_(layer.weight, scale)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(layers[0], nn.Tanh(), layers[1], nn.Tanh(), layers[2])


def make_network() -> nn.Sequential:
    """Returns an untrained policy, whose likeliest action is to leave the window as it is."""
    result = network(len(WINDOW_EXPONENTS), gain=0.01)
    with torch.no_grad():
        result[-1].bias[WINDOW_EXPONENTS.index(0.0)] = 2.0
    return result


def make_environment(rows: int) -> GymWrapper:
    """Returns the environments as one of TorchRL."""
    environments = quicgym.make_vec(
        DECISIONS.environment,
        num_envs=rows,
        scenario=SCENARIOS,
        autoreset_mode="same_step",
        **DECISIONS.arguments,
    )
    return GymWrapper(environments, categorical_action_encoding=True)


def train(policy: nn.Module, steps: int, seed: int) -> None:
    """Trains the policy's network for a number of steps of all rows together."""
    environment = make_environment(ROWS)
    environment.set_seed(seed)
    actor = ProbabilisticActor(
        TensorDictModule(policy, in_keys=["observation"], out_keys=["logits"]),
        in_keys=["logits"],
        spec=environment.action_spec,
        distribution_class=Categorical,
        return_log_prob=True,
    )
    critic = ValueOperator(network(1, gain=1.0), in_keys=["observation"])
    advantages = GAE(gamma=0.95, lmbda=0.9, value_network=critic)
    loss = ClipPPOLoss(
        actor,
        critic,
        clip_epsilon=0.2,
        entropy_bonus=False,
        critic_coeff=0.25,
        loss_critic_type="l2",
        normalize_advantage=True,
    )
    optimizer = torch.optim.Adam(loss.parameters(), lr=LEARNING_RATE, eps=1e-5)
    iterations = max(1, steps // (ROWS * LENGTH))
    collector = Collector(
        environment,
        actor,
        frames_per_batch=ROWS * LENGTH,
        total_frames=iterations * ROWS * LENGTH,
        auto_register_policy_transforms=False,  # they are for recurrent networks
    )
    for iteration, rollout in enumerate(collector):
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - iteration / iterations)
        with torch.no_grad():
            advantages(rollout)
        samples = rollout.reshape(-1)
        for _ in range(EPOCHS):
            for chosen in torch.randperm(len(samples)).split(MINIBATCH):
                losses = loss(samples[chosen])
                optimizer.zero_grad()
                sum(losses[name] for name in losses.keys() if name.startswith("loss_")).backward()
                nn.utils.clip_grad_norm_(loss.parameters(), LARGEST_GRADIENT)
                optimizer.step()
        if iteration % 10 == 9:
            reward = float(rollout["next", "reward"].mean())
            print(f"{(iteration + 1) * ROWS * LENGTH} steps, reward {reward:.3f}", flush=True)
    collector.shutdown()


@dataclass
class Greedy:
    """A network as `quicgym evaluate` takes it: the likeliest action of every row."""

    network: nn.Module
    name: str = "torchrl-ppo"
    decisions: quicgym.Decisions = DECISIONS
    options: None = None

    @torch.inference_mode()
    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """Returns an action for each row of observations."""
        return self.network(torch.as_tensor(observations)).argmax(1).numpy()


def trained() -> nn.Module:
    """Returns what the last training in this folder has saved."""
    result = make_network()
    result.load_state_dict(torch.load(WEIGHTS, weights_only=True))
    return result


trained.decisions = DECISIONS


def rewards_of(policy: nn.Module, paths: int) -> np.ndarray:
    """Returns the mean reward of an episode on each of the first paths of SCENARIOS.

    These are the paths and rewards of `quicgym evaluate --suite training-50`.
    """
    cells = episodes_of(load_suite(SCENARIOS), paths)
    episodes = play_all(Greedy(policy), cells, threads=os.cpu_count() or 1)
    return np.array([episode.metrics["reward"] for episode in episodes])


def main() -> None:
    """Trains, and prints the reward on the same paths before and after."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=500_000, help="of all rows together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--paths", type=int, default=1000, help="on which rewards are measured")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)  # the networks are small; simulations have their own threads

    logging.getLogger("torchrl").setLevel(logging.WARNING)
    policy = make_network()
    start = rewards_of(policy, options.paths)
    print(f"start: reward {start.mean():.4f}, mean over {options.paths} paths", flush=True)
    begin_s, begin_cpu_s = time.perf_counter(), time.process_time()
    train(policy, options.steps, options.seed)
    wall_s, cpu_s = time.perf_counter() - begin_s, time.process_time() - begin_cpu_s
    torch.save(policy.state_dict(), WEIGHTS)
    end = rewards_of(policy, options.paths)
    half_width = 1.96 * (end - start).std(ddof=1) / len(end) ** 0.5
    print(f"end: reward {end.mean():.4f}")
    print(f"difference: {(end - start).mean():.4f} ± {half_width:.4f} (95% interval, same paths)")
    print(f"training took {wall_s:.0f} s, {cpu_s:.0f} s of CPU time; {WEIGHTS} has the weights")


if __name__ == "__main__":
    main()
