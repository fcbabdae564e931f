from collections.abc import Mapping, Sequence
import enum
from typing import Annotated, overload

import numpy
from numpy.typing import NDArray
from typing_extensions import CapsuleType


commit: str

interface: str = ...

class QueueUnit(enum.Enum):
    packets = 0

    bytes = 1

class LossKind(enum.Enum):
    none = 0

    bernoulli = 1

    gilbert_elliott = 2

class JitterKind(enum.Enum):
    none = 0

    uniform = 1

    normal = 2

class ApplicationKind(enum.Enum):
    bulk = 0

    transfer = 1

    constant_rate = 2

    bursts = 3

    on_off = 4

    request_response = 5

    web_page = 6

    video = 7

class Transport(enum.Enum):
    quic = 0

    tcp = 1

class DataDirection(enum.Enum):
    forward = 0

    backward = 1

class LossModel:
    def __init__(self) -> None: ...

    @property
    def kind(self) -> LossKind: ...

    @kind.setter
    def kind(self, arg: LossKind, /) -> None: ...

    @property
    def probability(self) -> float: ...

    @probability.setter
    def probability(self, arg: float, /) -> None: ...

    @property
    def good_to_bad(self) -> float: ...

    @good_to_bad.setter
    def good_to_bad(self, arg: float, /) -> None: ...

    @property
    def bad_to_good(self) -> float: ...

    @bad_to_good.setter
    def bad_to_good(self, arg: float, /) -> None: ...

    @property
    def loss_in_good(self) -> float: ...

    @loss_in_good.setter
    def loss_in_good(self, arg: float, /) -> None: ...

    @property
    def loss_in_bad(self) -> float: ...

    @loss_in_bad.setter
    def loss_in_bad(self, arg: float, /) -> None: ...

class RateStep:
    def __init__(self) -> None: ...

    @property
    def at(self) -> int: ...

    @at.setter
    def at(self, arg: int, /) -> None: ...

    @property
    def rate_bits_per_second(self) -> int: ...

    @rate_bits_per_second.setter
    def rate_bits_per_second(self, arg: int, /) -> None: ...

class DelayStep:
    def __init__(self) -> None: ...

    @property
    def at(self) -> int: ...

    @at.setter
    def at(self, arg: int, /) -> None: ...

    @property
    def delay(self) -> int: ...

    @delay.setter
    def delay(self, arg: int, /) -> None: ...

class Jitter:
    def __init__(self) -> None: ...

    @property
    def kind(self) -> JitterKind: ...

    @kind.setter
    def kind(self, arg: JitterKind, /) -> None: ...

    @property
    def max(self) -> int: ...

    @max.setter
    def max(self, arg: int, /) -> None: ...

    @property
    def mean(self) -> int: ...

    @mean.setter
    def mean(self, arg: int, /) -> None: ...

    @property
    def deviation(self) -> int: ...

    @deviation.setter
    def deviation(self, arg: int, /) -> None: ...

class Policer:
    def __init__(self) -> None: ...

    @property
    def rate_bits_per_second(self) -> int: ...

    @rate_bits_per_second.setter
    def rate_bits_per_second(self, arg: int, /) -> None: ...

    @property
    def burst_bytes(self) -> int: ...

    @burst_bytes.setter
    def burst_bytes(self, arg: int, /) -> None: ...

class Link:
    def __init__(self) -> None: ...

    @property
    def rate_bits_per_second(self) -> int: ...

    @rate_bits_per_second.setter
    def rate_bits_per_second(self, arg: int, /) -> None: ...

    @property
    def delay(self) -> int: ...

    @delay.setter
    def delay(self, arg: int, /) -> None: ...

    @property
    def policer(self) -> Policer | None: ...

    @policer.setter
    def policer(self, arg: Policer | None, /) -> None: ...

    @property
    def queue_limit(self) -> int: ...

    @queue_limit.setter
    def queue_limit(self, arg: int, /) -> None: ...

    @property
    def queue_unit(self) -> QueueUnit: ...

    @queue_unit.setter
    def queue_unit(self, arg: QueueUnit, /) -> None: ...

    @property
    def queue_discipline(self) -> str: ...

    @queue_discipline.setter
    def queue_discipline(self, arg: str, /) -> None: ...

    @property
    def ecn_marking(self) -> bool: ...

    @ecn_marking.setter
    def ecn_marking(self, arg: bool, /) -> None: ...

    @property
    def ce_threshold(self) -> int: ...

    @ce_threshold.setter
    def ce_threshold(self, arg: int, /) -> None: ...

    @property
    def loss(self) -> LossModel: ...

    @loss.setter
    def loss(self, arg: LossModel, /) -> None: ...

    @property
    def rate_schedule(self) -> list[RateStep]: ...

    @rate_schedule.setter
    def rate_schedule(self, arg: Sequence[RateStep], /) -> None: ...

    @property
    def opens_every(self) -> int: ...

    @opens_every.setter
    def opens_every(self, arg: int, /) -> None: ...

    @property
    def delivery_opportunities_ms(self) -> list[int]: ...

    @delivery_opportunities_ms.setter
    def delivery_opportunities_ms(self, arg: Sequence[int], /) -> None: ...

    @property
    def delay_schedule(self) -> list[DelayStep]: ...

    @delay_schedule.setter
    def delay_schedule(self, arg: Sequence[DelayStep], /) -> None: ...

    @property
    def jitter(self) -> Jitter: ...

    @jitter.setter
    def jitter(self, arg: Jitter, /) -> None: ...

    @property
    def reordering(self) -> bool: ...

    @reordering.setter
    def reordering(self, arg: bool, /) -> None: ...

