"""What to simulate: a dumbbell or a wireless LAN and its flows; the unit is in every field's name.

The models mirror sim/scenario.hpp; conversion.py fills the C++ structures from them. They are
frozen: change a scenario with `scenario.model_copy(update=...)` or edit its YAML.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    ValidationInfo,
    field_validator,
    model_validator,
)

from quicgym import controllers
from quicgym.validation import problem
from quicgym.yaml_files import closest

EngineName = Literal["native", "ns3"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)
TCP_CONTROLLERS = ("newreno", "linux-reno", "cubic", "bbr", "vegas")

SHORTEST_S = 1e-6
"""Of a simulation, an episode and a flow's time in it."""
LINK_HEADER_BYTES = 30
"""UDP 8, IPv4 20 and PPP 2: what a datagram's size on the wire has on top."""

RateMbps = Annotated[
    float,
    Field(strict=True, ge=0.001, le=100_000, description="a number of Mbps, 0.001 to 100000"),
]
DelayMs = Annotated[
    float,
    Field(strict=True, ge=0, le=60_000, description="a number of milliseconds, 0 to 60000"),
]
MomentS = Annotated[
    float,
    Field(strict=True, ge=0, le=1e6, description="a number of seconds from the start, 0 or more"),
]
DurationS = Annotated[
    float,
    Field(
        strict=True,
        ge=SHORTEST_S,
        le=1e6,
        description="a number of seconds above 0, at most 1000000",
    ),
]
Probability = Annotated[
    float, Field(strict=True, ge=0, le=1, description="a probability from 0 to 1")
]
PositiveInteger = Annotated[
    int, Field(strict=True, ge=1, le=2**53, description="a whole number, 1 or more")
]
FlowCount = Annotated[
    int, Field(strict=True, ge=1, le=100_000, description="a whole number, 1 to 100000")
]
DatagramBytes = Annotated[
    int,
    Field(strict=True, ge=1200, le=1472, description="a whole number of bytes, 1200 to 1472"),
]
Name = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$",
        max_length=80,
        description="letters, digits and . _ + - without spaces",
    ),
]
QueuePackets = Annotated[
    int, Field(strict=True, ge=1, le=2**32 - 1, description="a whole number of packets, 1 or more")
]
ParameterNumber = Annotated[float, Field(strict=True, allow_inf_nan=True)]
Parameters = dict[str, ParameterNumber | tuple[ParameterNumber, ...]]


class ScenarioError(ValueError):
    """A scenario that cannot be simulated; the text says where, what and the remedy."""


class CheckedModel(BaseModel):
    """A part of a scenario: frozen, without unknown fields, and checked when it is changed, too."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Returns a copy with other values in some fields.

        Raises:
            pydantic.ValidationError: A field does not exist, or the values do not fit.
        """
        if not update:
            return super().model_copy(deep=deep)
        fields = {name: getattr(self, name) for name in self.model_fields_set}
        return type(self).model_validate({**fields, **update})


def check_parameters(controller: str, parameters: Parameters, named_in: str, where: str) -> None:
    """Raises a validation error for an unknown controller or a parameter that it does not take.

    Args:
        controller: A name of the catalogue, or a registered one.
        parameters: Its parameters.
        named_in: The field that names the controller.
        where: The field that holds the parameters.
    """
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
        for number in value if isinstance(value, tuple) else (value,):
            if not specification.minimum <= number <= specification.maximum:
                raise problem(
                    f"{where}.{name}", value, "out of range",
                    f"give {specification.minimum:g} to {specification.maximum:g}"
                    f" {specification.unit}".rstrip(),
                )  # fmt: skip


class Queue(CheckedModel):
    """The buffer in front of a link; the packet on the wire does not count."""

    limit: PositiveInteger = 100
    unit: Literal["packets", "bytes"] = "packets"
    discipline: Literal["drop-tail", "fifo", "codel", "fq-codel", "pie", "red"] = "drop-tail"
    """All but drop-tail are queue discs of ns-3 and need the engine ns3."""
    ecn_marking: StrictBool = False
    """The queue disc marks ECN-capable packets instead of dropping them."""

    @model_validator(mode="after")
    def _can_mark(self) -> Queue:
        if self.ecn_marking and self.discipline in ("drop-tail", "fifo"):
            raise problem(
                "ecn_marking", True, f"{self.discipline} cannot mark",
                "choose the discipline codel, fq-codel, pie or red",
            )  # fmt: skip
        return self


