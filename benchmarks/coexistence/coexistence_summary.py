"""Summarises the runs of `quicgym coexist`: metrics of a cell, adoption curves, and the tables.

{table}

Harm is that of Ware, Mukerjee, Seshan and Sherry, "Beyond Jain's Fairness Index: Setting the Bar
for the Deployment of Congestion Control Algorithms", HotNets 2019: what a flow loses of the
performance that it has without the subject, from 0 to 1. The paper asks that an algorithm harms
flows beside it no more than their like does, so the harm beyond that of the like is a metric, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quicgym.agents.evaluation.statistics import mean_interval
from quicgym.agents.policies.by_name import split_alias
from quicgym.benchmarks.coexistence.grid import EXPERIMENTS, RTT_RATIO, Cell, CoexistenceJob, Grid
from quicgym.envs.simulation.metrics import (
    METRICS,
    mean_of,
    metric,
    metrics_of,
    metrics_table,
    ratio,
)

Result = Mapping[str, Any]
"""The result of one run, as `grid.result_of` returns it."""


@dataclass(frozen=True)
class Measured:
    """The results of a cell's experiments with one seed; None: the run failed.

    `like` is the experiment `beside` with one more flow of the controller beside as the subject.
    """

    beside: Result | None
    alone: Result | None
    like: Result | None
    rtt: Result | None
    changes: Result | None
    short_flows: Result | None

    def harm(self, name: str, result: Result | None, *, less_is_better: bool) -> float | None:
        """Returns the harm of a result to the competing flows, by a metric of flows."""
        performance = of_others(self.alone, name)
        return harm(performance, of_others(result, name), less_is_better=less_is_better)

    def extra_harm(self, name: str, *, less_is_better: bool) -> float | None:
        """Returns the harm to the competing flows minus that which one more of them would do."""
        harms = [
            self.harm(name, result, less_is_better=less_is_better)
            for result in (self.beside, self.like)
        ]
        return None if harms[0] is None or harms[1] is None else harms[0] - harms[1]


def harm(
    alone: float | None, beside: float | None, *, less_is_better: bool = False
) -> float | None:
    """Returns the share of a flow's performance that another one takes; None: not known.

    Args:
        alone: The flow's performance without the other one.
        beside: The flow's performance with the other one.
        less_is_better: Whether less is better, as of a delay.
    """
    if alone is None or beside is None:
        return None
    if less_is_better:
        return ratio(beside - alone, beside)
    return ratio(alone - beside, alone)


def of_subjects(result: Result | None, name: str) -> float | None:
    """Returns the mean of a metric over the subject's flows."""
    return _mean(result, name, is_subject=True)


def of_others(result: Result | None, name: str) -> float | None:
    """Returns the mean of a metric over the competing flows."""
    return _mean(result, name, is_subject=False)


def _mean(result: Result | None, name: str, is_subject: bool | None = None) -> float | None:
    flows = [] if result is None else result["flows"]
    return mean_of(flow[name] for flow in flows if is_subject in (None, flow["is_subject"]))


def rtt_unfairness(result: Result | None) -> float | None:
    """Returns the rate of the flows with the path's RTT over that of the last, which is longer."""
    if result is None:
        return None
    *near, far = [flow["receive_rate_mbps"] for flow in result["flows"]]
    mean = mean_of(near)
    return None if mean is None else ratio(mean, far)


# fmt: off


def of_result(title: str, unit: str, formula: str, part: str, name: str) -> Any:
    """Declares a metric that one experiment's result has under a name."""
    return metric(title, unit, formula, lambda cell: (getattr(cell, part) or {}).get(name),
        scope="run", less_is_better=True)