class SizePoint:
    def __init__(self) -> None: ...

    @property
    def size_bytes(self) -> int: ...

    @size_bytes.setter
    def size_bytes(self, arg: int, /) -> None: ...

    @property
    def cumulative_probability(self) -> float: ...

    @cumulative_probability.setter
    def cumulative_probability(self, arg: float, /) -> None: ...

class PageObject:
    def __init__(self) -> None: ...

    @property
    def size_bytes(self) -> int: ...

    @size_bytes.setter
    def size_bytes(self, arg: int, /) -> None: ...

    @property
    def after(self) -> list[int]: ...

    @after.setter
    def after(self, arg: Sequence[int], /) -> None: ...

class Application:
    def __init__(self) -> None: ...

    @property
    def kind(self) -> ApplicationKind: ...

    @kind.setter
    def kind(self, arg: ApplicationKind, /) -> None: ...

    @property
    def size_bytes(self) -> int: ...

    @size_bytes.setter
    def size_bytes(self, arg: int, /) -> None: ...

    @property
    def rate_bits_per_second(self) -> int: ...

    @rate_bits_per_second.setter
    def rate_bits_per_second(self, arg: int, /) -> None: ...

    @property
    def burst_rate_bits_per_second(self) -> int: ...

    @burst_rate_bits_per_second.setter
    def burst_rate_bits_per_second(self, arg: int, /) -> None: ...

    @property
    def burst_duration(self) -> int: ...

    @burst_duration.setter
    def burst_duration(self, arg: int, /) -> None: ...

    @property
    def burst_period(self) -> int: ...

    @burst_period.setter
    def burst_period(self, arg: int, /) -> None: ...

    @property
    def burst_count(self) -> int: ...

    @burst_count.setter
    def burst_count(self, arg: int, /) -> None: ...

    @property
    def on_duration(self) -> int: ...

    @on_duration.setter
    def on_duration(self, arg: int, /) -> None: ...

    @property
    def off_duration(self) -> int: ...

    @off_duration.setter
    def off_duration(self, arg: int, /) -> None: ...

    @property
    def request_bytes(self) -> int: ...

    @request_bytes.setter
    def request_bytes(self, arg: int, /) -> None: ...

    @property
    def response_sizes(self) -> list[SizePoint]: ...

    @response_sizes.setter
    def response_sizes(self, arg: Sequence[SizePoint], /) -> None: ...

    @property
    def think_time(self) -> int: ...

    @think_time.setter
    def think_time(self, arg: int, /) -> None: ...

    @property
    def objects(self) -> list[PageObject]: ...

    @objects.setter
    def objects(self, arg: Sequence[PageObject], /) -> None: ...

    @property
    def rates_bits_per_second(self) -> list[int]: ...

    @rates_bits_per_second.setter
    def rates_bits_per_second(self, arg: Sequence[int], /) -> None: ...

    @property
    def chunk_duration(self) -> int: ...

    @chunk_duration.setter
    def chunk_duration(self, arg: int, /) -> None: ...

    @property
    def reservoir(self) -> int: ...

    @reservoir.setter
    def reservoir(self, arg: int, /) -> None: ...

    @property
    def cushion(self) -> int: ...

    @cushion.setter
    def cushion(self, arg: int, /) -> None: ...

    @property
    def max_buffer(self) -> int: ...

    @max_buffer.setter
    def max_buffer(self, arg: int, /) -> None: ...

class Flow:
    def __init__(self) -> None: ...

    @property
    def name(self) -> str: ...

    @name.setter
    def name(self, arg: str, /) -> None: ...

    @property
    def transport(self) -> Transport: ...

    @transport.setter
    def transport(self, arg: Transport, /) -> None: ...

    @property
    def direction(self) -> DataDirection: ...

    @direction.setter
    def direction(self, arg: DataDirection, /) -> None: ...

    @property
    def controller(self) -> str: ...

    @controller.setter
    def controller(self, arg: str, /) -> None: ...

    @property
    def parameters(self) -> dict[str, list[float]]: ...

    @parameters.setter
    def parameters(self, arg: Mapping[str, Sequence[float]], /) -> None: ...

    @property
    def scaled(self) -> bool: ...

    @scaled.setter
    def scaled(self, arg: bool, /) -> None: ...

    @property
    def safe_envelope(self) -> bool: ...

    @safe_envelope.setter
    def safe_envelope(self, arg: bool, /) -> None: ...

    @property
    def application(self) -> Application: ...

    @application.setter
    def application(self, arg: Application, /) -> None: ...

    @property
    def start(self) -> int: ...

    @start.setter
    def start(self, arg: int, /) -> None: ...

    @property
    def start_jitter(self) -> int: ...

    @start_jitter.setter
    def start_jitter(self, arg: int, /) -> None: ...

    @property
    def stop(self) -> int: ...

    @stop.setter
    def stop(self, arg: int, /) -> None: ...

    @property
    def access_rate_bits_per_second(self) -> int: ...

    @access_rate_bits_per_second.setter
    def access_rate_bits_per_second(self, arg: int, /) -> None: ...

    @property
    def access_delay(self) -> int: ...

    @access_delay.setter
    def access_delay(self, arg: int, /) -> None: ...

    @property
    def extra_delay(self) -> int: ...

    @extra_delay.setter
    def extra_delay(self, arg: int, /) -> None: ...

    @property
    def mtu_bytes(self) -> int: ...

    @mtu_bytes.setter
    def mtu_bytes(self, arg: int, /) -> None: ...

    @property
    def first_hop(self) -> int: ...

    @first_hop.setter
    def first_hop(self, arg: int, /) -> None: ...

    @property
    def last_hop(self) -> int: ...

    @last_hop.setter
    def last_hop(self, arg: int, /) -> None: ...

    @property
    def max_datagram_bytes(self) -> int: ...

    @max_datagram_bytes.setter
    def max_datagram_bytes(self, arg: int, /) -> None: ...

    @property
    def flow_control_window_bytes(self) -> int: ...

    @flow_control_window_bytes.setter
    def flow_control_window_bytes(self, arg: int, /) -> None: ...

    @property
    def send_buffer_bytes(self) -> int: ...

    @send_buffer_bytes.setter
    def send_buffer_bytes(self, arg: int, /) -> None: ...

    @property
    def ecn(self) -> bool: ...

    @ecn.setter
    def ecn(self, arg: bool, /) -> None: ...

    @property
    def ack_eliciting_threshold(self) -> int: ...

    @ack_eliciting_threshold.setter
    def ack_eliciting_threshold(self, arg: int, /) -> None: ...

    @property
    def max_ack_delay(self) -> int: ...

    @max_ack_delay.setter
    def max_ack_delay(self, arg: int, /) -> None: ...

    @property
    def reordering_threshold(self) -> int: ...

    @reordering_threshold.setter
    def reordering_threshold(self, arg: int, /) -> None: ...

    @property
    def burst_retransmission(self) -> bool: ...

    @burst_retransmission.setter
    def burst_retransmission(self, arg: bool, /) -> None: ...

    @property
    def stale_rate_samples(self) -> bool: ...

    @stale_rate_samples.setter
    def stale_rate_samples(self, arg: bool, /) -> None: ...

    def set_python_controller(self, info: object) -> None:
        """
        Takes the controller from ControllerInfo.python_class, not from the catalogue.
        """

    def set_plugin_controller(self, capsule: CapsuleType) -> None:
        """
        Takes the controller from ControllerInfo.plugin, not from the catalogue.
        """

