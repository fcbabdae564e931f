"""The connections of a scenario, their controllers and parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, StrictBool, ValidationInfo, field_validator, model_validator

from quicgym import controllers
from quicgym.envs.scenarios.applications import (
    Application,
    Bulk,
    Bursts,
    RealTimeMedia,
    RequestResponse,
    Video,
    WebPage,
)
from quicgym.envs.scenarios.fields import (
    INLINE,
    CheckedModel,
    DatagramBytes,
    DelayMs,
    FlowCount,
    HopNumber,
    MomentS,
    Name,
    Outside,
    PeriodMs,
    PositiveInteger,
    within,
)
from quicgym.envs.scenarios.links import Access
from quicgym.validation import problem
from quicgym.yaml_files import closest

QUIC_FIELDS = (
    "ack_frequency", "pace_initial_window", "offload_packets", "adaptive_reordering",
    "burst_retransmission", "stale_rate_samples", "module_habits",
)  # fmt: skip
"""Fields of quicgym's endpoints; ns-3's TCP has none of them."""

TCP_CONTROLLERS = ("newreno", "linux-reno", "cubic", "bbr", "vegas")

ParameterNumber = Annotated[float, Field(strict=True, allow_inf_nan=True)]
Parameters = dict[str, ParameterNumber | tuple[ParameterNumber, ...] | str]


def check_parameters(controller: str, parameters: Parameters, named_in: str, where: str) -> None:
    """Raises a validation error for an unknown controller or a parameter that it does not take.

    Args:
        controller: A name of the catalogue, or a registered one; one that is named by its place is
            not looked at.
        parameters: Parameters of the controller, by name.
        named_in: The field that names the controller.
        where: The field that holds the parameters.
    """
    if controllers.is_place(controller):
        return  # reading a scenario runs no code; whoever runs it checks this
    try:
        info = controllers.find(controller)
    except KeyError:
        raise problem(
            named_in, controller, "no such controller",
            closest(controller, controllers.names()),
        ) from None  # fmt: skip
    except ImportError as error:
        raise problem(
            named_in, controller, str(error), "mend that package, or choose another one"
        ) from error
    except ValueError as error:
        raise problem(named_in, controller, str(error), "correct the parameters") from None
    specifications = {entry.name: entry for entry in info.parameters}
    for name, value in parameters.items():
        if name not in specifications:
            raise problem(
                f"{where}.{name}", value, f"{controller} has no such parameter",
                closest(name, specifications),
            )  # fmt: skip
        specification = specifications[name]
        if isinstance(value, tuple) != specification.is_list or value == ():
            raise problem(
                f"{where}.{name}", value, "wrong type",
                "give a list of numbers" if specification.is_list else "give one number",
            )  # fmt: skip
        if isinstance(value, str):
            known = specification.choices
            if not known:
                raise problem(f"{where}.{name}", value, "no valid number", "give one number")
            if value not in known:
                raise problem(f"{where}.{name}", value, "no such value", closest(value, known))
            continue
        for number in value if isinstance(value, tuple) else (value,):
            if not specification.minimum <= number <= specification.maximum:
                raise problem(
                    f"{where}.{name}", value, "out of range",
                    f"give {specification.minimum:g} to {specification.maximum:g}"
                    f" {specification.unit}".rstrip(),
                )  # fmt: skip


class AckFrequency(CheckedModel):
    """When a receiver acknowledges, in the terms of draft-ietf-quic-ack-frequency.

    The defaults are those of RFC 9000, section 13.2. The sender knows max_ack_delay_ms: its RTT
    samples and probe timeouts (RFC 9002, sections 5.3 and 6.2.1) allow for it.
    """

    core_type = "Flow"

    ack_eliciting_threshold: Annotated[
        int, Field(strict=True, ge=0, le=1000, description="a whole number of packets, 0 to 1000")
    ] = 1
    """This many ack-eliciting packets may go without an ACK; the next one brings it."""
    max_ack_delay_ms: PeriodMs = 25.0
    """After the first unacknowledged packet an ACK waits no longer than this."""
    reordering_threshold: Annotated[int, Field(strict=True, ge=0, le=1, description="0 or 1")] = 1
    """1: a gap or a packet out of order brings an ACK at once; 0: it does not."""


class ModuleHabits(CheckedModel):
    """Deviations of the QUIC module for ns-3 from RFC 9000 and RFC 9002.

    The defaults are the RFCs'. docs/papers/ebcc.md says where the module has each habit.
    """

    core_type = "Flow"

    window_update_bytes: Annotated[int, within(0, 2**53, "a whole number, 0 or more")] = 0
    """So many bytes in order bring a packet with MAX_DATA; 0: half of the window does."""
    acks_for_max_data: Annotated[int, within(0, 2**53, "a whole number, 0 or more")] = 0
    """The receiver sends MAX_DATA with one of this many ACK frames; 0: with none."""
    acknowledges_alone: StrictBool = False
    """Only packets without stream data count as acknowledgements, so both ends send such packets.

    The sender sends them by the flow's ack_frequency, too, each with MAX_DATA, which the receiver
    acknowledges. The receiver's packets with other frames have no ACK frame.
    """
    probe_timeout_ms: DelayMs = 0.0
    """Silence after which both ends send again, twice at most; 0: RFC 9002, section 6.2.

    The sender sends one packet of new data, whatever window and pacing say, and the receiver an ACK
    that does not count as one.
    """
    losses_by_count: StrictBool = False
    """Losses are detected by packet numbers alone, not by time (RFC 9002, section 6.1.2)."""
    segment_bytes: Annotated[int, within(0, 65_507, "a whole number of bytes, 0 to 65507")] = 0
    """Size of a full packet for the controller; 0: max_datagram_bytes."""
    uncounted_bytes: Annotated[int, within(0, 28, "a whole number of bytes, 0 to 28")] = 0
    """Bytes of each datagram that are not in flight for window and controller."""


class Connection(CheckedModel):
    """Common base of flows and short flows: controller, times, place and limits."""

    core_type = "Flow"

    name: Annotated[Name | None, Outside("messages and results")] = None
    """Default: flow-1, flow-2, … or short-flows-1, …; with a count above 1 a number is added."""
    controller: Annotated[str | None, Outside("resolve_controllers")] = None
    """Null: chosen by whoever runs the scenario."""
    parameters: Annotated[
        Parameters,
        Field(
            description="a number, a name of a value or a list of numbers, as the catalogue says"
        ),
        Outside("to_core, with the controller"),
    ] = {}
    """Parameters of the controller; what is left out keeps the catalogue's default.

    For tcp: attributes of ns-3's congestion control or of its TcpSocketBase, as numbers.
    """
    start_s: MomentS = 0.0
    """When the flow starts; of short flows, before it none arrives."""
    stop_s: MomentS | None = None
    """When the flow ends; of short flows, from it on none arrives. Those that have begun go on."""
    extra_delay_ms: DelayMs = 0.0
    """One way, at the sender's access link, in each direction."""
    first_hop: HopNumber = 1
    """Hop of a chain where the flow enters; 1 is the bottleneck, 2 the chain's first entry."""
    last_hop: HopNumber | None = None
    """Hop after which the flow leaves; null: the chain's end. Backward data goes last to first."""
    access: Annotated[Access | None, INLINE] = None
    """Null: the scenario's."""
    max_datagram_bytes: DatagramBytes | None = None
    """Null: the scenario's."""
    flow_control_window_bytes: PositiveInteger | None = None
    """Window of each connection and its stream alike; null: 16 times what the path holds.

    The path holds its bandwidth-delay product and its queues; the window has 64 MiB at least.
    """
    ecn: StrictBool = False
    pace_initial_window: StrictBool = False
    """Pace the initial window over half an RTT, too; false: it leaves at once (RFC 9002 7.7)."""
    offload_packets: Annotated[
        int, Field(strict=True, ge=1, le=64, description="a whole number of packets, 1 to 64")
    ] = 1
    """This many packets leave back to back, then wait together, as with GSO; 1: each is paced."""
    adaptive_reordering: StrictBool = True
    """Once a packet has arrived that was declared lost, losses are found by time alone, and later.

    As RFC 9002, section 6.1.1, allows, by the rule of RFC 8985, section 6.2; false: always a packet
    threshold of 3 and 9/8 of the RTT.
    """

    @field_validator("controller")
    @classmethod
    def _from_folder(cls, controller: str | None, info: ValidationInfo) -> str | None:
        folder = (info.context or {}).get("folder", Path())
        return controller and controllers.absolute(controller, folder)

    @model_validator(mode="after")
    def _parameters_fit(self) -> Self:
        if self.controller is not None:
            self._check_controller(self.controller)
        elif self.parameters:
            raise problem(
                "parameters", dict(self.parameters), "belong to no controller",
                "name the flow's controller",
            )  # fmt: skip
        return self

    def _check_controller(self, controller: str) -> None:
        check_parameters(controller, self.parameters, "controller", "parameters")