def harms(what: str, name: str, *, extra: bool, less_is_better: bool = False) -> Any:
    """Declares the harm by a metric of flows, or that beyond the harm of the flows' like."""
    signs = "with − without, over with" if less_is_better else "without − with, over without"
    formula = f"mean {name} of the competing flows: ({signs} the subject)"
    if extra:
        return metric(f"extra harm to {what}", "1", f"{formula}, minus that with one more of their "
            "like in the subject's place",
            lambda cell: cell.extra_harm(name, less_is_better=less_is_better), scope="others",
            less_is_better=True, limits=(-math.inf, math.inf))
    return metric(f"harm to {what}", "1", formula,
        lambda cell: cell.harm(name, cell.beside, less_is_better=less_is_better),
        scope="others", less_is_better=True, limits=(-math.inf, 1.0))


@dataclass(frozen=True)
class CellMetrics:
    """Metrics of a cell, from the experiments that `grid.EXPERIMENTS` describes."""

    fair_share: float | None = metric("share", "1",
        "beside: the subject's receiving rate / fair share",
        lambda cell: of_subjects(cell.beside, "fair_share"), scope="agents")
    others_fair_share: float | None = metric("others' share", "1",
        "beside: mean of it over the competing flows",
        lambda cell: of_others(cell.beside, "fair_share"), scope="others")
    convergence_s: float | None = of_result("converges (s)", "s",
        "beside: arrival_convergence_s after the subject's arrival", "beside",
        "arrival_convergence_s")
    deviation: float | None = of_result("deviation", "1", "beside: converged_deviation", "beside",
        "converged_deviation")
    harm_rate: float | None = harms("rate", "receive_rate_mbps", extra=False)
    extra_harm_rate: float | None = harms("rate", "receive_rate_mbps", extra=True)
    harm_delay: float | None = harms("delay", "mean_one_way_delay_ms", extra=False,
        less_is_better=True)
    extra_harm_delay: float | None = harms("delay", "mean_one_way_delay_ms", extra=True,
        less_is_better=True)
    rtt_unfairness: float | None = metric("RTT unfairness", "1",
        f"rtt: mean receiving rate of the other flows / that of the flow with {RTT_RATIO} times "
        "the RTT", lambda cell: rtt_unfairness(cell.rtt), scope="agents", less_is_better=True)
    arrival_convergence_s: float | None = of_result("after arrivals (s)", "s",
        "changes: arrival_convergence_s, when the competing flows come", "changes",
        "arrival_convergence_s")
    departure_convergence_s: float | None = of_result("after departures (s)", "s",
        "changes: departure_convergence_s, when the competing flows go", "changes",
        "departure_convergence_s")
    short_flows_completed_percent: float | None = of_result("completed (%)", "%",
        "short-flows: short_flows_completed_percent", "short_flows",
        "short_flows_completed_percent")
    fct_median_ms: float | None = of_result("FCT p50 (ms)", "ms", "short-flows: fct_median_ms",
        "short_flows", "fct_median_ms")
    fct_p99_ms: float | None = of_result("FCT p99 (ms)", "ms", "short-flows: fct_p99_ms",
        "short_flows", "fct_p99_ms")

# fmt: on

CELL_METRICS = metrics_of(CellMetrics)
ADOPTION = ("receive_rate_mbps", "mean_queue_delay_ms")
"""Metrics of flows that adoption curves show, of users and of non-users.

After Spang et al., "Unbiased Experiments in Congested Networks", IMC 2021.
"""
FACTORS = ("subject", "beside", "count", "rate_mbps", "rtt_ms", "queue_bdp", "discipline")


def factors(cell: Cell) -> dict[str, Any]:
    """Returns what distinguishes a cell from others."""
    shown = split_alias(cell.subject)[0]
    return {
        "subject": shown,
        "beside": cell.beside,
        "count": cell.flows_beside,
        **cell.path._asdict(),
    }


