"""What the applications of a run got: transfers, responses, pages and video, for their metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from quicgym.envs.scenarios.applications import RequestResponse, Video, WebPage
from quicgym.envs.scenarios.flows import Flow
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.simulation.simulation import NEVER, TRANSFER_DTYPE

SHORT_FLOWS, REQUESTS, PAGES, VIDEO = "short-flows", "request-response", "web-page", "video"
"""The kinds of traffic that have metrics of their own."""
SMALL_BYTES, LARGE_BYTES = 100_000, 10_000_000
"""Limits of Alizadeh et al., "pFabric", SIGCOMM 2013: small up to one, large above the other."""


@dataclass(frozen=True)
class TrafficTotals:
    """What the metrics of some flows' or short flows' traffic are computed from.

    Transfers and requests are of TRANSFER_DTYPE. Pages have load times in s, the chunks of video
    that arrived nominal rates in Mbps. `switches` counts rate changes from a chunk to the next.
    Video stood still for `stalled_s` after it had begun.
    """

    kinds: frozenset[str] = frozenset()
    transfers: np.ndarray = field(default_factory=lambda: np.empty(0, TRANSFER_DTYPE))
    requests: np.ndarray = field(default_factory=lambda: np.empty(0, TRANSFER_DTYPE))
    page_load_s: tuple[float, ...] = ()
    chunk_mbps: np.ndarray = field(default_factory=lambda: np.empty(0))
    switches: int = 0
    playing_s: float = 0.0
    stalled_s: float = 0.0

    @property
    def completed(self) -> np.ndarray:
        """The short flows that were completed."""
        return self.transfers[self.transfers["completion"] != NEVER]

    def completion_ms(self, size_class: str = "") -> np.ndarray:
        """Returns the completion times of short flows; of a class: small, medium or large."""
        done = self.completed
        size = done["size_bytes"]
        if size_class == "small":
            done = done[size <= SMALL_BYTES]
        elif size_class == "medium":
            done = done[(size > SMALL_BYTES) & (size <= LARGE_BYTES)]
        elif size_class == "large":
            done = done[size > LARGE_BYTES]
        return _duration_ms(done)

    def completion_quantile_s(self, quantile: float) -> float | None:
        """Returns a quantile of the completion times of all short flows; None: not complete."""
        if not len(self.transfers):
            return None
        never = self.transfers["completion"] == NEVER
        durations_s = (self.transfers["completion"] - self.transfers["start"]) * 1e-9
        found = np.quantile(np.where(never, np.inf, durations_s), quantile, method="higher")
        return float(found) if np.isfinite(found) else None

    def latency_ms(self) -> np.ndarray:
        """Returns the latencies of the requests that were answered."""
        return _duration_ms(self.requests[self.requests["completion"] != NEVER])


def _duration_ms(transfers: np.ndarray) -> np.ndarray:
    duration: np.ndarray = (transfers["completion"] - transfers["start"]) * 1e-6
    return duration


def together(parts: Iterable[TrafficTotals]) -> TrafficTotals:
    """Returns the traffic of several flows or entries as that of one."""
    every = [NO_TRAFFIC, *(part for part in parts if part is not NO_TRAFFIC)]
    if len(every) == 1:
        return NO_TRAFFIC
    return TrafficTotals(
        frozenset().union(*(part.kinds for part in every)),
        np.concatenate([part.transfers for part in every]),
        np.concatenate([part.requests for part in every]),
        tuple(load for part in every for load in part.page_load_s),
        np.concatenate([part.chunk_mbps for part in every]),
        sum(part.switches for part in every),
        sum(part.playing_s for part in every),
        sum(part.stalled_s for part in every),
    )


NO_TRAFFIC = TrafficTotals()
"""The traffic of flows whose application has no metrics of its own."""


def asking_flows(scenario: Scenario) -> list[int]:
    """Returns the places of the flows whose receiving application asks for what it gets."""
    return [
        index
        for index, (_, flow) in enumerate(scenario.single_flows())
        if isinstance(flow.application, RequestResponse | Video)
    ]


def traffic_of_flow(
    flow: Flow, total: Mapping[str, Any], requests: np.ndarray, window: tuple[int, int]
) -> TrafficTotals:
    """Returns the traffic of a flow in a window, whose ends are in ns.

    `total` has the keys of SimulatedFlow.statistics, over the window. `requests` are those of the
    flow's application in the whole run, as Simulation.requests returns them.
    """
    match flow.application:
        case RequestResponse():
            asked = within(requests, window)
            return TrafficTotals(kinds=frozenset({REQUESTS}), requests=asked)
        case WebPage():
            load_s: tuple[float, ...] = ()
            completion = total["completion"]
            if completion is not None and window[0] <= completion <= window[1]:
                load_s = ((completion - total["start"]) * 1e-9,)
            return TrafficTotals(kinds=frozenset({PAGES}), page_load_s=load_s)
        case Video() as video:
            chunks = within(requests, window)
            arrived = chunks[chunks["completion"] != NEVER]
            return TrafficTotals(
                kinds=frozenset({VIDEO}),
                chunk_mbps=arrived["size_bytes"] * 8e-6 / video.chunk_s,
                switches=int(np.count_nonzero(np.diff(arrived["size_bytes"].astype("i8")))),
                playing_s=total["playing_seconds"],
                stalled_s=total["stalled_seconds"],
            )
        case _:
            return NO_TRAFFIC


def traffic_of_short_flows(transfers: np.ndarray, window: tuple[int, int]) -> TrafficTotals:
    """Returns an entry's traffic in a window, in ns, by all its `transfers` of the run."""
    return TrafficTotals(kinds=frozenset({SHORT_FLOWS}), transfers=within(transfers, window))


def within(transfers: np.ndarray, window: tuple[int, int]) -> np.ndarray:
    """Returns the transfers that began in a window; completed later they are not complete."""
    begin, end = window
    chosen = transfers[(transfers["start"] >= begin) & (transfers["start"] <= end)]
    if (late := chosen["completion"] > end).any():
        chosen = chosen.copy()
        chosen["completion"][late] = NEVER
    return chosen