class BernoulliLoss(CheckedModel):
    """Each packet is lost on the wire, after the queue, with the same probability."""

    kind: Literal["bernoulli"] = "bernoulli"
    probability: Probability


class GilbertElliottLoss(CheckedModel):
    """Loss in bursts: a good and a bad state, each with its own loss; all per packet."""

    kind: Literal["gilbert-elliott"] = "gilbert-elliott"
    good_to_bad: Probability
    bad_to_good: Probability
    loss_in_good: Probability = 0.0
    loss_in_bad: Probability = 1.0


Loss = Annotated[
    BernoulliLoss | GilbertElliottLoss,
    Field(discriminator="kind", description="a mapping with the kind bernoulli or gilbert-elliott"),
]


class RateStep(CheckedModel):
    """From `at_s` on, transmissions start at this rate."""

    at_s: DurationS
    rate_mbps: RateMbps


class Link(CheckedModel):
    """One direction of the bottleneck."""

    rate_mbps: RateMbps | None = None
    delay_ms: DelayMs
    """One way."""
    queue: Queue = Queue()
    loss: Loss | None = None
    rate_schedule: tuple[RateStep, ...] = ()
    trace: Path | None = None
    """A mahimahi trace: one time in ms per line, each lets one 1500-byte packet go; it repeats.

    Replaces the rate. A relative path starts at the YAML's folder. Engine native only.
    """

    @field_validator("trace")
    @classmethod
    def _readable(cls, trace: Path | None, info: ValidationInfo) -> Path | None:
        if trace is None:
            return None
        folder = (info.context or {}).get("folder", Path())
        trace = (folder / trace).absolute()
        read_mahimahi(trace)
        return trace

    @model_validator(mode="after")
    def _one_rate(self) -> Link:
        if self.trace is None and self.rate_mbps is None:
            raise problem("rate_mbps", None, "is missing", "give a number of Mbps, or a trace")
        if self.trace is not None and (self.rate_mbps is not None or self.rate_schedule):
            field = "rate_schedule" if self.rate_schedule else "rate_mbps"
            raise problem(
                field, getattr(self, field), "the trace sets the rate",
                f"leave out trace or {field}",
            )  # fmt: skip
        for index, (earlier, later) in enumerate(pairwise(self.rate_schedule)):
            if later.at_s <= earlier.at_s:
                raise problem(
                    f"rate_schedule.{index + 1}.at_s", later.at_s,
                    f"is not after the step before it, {earlier.at_s:g} s",
                    "list the steps in ascending order of time",
                )  # fmt: skip
        return self


class WifiQueue(CheckedModel):
    """The queue of a Wi-Fi device; it counts a frame until that is acknowledged."""

    limit_packets: QueuePackets
    max_delay_ms: Annotated[
        float,
        Field(strict=True, gt=0, le=60_000, description="milliseconds above 0, at most 60000"),
    ]
    """What waits longer is dropped."""


class WiredLink(CheckedModel):
    """The link from the senders' side to the access point, the same in both directions."""

    rate_mbps: RateMbps
    delay_ms: DelayMs
    """One way."""
    queue_packets: QueuePackets
    """Drop-tail; the packet on the wire does not count."""


class Wifi(CheckedModel):
    """A wireless LAN in place of the bottleneck: an access point and one station per flow.

    The stations are the receivers. Engine ns3 only. Nothing has a default: a wireless LAN's rate is
    what all of these make of it.
    """

    standard: Literal["802.11n"]
    """With one spatial stream."""
    band_ghz: Literal[5]
    channel_width_mhz: Literal[20, 40]
    mcs: Annotated[
        int, Field(strict=True, ge=0, le=7, description="a whole number, 0 to 7, for HtMcs0 to 7")
    ]
    """Modulation and coding scheme of every data frame."""
    short_guard_interval: StrictBool
    max_ampdu_bytes: Annotated[
        int, Field(strict=True, ge=0, le=65_535, description="a whole number, 0 to 65535")
    ]
    """Of the frames that go out as one aggregate; 0: no aggregation."""
    distance_m: Annotated[
        float, Field(strict=True, gt=0, le=1e6, description="metres above 0, at most 1000000")
    ]
    """From the access point to every station."""
    path_loss_exponent: Annotated[
        float, Field(strict=True, gt=0, le=10, description="a number above 0, at most 10")
    ]
    """Of the log-distance path loss, 46.68 dB at 1 m."""
    queue: WifiQueue
    """Of the access point's device, and of each station's."""
    wired: WiredLink


