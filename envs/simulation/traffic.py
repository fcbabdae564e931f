"""What the applications of a run got: transfers, responses, pages and video, for their metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from quicgym.envs.scenarios.applications import RequestResponse, Video, WebPage
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.simulation.simulation import NEVER, TRANSFER_DTYPE

SHORT_FLOWS, REQUESTS, PAGES, VIDEO = "short-flows", "request-response", "web-page", "video"
"""The kinds of traffic that have metrics of their own."""
SMALL_BYTES, LARGE_BYTES = 100_000, 10_000_000
"""Of Alizadeh et al., "pFabric", SIGCOMM 2013: small up to one, large above the other."""


@dataclass(frozen=True)
class TrafficTotals:
    """What the metrics of some flows' or short flows' traffic are computed from.

    Attributes:
        kinds: The kinds of traffic that it holds.
        transfers: Short flows, of TRANSFER_DTYPE.
        requests: Of request and response, of the same.
        page_load_s: Of every page that was loaded.
        chunk_mbps: The nominal rate of every chunk of video that arrived.
        switches: How often the rate changed from a chunk to the next.
        playing_s: Time that video played.
        stalled_s: Time that it stood still after it had begun.
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

    def latency_ms(self) -> np.ndarray:
        """Returns the latencies of the requests that were answered."""
        return _duration_ms(self.requests[self.requests["completion"] != NEVER])


def _duration_ms(transfers: np.ndarray) -> np.ndarray:
    duration: np.ndarray = (transfers["completion"] - transfers["start"]) * 1e-6
    return duration


def together(parts: Iterable[TrafficTotals]) -> TrafficTotals:
    """Returns the traffic of several flows or entries as that of one."""
    every = [TrafficTotals(), *parts]
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


def traffic_of_flows(
    scenario: Scenario, totals: Sequence[Mapping[str, Any]], requests: Callable[[int], np.ndarray]
) -> Iterator[TrafficTotals]:
    """Yields the traffic of every flow; of no kind where its application has no own metrics.

    Args:
        scenario: That was simulated.
        totals: Of each flow, as SimulatedFlow.statistics has them.
        requests: Of a flow by its index, as Simulation.requests has them.
    """
    for index, (_, model) in enumerate(scenario.single_flows()):
        total = totals[index]
        match model.application:
            case RequestResponse():
                yield TrafficTotals(kinds=frozenset({REQUESTS}), requests=requests(index))
            case WebPage():
                loaded = total["completion"] is not None
                load_s = (total["completion"] - total["start"]) * 1e-9 if loaded else 0.0
                yield TrafficTotals(
                    kinds=frozenset({PAGES}), page_load_s=(load_s,) if loaded else ()
                )
            case Video() as video:
                chunks = requests(index)
                arrived = chunks[chunks["completion"] != NEVER]
                yield TrafficTotals(
                    kinds=frozenset({VIDEO}),
                    chunk_mbps=arrived["size_bytes"] * 8e-6 / video.chunk_s,
                    switches=int(np.count_nonzero(np.diff(arrived["size_bytes"].astype("i8")))),
                    playing_s=total["playing_seconds"],
                    stalled_s=total["stalled_seconds"],
                )
            case _:
                yield TrafficTotals()


def traffic_of_short_flows(transfers: Iterable[np.ndarray]) -> Iterator[TrafficTotals]:
    """Yields the traffic of every entry of short flows.

    Args:
        transfers: Of each entry, as Simulation.transfers has them.
    """
    for entry in transfers:
        yield TrafficTotals(kinds=frozenset({SHORT_FLOWS}), transfers=entry)
