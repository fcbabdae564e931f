"""A wireless LAN in place of the bottleneck."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictBool

from quicgym.envs.scenarios.fields import (
    INLINE,
    CheckedModel,
    Core,
    DelayMs,
    Outside,
    QueuePackets,
    RateMbps,
)


class WifiQueue(CheckedModel):
    """The queue of a Wi-Fi device; it counts a frame until that is acknowledged."""

    limit_packets: Annotated[QueuePackets, Core("queue_packets")]
    max_delay_ms: Annotated[
        float,
        Field(strict=True, gt=0, le=60_000, description="milliseconds above 0, at most 60000"),
        Core("queue_max_delay"),
    ]
    """Longest time that a packet waits; after it the packet is dropped."""


class WiredLink(CheckedModel):
    """The link from the senders' side to the access point, the same in both directions."""

    core_type = "Link"

    rate_mbps: RateMbps
    delay_ms: DelayMs
    """One way."""
    queue_packets: Annotated[QueuePackets, Core("queue_limit")]
    """Drop-tail; the packet on the wire does not count."""


class Wifi(CheckedModel):
    """A wireless LAN in place of the bottleneck: an access point and one station per flow.

    The stations are the receivers. Engine ns3 only. Nothing has a default: a wireless LAN's rate is
    what all of these make of it.
    """

    standard: Annotated[Literal["802.11n"], Outside("nobody: the only one")]
    """Standard of the wireless LAN, with one spatial stream."""
    band_ghz: Annotated[Literal[5], Outside("nobody: the only one")]
    channel_width_mhz: Literal[20, 40]
    mcs: Annotated[
        int, Field(strict=True, ge=0, le=7, description="a whole number, 0 to 7, for HtMcs0 to 7")
    ]
    """Modulation and coding scheme of every data frame."""
    short_guard_interval: StrictBool
    max_ampdu_bytes: Annotated[
        int, Field(strict=True, ge=0, le=65_535, description="a whole number, 0 to 65535")
    ]
    """Largest size of the frames that go out as one aggregate; 0: no aggregation."""
    distance_m: Annotated[
        float, Field(strict=True, gt=0, le=1e6, description="metres above 0, at most 1000000")
    ]
    """Distance from the access point to every station."""
    path_loss_exponent: Annotated[
        float, Field(strict=True, gt=0, le=10, description="a number above 0, at most 10")
    ]
    """Exponent of the log-distance path loss, 46.68 dB at 1 m."""
    queue: Annotated[WifiQueue, INLINE]
    """Queue of the access point's device, and of each station's."""
    wired: WiredLink
