"""Traffic of a run's applications, for their metrics: transfers, responses, pages and video."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from quicgym.envs.scenarios.applications import (
    Bursts,
    RealTimeMedia,
    RequestResponse,
    Video,
    WebPage,
)
from quicgym.envs.scenarios.conversion import nanoseconds
from quicgym.envs.scenarios.flows import Flow
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.simulation.simulation import NEVER, TRANSFER_DTYPE

SHORT_FLOWS, REQUESTS, PAGES, VIDEO = "short-flows", "request-response", "web-page", "video"
MEDIA = "real-time-media"
"""The kinds of traffic that have metrics of their own."""
FREEZE_NS = 1_000_000_000 // 30 + 150_000_000
"""A picture that stays for so long is a freeze: a frame interval and 150 ms.

As W3C's "Identifiers for WebRTC's Statistics API" defines freezeCount for intervals below 75 ms.
"""
SMALL_BYTES, LARGE_BYTES = 100_000, 10_000_000
"""Limits of Alizadeh et al., "pFabric", SIGCOMM 2013: small up to one, large above the other."""


@dataclass(frozen=True)
class TrafficTotals:
    """Totals from which the metrics of some flows' or short flows' traffic are computed.

    Transfers and requests are of TRANSFER_DTYPE. Pages have load times in s, the chunks of video
    that arrived nominal rates in Mbps. `switches` counts rate changes from a chunk to the next.
    Video stood still for `stalled_s` after it had begun. Frames of real-time media are of
    TRANSFER_DTYPE; skipped ones have no bytes. Pictures were shown for `shown_s`, of which
    `frozen_s` were freezes; the media's flows were active for `media_s`.
    """

    kinds: frozenset[str] = frozenset()
    transfers: np.ndarray = field(default_factory=lambda: np.empty(0, TRANSFER_DTYPE))
    requests: np.ndarray = field(default_factory=lambda: np.empty(0, TRANSFER_DTYPE))
    page_load_s: tuple[float, ...] = ()
    chunk_mbps: np.ndarray = field(default_factory=lambda: np.empty(0))
    switches: int = 0
    playing_s: float = 0.0
    stalled_s: float = 0.0
    frames: np.ndarray = field(default_factory=lambda: np.empty(0, TRANSFER_DTYPE))
    shown_s: float = 0.0
    frozen_s: float = 0.0
    media_s: float = 0.0

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

    @property
    def arrived_frames(self) -> np.ndarray:
        """The frames of real-time media that arrived."""
        return self.frames[self.frames["completion"] != NEVER]

    def frame_delay_ms(self) -> np.ndarray:
        """Returns the delays of the frames that arrived."""
        return _duration_ms(self.arrived_frames)


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
        np.concatenate([part.frames for part in every]),
        sum(part.shown_s for part in every),
        sum(part.frozen_s for part in every),
        sum(part.media_s for part in every),
    )


NO_TRAFFIC = TrafficTotals()
"""The traffic of flows whose application has no special metrics."""


def asking_flows(scenario: Scenario) -> list[int]:
    """Returns the places of the flows that have records of requests or frames."""
    return [
        index
        for index, (_, flow) in enumerate(scenario.single_flows())
        if isinstance(flow.application, RequestResponse | Video | RealTimeMedia)
    ]


def burst_times_s(scenario: Scenario) -> list[tuple[float, float]]:
    """Returns begin and end of the bursts of all flows, in s; those that overlap are one."""
    found: list[tuple[float, float]] = []
    for _, flow in scenario.single_flows():
        if isinstance(bursts := flow.application, Bursts):
            stop_s = min(scenario.duration_s, flow.stop_s or math.inf)
            left_s = stop_s - flow.start_s
            count = min(bursts.burst_count, math.ceil(left_s / bursts.burst_period_s))
            begins = (flow.start_s + number * bursts.burst_period_s for number in range(count))
            found += [(begin, min(begin + bursts.burst_duration_s, stop_s)) for begin in begins]
    merged: list[tuple[float, float]] = []
    for begin, end in sorted(found):
        if merged and begin <= merged[-1][1]:
            begin, end = merged[-1][0], max(merged.pop()[1], end)
        merged.append((begin, end))
    return merged


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
        case RealTimeMedia():
            end = window[1] if flow.stop_s is None else min(window[1], nanoseconds(flow.stop_s))
            shown_s, frozen_s = shown_and_frozen_s(requests["completion"], (window[0], end))
            return TrafficTotals(
                kinds=frozenset({MEDIA}),
                frames=within(requests, window),
                shown_s=shown_s,
                frozen_s=frozen_s,
                media_s=max(0, end - max(total["start"], window[0])) * 1e-9,
            )
        case _:
            return NO_TRAFFIC


def shown_and_frozen_s(arrivals: np.ndarray, window: tuple[int, int]) -> tuple[float, float]:
    """Returns for how long pictures were shown in a window, and for how long of that frozen.

    A frame is shown when it arrives, until the next one does.

    Args:
        arrivals: Arrivals of all frames of the run in ns, in order; NEVER of those that did not.
        window: Ends of the window, in ns.
    """
    begin, end = window
    moments = np.append(arrivals[arrivals <= end], end)
    gaps = np.diff(moments)
    inside = np.diff(np.clip(moments, begin, end))
    return float(inside.sum()) * 1e-9, float(inside[gaps >= FREEZE_NS].sum()) * 1e-9


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
