"""What to simulate: a dumbbell or a wireless LAN and its flows; the unit is in every field's name.

The models mirror sim/scenario.hpp, and conversion.py says how they get there. They are frozen:
change a scenario with `scenario.model_copy(update=...)` or edit its YAML.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field, model_validator

from quicgym.envs.scenarios.conversion import network
from quicgym.envs.scenarios.engines import EngineName, check_capabilities
from quicgym.envs.scenarios.fields import (
    LARGEST_UNFRAGMENTED_BYTES,
    LINK_HEADER_BYTES,
    SHORTEST_S,
    CheckedModel,
    DatagramBytes,
    DurationS,
    Name,
    Outside,
)
from quicgym.envs.scenarios.flows import Flow, Parameters, check_parameters
from quicgym.envs.scenarios.links import Access, Link, Queue
from quicgym.envs.scenarios.short_flows import ShortFlows
from quicgym.envs.scenarios.traces import trace_digest
from quicgym.envs.scenarios.wifi import Wifi
from quicgym.validation import problem


class Scenario(CheckedModel):
    """A dumbbell: senders, their access links, one bottleneck, access links, receivers.

    Or a wireless LAN: senders, their access links, a wired link, an access point, stations.

    Times are counted from the start of the simulation.
    """

    name: Annotated[Name, Outside("messages and results")]
    description: Annotated[str, Outside("people")] = ""
    source: Annotated[str, Outside("people")] = ""
    """The paper's experiment that it reproduces."""
    duration_s: Annotated[DurationS, Outside("Simulation.run")]
    bottleneck: Link | None = None
    """Null: there is `wifi`."""
    reverse: Annotated[Link | None, Outside("reverse_link")] = None
    """From the receivers to the senders. Null: as the bottleneck, drop-tail and without loss."""
    wifi: Wifi | None = None
    """In place of the bottleneck."""
    access: Annotated[Access, Outside("every flow")]
    flows: Annotated[
        tuple[Flow, ...],
        Field(min_length=1, description="a list of at least one flow"),
        Outside("single_flows"),
    ]
    short_flows: Annotated[
        tuple[ShortFlows, ...],
        Field(description="a list of short flows"),
        Outside("named_short_flows"),
    ] = ()
    """Transfers that come and go beside the flows."""
    controller_parameters: Annotated[
        dict[str, Parameters],
        Field(
            description="a mapping of controllers, each with a mapping of parameters: a number, or "
            "a list of numbers where the catalogue says so"
        ),
        Outside("to_core, with the controllers"),
    ] = {}
    """By controller's name, for the QUIC flows that name no controller and are given this one."""
    max_datagram_bytes: Annotated[DatagramBytes, Outside("every flow")] = 1200
    """UDP payload of a full packet."""

    @property
    def reverse_link(self) -> Link | None:
        """The reverse direction with its default filled in; None with `wifi`."""
        if self.reverse is not None or self.bottleneck is None:
            return self.reverse
        queue = self.bottleneck.queue
        return Link(
            rate_mbps=self.bottleneck.rate_mbps,
            delay_ms=self.bottleneck.delay_ms,
            queue=Queue(limit=queue.limit, unit=queue.unit),
        )

    @property
    def links(self) -> dict[str, Link]:
        """The two directions of the bottleneck by field; none with `wifi`."""
        links = {"bottleneck": self.bottleneck, "reverse": self.reverse_link}
        return {field: link for field, link in links.items() if link is not None}

    def content(self) -> list[Any]:
        """Returns all that a run of it depends on, the packets of its traces included."""
        return [
            self.model_dump(mode="python", exclude={"description", "source"}),
            [trace_digest(link.trace) for link in self.links.values() if link.trace is not None],
        ]

    @property
    def queue_limit(self) -> int:
        """What may wait before the bottleneck, in its unit; with `wifi` in the access point."""
        if self.wifi is not None:
            return self.wifi.queue.limit_packets
        return self.links["bottleneck"].queue.limit

    def single_flows(self) -> Iterator[tuple[str, Flow]]:
        """Yields every flow with its name, `count` written out."""
        number = 0
        for flow in self.flows:
            for copy in range(1, flow.count + 1):
                number += 1
                if flow.name is None:
                    yield f"flow-{number}", flow
                else:
                    yield flow.name if flow.count == 1 else f"{flow.name}-{copy}", flow

    def named_short_flows(self) -> Iterator[tuple[str, ShortFlows]]:
        """Yields every entry of short flows with its name."""
        for number, entry in enumerate(self.short_flows, 1):
            yield entry.name or f"short-flows-{number}", entry

    @property
    def has_open_flow(self) -> bool:
        """Whether a flow or an entry of short flows names no controller."""
        return any(flow.controller is None for flow in self._connections())

    def _connections(self) -> Iterator[Flow | ShortFlows]:
        yield from self.flows
        yield from self.short_flows

    def check_engine(self, engine: EngineName) -> None:
        """Raises ScenarioError when the engine lacks something that the scenario has."""
        check_capabilities(self.name, network(self), engine)

    @model_validator(mode="after")
    def _consistent(self) -> Scenario:
        self._check_network()
        if self.bottleneck and self.bottleneck.trace is not None and self.reverse is None:
            raise problem(
                "reverse", None, "is missing, and a trace gives it no default",
                "describe the reverse link with rate_mbps and delay_ms",
            )  # fmt: skip
        for index, flow in enumerate(self.flows):
            self._check_times(index, flow)
            self._warn_of_idle_ecn(index, flow)
        for controller, parameters in self.controller_parameters.items():
            field = "controller_parameters"
            check_parameters(controller, parameters, field, f"{field}.{controller}")
        for entry in self.short_flows:
            if entry.start_s > self.duration_s - SHORTEST_S:
                raise problem(
                    "short_flows.start_s", entry.start_s,
                    f"none ever arrives: the scenario ends at {self.duration_s:g} s",
                    "start them earlier or make duration_s longer",
                )  # fmt: skip
        names = [name for name, _ in (*self.single_flows(), *self.named_short_flows())]
        for name, count in Counter(names).items():
            if count > 1:
                raise problem("flows", name, "two flows have this name", "give each its own name")
        for connection in self._connections():
            self._check_packet_size(connection)
        largest = max(
            flow.max_datagram_bytes or self.max_datagram_bytes for flow in self._connections()
        )
        packet = largest + LINK_HEADER_BYTES
        for field, link in (("bottleneck", self.bottleneck), ("reverse", self.reverse)):
            if link and link.queue.unit == "bytes" and link.queue.limit < packet:
                raise problem(
                    f"{field}.queue.limit", link.queue.limit,
                    f"no packet fits: one takes {packet} bytes", f"give at least {packet}",
                )  # fmt: skip
            if link and link.policer and link.policer.burst_bytes < packet:
                raise problem(
                    f"{field}.policer.burst_bytes", link.policer.burst_bytes,
                    f"no packet passes: one takes {packet} bytes", f"give at least {packet}",
                )  # fmt: skip
        return self

    def _check_packet_size(self, flow: Flow | ShortFlows) -> None:
        size_bytes = flow.max_datagram_bytes or self.max_datagram_bytes
        mtu_bytes = (flow.access or self.access).mtu_bytes
        if mtu_bytes is None and size_bytes > LARGEST_UNFRAGMENTED_BYTES:
            raise problem(
                "max_datagram_bytes", size_bytes,
                f"an Ethernet frame takes {LARGEST_UNFRAGMENTED_BYTES} at most",
                "give 1200 to 1472, or access.mtu_bytes, above which packets are fragmented",
            )  # fmt: skip
        for field, link in self.links.items():
            if mtu_bytes is not None and link.reordering:
                raise problem(
                    f"{field}.reordering", True, "the engine keeps fragments in order",
                    f"leave out access.mtu_bytes or {field}.reordering",
                )  # fmt: skip

    def _check_network(self) -> None:
        if self.wifi is None and self.bottleneck is None:
            raise problem(
                "bottleneck", None, "is missing", "give a link's rate_mbps and delay_ms, or wifi"
            )
        for field in ("bottleneck", "reverse"):
            link = getattr(self, field)
            if self.wifi is not None and link is not None:
                raise problem(
                    field, link.model_dump(exclude_unset=True), "wifi takes its place",
                    f"leave out wifi or {field}",
                )  # fmt: skip

        for index, flow in enumerate(self.flows):
            if self.wifi is not None and flow.direction == "backward":
                raise problem(
                    f"flows.{index}.direction", "backward", "stations only receive",
                    "leave out wifi or direction",
                )  # fmt: skip

    def _warn_of_idle_ecn(self, index: int, flow: Flow) -> None:
        link = self.bottleneck if flow.direction == "forward" else self.reverse_link
        if flow.ecn and not (link and link.queue.marks):
            named = f" ({flow.name})" if flow.name else ""
            field = "bottleneck" if flow.direction == "forward" else "reverse"
            remedy = "leave ecn out" if self.wifi else f"set {field}.queue.ecn_marking"
            warnings.warn(
                f"{self.name}: flows.{index}.ecn = True{named}: no queue on its path marks, so it "
                f"changes nothing; {remedy}",
                stacklevel=2,
            )

    def _check_times(self, index: int, flow: Flow) -> None:
        if flow.start_s + flow.start_jitter_ms / 1e3 > self.duration_s - SHORTEST_S:
            raise problem(
                f"flows.{index}.start_s", flow.start_s,
                f"the flow never runs: the scenario ends at {self.duration_s:g} s",
                "start it earlier or make duration_s longer",
            )  # fmt: skip
        if flow.stop_s is not None and flow.stop_s > self.duration_s:
            raise problem(
                f"flows.{index}.stop_s", flow.stop_s,
                f"is after the scenario's end, {self.duration_s:g} s",
                "leave stop_s out or make duration_s longer",
            )  # fmt: skip