class ShortFlows:
    def __init__(self) -> None: ...

    @property
    def flow(self) -> Flow: ...

    @flow.setter
    def flow(self, arg: Flow, /) -> None: ...

    @property
    def arrivals_per_second(self) -> float: ...

    @arrivals_per_second.setter
    def arrivals_per_second(self, arg: float, /) -> None: ...

    @property
    def sizes(self) -> list[SizePoint]: ...

    @sizes.setter
    def sizes(self, arg: Sequence[SizePoint], /) -> None: ...

class Wifi:
    def __init__(self) -> None: ...

    @property
    def channel_width_mhz(self) -> int: ...

    @channel_width_mhz.setter
    def channel_width_mhz(self, arg: int, /) -> None: ...

    @property
    def mcs(self) -> int: ...

    @mcs.setter
    def mcs(self, arg: int, /) -> None: ...

    @property
    def short_guard_interval(self) -> bool: ...

    @short_guard_interval.setter
    def short_guard_interval(self, arg: bool, /) -> None: ...

    @property
    def max_ampdu_bytes(self) -> int: ...

    @max_ampdu_bytes.setter
    def max_ampdu_bytes(self, arg: int, /) -> None: ...

    @property
    def distance_metres(self) -> float: ...

    @distance_metres.setter
    def distance_metres(self, arg: float, /) -> None: ...

    @property
    def path_loss_exponent(self) -> float: ...

    @path_loss_exponent.setter
    def path_loss_exponent(self, arg: float, /) -> None: ...

    @property
    def queue_packets(self) -> int: ...

    @queue_packets.setter
    def queue_packets(self, arg: int, /) -> None: ...

    @property
    def queue_max_delay(self) -> int: ...

    @queue_max_delay.setter
    def queue_max_delay(self, arg: int, /) -> None: ...

    @property
    def wired(self) -> Link: ...

    @wired.setter
    def wired(self, arg: Link, /) -> None: ...

class Scenario:
    def __init__(self) -> None: ...

    @property
    def bottleneck(self) -> Link: ...

    @bottleneck.setter
    def bottleneck(self, arg: Link, /) -> None: ...

    @property
    def reverse(self) -> Link: ...

    @reverse.setter
    def reverse(self, arg: Link, /) -> None: ...

    @property
    def chain(self) -> list[Link]: ...

    @chain.setter
    def chain(self, arg: Sequence[Link], /) -> None: ...

    @property
    def reverse_chain(self) -> list[Link]: ...

    @reverse_chain.setter
    def reverse_chain(self, arg: Sequence[Link], /) -> None: ...

    @property
    def wifi(self) -> Wifi | None: ...

    @wifi.setter
    def wifi(self, arg: Wifi | None, /) -> None: ...

    @property
    def flows(self) -> list[Flow]: ...

    @flows.setter
    def flows(self, arg: Sequence[Flow], /) -> None: ...

    @property
    def short_flows(self) -> list[ShortFlows]: ...

    @short_flows.setter
    def short_flows(self, arg: Sequence[ShortFlows], /) -> None: ...

    @property
    def trace_interval(self) -> int: ...

    @trace_interval.setter
    def trace_interval(self, arg: int, /) -> None: ...

    @property
    def record_deliveries(self) -> bool: ...

    @record_deliveries.setter
    def record_deliveries(self, arg: bool, /) -> None: ...

    @property
    def pcap_prefix(self) -> str: ...

    @pcap_prefix.setter
    def pcap_prefix(self, arg: str, /) -> None: ...

    @property
    def flow_monitor_path(self) -> str: ...

    @flow_monitor_path.setter
    def flow_monitor_path(self, arg: str, /) -> None: ...

