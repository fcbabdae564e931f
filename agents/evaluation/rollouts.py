"""One episode of a policy: what it earned, and what a network engineer would measure of it.

Learned and hand-coded policies go through this one function, on either engine. Every flow of the
scenario that names no controller has the policy, as every such flow has the controller in the
papers' runs. The reward is that of all flows, at each decision of the first agent's flow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from quicgym.agents.policies.policy import Policy
from quicgym.envs.batch import EpisodeBatch
from quicgym.envs.episodes import EpisodeChoice, EpisodeSource
from quicgym.envs.info import INFO_COLUMNS
from quicgym.envs.rewards import Reward
from quicgym.envs.scenarios.conversion import nanoseconds
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.simulation.metrics import (
    DECLARED_OF_FLOWS,
    DECLARED_OF_RUNS,
    DECLARED_OF_TRAFFIC,
    TRAFFIC_METRICS,
    RunTotals,
    mean_of,
    measure_flow,
    measure_traffic,
)
from quicgym.envs.simulation.simulation import TRANSFER_DTYPE
from quicgym.envs.simulation.traffic import together, traffic_of_flows, traffic_of_short_flows

REWARD_TERMS = ("throughput_share", "loss_rate", "jain_of_intervals")
REWARD_INTERVAL_MS = 100.0
"""Over which the reward's terms are taken, however long a policy's decisions last."""
EVALUATED = tuple(entry for entry in DECLARED_OF_FLOWS if entry.evaluated)
EVALUATED_OF_RUNS = tuple(entry for entry in DECLARED_OF_RUNS if entry.evaluated)
METRICS = (
    "reward",
    *REWARD_TERMS,
    *(
        name
        for entry in EVALUATED
        for name in ([entry.name, f"agent_{entry.name}"] if entry.of_agents else [entry.name])
    ),
    *(entry.name for entry in EVALUATED_OF_RUNS),
)
"""The keys of an episode's metrics; episodes with traffic have its TRAFFIC_METRICS, too.

