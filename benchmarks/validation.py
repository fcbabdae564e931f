"""Validation: our controllers on QUIC against ns-3's own TCP in the same network and queue.

    python -m quicgym.benchmarks.validation

prints, for each scenario and controller, goodput and mean RTT of both and their ratios.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table

from quicgym.console import wide_console
from quicgym.envs import Scenario, load_scenario, run

CONTROLLERS = ("newreno", "cubic", "bbr")
SCENARIOS = ("ebcc-bandwidth-5", "ebcc-single", "ebcc-delay-10", "ebcc-flows-3")


@dataclass(frozen=True)
class Comparison:
    """One controller in one scenario: ours over QUIC, ns-3's over TCP, both on ns-3's links."""

    scenario: str
    controller: str
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


def compare(scenario: Scenario, controller: str, seed: int = 0) -> Comparison:
    """Runs the scenario with our controller and with ns-3's TCP of the same name, on ns-3.

    Raises:
        Ns3MissingError: This build has no ns-3.
    """
    tcp_flows = tuple(flow.model_copy(update={"transport": "tcp"}) for flow in scenario.flows)
    tcp_scenario = scenario.model_copy(update={"flows": tcp_flows})
    quic, tcp = (
        run(variant, controller, "ns3", seed, trace_interval_ms=None).metrics
        for variant in (scenario, tcp_scenario)
    )
    return Comparison(
        scenario.name,
        controller,
        quic["goodput_mbps"] or 0.0,
        tcp["goodput_mbps"] or float("nan"),
        quic["mean_rtt_ms"] or 0.0,
        tcp["mean_rtt_ms"] or float("nan"),
    )


def comparison_table(comparisons: Sequence[Comparison]) -> Table:
    """Returns the comparisons as a table."""
    output = Table(title="Ours over QUIC / ns-3's TCP = ratio", title_justify="left")
    output.add_column("scenario")
    output.add_column("controller")
    output.add_column("goodput (Mbps)", justify="right")
    output.add_column("mean RTT (ms)", justify="right")
    for entry in comparisons:
        output.add_row(
            entry.scenario,
            entry.controller,
            f"{entry.quic_goodput_mbps:.3f} / {entry.tcp_goodput_mbps:.3f}"
            f" = {entry.goodput_ratio:.3f}",
            f"{entry.quic_mean_rtt_ms:.1f} / {entry.tcp_mean_rtt_ms:.1f}"
            f" = {entry.mean_rtt_ratio:.3f}",
        )
    return output


if __name__ == "__main__":
    wide_console().print(
        comparison_table(
            [
                compare(load_scenario(name), controller)
                for name in SCENARIOS
                for controller in CONTROLLERS
            ]
        )
    )