class Engine(enum.Enum):
    native = 0

    ns3 = 1

class Capability:
    @property
    def name(self) -> str: ...

    @property
    def text(self) -> str: ...

    @property
    def native(self) -> bool: ...

    @property
    def ns3(self) -> bool: ...

def capabilities() -> list[Capability]:
    """What not every engine can do."""

def lacking(scenario: Scenario, engine: Engine) -> list[str]:
    """
    The fields of a scenario that the engine cannot do, as `bottleneck.queue.discipline = codel`.
    """

class RandomPurpose(enum.Enum):
    """What a stream of random numbers is for."""

    flow_start = 1

    controller = 2

    forward_loss = 3

    reverse_loss = 4

    forward_jitter = 5

    reverse_jitter = 6

class Random:
    """A stream of random numbers: xoshiro256++ spawned from a seed."""

    def __init__(self, seed: int, purpose: RandomPurpose = RandomPurpose.controller, index: int = 0) -> None: ...

    def next(self) -> int:
        """The next 64 random bits."""

    def uniform(self) -> float:
        """Uniform in [0, 1)."""

    def below(self, bound: int) -> int:
        """Uniform in 0 to bound - 1."""

class RateSample:
    """A delivery-rate sample: bytes per second, interval in ns."""

    def __init__(self) -> None: ...

    @property
    def delivery_rate(self) -> float:
        """Bytes per second; 0: there is no valid sample."""

    @delivery_rate.setter
    def delivery_rate(self, arg: float, /) -> None: ...

    @property
    def interval(self) -> int:
        """
        Over which the rate is measured, the longer of send and ACK interval, in ns.
        """

    @interval.setter
    def interval(self, arg: int, /) -> None: ...

    @property
    def app_limited(self) -> bool:
        """Whether the application, not the network, set the rate."""

    @app_limited.setter
    def app_limited(self, arg: bool, /) -> None: ...

    @property
    def delivered_bytes(self) -> int:
        """Acknowledged since the packet was sent, in bytes."""

    @delivered_bytes.setter
    def delivered_bytes(self, arg: int, /) -> None: ...

    @property
    def lost_bytes(self) -> int:
        """Declared lost since the packet was sent, in bytes."""

    @lost_bytes.setter
    def lost_bytes(self, arg: int, /) -> None: ...

    @property
    def in_flight_at_send_bytes(self) -> int:
        """In flight when the packet was sent, itself included, in bytes."""

    @in_flight_at_send_bytes.setter
    def in_flight_at_send_bytes(self, arg: int, /) -> None: ...

class AckEvent:
    """What is known after one ACK frame: times in ns, sizes in bytes."""

    def __init__(self) -> None: ...

    @property
    def now(self) -> int:
        """The time, in ns from the start of the simulation."""

    @now.setter
    def now(self, arg: int, /) -> None: ...

    @property
    def rtt(self) -> int:
        """
        The latest RTT sample less the peer's ACK delay (RFC 9002 5.3), in ns; 0: this ACK has none.
        """

    @rtt.setter
    def rtt(self, arg: int, /) -> None: ...

    @property
    def smoothed_rtt(self) -> int:
        """The smoothed RTT (RFC 9002 5.3), in ns."""

    @smoothed_rtt.setter
    def smoothed_rtt(self, arg: int, /) -> None: ...

    @property
    def min_rtt(self) -> int:
        """
        The lowest RTT since the start or the last persistent congestion (RFC 9002 5.2), in ns.
        """

    @min_rtt.setter
    def min_rtt(self, arg: int, /) -> None: ...

    @property
    def largest_acked_sent_time(self) -> int:
        """When the largest newly acknowledged packet was sent, in ns."""

    @largest_acked_sent_time.setter
    def largest_acked_sent_time(self, arg: int, /) -> None: ...

    @property
    def delivered_bytes(self) -> int:
        """Acknowledged on the connection so far, in bytes."""

    @delivered_bytes.setter
    def delivered_bytes(self, arg: int, /) -> None: ...

    @property
    def newly_acked_bytes(self) -> int:
        """Acknowledged by this ACK, in bytes."""

    @newly_acked_bytes.setter
    def newly_acked_bytes(self, arg: int, /) -> None: ...

    @property
    def newly_acked_packets(self) -> int:
        """Acknowledged by this ACK, in packets."""

    @newly_acked_packets.setter
    def newly_acked_packets(self, arg: int, /) -> None: ...

    @property
    def newly_lost_bytes(self) -> int:
        """
        Declared lost by this ACK, in bytes; what the loss timer finds is in LossEvent alone.
        """

    @newly_lost_bytes.setter
    def newly_lost_bytes(self, arg: int, /) -> None: ...

    @property
    def prior_in_flight_bytes(self) -> int:
        """In flight before this ACK, in bytes."""

    @prior_in_flight_bytes.setter
    def prior_in_flight_bytes(self, arg: int, /) -> None: ...

    @property
    def in_flight_bytes(self) -> int:
        """In flight after this ACK, in bytes."""

    @in_flight_bytes.setter
    def in_flight_bytes(self, arg: int, /) -> None: ...

    @property
    def blocked_events(self) -> int:
        """
        How often so far the send buffer was full or DATA_BLOCKED was sent (RFC 9000 4.1).
        """

    @blocked_events.setter
    def blocked_events(self, arg: int, /) -> None: ...

    @property
    def unsent_bytes(self) -> int:
        """Written by the application and not sent yet, in bytes."""

    @unsent_bytes.setter
    def unsent_bytes(self, arg: int, /) -> None: ...

    @property
    def sample(self) -> RateSample:
        """
        The delivery-rate sample (draft-cheng-iccrg-delivery-rate-estimation-02) of this ACK, a RateSample.
        """

    @sample.setter
    def sample(self, arg: RateSample, /) -> None: ...

    @property
    def app_limited(self) -> bool:
        """
        Whether the sender, not the window, has limited what is acknowledged (RFC 9002 7.8).
        """

    @app_limited.setter
    def app_limited(self, arg: bool, /) -> None: ...

    @property
    def round_start(self) -> bool:
        """Whether this ACK begins a new round trip, counted by packets."""

    @round_start.setter
    def round_start(self, arg: bool, /) -> None: ...

    @property
    def random(self) -> Random:
        """
        The random numbers of this flow, from the seed of the simulation, a Random.
        """

    @random.setter
    def random(self, value: Random | None) -> None: ...

