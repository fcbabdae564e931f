"""How a policy of Tuning moves γ, β, the gain cycle and α on six networks: a figure.

    python benchmarks/studies/behaviour.py [--policy POLICY] [--seconds S] [--out FILE]

draws docs/figures/tuning-behaviour.png for docs/reports/tuning.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from quicgym.agents.policies.learned import LearnedPolicy, load_policy
from quicgym.envs import find_environment
from quicgym.plot_style import BLUE, GREEN, GREY, STYLE, TWO_COLUMNS, VERMILION, save

NETWORKS = {
    "ebcc-single": "alone, 15 Mbps",
    "agents-steps": "rate: 48, 24, 96, 48 Mbps",
    "bbr3-shallow-single": "queue of 5% of a BDP",
    "agents-30-60-loss": "1% random loss",
    "bbr3-cubic-2bdp": "next to CUBIC",
    "beyond-ebcc-cellular": "cellular",
}
"""Scenarios with one flow of the policy, and what the figure calls them."""
SEED = 0
NEVER = 120.0
"""Packets: where γ is drawn when it is so large that eBCC's rule hardly acts."""


def decisions(policy: LearnedPolicy, scenario: str, seconds: float) -> Iterator[dict[str, Any]]:
    """Yields after each decision the time, the parameters in force and what the flow measured."""
    environment = find_environment("tuning")(
        scenario, episode_s=seconds, **policy.decisions.arguments
    )
    observation, _ = environment.reset(options={"episode_seed": SEED})
    time_s, over = 0.0, False
    while not over:
        action = policy(observation[None])[0]
        observation, _, terminated, truncated, info = environment.step(action)
        time_s += info["step_s"]
        over = terminated or truncated
        yield {"time_s": time_s, "info": info, **environment.parameters()}
    environment.close()


def series(rows: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    """Returns the curves of one network by name."""
    cycles = [row["gain_cycle"] for row in rows]
    return {
        "time_s": np.array([row["time_s"] for row in rows]),
        "utilisation": np.array(
            [row["info"]["throughput_mbps"] / row["info"]["capacity_mbps"] for row in rows]
        ),
        "loss": np.array([row["info"]["loss_rate"] for row in rows]),
        "gamma": np.minimum([row["gamma"][0] for row in rows], NEVER),
        "beta": np.array([row["beta"][0] for row in rows]),
        "highest": np.array([max(cycle) for cycle in cycles]),
        "lowest": np.array([min(cycle) for cycle in cycles]),
        "phases": np.array([len(cycle) for cycle in cycles]),
        "alpha": np.array([row["alpha"][0] for row in rows]),
    }


def draw(curves: dict[str, dict[str, np.ndarray]], out: Path) -> None:
    """Draws a column for each network and a row for each parameter."""
    import matplotlib
    from matplotlib.figure import Figure

    titles = ("utilisation, loss", "γ (packets)", "β", "gains", "phases", "α")
    small = {"font.size": 6, "axes.titlesize": 6, "lines.linewidth": 0.7}
    with matplotlib.rc_context(STYLE | small):
        figure = Figure(figsize=(TWO_COLUMNS, 5.6))
        axes = figure.subplots(len(titles), len(curves), sharex="col", sharey="row")
        for column, (name, curve) in enumerate(curves.items()):
            time = curve["time_s"]
            of_network = axes[:, column]
            of_network[0].set_title(NETWORKS[name])
            of_network[0].plot(time, curve["utilisation"], color=BLUE, label="of the capacity")
            of_network[0].plot(time, curve["loss"], color=VERMILION, label="loss rate")
            of_network[0].set_ylim(0, 1.15)
            of_network[1].plot(time, curve["gamma"], color=GREEN)
            of_network[1].set_ylim(0, NEVER * 1.05)
            of_network[2].plot(time, curve["beta"], color=GREEN)
            of_network[3].fill_between(
                time, curve["lowest"], curve["highest"], color=GREEN, alpha=0.6, linewidth=0
            )
            of_network[3].axhline(1, color=GREY, linewidth=0.5)
            of_network[4].plot(time, curve["phases"], color=GREEN)
            of_network[4].set_ylim(0, 8.5)
            of_network[5].plot(time, curve["alpha"], color=GREEN)
            of_network[5].set_ylim(-0.02, 1)
            of_network[5].set_xlabel("time (s)")
        for row, title in zip(axes, titles, strict=True):
            row[0].set_ylabel(title)
        axes[0, 0].legend(loc="center right", fontsize=5)
        save(figure, out.with_suffix(""), out.suffix[1:])


def main(
    policy: Annotated[
        str, typer.Option(metavar="POLICY", help="A policy of Tuning: a name or a path.")
    ] = "tuning",
    seconds: Annotated[float, typer.Option(min=1, help="Play this long.")] = 20.0,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Draw into this file.")] = Path(
        "docs/figures/tuning-behaviour.png"
    ),
) -> None:
    """Draw how a policy moves the four parameters on six networks."""
    loaded = load_policy(policy)
    curves = {name: series(list(decisions(loaded, name, seconds))) for name in NETWORKS}
    draw(curves, out)
    for name, curve in curves.items():
        means = ", ".join(f"{key} {curve[key].mean():.3g}" for key in curve if key != "time_s")
        print(f"{name}: {means}")


if __name__ == "__main__":
    typer.run(main)
