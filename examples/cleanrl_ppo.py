"""PPO in a single file of plain PyTorch, in the style of CleanRL, over Gymnasium's vector API.

    python cleanrl_ppo.py
    quicgym evaluate --policy ibcca cleanrl_ppo.py:trained --suite training-50 --seeds 1000

The agent is the controller of Window-v1: after slow start it scales its flow's window by one of 13
factors every 100 ms, on paths of the distribution `training-50`. The untrained agent's likeliest
action is to leave the window as it is.

The training takes about 80 s of CPU time, and the two measurements another 20 s. The mean reward
rises from 0.07 to 0.115 on 1,024 paths (seed 1).

The environments begin a new episode in the step after the end of the last one (NEXT_STEP). In that
step a row ignores its action and earns nothing, so these rows are no part of the loss.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import dataclass
from pathlib import Path

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from torch import Tensor, nn
from torch.distributions import Categorical

import quicgym
from quicgym.agents.evaluation.rollouts import play_all
from quicgym.envs import load_suite
from quicgym.envs.actions import WINDOW_EXPONENTS
from quicgym.envs.scenarios.suites import episodes_of

SCENARIOS = "training-50"
DECISIONS = quicgym.Decisions("quicgym/Window-v1")
WEIGHTS = Path("cleanrl_ppo.pt")

ROWS, LENGTH = 64, 200  # of a rollout: environments, and decisions of each, a whole episode
GAMMA, LAMBDA = 0.95, 0.9
EPOCHS, MINIBATCH = 8, 3200
LEARNING_RATE, CLIP, VALUE_WEIGHT, LARGEST_GRADIENT = 1e-3, 0.2, 0.25, 0.5


class Agent(nn.Module):
    """The logits of the actions, and the value of an observation.

    Args:
        observations: Elements of one.
        actions: To choose from.
    """

    def __init__(self, observations: int, actions: int) -> None:
        """Makes both networks."""
        super().__init__()
        self.actor = network(observations, actions, gain=0.01)
        self.critic = network(observations, 1, gain=1.0)
        with torch.no_grad():
            self.actor[-1].bias[WINDOW_EXPONENTS.index(0.0)] = 2.0

    def forward(self, observations: Tensor) -> Tensor:
        """Returns the logits, shape (rows, actions)."""
        return self.actor(observations)

    def value(self, observations: Tensor) -> Tensor:
        """Returns the values, shape (rows,)."""
        return self.critic(observations).flatten()


def network(inputs: int, outputs: int, gain: float) -> nn.Sequential:
    """Returns a network with two hidden layers and orthogonal weights, `gain` for the last one."""
    layers = [nn.Linear(inputs, 128), nn.Linear(128, 128), nn.Linear(128, outputs)]
    for layer, scale in zip(layers, (2**0.5, 2**0.5, gain), strict=True):
        nn.init.orthogonal_(layer.weight, scale)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(layers[0], nn.Tanh(), layers[1], nn.Tanh(), layers[2])


def make_environments(rows: int, seed: int) -> tuple[gymnasium.vector.VectorEnv, Tensor]:
    """Returns the environments, each on a path of its own, and their first observations."""
    environments = quicgym.make_vec(
        DECISIONS.environment,
        num_envs=rows,
        scenario=SCENARIOS,
        autoreset_mode=AutoresetMode.NEXT_STEP,
        **DECISIONS.arguments,
    )
    observations, _ = environments.reset(seed=seed)
    return environments, torch.as_tensor(observations)


def make_agent(environments: gymnasium.vector.VectorEnv) -> Agent:
    """Returns an untrained agent."""
    actions = environments.single_action_space
    return Agent(environments.single_observation_space.shape[0], int(actions.n))


@dataclass
class Rollout:
    """Decisions of all rows; every tensor has the shape (LENGTH, ROWS), observations one axis more.

    Attributes:
        observations: On which the agent decided.
        actions: What it chose.
        log_probabilities: Of these choices.
        values: Of the observations.
        rewards: What was earned.
        next_values: Of the observations after the step; 0 where the episode was terminated.
        ends: The episode ended with the step, by termination or by truncation.
        is_reset: The step did not carry out the action, but began the next episode.
    """

    observations: Tensor
    actions: Tensor
    log_probabilities: Tensor
    values: Tensor
    rewards: Tensor
    next_values: Tensor
    ends: Tensor
    is_reset: Tensor


@torch.no_grad()
def collect(
    agent: Agent,
    environments: gymnasium.vector.VectorEnv,
    observations: Tensor,
    ended: Tensor,
    length: int = LENGTH,
) -> tuple[Rollout, Tensor, Tensor]:
    """Steps the environments.

    Args:
        agent: Chooses by its probabilities.
        environments: In the mode NEXT_STEP.
        observations: Where they are.
        ended: Which rows the last step ended, shape (rows,). In the next step these are reset.
        length: Steps.

    Returns:
        What happened; observations and ends after it, for the next call.
    """
    steps = []
    for _ in range(length):
        choices = Categorical(logits=agent(observations))
        actions = choices.sample()
        after, rewards, terminations, truncations, _ = environments.step(actions.numpy())
        after = torch.as_tensor(after)
        is_reset, ended = ended, torch.as_tensor(terminations | truncations)
        # The observation after a truncation is the episode's last one: the next step resets.
        next_values = agent.value(after).masked_fill(torch.as_tensor(terminations), 0.0)
        steps.append(
            (
                observations,
                actions,
                choices.log_prob(actions),
                agent.value(observations),
                torch.as_tensor(rewards, dtype=torch.float32),
                next_values,
                ended,
                is_reset,
            )
        )
        observations = after
    return Rollout(*map(torch.stack, zip(*steps, strict=True))), observations, ended


def advantages_of(rollout: Rollout) -> Tensor:
    """Returns generalized advantages (Schulman et al. 2016), which end with each episode."""
    errors = rollout.rewards + GAMMA * rollout.next_values - rollout.values
    advantages, sums = torch.zeros_like(errors), torch.zeros_like(errors[0])
    for step in reversed(range(len(errors))):
        sums = errors[step] + GAMMA * LAMBDA * sums.masked_fill(rollout.ends[step], 0.0)
        advantages[step] = sums
    return advantages


@dataclass
class Samples:
    """The decisions that the loss is taken over, each tensor with an axis of them."""

    observations: Tensor
    actions: Tensor
    log_probabilities: Tensor
    advantages: Tensor
    returns: Tensor


def samples_of(rollout: Rollout) -> Samples:
    """Returns all decisions of a rollout but those of steps that were resets."""
    carried_out = ~rollout.is_reset
    advantages = advantages_of(rollout)
    return Samples(
        rollout.observations[carried_out],
        rollout.actions[carried_out],
        rollout.log_probabilities[carried_out],
        advantages[carried_out],
        (advantages + rollout.values)[carried_out],
    )


def loss_of(agent: Agent, samples: Samples, chosen: Tensor) -> Tensor:
    """Returns PPO's clipped loss (Schulman et al. 2017) of some of the samples."""
    choices = Categorical(logits=agent(samples.observations[chosen]))
    new = choices.log_prob(samples.actions[chosen])
    ratio = (new - samples.log_probabilities[chosen]).exp()
    advantages = samples.advantages[chosen]
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    gain = torch.min(advantages * ratio, advantages * ratio.clamp(1 - CLIP, 1 + CLIP)).mean()
    value_error = agent.value(samples.observations[chosen]) - samples.returns[chosen]
    return VALUE_WEIGHT * value_error.square().mean() - gain