class LossEvent:
    """Packets declared lost: times in ns, sizes in bytes."""

    def __init__(self) -> None: ...

    @property
    def now(self) -> int:
        """The time, in ns from the start of the simulation."""

    @now.setter
    def now(self, arg: int, /) -> None: ...

    @property
    def largest_lost_sent_time(self) -> int:
        """When the largest lost packet was sent, in ns."""

    @largest_lost_sent_time.setter
    def largest_lost_sent_time(self, arg: int, /) -> None: ...

    @property
    def lost_bytes(self) -> int:
        """Declared lost, in bytes."""

    @lost_bytes.setter
    def lost_bytes(self, arg: int, /) -> None: ...

    @property
    def lost_packets(self) -> int:
        """Declared lost, in packets."""

    @lost_packets.setter
    def lost_packets(self, arg: int, /) -> None: ...

    @property
    def in_flight_bytes(self) -> int:
        """In flight without what was lost, in bytes."""

    @in_flight_bytes.setter
    def in_flight_bytes(self, arg: int, /) -> None: ...

class LostPacket:
    """One packet of a LossEvent: times in ns, sizes in bytes."""

    def __init__(self) -> None: ...

    @property
    def now(self) -> int:
        """The time, in ns from the start of the simulation."""

    @now.setter
    def now(self, arg: int, /) -> None: ...

    @property
    def sent_time(self) -> int:
        """When the packet was sent, in ns."""

    @sent_time.setter
    def sent_time(self, arg: int, /) -> None: ...

    @property
    def packet_number(self) -> int:
        """The packet's number."""

    @packet_number.setter
    def packet_number(self, arg: int, /) -> None: ...

    @property
    def size_bytes(self) -> int:
        """The packet's size, in bytes."""

    @size_bytes.setter
    def size_bytes(self, arg: int, /) -> None: ...

    @property
    def in_flight_at_send_bytes(self) -> int:
        """In flight when the packet was sent, itself included, in bytes."""

    @in_flight_at_send_bytes.setter
    def in_flight_at_send_bytes(self, arg: int, /) -> None: ...

    @property
    def lost_since_sent_bytes(self) -> int:
        """Declared lost since the packet was sent, itself included, in bytes."""

    @lost_since_sent_bytes.setter
    def lost_since_sent_bytes(self, arg: int, /) -> None: ...

    @property
    def delivered_bytes(self) -> int:
        """Acknowledged on the connection so far, in bytes."""

    @delivered_bytes.setter
    def delivered_bytes(self, arg: int, /) -> None: ...

    @property
    def app_limited(self) -> bool:
        """
        Whether the packet's rate sample would have been limited by the application.
        """

    @app_limited.setter
    def app_limited(self, arg: bool, /) -> None: ...

class EcnEvent:
    """An increase of the ECN-CE count that the peer reports."""

    def __init__(self) -> None: ...

    @property
    def now(self) -> int:
        """The time, in ns from the start of the simulation."""

    @now.setter
    def now(self, arg: int, /) -> None: ...

    @property
    def largest_acked_sent_time(self) -> int:
        """When the largest newly acknowledged packet was sent, in ns."""

    @largest_acked_sent_time.setter
    def largest_acked_sent_time(self, arg: int, /) -> None: ...

    @property
    def newly_marked_packets(self) -> int:
        """The increase of the peer's ECN-CE count, in packets."""

    @newly_marked_packets.setter
    def newly_marked_packets(self, arg: int, /) -> None: ...

    @property
    def in_flight_bytes(self) -> int:
        """In flight, in bytes."""

    @in_flight_bytes.setter
    def in_flight_bytes(self, arg: int, /) -> None: ...

class ControllerMode(enum.IntEnum):
    """The phase that a controller is in."""

    slow_start = 0

    congestion_avoidance = 1

    recovery = 2

    startup = 3

    drain = 4

    probe_bw = 5

    probe_rtt = 6

class ProbeBwPhase(enum.Enum):
    """BBR version 3's part of a ProbeBW cycle."""

    none = 0

    down = 1

    cruise = 2

    refill = 3

    up = 4

class ControllerSnapshot:
    """What an observer may read between events."""

    @property
    def window_bytes(self) -> int: ...

    @property
    def pacing_rate(self) -> float: ...

    @property
    def mode(self) -> ControllerMode: ...

    @property
    def bandwidth_estimate(self) -> float: ...

    @property
    def round_trip_estimate(self) -> int: ...

    @property
    def queue_estimate_packets(self) -> float: ...

    @property
    def probe_bw_phase(self) -> ProbeBwPhase: ...

    @property
    def inflight_longterm_bytes(self) -> int: ...

    @property
    def inflight_shortterm_bytes(self) -> int: ...

