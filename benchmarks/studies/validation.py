"""Validation: our controllers on QUIC against ns-3's own TCP in the same network and queue.

    python benchmarks/studies/validation.py

prints the tables of docs/reports/validation.md. Both sides run on ns-3's links; only the transport
and the controller differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from quicgym.console import wide_console
from quicgym.envs import Scenario, Simulation, load_scenario, run
from quicgym.envs.scenarios.links import BernoulliLoss

SCENARIOS = ("ebcc-bandwidth-5", "ebcc-single", "ebcc-delay-10", "ebcc-flows-3", "ebcc-flows-5")
DURATION_S = 100.0
"""Long enough for the slow start's overshoot, where the two differ most, not to decide."""

LOSS_PERCENT = (0.01, 0.03, 0.1, 0.3)
LOSS_QUEUE_PACKETS = 400
LOSS_SEEDS = 3


@dataclass(frozen=True)
class Peer:
    """What ns-3 runs beside a controller of ours: the name of its TCP, and attributes of it."""

    tcp: str
    attributes: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        """The TCP's name and what differs from ns-3's defaults."""
        return " ".join(
            [self.tcp, *(f"{name}={value:g}" for name, value in self.attributes.items())]
        )


NEWRENO = Peer("newreno")
# TcpNewReno grows with every ACK, TcpLinuxReno with every acknowledged segment, as RFC 9002 does.
LINUX_RENO = Peer("linux-reno")
# The papers' scenarios start ours with standard slow start, and ns-3's HyStart is the original one.
CUBIC = Peer("cubic", {"HyStart": 0})
BBR = Peer("bbr")
BBR_ACK_EVERY_SEGMENT = Peer("bbr", {"DelAckCount": 1})


@dataclass(frozen=True)
class Comparison:
    """One controller in one scenario: ours over QUIC, ns-3's over TCP. Means over seeds."""

    scenario: str
    controller: str
    peer: Peer
    quic_goodput_mbps: float
    tcp_goodput_mbps: float
    quic_mean_rtt_ms: float
    tcp_mean_rtt_ms: float

    @property
    def goodput_ratio(self) -> float:
        """Ours over ns-3's."""
        return self.quic_goodput_mbps / self.tcp_goodput_mbps

    @property
    def mean_rtt_ratio(self) -> float:
        """Ours over ns-3's."""
        return self.quic_mean_rtt_ms / self.tcp_mean_rtt_ms


def tcp_scenario(scenario: Scenario, peer: Peer) -> Scenario:
    """The scenario with ns-3's TCP in place of every flow's transport."""
    change = {"transport": "tcp", "controller": peer.tcp, "parameters": dict(peer.attributes)}
    flows = tuple(flow.model_copy(update=change) for flow in scenario.flows)
    return scenario.model_copy(update={"flows": flows})


def lasting(scenario: str, duration_s: float = DURATION_S) -> Scenario:
    """A packaged scenario with another duration."""
    return load_scenario(scenario).model_copy(update={"duration_s": duration_s})


def with_random_loss(percent: float) -> Scenario:
    """A single flow whose losses are random and, with this long a queue, hardly ever its own."""
    scenario = lasting("ebcc-single")
    link = scenario.links["bottleneck"]
    queue = link.queue.model_copy(update={"limit": LOSS_QUEUE_PACKETS})
    change = {"queue": queue, "loss": BernoulliLoss(probability=percent / 100)}
    name = f"random-loss-{percent:g}-percent"
    return scenario.model_copy(update={"name": name, "bottleneck": link.model_copy(update=change)})


def _means(scenario: Scenario, controller: str | None, seeds: Iterable[int]) -> tuple[float, float]:
    metrics = [
        run(scenario, controller, "ns3", seed, trace_interval_ms=None).metrics for seed in seeds
    ]
    goodput, rtt = (
        np.mean([one[name] or np.nan for one in metrics])
        for name in ("goodput_mbps", "mean_rtt_ms")
    )
    return float(goodput), float(rtt)


