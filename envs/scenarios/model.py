"""Models of scenarios: a dumbbell, a chain or a wireless LAN, and flows. Units are in the names.

The models mirror sim/scenario.hpp, and conversion.py says how they get there. They are frozen:
change a scenario with `scenario.model_copy(update=...)` or edit its YAML.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, model_validator

from quicgym import _core, controllers
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
    check,
)
from quicgym.envs.scenarios.flows import AckFrequency, Flow, Parameters, check_parameters
from quicgym.envs.scenarios.links import Access, Hop, Link, plain_reverse, with_counted_queue
from quicgym.envs.scenarios.short_flows import ShortFlows
from quicgym.envs.scenarios.traces import is_drawn, trace_digest
from quicgym.envs.scenarios.wifi import Wifi
from quicgym.validation import problem

MOST_LOAD = 5.0
"""The highest load of short flows, as a multiple of what their path carries."""


# By name: Sphinx cannot read an f-string inside an annotation.
_CHAIN = f"a list of at most {_core.MAX_HOPS - 1} links behind the bottleneck"


class Scenario(CheckedModel):
    """A dumbbell: senders, their access links, one bottleneck, access links, receivers.

    Or a chain of bottlenecks, where each flow enters before one and leaves after another.
    Or a wireless LAN: senders, their access links, a wired link, an access point, stations.

    Times are counted from the start of the simulation.
    """

    name: Annotated[Name, Outside("messages and results")]
    description: Annotated[str, Outside("people")] = ""
    source: Annotated[str, Outside("people")] = ""
    """The paper's experiment that it reproduces."""
    duration_s: Annotated[DurationS, Outside("Simulation.run")]
    bottleneck: Annotated[Link | None, Outside("links")] = None
    """Null: there is `wifi`."""
    reverse: Annotated[Link | None, Outside("links")] = None
    """Link from the receivers to the senders. Null: as the bottleneck, drop-tail, without loss."""
    chain: Annotated[
        tuple[Hop, ...],
        Field(
            max_length=_core.MAX_HOPS - 1,
            description=_CHAIN,
        ),
        Outside("links"),
    ] = ()
    """Further bottlenecks in a row behind `bottleneck`, which is hop 1."""
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
    """Short transfers that come and go next to the flows."""
    controller_parameters: Annotated[
        dict[str, Parameters],
        Field(
            description="a mapping of controllers, each with a mapping of parameters: a number, a "
            "name of a value or a list of numbers, as the catalogue says"
        ),
        Outside("to_core, with the controllers"),
    ] = {}
    """Parameters by controller, for QUIC flows that name no controller and are given this one."""
    max_datagram_bytes: Annotated[DatagramBytes, Outside("every flow")] = 1200
    """UDP payload of a full packet."""

    @cached_property
    def links(self) -> dict[str, Link]:
        """The two directions of every hop by field, the bottleneck's first; none with `wifi`.

        Defaults of the way back are filled in, and queues are limited in packets or bytes.
        """
        return {field: self._with_counted_queue(link) for field, link in self._described.items()}

    @cached_property
    def _described(self) -> dict[str, Link]:
        """The links with their queues' limits as they are given."""
        hops = {"bottleneck": (self.bottleneck, self.reverse)}
        hops |= {f"chain.{index}": (hop, hop.reverse) for index, hop in enumerate(self.chain)}
        links: dict[str, Link] = {}
        for field, (link, reverse) in hops.items():
            if link is not None:
                back = "reverse" if field == "bottleneck" else f"{field}.reverse"
                links |= {field: link, back: reverse or plain_reverse(link)}
        return links

    def _with_counted_queue(self, link: Link) -> Link:
        packet_bytes = self.max_datagram_bytes + LINK_HEADER_BYTES
        return with_counted_queue(link, self.base_rtt_ms, packet_bytes)

    def hops_of(self, flow: Flow | ShortFlows) -> range:
        """Returns the hops that a flow passes, counted from 0, in order from the senders' side."""
        return range(flow.first_hop - 1, flow.last_hop or 1 + len(self.chain))

    def path_of(self, flow: Flow | ShortFlows) -> dict[str, Link]:
        """Returns the links that a flow's data passes, by field; none with `wifi`."""
        is_backward = isinstance(flow, Flow) and flow.direction == "backward"
        links = list(self.links.items())[is_backward::2]
        return dict(links[hop] for hop in self.hops_of(flow) if links)

    def content(self) -> list[Any]:
        """Returns all that a run of it depends on, the packets of its traces included."""
        return [
            self.model_dump(mode="python", exclude={"description", "source"}),
            [trace_digest(link.trace) for link in self.links.values() if link.trace is not None],
            *(controllers.find(name).fingerprint for name in self._controllers_by_place()),
        ]

    @property
    def files(self) -> list[Path]:
        """The files that a run of it reads: traces, and controllers that are named by place."""
        traces = [
            link.trace
            for link in self.links.values()
            if link.trace is not None and not is_drawn(link.trace)
        ]
        places = map(controllers.file_of, self._controllers_by_place())
        return [*traces, *(path for path in places if path is not None)]

    def _controllers_by_place(self) -> list[str]:
        named = (flow.controller for flow in self._connections())
        return [name for name in named if name is not None and controllers.is_place(name)]

    @property
    def queue_limit(self) -> int:
        """The bottleneck's queue limit, in its unit; with `wifi` that of the access point."""
        if self.wifi is not None:
            return self.wifi.queue.limit_packets
        return int(self.links["bottleneck"].queue.limit)

    @cached_property
    def base_rtt_ms(self) -> float:
        """The lowest propagation delay there and back of any flow, without transmission times."""
        return min(self._base_rtt_ms(flow) for flow in self._connections())

    def _base_rtt_ms(self, flow: Flow | ShortFlows) -> float:
        access_ms = (flow.access or self.access).delay_ms
        if self.wifi is not None:
            return 2 * (access_ms + flow.extra_delay_ms + self.wifi.wired.delay_ms)
        links = [*self._described.values()]
        ways = [link for hop in self.hops_of(flow) for link in links[2 * hop : 2 * hop + 2]]
        shortest_ms = sum(min(link.delays_ms) for link in ways)
        return 2 * (2 * access_ms + flow.extra_delay_ms) + shortest_ms

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

    def with_one_open_flow(self, controller: str) -> Scenario:
        """Returns this scenario with a controller for every open flow but the first."""
        info = controllers.find(controller)
        of_scenario = self.controller_parameters.get(info.own_name, {})
        named = {"controller": controller, "parameters": {**of_scenario, **info.given}}
        is_open = [flow.controller is None for _, flow in self.single_flows()]
        flows = tuple(
            flow.model_copy(
                update={"name": name, "count": 1}
                | (named if flow.controller is None and any(is_open[:index]) else {})
            )
            for index, (name, flow) in enumerate(self.single_flows())
        )
        short = tuple(
            entry.model_copy(update=named) if entry.controller is None else entry
            for entry in self.short_flows
        )
        return self.model_copy(update={"flows": flows, "short_flows": short})

    def _connections(self) -> Iterator[Flow | ShortFlows]:
        yield from self.flows
        yield from self.short_flows

    def check_engine(self, engine: EngineName) -> None:
        """Raises ScenarioError when the engine lacks something that the scenario has."""
        check_capabilities(self.name, network(self), engine)

    @model_validator(mode="after")
    def _consistent(self) -> Scenario:
        self._check_network()
        self._check_chain()
        if self.bottleneck and self.bottleneck.trace is not None and self.reverse is None:
            raise problem(
                "reverse", None, "is missing, and a trace gives it no default",
                "describe the reverse link with rate_mbps and delay_ms",
            )  # fmt: skip
        for index, flow in enumerate(self.flows):
            self._check_times(index, flow)
            self._warn_of_idle_ecn(f"flows.{index}", flow)
            self._warn_of_slow_access(index, flow)
            self._warn_of_rare_acks(index, flow)
        self._warn_of_late_steps()
        for controller, parameters in self.controller_parameters.items():
            field = "controller_parameters"
            if controllers.is_place(controller):
                raise problem(
                    field, controller, "is no name",
                    "give the parameters behind the place, as in mine.py:Aimd:decrease=0.7",
                )  # fmt: skip
            check_parameters(controller, parameters, field, f"{field}.{controller}")
        for index, entry in enumerate(self.short_flows):
            if entry.start_s > self.duration_s - SHORTEST_S:
                raise problem(
                    "short_flows.start_s", entry.start_s,
                    f"none ever arrives: the scenario ends at {self.duration_s:g} s",
                    "start them earlier or make duration_s longer",
                )  # fmt: skip
            self._check_load(index, entry)
            self._warn_of_idle_ecn(f"short_flows.{index}", entry)
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
        for field, link in self._given_links():
            if link.queue.unit == "bdp" and self.base_rtt_ms == 0:
                raise problem(
                    f"{field}.queue.unit", "bdp", "without delays the BDP is 0",
                    "give the limit in packets or bytes, or a delay",
                )  # fmt: skip
            queue = self._with_counted_queue(link).queue
            if queue.limit < (packet if queue.unit == "bytes" else 1):
                least = "a larger one" if link.queue.unit == "bdp" else f"at least {packet}"
                raise problem(
                    f"{field}.queue.limit", link.queue.limit,
                    f"no packet fits: one takes {packet} bytes", f"give {least}",
                )  # fmt: skip
            for part, bucket in (("policer", link.policer), ("shaper", link.shaper)):
                if bucket and bucket.burst_bytes < packet:
                    raise problem(
                        f"{field}.{part}.burst_bytes", bucket.burst_bytes,
                        f"no packet passes: one takes {packet} bytes", f"give at least {packet}",
                    )  # fmt: skip
        return self

    def _check_load(self, index: int, entry: ShortFlows) -> None:
        rates = [link.highest_rate_mbps for link in self.path_of(entry).values()]
        carried_mbps = min([(entry.access or self.access).rate_mbps, *rates])
        offered_mbps = entry.offered_mbps(entry.max_datagram_bytes or self.max_datagram_bytes)
        if offered_mbps > MOST_LOAD * carried_mbps:
            field = "arrivals_per_s" if entry.load_mbps is None else "load_mbps"
            raise problem(
                f"short_flows.{index}.{field}", getattr(entry, field),
                f"offers {offered_mbps:.3g} Mbps with headers and handshakes, and the path carries "
                f"{carried_mbps:g}: transfers would pile up without end",
                f"make it smaller, so that at most {MOST_LOAD:g} times its rate is offered",
            )  # fmt: skip

    def _check_packet_size(self, flow: Flow | ShortFlows) -> None:
        size_bytes = flow.max_datagram_bytes or self.max_datagram_bytes
        mtu_bytes = (flow.access or self.access).mtu_bytes
        if mtu_bytes is None and size_bytes > LARGEST_UNFRAGMENTED_BYTES:
            raise problem(
                "max_datagram_bytes", size_bytes,
                f"an Ethernet frame takes {LARGEST_UNFRAGMENTED_BYTES} at most",
                "give 1200 to 1472, or access.mtu_bytes, above which packets are fragmented",
            )  # fmt: skip
        if mtu_bytes is not None and self.chain:
            raise problem(
                "access.mtu_bytes", mtu_bytes, "not in a chain: fragments pass one bottleneck",
                "leave out access.mtu_bytes or chain",
            )  # fmt: skip
        for field, link in self.links.items():
            for part in ("reordering", "reroutes"):
                if mtu_bytes is not None and (value := getattr(link, part)):
                    raise problem(
                        f"{field}.{part}", value if value is True else f"{len(value)} entries",
                        "the engine keeps fragments in order",
                        f"leave out access.mtu_bytes or {field}.{part}",
                    )  # fmt: skip

    def _given_links(self) -> Iterator[tuple[str, Link]]:
        """Yields the links that are described, by field."""
        ends: list[tuple[str, Link | None]]
        ends = [("bottleneck", self.bottleneck), ("reverse", self.reverse)]
        for index, hop in enumerate(self.chain):
            ends += [(f"chain.{index}", hop), (f"chain.{index}.reverse", hop.reverse)]
        yield from ((field, link) for field, link in ends if link is not None)

    def _check_chain(self) -> None:
        hops_given = any(entry.first_hop > 1 or entry.last_hop for entry in self._connections())
        if self.chain or hops_given:
            check(self, _core.chain_problem(network(self)))

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
        if self.wifi is not None and self.short_flows:
            given = [entry.model_dump(exclude_unset=True) for entry in self.short_flows]
            raise problem(
                "short_flows", given, "a wireless LAN has stations for flows alone",
                "leave out wifi or short_flows",
            )  # fmt: skip

        for index, flow in enumerate(self.flows):
            if self.wifi is not None and flow.direction == "backward":
                raise problem(
                    f"flows.{index}.direction", "backward", "stations only receive",
                    "leave out wifi or direction",
                )  # fmt: skip

    def _warn_of_idle_ecn(self, field: str, flow: Flow | ShortFlows) -> None:
        path = self.path_of(flow)
        if flow.ecn and not any(link.queue.marks for link in path.values()):
            named = f" ({flow.name})" if flow.name else ""
            remedy = f"set {next(iter(path))}.queue.ecn_marking" if path else "leave ecn out"
            warnings.warn(
                f"{self.name}: {field}.ecn = True{named}: no queue on its path marks, so it "
                f"changes nothing; {remedy}",
                stacklevel=2,
            )

    def _warn_of_late_steps(self) -> None:
        for field, link in self._given_links():
            for part in ("rate_schedule", "delay_schedule", "loss_schedule", "reroutes"):
                for index, step in enumerate(getattr(link, part)):
                    if step.at_s < self.duration_s:
                        continue
                    warnings.warn(
                        f"{self.name}: {field}.{part}.{index}.at_s = {step.at_s:g}: changes "
                        f"nothing, because the scenario ends at {self.duration_s:g} s; make "
                        "duration_s longer, or leave it out",
                        stacklevel=2,
                    )

    def _warn_of_slow_access(self, index: int, flow: Flow) -> None:
        rates = [link.rate_mbps for link in self.path_of(flow).values()]
        slowest = min((rate for rate in rates if rate is not None), default=0.0)
        access = flow.access or self.access
        if access.rate_mbps < slowest:
            field = f"flows.{index}.access" if flow.access else "access"
            warnings.warn(
                f"{self.name}: {field}.rate_mbps = {access.rate_mbps:g}: is below the bottleneck's "
                f"{slowest:g}, so packets wait before the access link, in a queue without a limit; "
                f"give at least {slowest:g}, unless that is meant",
                stacklevel=2,
            )

    def _warn_of_rare_acks(self, index: int, flow: Flow) -> None:
        """Warns where a full path is acknowledged less than once per round trip."""
        acks, rtt_ms = flow.ack_frequency, self._base_rtt_ms(flow)
        links = list(self._described.values())[flow.direction == "backward" :: 2]
        rate_mbps = min(
            (links[hop].highest_rate_mbps for hop in self.hops_of(flow) if links), default=0
        )
        if acks == AckFrequency() or rate_mbps == 0:
            return
        bits = 8 * (flow.max_datagram_bytes or self.max_datagram_bytes)
        by_count_ms = (acks.ack_eliciting_threshold + 1) * bits / rate_mbps / 1e3
        interval_ms = min(by_count_ms, acks.max_ack_delay_ms)
        if interval_ms > rtt_ms:
            warnings.warn(
                f"{self.name}: flows.{index}.ack_frequency: one ACK comes in {interval_ms:.3g} ms "
                f"at {rate_mbps:g} Mbps, but a round trip takes {rtt_ms:.3g} ms, so senders wait; "
                "give a smaller ack_eliciting_threshold or max_ack_delay_ms, unless that is meant",
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