class Controller:
    """A congestion controller; make_controller() makes one."""

    def on_packet_sent(self, now: int, bytes: int, in_flight_bytes: int) -> None: ...

    def on_ack(self, event: AckEvent) -> None: ...

    def on_packet_lost(self, packet: LostPacket) -> None: ...

    def on_loss(self, event: LossEvent) -> None: ...

    def on_persistent_congestion(self, now: int) -> None: ...

    def on_spurious_loss(self, now: int) -> None: ...

    def on_ecn(self, event: EcnEvent) -> None: ...

    def set_parameters(self, values: dict) -> None:
        """Replaces the named parameters and keeps the state."""

    @property
    def parameters(self) -> dict[str, list[float]]:
        """Every parameter as a list of numbers."""

    @property
    def snapshot(self) -> ControllerSnapshot: ...

    @property
    def window_bytes(self) -> int: ...

    @property
    def pacing_rate(self) -> float:
        """Bytes per second."""

    @property
    def max_datagram_bytes(self) -> int: ...

def make_controller(name: str, parameters: dict = {}, max_datagram_bytes: int = 1200) -> Controller:
    """
    A controller of the catalogue, with its defaults overridden by `parameters`.
    """

def baselines() -> list[str]:
    """
    The controllers that decide by themselves, in the order in which evaluations show them.
    """

def switching_members() -> list[str]:
    """
    The controllers among which `switching` chooses, in the order of its parameter `active`.
    """

def switching_parameters(name: str) -> dict[str, list[float]]:
    """What that member of `switching` has in place of defaults."""

def catalogue() -> list:
    """Every controller and its parameters, as a list of dicts."""

@overload
def complete_parameters(name: str, values: dict) -> dict[str, list[float]]:
    """The controller's defaults overridden by `values`, all of them checked."""

@overload
def complete_parameters(info: object, values: dict) -> dict[str, list[float]]:
    """The same for a ControllerInfo."""

def describe_plugin(capsule: CapsuleType) -> dict:
    """
    A controller of another package's extension module, as the catalogue describes its own.
    """

def read_datagram(prefix: bytes, size_bytes: int) -> dict:
    """
    Reads a datagram of size_bytes whose bytes past `prefix` are zero. 'error' says what is wrong, if anything.
    """

def decode_packet_number(expected: int, truncated: int, packet_number_bytes: int) -> int:
    """RFC 9000 A.3."""

class Sender:
    def __init__(self, flow: Flow, flow_index: int, seed: int, start: int) -> None: ...

    def drive(self, host: object, end: int) -> None: ...

    def on_datagram(self, now: int, datagram: tuple) -> object: ...

    def poll_datagram(self, now: int) -> object: ...

    @property
    def next_timeout(self) -> int: ...

    def statistics(self, now: int = 0) -> dict: ...

    def set_parameters(self, now: int, values: dict) -> None: ...

    @property
    def closed(self) -> bool: ...

    @property
    def window_bytes(self) -> int: ...

    @property
    def snapshot(self) -> ControllerSnapshot: ...

    @property
    def in_flight_bytes(self) -> int: ...

    @property
    def smoothed_rtt(self) -> int: ...

class Receiver:
    def __init__(self, flow: Flow, start: int = 0) -> None: ...

    def drive(self, host: object, end: int) -> None: ...

    def on_datagram(self, now: int, datagram: tuple) -> object: ...

    def poll_datagram(self, now: int) -> object: ...

    @property
    def next_timeout(self) -> int: ...

    def statistics(self, now: int = 0) -> dict: ...

def packet_number_bytes(unacknowledged: int) -> int:
    """RFC 9000 A.2."""

class QueueDiscipline:
    """
    A link's queue discipline by itself. Times in ns, packet numbers of the caller.
    """

    def __init__(self, link: Link, largest_packet_bytes: int = 1500, seed: int = 0) -> None: ...

    def enqueue(self, now: int, number: int, ip_bytes: int, ecn: int = 0, flow: int = 0) -> list:
        """Returns the numbers of dropped packets."""

    def dequeue(self, now: int) -> tuple:
        """
        Returns number and ECN codepoint of the next packet, or None twice, and the numbers of dropped packets.
        """

    @property
    def packets(self) -> int: ...

    @property
    def bytes(self) -> int: ...

class Fate(enum.Enum):
    delivered = 0

    dropped = 1

    lost = 2

    held = 3

class EmulatedNetwork:
    """
    The network of a scenario for packets that come from outside. Times in ns.
    """

    def __init__(self, scenario: Scenario, seed: int) -> None: ...

    @property
    def path_count(self) -> int: ...

    @property
    def lookahead(self) -> int: ...

    @property
    def next_event(self) -> int: ...

    @property
    def capsule(self) -> CapsuleType:
        """This network for other languages, see include/quicgym/network.h."""

    def send(self, id: int, time: int, path: int, way: DataDirection, wire_bytes: int, ecn: int = 0) -> int:
        """
        Returns by how much the packet was moved, because it should have reached a queue before.
        """

    def advance(self, end: int) -> list:
        """
        Returns (id, time, fate, path, way, ecn) of every packet whose fate is known by then.
        """

    def totals(self, way: DataDirection, now: int) -> dict: ...

    def record(self, interval: int, duration: int) -> None: ...

    def recording(self) -> tuple: ...

def flow_start(scenario: Scenario, flow: int, seed: int) -> int:
    """When a flow starts, with its jitter, in ns."""