def compare(
    scenario: Scenario, controller: str, peer: Peer, seeds: Sequence[int] = (0,)
) -> Comparison:
    """Runs the scenario with our controller and with ns-3's TCP, both on ns-3."""
    quic_goodput, quic_rtt = _means(scenario, controller, seeds)
    tcp_goodput, tcp_rtt = _means(tcp_scenario(scenario, peer), None, seeds)
    return Comparison(scenario.name, controller, peer, quic_goodput, tcp_goodput, quic_rtt, tcp_rtt)


def window_cut(scenario: Scenario, controller: str | None) -> float:
    """What is left of the window after a loss, on average, once it has settled.

    The window a second after the start of every decrease by more than a tenth within 100 ms, over
    the window before it; the first 15 s, slow start's, are left out.
    """
    with Simulation(scenario, "ns3", 0, controller, trace_interval_ms=10) as simulation:
        simulation.run()
        window = simulation.trace(0)["window_bytes"].astype(float)[1500:]
    step, settle = 10, 100
    cuts: list[float] = []
    index = 0
    while index + settle < len(window):
        if window[index + step] < 0.9 * window[index]:
            cuts.append(window[index : index + settle].min() / window[index])
            index += settle
        index += 1
    return float(np.mean(cuts)) if cuts else float("nan")


def comparison_table(title: str, comparisons: Iterable[Comparison]) -> Table:
    """Returns the comparisons as a table."""
    output = Table(title=title, title_justify="left")
    output.add_column("scenario")
    output.add_column("ours")
    output.add_column("ns-3's TCP")
    output.add_column("goodput (Mbps)", justify="right")
    output.add_column("mean RTT (ms)", justify="right")
    for entry in comparisons:
        output.add_row(
            entry.scenario,
            entry.controller,
            str(entry.peer),
            f"{entry.quic_goodput_mbps:.3f} / {entry.tcp_goodput_mbps:.3f}"
            f" = {entry.goodput_ratio:.3f}",
            f"{entry.quic_mean_rtt_ms:.1f} / {entry.tcp_mean_rtt_ms:.1f}"
            f" = {entry.mean_rtt_ratio:.3f}",
        )
    return output


def main() -> None:
    """Prints every table of docs/reports/validation.md."""
    queue_jobs = [
        (lasting(name), controller, peer)
        for controller, peer in (
            ("newreno", NEWRENO),
            ("cubic", CUBIC),
            ("bbr", BBR),
            ("bbr", BBR_ACK_EVERY_SEGMENT),
        )
        for name in SCENARIOS
    ]
    loss_jobs = [
        (with_random_loss(percent), controller, peer, tuple(range(LOSS_SEEDS)))
        for controller, peer in (
            ("newreno", LINUX_RENO),
            ("newreno", NEWRENO),
            ("cubic", CUBIC),
            ("bbr", BBR),
        )
        for percent in LOSS_PERCENT
    ]
    # One ns-3 simulation per process at a time, so processes.
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        queue = [pool.submit(compare, *job) for job in queue_jobs]
        loss = [pool.submit(compare, *job) for job in loss_jobs]
        single, lossy = lasting("ebcc-single"), with_random_loss(0.3)
        cuts = {
            name: pool.submit(window_cut, *job)
            for name, job in {
                "ebcc-single, cubic": (single, "cubic"),
                f"ebcc-single, ns-3's {CUBIC}": (tcp_scenario(single, CUBIC), None),
                f"{lossy.name}, newreno": (lossy, "newreno"),
                f"{lossy.name}, ns-3's {LINUX_RENO}": (tcp_scenario(lossy, LINUX_RENO), None),
            }.items()
        }
        futures: list[Future[Any]] = [*queue, *loss, *cuts.values()]
        for future in track(futures, "validating", console=Console(stderr=True)):
            future.result()
    console = wide_console()
    ratio = "ours / ns-3's TCP = ratio"
    console.print(
        comparison_table(
            f"Drop-tail queue, {DURATION_S:g} s: {ratio}", (future.result() for future in queue)
        )
    )
    console.print(
        comparison_table(
            f"Random loss, {DURATION_S:g} s, mean of {LOSS_SEEDS} seeds: {ratio}",
            (future.result() for future in loss),
        )
    )
    for name, cut in cuts.items():
        console.print(f"{name}: a loss leaves {cut.result():.2f} of the window")


if __name__ == "__main__":
    main()