def train(agent: Agent, steps: int, seed: int) -> None:
    """Trains the agent for a number of steps of all rows together."""
    environments, observations = make_environments(ROWS, seed)
    ended = torch.zeros(ROWS, dtype=torch.bool)
    optimizer = torch.optim.Adam(agent.parameters(), lr=LEARNING_RATE, eps=1e-5)
    iterations = max(1, steps // (ROWS * LENGTH))
    for iteration in range(iterations):
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - iteration / iterations)
        rollout, observations, ended = collect(agent, environments, observations, ended)
        samples = samples_of(rollout)
        for _ in range(EPOCHS):
            for chosen in torch.randperm(len(samples.actions)).split(MINIBATCH):
                optimizer.zero_grad()
                loss_of(agent, samples, chosen).backward()
                nn.utils.clip_grad_norm_(agent.parameters(), LARGEST_GRADIENT)
                optimizer.step()
        if iteration % 10 == 9:
            reward = rollout.rewards[~rollout.is_reset].mean()
            print(f"{(iteration + 1) * ROWS * LENGTH} steps, reward {reward:.3f}", flush=True)
    environments.close()


@dataclass
class Greedy:
    """An agent as `quicgym evaluate` takes it: the likeliest action of every row."""

    agent: Agent
    name: str = "cleanrl-ppo"
    decisions: quicgym.Decisions = DECISIONS
    options: None = None

    @torch.inference_mode()
    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """Returns an action for each row of observations."""
        return self.agent(torch.as_tensor(observations)).argmax(1).numpy()


def trained() -> Agent:
    """Returns what the last training in this folder has saved."""
    environments, _ = make_environments(1, seed=0)
    agent = make_agent(environments)
    agent.load_state_dict(torch.load(WEIGHTS, weights_only=True))
    return agent


trained.decisions = DECISIONS


def rewards_of(agent: Agent, paths: int) -> np.ndarray:
    """Returns the mean reward of an episode on each of the first paths of SCENARIOS.

    These are the paths and rewards of `quicgym evaluate --suite training-50`.
    """
    cells = episodes_of(load_suite(SCENARIOS), paths)
    episodes = play_all(Greedy(agent), cells, threads=os.cpu_count() or 1)
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

    environments, _ = make_environments(1, options.seed)
    agent = make_agent(environments)
    start = rewards_of(agent, options.paths)
    print(f"start: reward {start.mean():.4f}, mean over {options.paths} paths", flush=True)
    begin_s, begin_cpu_s = time.perf_counter(), time.process_time()
    train(agent, options.steps, options.seed)
    wall_s, cpu_s = time.perf_counter() - begin_s, time.process_time() - begin_cpu_s
    torch.save(agent.state_dict(), WEIGHTS)
    end = rewards_of(agent, options.paths)
    half_width = 1.96 * (end - start).std(ddof=1) / len(end) ** 0.5
    print(f"end: reward {end.mean():.4f}")
    print(f"difference: {(end - start).mean():.4f} ± {half_width:.4f} (95% interval, same paths)")
    print(f"training took {wall_s:.0f} s, {cpu_s:.0f} s of CPU time; {WEIGHTS} has the weights")


if __name__ == "__main__":
    main()
