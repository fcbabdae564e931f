"""PPO of Stable-Baselines3, with or without memory, learns to steer a flow from random weights.

    python sb3_ppo.py --seeds 1 2 3 --figure curve.svg
    python sb3_ppo.py --environment quicgym/Rate-v1 --recurrent
    quicgym evaluate --policy bbr window-ppo-seed1.zip --trust-zip --suite training-50 --seeds 1000

The agent steers one flow on paths of the distribution `training-50` and decides every 100 ms. In
Window-v1 it is the flow's controller: after slow start it scales the window by one of 13 factors.
With `--recurrent` the policy has a memory (RecurrentPPO of sb3-contrib, an LSTM) for what a single
observation does not show. The curve is of the mean reward minus that of BBR on the same paths,
because rewards differ far more between paths than between policies.
docs/tutorials/which-environment.md explains the settings, and docs/reports/training.md has results.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from stable_baselines3 import PPO

from quicgym.agents.sb3 import PairedDifference
from quicgym.envs.sb3 import make_sb3, save

PATHS = "training-50"
ROWS, LENGTH = 64, 200  # of a rollout: environments, and decisions of each, a whole episode
SETTINGS = {
    "n_steps": LENGTH,
    "batch_size": 3200,
    "n_epochs": 8,
    # It falls to 0, and stays there where the last rollout has more steps than were asked for.
    "learning_rate": lambda left: 1e-3 * max(left, 0.0),
    "gamma": 0.95,
    "gae_lambda": 0.9,
    "vf_coef": 0.25,
}
NETWORK = {"net_arch": [128, 128]}
MEMORY = {"lstm_hidden_size": 64, "shared_lstm": True, "enable_critic_lstm": False}
EXPLORATION = {  # of actions that are numbers: the first standard deviation's logarithm
    "quicgym/Tuning-v1": {"log_std_init": -2.0},
    "quicgym/Window-v1": {},
    "quicgym/Rate-v1": {"log_std_init": -1.0},
}


def train(environment: str, recurrent: bool, seed: int, steps: int, watch: PairedDifference) -> PPO:
    """Returns a model that was trained from random weights."""
    environments = make_sb3(environment, ROWS, scenario=PATHS, infos="ends")
    algorithm, policy, network = PPO, "MlpPolicy", NETWORK | EXPLORATION[environment]
    if recurrent:
        from sb3_contrib import RecurrentPPO

        algorithm, policy, network = RecurrentPPO, "MlpLstmPolicy", network | MEMORY
    model = algorithm(
        policy, environments, policy_kwargs=network, seed=seed, device="cpu", **SETTINGS
    )
    return model.learn(steps, callback=watch)


def draw(curves: dict[int, PairedDifference], path: Path) -> None:
    """Draws a line for each seed, with its 95% interval."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
    for seed, watch in curves.items():
        steps = [step for step, _, _ in watch.history]
        (line,) = axes.plot(
            steps, [bbr.value for _, bbr, _ in watch.history], marker=".", label=f"seed {seed}"
        )
        lows, highs = zip(*((bbr.low, bbr.high) for _, bbr, _ in watch.history), strict=True)
        axes.fill_between(steps, lows, highs, color=line.get_color(), alpha=0.15, linewidth=0)
    axes.axhline(0, color="black", linewidth=1)
    axes.set_xlabel("steps of all rows together")
    axes.set_ylabel("mean reward − BBR's")
    axes.legend()
    figure.savefig(path)


def main() -> None:
    """Trains, saves each model, and draws the curves."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--environment", choices=list(EXPLORATION), default="quicgym/Window-v1")
    parser.add_argument("--recurrent", action="store_true", help="give the policy a memory")
    parser.add_argument("--steps", type=int, default=500_000, help="of all rows together")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--paths", type=int, default=256, help="on which the curve is measured")
    parser.add_argument("--figure", type=Path, help="the picture of the curves, such as curve.svg")
    options = parser.parse_args()
    torch.set_num_threads(1)  # the networks are small; simulations have their own threads
    name = options.environment.removeprefix("quicgym/").removesuffix("-v1").lower()
    name += "-recurrent-ppo" if options.recurrent else "-ppo"
    curves = {}
    for seed in options.seeds:
        watch = curves[seed] = PairedDifference(PATHS, paths=options.paths, every=50_000)
        begin_s, begin_cpu_s = time.perf_counter(), time.process_time()
        model = train(options.environment, options.recurrent, seed, options.steps, watch)
        wall_s, cpu_s = time.perf_counter() - begin_s, time.process_time() - begin_cpu_s
        file = f"{name}-seed{seed}.zip"
        save(model, file)
        print(
            f"seed {seed}: {model.num_timesteps:,} steps in {wall_s:.0f} s, {cpu_s:.0f} s of CPU "
            f"time, comparisons included; {file} has the model",
            flush=True,
        )
    if options.figure:
        draw(curves, options.figure)


if __name__ == "__main__":
    main()
