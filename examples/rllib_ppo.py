"""PPO of RLlib with env runners in Ray's processes, on this machine or on a Ray cluster.

    pip install '.[examples]'      # in a checkout
    python rllib_ppo.py
    python rllib_ppo.py --address auto --env-runners 32    # of a cluster that `ray start` has made
    quicgym evaluate --policy ibcca rllib_ppo.py:trained --suite training-50 --seeds 1000

Each env runner steps a vector environment of quicgym, in a process of its own; the learner is in
this process. On a cluster quicgym has to be installed on every node. The agent is the controller of
Window-v1 on paths of `training-50`, as in cleanrl_ppo.py beside this file.

The training takes about 150 s of CPU time in all processes. The mean reward rises from 0.086
to 0.114 (seed 1).
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import ray
import torch
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.algorithms.ppo.torch.default_ppo_torch_rl_module import DefaultPPOTorchRLModule
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.core.rl_module.rl_module import RLModule, RLModuleSpec

import quicgym
from quicgym.agents.evaluation.rollouts import play_all
from quicgym.envs import load_suite
from quicgym.envs.actions import WINDOW_EXPONENTS
from quicgym.envs.scenarios.suites import episodes_of

SCENARIOS = "training-50"
DECISIONS = quicgym.Decisions("quicgym/Window-v1")
WEIGHTS = Path("rllib_ppo")

ROWS, LENGTH = 64, 200  # of an iteration: environments of all env runners, decisions of each


class KeepsTheWindow(DefaultPPOTorchRLModule):
    """RLlib's network; untrained, its likeliest action is to leave the window as it is."""

    def setup(self) -> None:
        """Makes the network and changes the last layer of its policy."""
        super().setup()
        last = [layer for layer in self.pi.modules() if isinstance(layer, torch.nn.Linear)][-1]
        with torch.no_grad():
            last.weight.mul_(0.01)
            last.bias.zero_()
            last.bias[WINDOW_EXPONENTS.index(0.0)] = 2.0


def configure(env_runners: int, steps: int, seed: int) -> PPOConfig:
    """Returns RLlib's configuration."""
    rows = max(1, ROWS // env_runners)
    return (
        PPOConfig()
        .environment(
            # The module before the colon is imported in each env runner, and registers the id.
            "quicgym:quicgym/Window-v1",
            env_config={"scenario": SCENARIOS, "num_threads": 1, **DECISIONS.arguments},
        )
        .env_runners(
            num_env_runners=env_runners,
            num_envs_per_env_runner=rows,
            gym_env_vectorize_mode="vector_entry_point",
            rollout_fragment_length=LENGTH,
        )
        .rl_module(
            rl_module_spec=RLModuleSpec(
                module_class=KeepsTheWindow,
                model_config=DefaultModelConfig(
                    fcnet_hiddens=[128, 128], fcnet_activation="tanh", vf_share_layers=False
                ),
            )
        )
        .training(
            train_batch_size_per_learner=rows * env_runners * LENGTH,
            minibatch_size=3200,
            num_epochs=8,
            lr=[[0, 1e-3], [steps, 0.0]],
            gamma=0.95,
            lambda_=0.9,
            clip_param=0.2,
            entropy_coeff=0.0,
            vf_loss_coeff=0.25,
            vf_clip_param=100.0,
            use_kl_loss=False,
            grad_clip=0.5,
        )
        .debugging(seed=seed, log_level="ERROR")
    )


def choices_of(module: RLModule) -> Callable[[np.ndarray], np.ndarray]:
    """Returns the likeliest action of every row as a function of observations."""

    @torch.inference_mode()
    def choose(observations: np.ndarray) -> np.ndarray:
        output = module.forward_inference({"obs": torch.as_tensor(observations)})
        return output["action_dist_inputs"].argmax(1).numpy()

    return choose


@dataclass
class Greedy:
    """A function of observations as `quicgym evaluate` takes it."""

    choose: Callable[[np.ndarray], np.ndarray]
    name: str = "rllib-ppo"
    decisions: quicgym.Decisions = DECISIONS
    options: None = None

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """Returns an action for each row of observations."""
        return self.choose(observations)


def trained() -> Greedy:
    """Returns what the last training in this folder has saved."""
    return Greedy(choices_of(RLModule.from_checkpoint(WEIGHTS.resolve())))


def rewards_of(module: RLModule, paths: int) -> np.ndarray:
    """Returns the mean reward of an episode on each of the first paths of SCENARIOS.

    These are the paths and rewards of `quicgym evaluate --suite training-50`.
    """
    cells = episodes_of(load_suite(SCENARIOS), paths)
    episodes = play_all(Greedy(choices_of(module)), cells, threads=os.cpu_count() or 1)
    return np.array([episode.metrics["reward"] for episode in episodes])


def cpu_s_of(algorithm: Algorithm) -> float:
    """Returns the CPU time of this process and of the env runners so far."""
    runners = algorithm.env_runner_group.foreach_env_runner(
        lambda runner: time.process_time(), local_env_runner=False
    )
    return time.process_time() + sum(runners)


def main() -> None:
    """Trains, and prints the reward on the same paths before and after."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=500_000, help="of all rows together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--paths", type=int, default=1000, help="on which rewards are measured")
    parser.add_argument("--env-runners", type=int, default=2, help="processes that simulate")
    parser.add_argument("--address", default="local", help="of a Ray cluster, or local")
    options = parser.parse_args()

    torch.set_num_threads(1)  # the network is small
    own = {"num_cpus": options.env_runners + 1, "include_dashboard": False}
    ray.init(
        options.address,
        log_to_driver=False,
        logging_level="ERROR",
        **(own if options.address == "local" else {}),
    )
    algorithm = configure(options.env_runners, options.steps, options.seed).build_algo()
    start = rewards_of(algorithm.get_module(), options.paths)
    print(f"start: reward {start.mean():.4f}, mean over {options.paths} paths", flush=True)
    begin_s, begin_cpu_s = time.perf_counter(), cpu_s_of(algorithm)
    steps, iteration = 0, 0
    while steps < options.steps:
        result, iteration = algorithm.train(), iteration + 1
        steps = int(result["num_env_steps_sampled_lifetime"])
        if iteration % 5 == 0:
            earned = result["env_runners"]["episode_return_mean"] / LENGTH
            print(f"{steps} steps, reward {earned:.3f}", flush=True)
    wall_s, cpu_s = time.perf_counter() - begin_s, cpu_s_of(algorithm) - begin_cpu_s
    module = algorithm.get_module()
    module.save_to_path(WEIGHTS.resolve())
    end = rewards_of(module, options.paths)
    half_width = 1.96 * (end - start).std(ddof=1) / len(end) ** 0.5
    print(f"end: reward {end.mean():.4f}")
    print(f"difference: {(end - start).mean():.4f} ± {half_width:.4f} (95% interval, same paths)")
    print(f"training took {wall_s:.0f} s, {cpu_s:.0f} s of CPU time; {WEIGHTS} has the weights")
    algorithm.stop()
    ray.shutdown()


if __name__ == "__main__":
    main()
