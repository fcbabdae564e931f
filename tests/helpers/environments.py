"""Short scenarios and episodes that the tests of the environments share."""

from __future__ import annotations

import contextlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import quicgym
from quicgym import Scenario
from quicgym.envs.scenarios.flows import Flow
from quicgym.envs.scenarios.links import Access, BernoulliLoss, Link, Queue


def scenario(flows=1, duration_s=2.0, loss=0.002, rate_mbps=8.0, **fields) -> Scenario:
    """A link of 8 Mbps and 40 ms with a queue of one BDP and a little random loss."""
    return Scenario(
        name="short",
        duration_s=duration_s,
        bottleneck=Link(
            rate_mbps=rate_mbps,
            delay_ms=10,
            queue=Queue(limit=35),
            loss=BernoulliLoss(probability=loss) if loss else None,
        ),
        access=Access(rate_mbps=50, delay_ms=5),
        flows=fields.pop("flow_list", (Flow(count=flows, start_s=0.1, start_jitter_ms=50),)),
        **fields,
    )


def actions(space, count, seed=0):
    """Random actions that are the same for every caller."""
    space.seed(seed)
    return [space.sample() for _ in range(count)]


def rest(space):
    """An action of the space, made of zeros."""
    return np.zeros(space.shape, space.dtype)


def child_processes() -> list[int]:
    """The ids of the processes that this one has started and not waited for, oldest first."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has just ended
            # Behind the name, which is in parentheses: state and parent.
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                parents[int(stat.parent.name)] = int(parent)
    return sorted(pid for pid, parent in parents.items() if parent == os.getpid())


def equal(first, second) -> bool:
    """Whether two arrays, or mappings of them, are the same, bit for bit; NaN is NaN."""
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(equal(first[k], second[k]) for k in first)
    if first.dtype == object:
        return all(
            a is None is b or np.array_equal(a, b) for a, b in zip(first, second, strict=True)
        )
    numbers = np.issubdtype(first.dtype, np.floating)
    return np.array_equal(first, second, equal_nan=numbers) and first.dtype == second.dtype


def play(environment, chosen, seed=None, options=None):
    """One episode, or as much of it as there are actions: (observation, reward, end, info) rows."""
    observation, info = environment.reset(seed=seed, options=options)
    rows = [(observation, 0.0, False, False, info)]
    for action in chosen:
        rows.append(environment.step(action))
        if rows[-1][2] or rows[-1][3]:
            break
    return rows


def twin(environment, rows, controller, interval_ms):
    """The same episode as a simulation of a controller: totals at each row, and the flow's trace.

    Args:
        environment: The environment, native and with one agent, whose episode has been played.
        rows: The rows that `play` returned.
        controller: The controller that decides in the agent's place.
        interval_ms: Between two samples of the trace.
    """
    with quicgym.Simulation(
        environment.scenario,
        seed=environment.episode_seed,
        controllers=controller,
        trace_interval_ms=interval_ms,
    ) as simulation:
        totals = []
        for row in rows:
            simulation.run_until(row[4]["time_s"])
            totals.append(simulation.flows[0].statistics)
        samples = simulation.trace(0)
        return totals, [dict(zip(samples.dtype.names, it.tolist(), strict=True)) for it in samples]


def same(first, second) -> bool:
    """Whether two episodes are the same, bit for bit."""
    return len(first) == len(second) and all(
        np.array_equal(a[0], b[0]) and a[1:] == b[1:] for a, b in zip(first, second, strict=True)
    )


class StoppedInTheMiddle:
    """A controller that stands still within a call, so that a test can do something meanwhile."""

    def __init__(self):
        self.stops, self.reached, self.may_go_on = False, threading.Event(), threading.Event()
        test = self

        class Stops(quicgym.Controller):
            def on_start(self, max_datagram_bytes):
                self.window_bytes = 10 * max_datagram_bytes

            def on_ack(self, event):
                if test.stops:
                    test.reached.set()
                    assert test.may_go_on.wait(30)

            def on_loss(self, event):
                pass

        self.controller = Stops

    @contextlib.contextmanager
    def during(self, call):
        """Runs `call` in a thread; the body is run while the controller stands still in it."""
        self.stops = True
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(call)
            try:
                assert self.reached.wait(30)
                yield
            finally:
                self.stops = False
                self.may_go_on.set()
            done.result()