def replay(scenario: Scenario, seed: int, times: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], wire_bytes: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], paths: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], backward: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)], ecn: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple:
    """See quicgym.real.replay."""

class Relay:
    """See quicgym.real.relay. Times in ns."""

    def __init__(self, scenario: Scenario, seed: int) -> None: ...

    @property
    def path_count(self) -> int: ...

    def add_udp_port(self, path: int, way: DataDirection, local: tuple[str, int], peer: tuple[str, int] | None) -> tuple[str, int]: ...

    def add_packet_port(self, path: int, way: DataDirection, socket: int, interface: int, host: Sequence[int]) -> None:
        """Takes the socket over."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    @property
    def running(self) -> bool: ...

    @property
    def started_at(self) -> int: ...

    def record(self, interval: int, duration: int) -> None: ...

    def recording(self) -> tuple: ...

    def report(self) -> dict: ...

class NativeSimulation:
    def __init__(self, scenario: Scenario, seed: int) -> None: ...

    @property
    def now(self) -> int: ...

    def run_until(self, until: int) -> None: ...

    @property
    def flow_count(self) -> int: ...

    def statistics(self, arg: int, /) -> dict: ...

    def snapshot(self, arg: int, /) -> dict: ...

    def parameters(self, arg: int, /) -> dict[str, list[float]]: ...

    def set_parameters(self, arg0: int, arg1: Mapping[str, Sequence[float]], /) -> None: ...

    def trace(self, arg: int, /) -> bytes: ...

    @property
    def queue_occupancy_seconds(self) -> float: ...

    def queue_trace(self, hop: int = 0) -> bytes: ...

    def deliveries(self) -> bytes: ...

    def requests(self, arg: int, /) -> bytes: ...

    def transfers(self, arg: int, /) -> bytes: ...

    def record_events(self) -> None: ...

    def events(self, arg: int, /) -> bytes: ...

class ActionSpace:
    @property
    def name(self) -> str: ...

    @property
    def coordinates(self) -> list[str]: ...

    @property
    def choices(self) -> list[str]: ...

    @property
    def is_relative(self) -> bool: ...

    def check(self, row: int, action: Sequence[float]) -> None:
        """
        Raises ValueError, naming the row, unless the action is one of the space.
        """

    @property
    def is_mapped(self) -> bool:
        """Coordinates stand for parameters: `decode` and `encode` work."""

    def decode(self, coordinates: Sequence[float]) -> dict[str, list[float]]:
        """The parameters for an action."""

    def encode(self, values: Mapping[str, Sequence[float]]) -> list[float] | None:
        """The action for parameters; None where the space does not have them."""

def action_spaces() -> list[ActionSpace]:
    """Every action space."""

def find_action_space(name: str) -> ActionSpace:
    """The action space of that name; ValueError lists those that there are."""

class RewardKind(enum.Enum):
    fair_throughput = 0

    delay = 1

    power = 2

    aurora = 3

    orca = 4

    preference = 5

class RewardSettings:
    def __init__(self) -> None: ...

    @property
    def kind(self) -> RewardKind: ...

    @kind.setter
    def kind(self, arg: RewardKind, /) -> None: ...

    @property
    def loss_weight(self) -> float: ...

    @loss_weight.setter
    def loss_weight(self, arg: float, /) -> None: ...

    @property
    def fairness_weight(self) -> float: ...

    @fairness_weight.setter
    def fairness_weight(self, arg: float, /) -> None: ...

    @property
    def delay_weight(self) -> float: ...

    @delay_weight.setter
    def delay_weight(self, arg: float, /) -> None: ...

class EnvironmentSettings:
    def __init__(self, action_space: ActionSpace) -> None: ...

    @property
    def observation(self) -> ObservationLayout: ...

    @observation.setter
    def observation(self, arg: ObservationLayout, /) -> None: ...

    @property
    def history_length(self) -> int: ...

    @history_length.setter
    def history_length(self, arg: int, /) -> None: ...

    @property
    def clips_actions(self) -> bool: ...

    @clips_actions.setter
    def clips_actions(self, arg: bool, /) -> None: ...

    @property
    def decision_interval(self) -> int: ...

    @decision_interval.setter
    def decision_interval(self, arg: int, /) -> None: ...

    @property
    def decision_interval_rtts(self) -> float: ...

    @decision_interval_rtts.setter
    def decision_interval_rtts(self, arg: float, /) -> None: ...

    @property
    def reward_interval(self) -> int: ...

    @reward_interval.setter
    def reward_interval(self, arg: int, /) -> None: ...

    @property
    def reward(self) -> RewardSettings: ...

    @reward.setter
    def reward(self, arg: RewardSettings, /) -> None: ...

    @property
    def observes_preference(self) -> bool: ...

    @observes_preference.setter
    def observes_preference(self, arg: bool, /) -> None: ...

    @property
    def reward_per_flow(self) -> bool: ...

    @reward_per_flow.setter
    def reward_per_flow(self, arg: bool, /) -> None: ...

class EpisodePlan:
    def __init__(self) -> None: ...

    @property
    def seed(self) -> int: ...

    @seed.setter
    def seed(self, arg: int, /) -> None: ...

    @property
    def agents(self) -> list[int]: ...

    @agents.setter
    def agents(self, arg: Sequence[int], /) -> None: ...

    @property
    def ignores_actions(self) -> bool: ...

    @ignores_actions.setter
    def ignores_actions(self, arg: bool, /) -> None: ...

    @property
    def end(self) -> int: ...

    @end.setter
    def end(self, arg: int, /) -> None: ...

    @property
    def length(self) -> int: ...

    @length.setter
    def length(self, arg: int, /) -> None: ...

    @property
    def preference(self) -> list[float]: ...

    @preference.setter
    def preference(self, arg: Sequence[float], /) -> None: ...

FRAME_FEATURES: list = ...

STATE_FEATURES: list = ...

class ObservationLayout(enum.Enum):
    frames = 0

    spans = 1

    aurora = 2

    orca = 3

def observation_elements(layout: ObservationLayout, history_length: int) -> list:
    """
    Name, minimum and maximum of each element of an observation, without those of the action.
    """

INFO_COLUMNS: list = ...

REWARDS: dict = ...

PREFERENCE_TERMS: list = ['throughput', 'loss', 'fairness', 'delay']

def value_at(controller: str, parameter: str, coordinate: float) -> float:
    """
    The value of a parameter of a controller of the catalogue at a coordinate from -1 to 1.
    """

def coordinate_of(controller: str, parameter: str, value: float) -> float:
    """The coordinate of a value within the parameter's range."""