reward, throughput_share, loss_rate and jain_of_intervals are means over time; the others
are those that `quicgym.envs.simulation.metrics` declares as evaluated, over the whole episode, a
mean over all flows but for `agent_…`, the mean over the flows that have the policy.
"""
MINIMISED = (
    "loss_rate",
    *(entry.name for entry in (*EVALUATED, *EVALUATED_OF_RUNS) if entry.less_is_better),
    *(f"agent_{entry.name}" for entry in EVALUATED if entry.of_agents and entry.less_is_better),
    *(entry.name for entry in DECLARED_OF_TRAFFIC if entry.less_is_better),
)
"""The metrics of which less is better; of all others it is more."""


def measured(names: Iterable[Any]) -> list[str]:
    """Returns METRICS and those of TRAFFIC_METRICS that are among the names of some columns."""
    there = set(names)
    return [*METRICS, *(name for name in TRAFFIC_METRICS if name in there)]


@dataclass(frozen=True)
class Episode:
    """What came out of an episode.

    Attributes:
        metrics: By the names in METRICS, and in TRAFFIC_METRICS those of the traffic that the
            scenario has; None where nothing was measured.
        totals: Of each flow, in the scenario's order, as SimulatedFlow.statistics has them.
        transfers: Of all short flows, as Simulation.transfers has them.
        series: With `keep_series`, the reward and the columns of `info` at each decision.
    """

    metrics: Mapping[str, float | None]
    totals: Sequence[Mapping[str, Any]] = ()
    transfers: np.ndarray = field(default_factory=lambda: np.empty(0, TRANSFER_DTYPE))
    series: Mapping[str, np.ndarray] | None = None


def play(
    policy: Policy,
    scenario: Scenario,
    engine: str = "native",
    seed: int = 0,
    *,
    reward: Reward | None = None,
    keep_series: bool = False,
) -> Episode:
    """Runs an episode to the scenario's end.

    Args:
        policy: Has every flow that names no controller.
        scenario: To be run.
        engine: "native" or "ns3".
        seed: Of the simulation.
        reward: What is earned; None: the default.
        keep_series: Keep the time series.

    Raises:
        ScenarioError: The scenario does not fit the engine, or has no flow for the policy.
    """
    return _play(policy, [(scenario, seed)], engine, 1, reward, keep_series)[0]


def play_all(
    policy: Policy,
    cells: Sequence[tuple[Scenario, int]],
    *,
    threads: int,
    reward: Reward | None = None,
    keep_series: bool = False,
) -> list[Episode]:
    """Runs an episode for each scenario and seed, side by side on the native engine.

    Args:
        policy: Has every flow that names no controller.
        cells: Scenario and seed of each episode.
        threads: That run them.
        reward: What is earned; None: the default.
        keep_series: Keep the time series.
    """
    by_agents: dict[int, list[int]] = {}
    for index, (scenario, _) in enumerate(cells):
        agents = sum(flow.controller is None for _, flow in scenario.single_flows())
        by_agents.setdefault(agents, []).append(index)
    episodes: dict[int, Episode] = {}
    for indices in by_agents.values():
        chosen = [cells[index] for index in indices]
        played = _play(policy, chosen, "native", threads, reward, keep_series)
        episodes.update(zip(indices, played, strict=True))
    return [episodes[index] for index in range(len(cells))]


def _play(
    policy: Policy,
    cells: Sequence[tuple[Scenario, int]],
    engine: str,
    threads: int,
    reward: Reward | None,
    keep_series: bool,
) -> list[Episode]:
    """Runs episodes that have the same number of agents."""
    options = policy.options or {}
    arguments = policy.decisions.arguments
    preference = arguments.pop("preference")
    batch = EpisodeBatch(
        EpisodeSource(
            cells[0][0], engine, policy.decisions.interface, every_flow=True, preference=preference
        ),
        len(cells),
        threads,
        **arguments,
        reward_interval_ms=REWARD_INTERVAL_MS,
        reward=reward or Reward(),
    )
    controller, parameters = options.get("controller"), options.get("parameters") or {}
    choices = [
        EpisodeChoice(scenario, seed, controller, parameters, preference)
        for scenario, seed in cells
    ]
    rewards: list[list[float]] = [[] for _ in cells]
    columns: list[list[np.ndarray]] = [[] for _ in cells]
    try:
        batch.begin_chosen(range(len(cells)), choices)
        begins = batch.columns()["time_s"][:: batch.agent_count]
        batch.selected[:] = True
        while batch.selected.any():
            batch.set_actions(policy(batch.observations))
            batch.step()
            for index in np.flatnonzero(batch.selected):
                first = index * batch.agent_count
                rewards[index].append(float(batch.rewards[first]))
                columns[index].append(batch.info[first].copy())
            batch.selected[:] &= ~(batch.terminations | batch.truncations)
        return [
            measure_episode(
                policy.name,
                scenario,
                partial(batch.statistics, index),
                partial(batch.requests, index),
                [batch.transfers(index, entry) for entry in range(len(scenario.short_flows))],
                np.array(rewards[index]),
                dict(zip(INFO_COLUMNS, np.array(columns[index]).T, strict=True)),
                begins[index],
                keep_series,
            )
            for index, (scenario, _) in enumerate(cells)
        ]
    finally:
        batch.close()


def measure_episode(
    policy: str,
    scenario: Scenario,
    statistics: Callable[[int], Mapping[str, Any]],
    requests: Callable[[int], np.ndarray],
    transfers: Sequence[np.ndarray],
    rewards: np.ndarray,
    series: Mapping[str, np.ndarray],
    begin_s: float,
    keep_series: bool,
) -> Episode:
    """Returns what came out of an episode that has been run.

    Args:
        policy: The name of what steered the flows that name no controller.
        scenario: That was run.
        statistics: Of a flow by its index, as SimulatedFlow.statistics has them.
        requests: Of a flow by its index, as Simulation.requests has them.
        transfers: Of each entry of short flows, as Simulation.transfers has them.
        rewards: Shape (decisions,).
        series: Columns of `info` by name, each of shape (decisions,); those of the run at least.
        begin_s: When the episode began.
        keep_series: Keep the time series.
    """
    durations_s = np.diff(series["time_s"], prepend=begin_s)
    end = nanoseconds(float(series["time_s"][-1]))
    flows, agents, totals = [], [], []
    for index, (name, model) in enumerate(scenario.single_flows()):
        totals.append(statistics(index))
        flow = measure_flow(name, model.controller or policy, totals[-1], model.stop_s, end)
        flows.append(flow)
        if model.controller is None:
            agents.append(flow)

    def over_time(values: np.ndarray) -> float:
        return float(np.average(values, weights=durations_s))

    metrics: dict[str, float | None] = {
        "reward": over_time(rewards),
        "throughput_share": over_time(series["throughput_share"]),
        "loss_rate": over_time(series["loss_rate"]),
        "jain_of_intervals": over_time(series["jain"]),
    }
    for entry in EVALUATED:
        metrics[entry.name] = mean_of(getattr(flow, entry.name) for flow in flows)
        if entry.of_agents:
            metrics[f"agent_{entry.name}"] = mean_of(getattr(flow, entry.name) for flow in agents)
    for entry in EVALUATED_OF_RUNS:
        metrics[entry.name] = entry.compute(RunTotals(flows))
    traffic = [*traffic_of_flows(scenario, totals, requests), *traffic_of_short_flows(transfers)]
    metrics |= measure_traffic(together(traffic))
    return Episode(
        metrics,
        totals,
        np.concatenate([np.empty(0, TRANSFER_DTYPE), *transfers]),
        {"reward": rewards, **series} if keep_series else None,
    )
