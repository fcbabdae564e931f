"""The networks and runs of `quicgym coexist`: a grid of paths, and the experiments on each.

A cell has one subject and some competing flows. Its experiments are in EXPERIMENTS. For reference,
the grid also has the cells in which each competing controller is itself the subject, which show how
flows of one controller treat each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from quicgym.agents.evaluation.jobs import RunJob, steering_of
from quicgym.agents.policies.by_name import split_alias
from quicgym.envs.scenarios.engines import EngineName
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.simulation.run import Run
from quicgym.envs.simulation.window import Window
from quicgym.output_folders import digest
from quicgym.validation import validated

RTT_RATIO = 4
SHORT_LOAD = 0.1
"""Offered load of the short flows, as a share of the bottleneck's rate."""
SHORT_BYTES = 100_000
SHORTEST_S = 18.0
"""So that flows have 5 s to converge after each change."""

EXPERIMENTS = {
    "beside": "the competing flows start at 0 s, and the subject at a sixth of the duration",
    "alone": "the competing flows have the path for themselves",
    "rtt": f"only flows with the subject; the last has {RTT_RATIO} times the RTT, and all start at "
    "0 s",
    "changes": "the subject starts at 0 s; the competing flows come after a third of the duration, "
    "and go after two thirds",
    "short-flows": f"all start at 0 s; transfers of {SHORT_BYTES // 1000} kB with the competing "
    f"controller arrive at {SHORT_LOAD:.0%} of the rate",
    "adoption": "as beside, with more of the flows steered by the subject",
}


class Path(NamedTuple):
    """A bottleneck: rate, base RTT, queue limit in BDP, and queue discipline."""

    rate_mbps: float
    rtt_ms: float
    queue_bdp: float
    discipline: str

    def __str__(self) -> str:
        """Returns the path as a part of a scenario's name."""
        return f"{self.rate_mbps:g}mbps-{self.rtt_ms:g}ms-{self.queue_bdp:g}bdp-{self.discipline}"


class Cell(NamedTuple):
    """A subject, as users name it, on a path with so many flows of another controller."""

    subject: str
    beside: str
    flows_beside: int
    path: Path

    @property
    def like(self) -> Cell:
        """The cell in which the subject is one more flow of the competing controller."""
        return self._replace(subject=self.beside)


@dataclass(frozen=True)
class Grid:
    """The question of a run.

    Attributes:
        subjects: Controllers or policies, as users name them.
        beside: Controllers of the competing flows.
        counts: Numbers of competing flows.
        paths: Bottlenecks.
        duration_s: Duration of each run, in s.
        seeds: Number of seeds.
        window: The part of the runs that shares, rates and delays are of.
        trust_zip: Whether to load models that Stable-Baselines3 saved, which runs code in them.
        engine: "native" or "ns3".
    """

    subjects: Sequence[str]
    beside: Sequence[str]
    counts: Sequence[int]
    paths: Sequence[Path]
    duration_s: float
    seeds: int
    window: Window
    trust_zip: bool = False
    engine: EngineName = "native"

    @property
    def arrival_s(self) -> float:
        """The time at which the subject joins the others."""
        return self.duration_s / 6

    @property
    def measured(self) -> Window:
        """The window of shares, rates and delays; by default from the subject's arrival on."""
        begin_s = self.arrival_s if self.window.from_s is None else self.window.from_s
        return Window(begin_s, self.window.until_s)

    def cells(self) -> Iterator[Cell]:
        """Yields the cells; for each network and number the competing controller itself is last."""
        for path, beside, count in product(self.paths, self.beside, self.counts):
            for subject in dict.fromkeys([*self.subjects, beside]):
                yield Cell(subject, beside, count, path)

    def jobs(self) -> dict[tuple[Cell, str], list[CoexistenceJob]]:
        """Returns the runs over the seeds, by cell and experiment; of adoption "adoption-K".

        Raises:
            ScenarioError: A controller, policy, path or window is not possible.
            PolicyError: A policy cannot be loaded.
        """
        steering = {
            subject: steering_of(subject, trust_zip=self.trust_zip)
            for subject in dict.fromkeys([*self.subjects, *self.beside])
        }
        shown = [split_alias(subject)[0] for subject in self.subjects]
        for name in shown:
            if shown.count(name) > 1:
                raise ScenarioError(
                    f"two of the subjects are shown as {name!r}; give one of them another alias, "
                    "as in mine=runs/ppo"
                )
        jobs: dict[tuple[Cell, str], list[CoexistenceJob]] = {}
        alone: dict[Cell, list[CoexistenceJob]] = {}
        for cell in self.cells():
            for name, scenario in self._scenarios(cell):
                if name == "alone" and cell.like in alone:
                    jobs[cell, name] = alone[cell.like]
                    continue
                by = steering[cell.subject] if scenario.has_open_flow else None
                scenario.check_engine(self.engine)
                self.measured.check(scenario)
                jobs[cell, name] = [
                    CoexistenceJob(scenario, by, self.engine, seed, self.measured)
                    for seed in range(self.seeds)
                ]
                if name == "alone":
                    alone[cell.like] = jobs[cell, name]
        return jobs

    def _scenarios(self, cell: Cell) -> Iterator[tuple[str, Scenario]]:
        """Yields the experiments of a cell with their scenarios."""
        count, third = cell.flows_beside, self.duration_s / 3
        other: dict[str, Any] = {"controller": cell.beside, "start_jitter_ms": 100}
        own: dict[str, Any] = {"start_jitter_ms": 100}
        late = {**own, "start_s": self.arrival_s}
        others = {**other, "count": count}
        yield "beside", self._scenario("beside", cell, [others, late])
        yield "alone", self._scenario("alone", cell, [others])
        extra_ms = (RTT_RATIO - 1) * cell.path.rtt_ms / 2
        far = {**own, "extra_delay_ms": extra_ms}
        yield "rtt", self._scenario("rtt", cell, [{**own, "count": count}, far])
        coming = {**others, "start_s": third, "stop_s": 2 * third}
        yield "changes", self._scenario("changes", cell, [own, coming])
        short = {
            "controller": cell.beside,
            "load_mbps": SHORT_LOAD * cell.path.rate_mbps,
            "sizes": SHORT_BYTES,
            "start_s": self.arrival_s,
        }
        yield "short-flows", self._scenario("short-flows", cell, [own, others], [short])
        if count == max(self.counts) and cell.subject != cell.beside:
            for users in range(2, count + 2):
                rest = [{**other, "count": count + 1 - users}] if users <= count else []
                flows = [*rest, {**own, "count": users - 1}, late]
                yield f"adoption-{users}", self._scenario(f"adoption-{users}", cell, flows)

    def _scenario(
        self,
        experiment: str,
        cell: Cell,
        flows: Sequence[dict[str, Any]],
        short_flows: Sequence[dict[str, Any]] = (),
    ) -> Scenario:
        path = cell.path
        queue = {"limit": path.queue_bdp, "unit": "bdp", "discipline": path.discipline}
        link = {"rate_mbps": path.rate_mbps, "delay_ms": path.rtt_ms / 2, "queue": queue}
        description = {
            "name": f"{experiment}-{cell.flows_beside}-{path}",
            "duration_s": self.duration_s,
            "bottleneck": link,
            "access": {"rate_mbps": max(1000.0, 4 * path.rate_mbps), "delay_ms": 0},
            "flows": flows,
            "short_flows": short_flows,
        }
        return validated(Scenario, description, f"beside {cell.beside}, {path}", ScenarioError)


