"""Episodes of policies, each with the record of its run.

Learned and hand-coded policies go through these functions, on either engine. Every flow of the
scenario that names no controller has the policy, as every such flow has the controller in the
papers' runs. The reward is that of all flows, at each decision of the first agent's flow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from quicgym import _core
from quicgym.agents.policies.policy import KnowingPolicy, Policy, StatefulPolicy, call_reset
from quicgym.envs.batch import EpisodeBatch
from quicgym.envs.environment import refuse_overrides
from quicgym.envs.episodes import DrawnElsewhere, EpisodeChoice, EpisodeSource
from quicgym.envs.info import INFO_COLUMNS
from quicgym.envs.registration import find_environment
from quicgym.envs.rewards import AnyReward, Reward, RewardFunction
from quicgym.envs.scenarios.conversion import nanoseconds
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.simulation.packet_logs import PacketLogs
from quicgym.envs.simulation.run import Mark, Recorded, Run
from quicgym.envs.simulation.series import Series
from quicgym.envs.simulation.simulation import REWARD_INTERVAL_MS
from quicgym.envs.simulation.traffic import asking_flows
from quicgym.envs.simulation.window import WHOLE, Window

_AT_A_TIME = 256
"""Simulations that are there at once: thousands of them take gigabytes."""


class Watch(Protocol):
    """Sees every step of the episodes that `play_all` plays, a batch after the other."""

    def begins(self, batch: EpisodeBatch, cells: Sequence[tuple[Scenario, int]]) -> None:
        """Is called when the episodes of a batch have begun."""

    def stepped(self, batch: EpisodeBatch, actions: np.ndarray) -> None:
        """Is called after a step of the simulations that are `selected`."""


def play(
    policy: Policy,
    scenario: Scenario,
    engine: str = "native",
    seed: int = 0,
    *,
    reward: AnyReward | None = None,
    from_s: float | None = None,
    until_s: float | None = None,
    marks_s: Sequence[float] = (),
    packet_logs: PacketLogs | None = None,
) -> Run:
    """Runs an episode until the policy's flows have ended, or to the scenario's end.

    Args:
        policy: Policy of every flow that names no controller.
        scenario: Scenario that is run.
        engine: "native" or "ns3".
        seed: Seed of the simulation.
        reward: Reward of the run; None: the default.
        from_s: Beginning of the window of the metrics, in s; None: the run's beginning.
        until_s: End of the window of the metrics, in s; None: the run's end.
        marks_s: Further times, in s, at which windows of `Run.over` may begin and end.
        packet_logs: Where qlog files go, and on ns-3 pcap files; None: there are none.

    Returns:
        The run. Its series have a row for each decision, with every column of `info` of the first
        agent.

    Raises:
        ScenarioError: The scenario does not fit the engine, or has no flow for the policy.
    """
    window = Window(from_s, until_s)
    (played,) = _play(policy, [(scenario, seed)], engine, 1, reward, window, marks_s, packet_logs)
    if packet_logs is not None and engine == "ns3":
        packet_logs.thin_pcap(scenario.name)
    return played


def play_all(
    policy: Policy,
    cells: Sequence[tuple[Scenario, int]],
    *,
    threads: int,
    reward: str | Reward | RewardFunction | None = None,
    watch: Watch | None = None,
) -> list[Run]:
    """Runs an episode for each scenario and seed, side by side on the native engine."""
    by_agents: dict[int, list[int]] = {}
    for index, (scenario, _) in enumerate(cells):
        agents = sum(flow.controller is None for _, flow in scenario.single_flows())
        by_agents.setdefault(agents, []).append(index)
    runs: dict[int, Run] = {}
    for alike in by_agents.values():
        for begin in range(0, len(alike), _AT_A_TIME):
            indices = alike[begin : begin + _AT_A_TIME]
            chosen = [cells[index] for index in indices]
            played = _play(policy, chosen, "native", threads, reward, WHOLE, watch=watch)
            runs.update(zip(indices, played, strict=True))
    return [runs[index] for index in range(len(cells))]


def _play(
    policy: Policy,
    cells: Sequence[tuple[Scenario, int]],
    engine: str,
    threads: int,
    reward: str | Reward | RewardFunction | None,
    window: Window,
    marks_s: Sequence[float] = (),
    packet_logs: PacketLogs | None = None,
    watch: Watch | None = None,
) -> list[Run]:
    """Runs episodes that have the same number of agents; one, where packets are logged."""
    refuse_overrides(find_environment(policy.decisions.environment), "an evaluation")
    options = policy.options or {}
    decisions = replace(policy.decisions, reward_interval_ms=REWARD_INTERVAL_MS)
    agents = sum(flow.controller is None for _, flow in cells[0][0].single_flows())
    logs_events = packet_logs is not None and engine == "native"
    captures = packet_logs if engine == "ns3" else None
    source = EpisodeSource(
        DrawnElsewhere(max(1, agents)),
        engine,
        decisions,
        every_flow=True,
        record_events=logs_events,
        pcap_prefix=captures.pcap_prefix(cells[0][0].name) if captures else "",
    )
    batch = EpisodeBatch(
        source, len(cells), threads, reward=Reward() if reward is None else reward, records=True
    )
    controller, parameters = options.get("controller"), options.get("parameters") or {}
    choices = [
        EpisodeChoice(scenario, seed, controller, parameters, window.marks(marks_s))
        for scenario, seed in cells
    ]
    rewards: list[list[float]] = [[] for _ in cells]
    columns: list[list[np.ndarray]] = [[] for _ in cells]
    try:
        batch.begin_chosen(range(len(cells)), choices)
        begins = batch.columns()["time_s"][:: batch.agent_count]
        batch.selected[:] = True
        if isinstance(policy, StatefulPolicy):
            call_reset(policy.reset, cells[0][1])
        if watch is not None:
            watch.begins(batch, cells)
        while batch.selected.any():
            actions = policy(batch.observations)
            batch.set_actions(actions)
            if isinstance(policy, KnowingPolicy):
                policy.steer(batch)
            batch.step()
            if watch is not None:
                watch.stepped(batch, actions)
            for index in np.flatnonzero(batch.selected):
                first = index * batch.agent_count
                rewards[index].append(float(batch.rewards[first]))
                columns[index].append(batch.info[first].copy())
            batch.selected[:] &= ~(batch.terminations | batch.truncations)
        if packet_logs is not None and logs_events:
            flows = range(batch.simulation(0).flow_count)
            packet_logs.write_qlog((batch.events(0, flow) for flow in flows), engine)
        return [
            Run(
                _recorded(
                    batch,
                    index,
                    policy.name,
                    nanoseconds(begins[index]),
                    {
                        "reward": np.array(rewards[index]),
                        **dict(zip(INFO_COLUMNS, np.array(columns[index]).T, strict=True)),
                    },
                ),
                window,
            )
            for index in range(len(cells))
        ]
    finally:
        batch.close()


def _recorded(
    batch: EpisodeBatch, index: int, policy: str, begin: int, series: dict[str, np.ndarray]
) -> Recorded:
    """Reads the record of an episode that is over; `begin` is when it began, in ns."""
    episode, simulation = batch.episodes[index], batch.simulation(index)
    assert episode is not None
    scenario, now = episode.scenario, simulation.now
    flows = range(simulation.flow_count)
    marks = [
        Mark(
            time,
            batch.totals(index, place),
            batch.queue_seconds_at(index, place),
            batch.short_flow_totals(index, place),
        )
        for place, time in enumerate(episode.marks)
        if time < now
    ]
    totals: list[_core.FlowTotals] = [simulation.totals(flow) for flow in flows]
    short_flows = [simulation.short_flow_totals(n) for n in range(len(scenario.short_flows))]
    return Recorded(
        scenario,
        batch.source.engine,
        episode.seed,
        [flow.controller or policy for _, flow in scenario.single_flows()],
        [entry.controller or policy for entry in scenario.short_flows],
        [*marks, Mark(now, totals, simulation.queue_occupancy_seconds, short_flows)],
        Series(begin, series, *batch.received(index)),
        {flow: batch.requests(index, flow) for flow in asking_flows(scenario)},
        [batch.transfers(index, entry) for entry in range(len(scenario.short_flows))],
    )
