"""How long simulations will take, from what they carry and from a short measurement."""

from __future__ import annotations

import time
from functools import cached_property

from quicgym import Simulation
from quicgym.agents.evaluation.jobs import RunJob
from quicgym.envs import Scenario
from quicgym.envs.scenarios.traces import read_mahimahi

# CPU time per packet as multiples of the native engine's. With BBR on one machine a packet took
# 0.15 µs in ebcc-flows-3, 13.5 µs there on ns-3, and 66 µs in the first 2 s of ibcca-single.
NS3_MULTIPLE = 90.0
WIRELESS_MULTIPLE = 440.0
WIRELESS_RATE_MBPS = 100.0  # what the wireless LAN of ibcca-single carries

# In packets of the native engine that take as long. On that machine the imports of a process took
# 1.25 s, and in `quicgym papers --paper ebcc` a figure took 0.18 s.
START_PACKETS = 8_000_000
FIGURE_PACKETS = 1_200_000

NATIVE, NS3, WIRELESS = "native engine", "ns-3, wired", "ns-3, wireless LAN"


def host_of(job: RunJob) -> str:
    """Returns what runs a job, by which run times differ: NATIVE, NS3 or WIRELESS."""
    if job.engine == "native":
        return NATIVE
    return NS3 if job.scenario.wifi is None else WIRELESS


def _mean_rate_mbps(scenario: Scenario) -> float:
    """The bottleneck's, as if its rate never changed."""
    link = scenario.bottleneck
    if link is None:
        return WIRELESS_RATE_MBPS
    if link.rate_mbps is not None:
        return link.rate_mbps
    times = read_mahimahi(link.trace) if link.trace else [1]
    return len(times) * 1500 * 8e-3 / times[-1]


def packets_of(scenario: Scenario) -> float:
    """Returns how many packets a scenario carries where its link is full all the time."""
    return _mean_rate_mbps(scenario) * 1e6 / 8 * scenario.duration_s / scenario.max_datagram_bytes


class Estimate:
    """CPU times to expect on this machine."""

    @cached_property
    def _native_s_per_packet(self) -> float:
        with Simulation("ebcc-flows-3", "native", 0, "bbr", trace_interval_ms=None) as simulation:
            begin = time.process_time()
            simulation.run()
            spent = time.process_time() - begin
            return spent / sum(flow.statistics["received_packets"] for flow in simulation.flows)

    def cpu_s(self, job: RunJob) -> float:
        """Returns about how many seconds of CPU time a job takes: a full link all the time."""
        multiple = {NATIVE: 1.0, NS3: NS3_MULTIPLE, WIRELESS: WIRELESS_MULTIPLE}[host_of(job)]
        return packets_of(job.scenario) * multiple * self._native_s_per_packet

    @property
    def start_s(self) -> float:
        """About how many seconds of CPU time a process takes until it runs its first job."""
        return START_PACKETS * self._native_s_per_packet

    def drawing_s(self, figures: int) -> float:
        """Returns about how many seconds of CPU time that many figures take."""
        return FIGURE_PACKETS * figures * self._native_s_per_packet


def in_words(seconds: float) -> str:
    """Returns a time as people say it: 40 s, 12 min, 2.5 h."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