@dataclass(frozen=True, eq=False)
class CoexistenceJob(RunJob):
    """A run of an experiment; its result says how the flows share the bottleneck."""

    @cached_property
    def key(self) -> str:
        """The identity of the run for --resume: equal keys give equal results."""
        return digest(["coexist", super().key])

    def run(self) -> dict[str, Any]:
        """Returns what the flows got, over the window, and how they converged in the whole run."""
        return result_of(self.carry_out())


OF_WHOLE_RUNS = ("arrival_convergence_s", "departure_convergence_s", "converged_deviation")
OF_TRANSFERS = ("short_flows_completed_percent", "fct_median_ms", "fct_p99_ms")
OF_EACH_FLOW = (
    "receive_rate_mbps", "goodput_mbps", "loss_percent", "mean_queue_delay_ms",
    "mean_one_way_delay_ms",
    *(f"p{share}_{delay}_ms" for delay in ("rtt", "queue_delay", "one_way_delay")
      for share in (50, 95, 99)),
)  # fmt: skip


def result_of(run: Run) -> dict[str, Any]:
    """Returns what a job keeps of a run, as JSON takes it.

    `flows` has an entry for each flow: `is_subject`, the metrics OF_EACH_FLOW and `fair_share` of
    the window, and in `share_by_second` the share in each whole second of the run from `begin_s`
    on, which is the subject's first start.
    """
    whole, sharing = run.over(), run.sharing
    assert sharing is not None and whole.sharing is not None  # each scenario is a dumbbell
    shares = sharing.mean_shares()
    time_s, by_second = whole.sharing.over_time()
    flows = [
        {
            "name": flow.name,
            "is_subject": member.has_policy,
            **{name: getattr(flow, name) for name in OF_EACH_FLOW},
            "fair_share": None if shares is None else float(shares[place]),
            "share_by_second": [
                None if np.isnan(share) else round(float(share), 4) for share in by_second[:, place]
            ],
        }
        for place, (flow, member) in enumerate(zip(run.flows, sharing.members, strict=True))
    ]
    return {
        **{name: whole.metric(name) for name in OF_WHOLE_RUNS},
        **{name: run.metric(name) for name in OF_TRANSFERS},
        "begin_s": float(time_s[0] - 1) if len(time_s) else None,
        "flows": flows,
    }
