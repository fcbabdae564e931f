"""Short flows: transfers that arrive as a Poisson process, each over a new connection."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from quicgym.envs.scenarios.fields import LINK_HEADER_BYTES, Outside, RateMbps
from quicgym.envs.scenarios.flows import Connection
from quicgym.envs.scenarios.sizes import Sizes, check_sizes, mean_size_bytes, size_points
from quicgym.validation import problem


class ShortFlows(Connection):
    """Transfers between one pair of hosts; each opens a connection, sends, and closes it."""

    arrivals_per_s: Annotated[
        float | None,
        Field(strict=True, gt=0, le=1e6, description="a number above 0, at most 1000000"),
        Outside("to_core"),
    ] = None
    """The mean of a Poisson process."""
    load_mbps: Annotated[RateMbps | None, Outside("to_core")] = None
    """In place of arrivals_per_s: arrivals · mean size."""
    sizes: Annotated[Sizes, Outside("to_core")]

    @property
    def arrivals_per_second(self) -> float:
        """The rate of arrivals, however it is given."""
        if self.arrivals_per_s is not None:
            return self.arrivals_per_s
        assert self.load_mbps is not None
        return self.load_mbps * 1e6 / 8 / mean_size_bytes(size_points(self.sizes))

    def offered_mbps(self, datagram_bytes: int) -> float:
        """Returns what the transfers put on the wire, with their handshakes and headers.

        Args:
            datagram_bytes: Size of a full datagram, which a handshake takes.
        """
        size_bytes = mean_size_bytes(size_points(self.sizes)) + datagram_bytes
        wire_bytes = size_bytes * (1 + 2 * LINK_HEADER_BYTES / datagram_bytes)
        return self.arrivals_per_second * wire_bytes * 8e-6

    @model_validator(mode="after")
    def _consistent(self) -> ShortFlows:
        if (self.arrivals_per_s is None) == (self.load_mbps is None):
            raise problem(
                "arrivals_per_s", self.arrivals_per_s,
                "and load_mbps say the same thing" if self.load_mbps else "is missing",
                "give arrivals_per_s or load_mbps",
            )  # fmt: skip
        check_sizes("sizes", self.sizes)
        if self.stop_s is not None and self.stop_s <= self.start_s:
            raise problem(
                "stop_s", self.stop_s, f"is not after the start, {self.start_s:g} s",
                "make stop_s later or leave it out",
            )  # fmt: skip
        return self
