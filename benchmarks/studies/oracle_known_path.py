"""What a choice of a policy can be worth that is told all about its path.

    python benchmarks/studies/oracle_known_path.py

oracle_per_path.py looks at the very path that it chooses for, with other seeds. Here the
choice is told what the path is: its rate, RTT, queue, loss and rate changes, and the number, kinds,
starts and RTTs of the other flows. What that means for each policy it has to learn from other
paths. It chooses among the baselines, among windows that never change, or among all of these. A
policy that only observes knows less. What hindsight earns above this choice is particular to a
path, down to its milliseconds: nothing that is learned on other paths brings it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
import torch
import typer
from oracle_per_path import rewards, rewards_of_windows
from rich.table import Table
from torch import nn

from quicgym.agents.evaluation.summary import within_1_percent
from quicgym.agents.policies.by_name import find_policy
from quicgym.agents.policies.hand_coded import BASELINES
from quicgym.console import wide_console
from quicgym.envs.scenarios.distributions import load_distribution
from quicgym.envs.scenarios.fair_share import fair_window_bytes
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.scenarios.suites import episodes_of, load_suite

PATHS = "training-50"
"""The distribution; up to 50 Mbps, where a simulated second costs a third."""
LEARNED = "window-grpo-seed0"
POLICIES = (*BASELINES, LEARNED)
FOLDS = 4
NETWORKS = 5
"""Their mean prediction chooses."""
UPDATES = 600
BATCH_SIZE = 256


def facts(scenario: Scenario) -> list[float]:
    """Returns what the choice is told about a path of the training distribution's kind."""
    link, flows = scenario.bottleneck, [flow for _, flow in scenario.single_flows()]
    assert link is not None and link.rate_mbps is not None  # no wireless LAN, no trace
    bdp_bytes = fair_window_bytes(scenario) * len(flows)
    rtt_ms = bdp_bytes * 8e-3 / link.rate_mbps
    bdp = bdp_bytes / scenario.max_datagram_bytes
    agent = next(flow for flow in flows if flow.controller is None)
    others = [flow for flow in flows if flow.controller is not None]
    starts_s = [flow.start_s - agent.start_s for flow in others] or [0.0]
    extra_rtts = [2 * flow.extra_delay_ms / rtt_ms for flow in others] or [0.0]
    rates = [step.rate_mbps / link.rate_mbps for step in link.rate_schedule] or [1.0]
    return [
        *np.log2([link.rate_mbps, rtt_ms, bdp, link.queue.limit / bdp]).tolist(),
        getattr(link.loss, "probability", 0.0) ** 0.5,
        len(flows),
        len(flows) == 1,
        len(link.rate_schedule),
        *(function(rates) for function in (min, np.mean, max)),
        *(function(starts_s) for function in (min, np.mean, max)),
        *(function(extra_rtts) for function in (min, np.mean, max)),
        *(sum(flow.controller == name for flow in others) for name in other_controllers()),
    ]


def other_controllers() -> Sequence[str]:
    """Returns the controllers that the other flows of a path may have."""
    return load_distribution(PATHS).other_controllers


def learned_choice(known: np.ndarray, earned: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Returns which policy to take on each of the paths asked about.

    Args:
        known: Facts of the paths that are learned from, of shape (paths, facts).
        earned: What the policies earn there, of shape (policies, paths).
        asked: Facts of the others.
    """
    mean, spread = known.mean(axis=0), known.std(axis=0) + 1e-6
    inputs, questions = (
        torch.from_numpy((table - mean) / spread).float() for table in (known, asked)
    )
    targets = torch.from_numpy((earned - earned.mean(axis=0)).T.copy()).float()
    predictions = torch.zeros(len(asked), len(earned))
    for seed in range(NETWORKS):
        torch.manual_seed(seed)
        network = nn.Sequential(
            nn.Linear(inputs.shape[1], 64),
            nn.ReLU(),
            nn.Linear(64, 64),
            nn.ReLU(),
            nn.Linear(64, len(earned)),
        )
        optimizer = torch.optim.AdamW(network.parameters(), lr=2e-3, weight_decay=0.1)
        for _ in range(UPDATES):
            drawn = torch.randint(len(inputs), (BATCH_SIZE,))
            loss = nn.functional.huber_loss(network(inputs[drawn]), targets[drawn], delta=0.2)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.inference_mode():
            predictions += network(questions)
    return predictions.argmax(dim=1).numpy()


def choices_on_others(known: np.ndarray, earned: np.ndarray) -> np.ndarray:
    """Returns the choice for each path, learned from three quarters without it."""
    result = np.zeros(len(known), dtype=np.int64)
    for fold in range(FOLDS):
        inside = np.arange(len(known)) % FOLDS == fold
        result[inside] = learned_choice(known[~inside], earned[:, ~inside], known[inside])
    return result


def oracle_known_path(
    paths: Annotated[int, typer.Option(min=8, help="That are drawn.")] = 3072,
) -> None:
    """Print what a choice earns that is told its path, beside single policies and hindsight."""
    cells = episodes_of(load_suite(PATHS), paths)
    earned = np.concatenate(
        [
            rewards([find_policy(name) for name in POLICIES], cells, "policies"),
            rewards_of_windows(cells),
        ]
    )
    known = np.array([facts(scenario) for scenario, _ in cells])
    best = earned[: len(BASELINES)].max(axis=0)

    table = Table(title=f"{paths} paths of {PATHS}", title_justify="left")
    for column in ("", "within 1% of best (%)", "mean reward", "above LEARNED, ± standard error"):
        table.add_column(column.replace("LEARNED", LEARNED), justify="right" if column else "left")

    def add(row: str, choice: np.ndarray | int) -> None:
        own = earned[choice, np.arange(paths)]
        gain = own - earned[POLICIES.index(LEARNED)]
        table.add_row(
            row,
            f"{100 * within_1_percent(own, best).mean():.0f}",
            f"{own.mean():.4f}",
            f"{gain.mean():+.4f} ± {gain.std() / np.sqrt(paths):.4f}",
        )

    for name in ("ibcca", LEARNED):
        add(name, POLICIES.index(name))
    rows = np.arange(len(earned))
    among = {
        "the baselines": rows[: len(BASELINES)],
        f"the baselines and {LEARNED}": rows[: len(POLICIES)],
        "fixed windows": rows[len(POLICIES) :],
        "all of these": rows,
    }
    for name, group in among.items():
        add(f"told the path, among {name}", group[choices_on_others(known, earned[group])])
    for name, group in among.items():
        add(f"hindsight, among {name}", group[earned[group].argmax(axis=0)])
    wide_console().print(table)


if __name__ == "__main__":
    typer.run(oracle_known_path)