class Access(CheckedModel):
    """The links between a host and the bottleneck: the same at both ends, in both directions.

    With `wifi` the sender's only.
    """

    rate_mbps: RateMbps
    delay_ms: DelayMs
    """Each end, one way."""


class Bulk(CheckedModel):
    """Always has data to send."""

    kind: Literal["bulk"] = "bulk"


class Transfer(CheckedModel):
    """Sends a file and stops."""

    kind: Literal["transfer"] = "transfer"
    size_bytes: PositiveInteger


class ConstantRate(CheckedModel):
    """Writes stream bytes at a constant rate."""

    kind: Literal["constant-rate"] = "constant-rate"
    rate_mbps: RateMbps


class Bursts(CheckedModel):
    """A constant rate, with bursts on top of it."""

    kind: Literal["bursts"] = "bursts"
    rate_mbps: RateMbps
    burst_rate_mbps: RateMbps
    """Added to `rate_mbps` during a burst."""
    burst_duration_s: DurationS
    burst_period_s: DurationS
    """From the start of a burst to the start of the next."""
    burst_count: PositiveInteger

    @model_validator(mode="after")
    def _bursts_do_not_overlap(self) -> Bursts:
        if self.burst_duration_s > self.burst_period_s:
            raise problem(
                "burst_duration_s", self.burst_duration_s,
                f"bursts overlap: one starts every {self.burst_period_s:g} s",
                "make burst_duration_s at most burst_period_s",
            )  # fmt: skip
        return self


class OnOff(CheckedModel):
    """A constant rate that is switched on and off."""

    kind: Literal["on-off"] = "on-off"
    rate_mbps: RateMbps
    on_s: DurationS
    off_s: DurationS


Application = Annotated[
    Bulk | Transfer | ConstantRate | Bursts | OnOff,
    Field(
        discriminator="kind",
        description="a mapping with the kind bulk, transfer, constant-rate, bursts or on-off",
    ),
]


class Flow(CheckedModel):
    """One connection, or `count` equal ones, from a sender to a receiver of its own."""

    name: Name | None = None
    """Default: flow-1, flow-2, …; with a count above 1 a number is added."""
    count: FlowCount = 1
    controller: str | None = None
    """Null: chosen by whoever runs the scenario."""
    parameters: Parameters = Field(
        default={}, description="a number, or a list of numbers where the catalogue says so"
    )
    """Of the controller; what is left out keeps the catalogue's default.

    For tcp: attributes of ns-3's congestion control or of its TcpSocketBase, as numbers.
    """
    transport: Literal["quic", "tcp"] = "quic"
    """tcp is ns-3's own TCP and needs the engine ns3."""
    start_s: MomentS = 0.0
    start_jitter_ms: DelayMs = 0.0
    """Up to this much, drawn from the seed, is added to the start."""
    stop_s: MomentS | None = None
    extra_delay_ms: DelayMs = 0.0
    """One way, at the sender's access link, in each direction."""
    application: Application = Bulk()
    access: Access | None = None
    """Null: the scenario's."""
    max_datagram_bytes: DatagramBytes | None = None
    """Null: the scenario's."""
    flow_control_window_bytes: PositiveInteger = 64 * 2**20
    """Of the connection and the stream alike; the default is out of the way."""
    send_buffer_bytes: PositiveInteger = 2**20
    """Unsent data that the transport takes; with more, controllers are told that it is blocked."""
    ecn: StrictBool = False

    @model_validator(mode="after")
    def _times_and_controller(self) -> Flow:
        if self.stop_s is not None and self.stop_s <= self.start_s + self.start_jitter_ms / 1e3:
            raise problem(
                "stop_s", self.stop_s,
                f"is not after the start, {self.start_s:g} s + {self.start_jitter_ms:g} ms jitter",
                "make stop_s later or leave it out",
            )  # fmt: skip
        if self.controller is not None:
            self._check_controller(self.controller)
        elif self.parameters:
            raise problem(
                "parameters", dict(self.parameters), "belong to no controller",
                "name the flow's controller",
            )  # fmt: skip
        return self

    def _check_controller(self, controller: str) -> None:
        if self.transport == "tcp":
            if controller not in TCP_CONTROLLERS:
                raise problem(
                    "controller", controller, "ns-3's TCP has no such controller",
                    closest(controller, TCP_CONTROLLERS),
                )  # fmt: skip
            return  # ns-3 knows its attributes; the engine checks them
        check_parameters(controller, self.parameters, "controller", "parameters")