class Flow(Connection):
    """One connection, or `count` equal ones, each between its own sender and receiver."""

    count: Annotated[FlowCount, Outside("Scenario.single_flows")] = 1
    transport: Literal["quic", "tcp"] = "quic"
    """tcp is ns-3's own TCP and needs the engine ns3."""
    direction: Literal["forward", "backward"] = "forward"
    """Backward: its data goes over the reverse link, from the receivers' side to the senders'."""
    start_jitter_ms: DelayMs = 0.0
    """Largest delay that is drawn from the seed and added to the start."""
    application: Application = Bulk()
    send_buffer_bytes: PositiveInteger = 2**20
    """Unsent data that the transport takes; with more, controllers are told that it is blocked."""
    ack_frequency: Annotated[AckFrequency, INLINE] = AckFrequency()
    """ACK frequency of the flow's receiver."""
    burst_retransmission: StrictBool = False
    """Lost data is sent again when the loss is found, at once, whatever window and pacing say.

    With access.mtu_bytes all of it goes into one datagram of up to 65507 bytes, which IP fragments.
    """
    stale_rate_samples: StrictBool = False
    """Delivery-rate samples keep their interval while packets sent at one delivery count arrive.

    They come out too high then. As the QUIC module for ns-3 has it:
    docs/papers/ebcc.md.
    """
    module_habits: Annotated[ModuleHabits, INLINE] = ModuleHabits()
    """Habits of the QUIC module for ns-3."""

    @model_validator(mode="after")
    def _times_and_direction(self) -> Flow:
        if self.stop_s is not None and self.stop_s <= self.start_s + self.start_jitter_ms / 1e3:
            raise problem(
                "stop_s", self.stop_s,
                f"is not after the start, {self.start_s:g} s + {self.start_jitter_ms:g} ms jitter",
                "make stop_s later or leave it out",
            )  # fmt: skip
        if isinstance(self.application, Bursts) and self.application.burst_own_stream:
            for field, value in (("transport", "quic"), ("burst_retransmission", False)):
                if getattr(self, field) != value:
                    raise problem(
                        "application.burst_own_stream", True, f"does not go with {field}",
                        f"leave out burst_own_stream, or {field}",
                    )  # fmt: skip
        over_quic = RequestResponse | WebPage | Video | RealTimeMedia
        if self.transport == "tcp" and isinstance(self.application, over_quic):
            raise problem(
                "application.kind", self.application.kind, "is of quicgym's QUIC endpoints",
                "leave out transport, or take an application such as bulk",
            )  # fmt: skip
        if self.direction == "backward" and self.controller is None:
            raise problem(
                "direction", "backward", "rewards and chosen controllers are for forward flows",
                "name the flow's controller",
            )  # fmt: skip
        return self

    def _check_controller(self, controller: str) -> None:
        if self.transport == "tcp":
            for field in QUIC_FIELDS:
                if getattr(self, field) != type(self).model_fields[field].default:
                    raise problem(
                        field, self.model_dump()[field], "is of quicgym's QUIC endpoints",
                        f"leave out {field}, or transport",
                    )  # fmt: skip
            if controller not in TCP_CONTROLLERS:
                raise problem(
                    "controller", controller, "ns-3's TCP has no such controller",
                    closest(controller, TCP_CONTROLLERS),
                )  # fmt: skip
            return  # ns-3 knows its attributes; the engine checks them
        super()._check_controller(controller)
