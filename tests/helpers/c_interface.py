"""The C interface through ctypes, and a stack that tells it what a sender of the simulator does."""

from __future__ import annotations

import ctypes
import sys
from ctypes import (
    POINTER,
    c_char_p,
    c_double,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint64,
    c_void_p,
)
from pathlib import Path

import quicgym
from helpers.endpoints import MILLISECOND, SECOND, Pair
from quicgym import _core

SUFFIX = "dylib" if sys.platform == "darwin" else "so"
LIBRARY = Path(quicgym.get_library_dir()) / f"libquicgym-controller.{SUFFIX}"


class Snapshot(ctypes.Structure):
    _fields_ = [
        ("window_bytes", c_uint64),
        ("pacing_rate_bytes_per_s", c_double),
        ("in_flight_bytes", c_uint64),
        ("delivered_bytes", c_uint64),
        ("lost_bytes", c_uint64),
        ("latest_rtt_ns", c_int64),
        ("smoothed_rtt_ns", c_int64),
        ("min_rtt_ns", c_int64),
        ("bandwidth_estimate_bytes_per_s", c_double),
        ("round_trip_estimate_ns", c_int64),
        ("mode", c_int32),
        ("wants_ect1", c_int32),
    ]


_NUMBERS = (POINTER(c_uint64), c_size_t)
_SIGNATURES = {
    "version": (c_char_p,),
    "api_version": (c_int,),
    "last_error": (c_char_p,),
    "controller_new": (c_void_p, c_char_p, c_uint64, c_uint64, c_int64),
    "controller_free": (None, c_void_p),
    "set_parameter": (c_int, c_void_p, c_char_p, POINTER(c_double), c_size_t),
    "on_handshake": (c_int, c_void_p, c_int64, c_int64),
    "on_sent": (c_int, c_void_p, c_int64, c_uint64, c_uint64),
    "on_ack": (c_int, c_void_p, c_int64, c_int64, *_NUMBERS),
    "on_ecn": (c_int, c_void_p, c_int64, c_uint64),
    "on_loss": (c_int, c_void_p, c_int64, *_NUMBERS),
    "on_persistent_congestion": (c_int, c_void_p, c_int64),
    "on_app_limited": (c_int, c_void_p, c_int64),
    "on_window_unused": (c_int, c_void_p, c_int64),
    "set_application": (c_int, c_void_p, c_uint64, c_uint64),
    "window_bytes": (c_uint64, c_void_p),
    "pacing_rate_bytes_per_s": (c_double, c_void_p),
    "snapshot": (c_int, c_void_p, POINTER(Snapshot)),
    "policy_load": (c_void_p, c_char_p),
    "policy_read": (c_void_p, c_char_p, c_size_t, c_char_p, c_size_t),
    "policy_free": (None, c_void_p),
    "policy_controller_new": (c_void_p, c_void_p, c_uint64, c_uint64, c_int64),
    "policy_decide": (c_int, c_void_p, c_int64, POINTER(c_int64)),
}


def _load():
    library = ctypes.CDLL(str(LIBRARY))
    functions = {}
    for name, (result, *arguments) in _SIGNATURES.items():
        function = library[f"quicgym_{name}"]
        function.restype, function.argtypes = result, arguments
        functions[name] = function
    return functions


C = _load()
"""The functions by name, without "quicgym_"."""


def last_error():
    return C["last_error"]().decode()


class CController:
    """A handle; methods are functions of the C interface, and an error is an AssertionError."""

    def __init__(self, name, max_datagram_bytes=1200, seed=1, now=0):
        self.handle = C["controller_new"](name.encode(), max_datagram_bytes, seed, now)
        assert self.handle, last_error()

    def __del__(self):
        C["controller_free"](getattr(self, "handle", None))

    def __getattr__(self, name):
        function = C[name]

        def call(*arguments):
            given = []
            for argument in arguments:
                if isinstance(argument, list):
                    given += [(c_uint64 * len(argument))(*argument), len(argument)]
                else:
                    given.append(argument)
            code = function(self.handle, *given)
            assert code == 0, last_error()

        return call

    def set_parameter(self, name, *values):
        array = (c_double * len(values))(*values)
        return C["set_parameter"](self.handle, name.encode(), array, len(values))

    @property
    def window_bytes(self):
        return C["window_bytes"](self.handle)

    @property
    def pacing_rate(self):
        return C["pacing_rate_bytes_per_s"](self.handle)

    @property
    def snapshot(self):
        snapshot = Snapshot()
        assert C["snapshot"](self.handle, snapshot) == 0, last_error()
        return snapshot