class Scenario(CheckedModel):
    """A dumbbell: senders, their access links, one bottleneck, access links, receivers.

    Or a wireless LAN: senders, their access links, a wired link, an access point, stations.

    Times are counted from the start of the simulation.
    """

    name: Name
    description: str = ""
    source: str = ""
    """The paper's experiment that it reproduces."""
    duration_s: DurationS
    bottleneck: Link | None = None
    """Null: there is `wifi`."""
    reverse: Link | None = None
    """From the receivers to the senders. Null: as the bottleneck, drop-tail and without loss."""
    wifi: Wifi | None = None
    """In place of the bottleneck."""
    access: Access
    flows: tuple[Flow, ...] = Field(min_length=1, description="a list of at least one flow")
    controller_parameters: dict[str, Parameters] = Field(
        default={},
        description="a mapping of controllers, each with a mapping of parameters: a number, or a "
        "list of numbers where the catalogue says so",
    )
    """By controller's name, for the QUIC flows that name no controller and are given this one."""
    max_datagram_bytes: DatagramBytes = 1200
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
            [read_mahimahi(link.trace) for link in self.links.values() if link.trace is not None],
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

    def check_engine(self, engine: EngineName) -> None:
        """Raises ScenarioError when the engine lacks something that the scenario has."""
        lacking = []
        if engine == "native":
            if self.wifi is not None:
                lacking.append("wifi")
            for field, link in self.links.items():
                if link.queue.discipline != "drop-tail":
                    lacking.append(f"{field}.queue.discipline = {link.queue.discipline}")
            for index, flow in enumerate(self.flows):
                if flow.transport == "tcp":
                    lacking.append(f"flows.{index}.transport = tcp")
        else:
            lacking += [f"{field}.trace" for field, link in self.links.items() if link.trace]
        if lacking:
            other = "ns3" if engine == "native" else "native"
            raise ScenarioError(
                f"{self.name}: the engine {engine} cannot do {', '.join(lacking)}; "
                f"use the engine {other}"
            )

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
        for controller, parameters in self.controller_parameters.items():
            field = "controller_parameters"
            check_parameters(controller, parameters, field, f"{field}.{controller}")
        for name, count in Counter(name for name, _ in self.single_flows()).items():
            if count > 1:
                raise problem("flows", name, "two flows have this name", "give each its own name")
        largest = max(flow.max_datagram_bytes or self.max_datagram_bytes for flow in self.flows)
        packet = largest + LINK_HEADER_BYTES
        for field, link in (("bottleneck", self.bottleneck), ("reverse", self.reverse)):
            if link and link.queue.unit == "bytes" and link.queue.limit < packet:
                raise problem(
                    f"{field}.queue.limit", link.queue.limit,
                    f"no packet fits: one takes {packet} bytes", f"give at least {packet}",
                )  # fmt: skip
        return self

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


def read_mahimahi(path: Path) -> list[int]:
    """Reads a mahimahi trace: the times in ms at which one packet may go, in ascending order.

    A time may repeat; its packets then leave in the same millisecond. Blank lines and lines that
    begin with # are skipped, and any line ends will do. Raises a validation error that names the
    file where it is missing, empty, not of numbers or not ascending.
    """
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not a text file"
        raise problem(
            "", str(path), f"cannot read the trace: {reason}",
            "give the path of a mahimahi trace, absolute or from the YAML's folder",
        ) from None  # fmt: skip
    times: list[int] = []
    latest = 0
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if not text.isdecimal() or (time := int(text)) >= 2**32:
            raise problem(
                "", f"{path}:{number}", f"{line!r} is not a time",
                "give whole milliseconds per line",
            )  # fmt: skip
        if time < latest:
            raise problem(
                "", f"{path}:{number}", f"{time} ms comes after {latest} ms",
                "sort the trace in ascending order",
            )  # fmt: skip
        times.append(time)
        latest = time
    if not times or times[-1] == 0:
        raise problem(
            "", str(path), "the trace is empty",
            "give at least one time above 0 ms; the last one is the trace's length",
        )  # fmt: skip
    return times