class Episode:
    """An episode at one moment, as Batch.clone returns it."""

class Batch:
    """
    Episodes side by side; arrays have a row per agent, flags one per simulation.
    """

    @property
    def actions(self) -> Annotated[NDArray[numpy.float32], dict(order='C')]: ...

    @property
    def observations(self) -> Annotated[NDArray[numpy.float32], dict(order='C')]: ...

    @property
    def info(self) -> Annotated[NDArray[numpy.float64], dict(order='C')]: ...

    @property
    def rewards(self) -> Annotated[NDArray[numpy.float64], dict(order='C')]: ...

    @property
    def selected(self) -> Annotated[NDArray[numpy.bool_], dict(order='C')]: ...

    @property
    def terminations(self) -> Annotated[NDArray[numpy.bool_], dict(order='C')]: ...

    @property
    def truncations(self) -> Annotated[NDArray[numpy.bool_], dict(order='C')]: ...

    def reset(self, indices: Sequence[int], scenarios: Sequence[Scenario], plans: Sequence[EpisodePlan]) -> None: ...

    def step(self) -> None: ...

    def close(self, simulation: int) -> None: ...

    def clone(self, indices: Sequence[int]) -> list[Episode]:
        """Copies of these simulations' episodes."""

    def restore(self, indices: Sequence[int], episodes: Sequence[Episode]) -> None:
        """
        Puts copies of these episodes in the simulations' places; the arrays stay as they are.
        """

    @property
    def failed(self) -> int | None:
        """The first simulation that failed in the last call, or None."""

    def statistics(self, arg0: int, arg1: int, /) -> dict: ...

    def parameters(self, arg0: int, arg1: int, /) -> dict[str, list[float]]: ...

    def deliveries(self, arg: int, /) -> bytes: ...

    def requests(self, arg0: int, arg1: int, /) -> bytes: ...

    def transfers(self, arg0: int, arg1: int, /) -> bytes: ...

class PolicyNetwork:
    """
    The network of a learned policy, without PyTorch: see quicgym.agents.policies.networks.Actor.
    """

    def __init__(self, extractor: str, extractor_sizes: Sequence[int], hidden_sizes: Sequence[int], activation: str, output: str, observation_size: int, history_length: int, outputs: int, tensors: Mapping[str, Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)]]) -> None: ...

    def __call__(self, observations: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> object:
        """
        Maps (rows, observation_size) to (rows, outputs) coordinates, or to (rows,) choices.
        """

POLICY_ENVIRONMENTS: list = ...

def read_safetensors(data: bytes) -> dict:
    """The tensors of a safetensors file, all of float32, by name."""

def earn(scenario: Scenario, interval: int, flows: Sequence[bytes], queues: Sequence[bytes], settings: EnvironmentSettings, plan: EpisodePlan) -> tuple:
    """
    Time in ns at which the episode begins, and of each decision the first agent's reward and info. Rows are FlowState and QueueSample.
    """

class UdpFlows:
    """See sim/relay/udp_flows.hpp. Times in ns."""

    def __init__(self, plans: Sequence[tuple[Flow, int, str | None]], interval: int, duration: int) -> None:
        """
        A plan is a flow, the seed of its controller, and the path of a policy's description or None.
        """

    def receiver_address(self, arg: int, /) -> tuple[str, int]: ...

    def connect(self, arg0: int, arg1: tuple[str, int], /) -> None: ...

    def start(self, zero: int) -> None: ...

    def stop(self) -> None: ...

    @property
    def finished(self) -> bool: ...

    @property
    def has_realtime_priority(self) -> bool: ...

    def progress(self) -> tuple[int, list[int], list[int]]: ...

    def record_events(self) -> None: ...

    def events(self, arg: int, /) -> bytes: ...

    def record(self, arg: int, /) -> dict: ...

def native_batch(settings: EnvironmentSettings, simulations: int, agents_per_simulation: int, threads: int) -> Batch:
    """A batch of episodes over this host."""

def transmission_time_ns(wire_bytes: int, rate_bits_per_second: int) -> int:
    """Nanoseconds that so many bytes take on a link of the native engine."""

def capacity_bytes(scenario: Scenario, hop: int, times: Sequence[int]) -> list[float]:
    """
    Bytes that a hop, from 0, could have sent up to each of the times in ns, since the one before it.
    """

def bare_loop(packets: int) -> float:
    """
    CPU nanoseconds per packet of an event loop over first-in first-out rings, without transport.
    """