class Bottleneck:
    """A link with a drop-tail queue, for a Pair: its arguments `delay`, `drop` and `mark`.

    Args:
        rate_bits_per_second: Rate of the link.
        queue_packets: Number of packets that may wait; from `ecn_packets` on they are marked.
        lost: Places of data datagrams that are lost, counted from 0.
        late: Places of data datagrams that take 30 ms longer.
        outage: In this time, from and to in ns, nothing arrives.
    """

    def __init__(
        self, rate_bits_per_second, queue_packets, lost=(), late=(), outage=(0, 0), ecn_packets=None
    ):
        self.pair = None
        self._late, self._outage = late, outage
        self._packet_ns = 1200 * 8 * SECOND // rate_bits_per_second
        self._queue_packets = queue_packets
        self._lost = lost
        self._ecn_packets = ecn_packets
        self._free_at = 0

    def _waiting(self):
        return max(0, self._free_at - self.pair.now) / self._packet_ns

    def delay(self, direction, index):
        if direction == "ack":
            return 20 * MILLISECOND
        self._free_at = max(self._free_at, self.pair.now) + self._packet_ns
        extra = 30 * MILLISECOND if index in self._late else 0
        return self._free_at - self.pair.now + 20 * MILLISECOND + extra

    def drop(self, direction, index, frames):
        is_full = self._waiting() > self._queue_packets
        is_out = self._outage[0] <= self.pair.now < self._outage[1]
        return direction == "data" and (is_full or is_out or index in self._lost)

    def mark(self, index):
        return self._ecn_packets is not None and self._waiting() > self._ecn_packets


class MirroredPair(Pair):
    """A Pair whose sender's packets are also told to a controller behind the C interface.

    `compare` is called after every packet sent and every datagram received.
    """

    def __init__(self, flow, controller, bottleneck, compare):
        super().__init__(flow, bottleneck.delay, bottleneck.drop, bottleneck.mark)
        bottleneck.pair = self
        self.controller = controller
        self.compare = compare
        self._sent = 0
        self._waiting = {}  # packets that are not acknowledged: True while in flight
        self._lost = self._persistent = self._marks = 0
        host = self._hosts["data"]
        self._send, self._received, self._next = host.send, host.on_received, host.next_arrival
        host.send, host.on_received = self._on_send, self._on_received
        host.next_arrival = self._next_arrival
        controller.set_application(1 << 40, 0)

    def _next_arrival(self):
        self._tell_losses(self.now)  # of the timer
        return self._next()

    def _on_send(self, now, datagram):
        self._tell_losses(now)
        prefix, size, *_ = datagram
        read = _core.read_datagram(prefix, size)
        if read["type"] == "1-RTT":
            if read["ack_eliciting"]:
                self.controller.on_sent(now, self._sent, size)
                self._waiting[self._sent] = True
            self._sent += 1
        self._send(now, datagram)
        self.compare(self)

    def _on_received(self, now, error):
        prefix, size, *_ = self._hosts["data"].arrived()
        read = _core.read_datagram(prefix, size)
        for frame in read["frames"]:
            if frame[0] != "ACK":
                continue
            if read["type"] == "Initial":
                self.controller.on_handshake(now, self.sender.smoothed_rtt)
            else:
                self._tell_acks(now, *frame[1:])
        self._tell_losses(now)
        self._received(now, error)
        self.compare(self)

    def _tell_acks(self, now, delay, ranges, ecn=(0, 0, 0)):
        new = [
            number
            for number in self._waiting
            if any(smallest <= number <= largest for smallest, largest in ranges)
        ]
        is_new = any([self._waiting.pop(number) for number in new])  # all of them
        self.controller.on_ack(now, (delay << 3) * 1000, sorted(new))
        if is_new and ecn[2] > self._marks:
            self.controller.on_ecn(now, ecn[2] - self._marks)
            self._marks = ecn[2]

    def _tell_losses(self, now):
        statistics = self.sender.statistics(now)
        newly_lost = statistics["declared_lost_packets"] - self._lost
        if newly_lost > 0:  # the oldest are lost first
            in_flight = [number for number, outstanding in self._waiting.items() if outstanding]
            lost = sorted(in_flight)[:newly_lost]
            self._waiting.update(dict.fromkeys(lost, False))
            self._lost += newly_lost
            self.controller.on_loss(now, lost)
        if statistics["persistent_congestion_events"] > self._persistent:
            self._persistent = statistics["persistent_congestion_events"]
            self.controller.on_persistent_congestion(now)