class Results:
    """The finished runs of a grid, by cell, experiment and seed."""

    def __init__(
        self,
        grid: Grid,
        jobs: Mapping[tuple[Cell, str], Sequence[CoexistenceJob]],
        finished: Mapping[str, Result],
    ) -> None:
        """Takes the grid, its runs, and the results by key."""
        self.cells = list(grid.cells())
        self._jobs, self._finished = jobs, finished

    def of(self, cell: Cell, experiment: str) -> list[Result | None]:
        """Returns the results over the seeds."""
        return [self._finished.get(job.key) for job in self._jobs[cell, experiment]]

    def rows(self) -> list[dict[str, Any]]:
        """Returns a row for each cell.

        A row has FACTORS and each of CELL_METRICS: its mean over the seeds that have a value, with
        its 95% interval (Student's t) under NAME_low and NAME_high, and their number under
        NAME_seeds.
        """
        rows = []
        for cell in self.cells:
            parts = ("beside", "alone", "rtt", "changes", "short-flows")
            columns = [self.of(cell, part) for part in parts]
            columns.insert(2, self.of(cell.like, "beside"))
            measured = [Measured(*of_seed) for of_seed in zip(*columns, strict=True)]
            row = factors(cell)
            for entry in CELL_METRICS:
                values = [entry.compute(one) for one in measured]
                row |= _summed_up(entry.name, values, entry.bounds)
            rows.append(row)
        return rows

    def adoption(self) -> list[dict[str, Any]]:
        """Returns a row for each number of users among 1 + the largest count flows.

        A row has FACTORS but `count`, `flows`, `users`, and of each of ADOPTION the means
        `users_NAME` and `others_NAME`, with intervals as in `rows`.
        """
        rows = []
        most = max(cell.flows_beside for cell in self.cells)
        for cell in self.cells:
            if cell.flows_beside != most or cell.subject == cell.beside:
                continue
            for users in range(most + 2):
                results = (
                    self.of(cell.like if users == 0 else cell, "beside")
                    if users <= 1
                    else self.of(cell, f"adoption-{users}")
                )
                row = {**factors(cell), "flows": most + 1, "users": users}
                del row["count"]
                for name in ADOPTION:
                    of_users: list[float | None]
                    of_users = [of_subjects(result, name) for result in results]
                    of_rest = [of_others(result, name) for result in results]
                    if users == 0:  # the subject there is one more flow of the controller beside
                        of_rest = [_mean(result, name) for result in results]
                        of_users = [None] * len(results)
                    bounds = METRICS[name].bounds
                    row |= _summed_up(f"users_{name}", of_users, bounds)
                    row |= _summed_up(f"others_{name}", of_rest, bounds)
                rows.append(row)
        return rows

    def flows(self) -> Iterator[dict[str, Any]]:
        """Yields a row for each flow of each run: FACTORS, experiment, users, seed and metrics."""
        for (cell, experiment), jobs in self._jobs.items():
            if experiment == "alone" and cell.subject != cell.beside:
                continue  # the same runs for every subject
            for job, result in zip(jobs, self.of(cell, experiment), strict=True):
                of_run = {} if result is None else {**result}
                users = [flow["is_subject"] for flow in of_run.get("flows", ())]
                for flow in of_run.pop("flows", ()):
                    yield {
                        **factors(cell),
                        "experiment": "adoption" if experiment not in EXPERIMENTS else experiment,
                        "users": sum(users),
                        "seed": job.seed,
                        **{("flow" if key == "name" else key): flow[key] for key in flow},
                        **of_run,
                    }


def _summed_up(
    name: str, values: Sequence[float | None], bounds: tuple[float, float]
) -> dict[str, Any]:
    known = [value for value in values if value is not None]
    if not known:
        return {name: None, f"{name}_low": None, f"{name}_high": None, f"{name}_seeds": 0}
    estimate = mean_interval(known, bounds)
    return {
        name: estimate.value,
        f"{name}_low": estimate.low,
        f"{name}_high": estimate.high,
        f"{name}_seeds": len(known),
    }


__doc__ = (__doc__ or "").format(table=metrics_table(CELL_METRICS))
