"""A controller or a learned policy behind the C interface, for stacks that are written in Python.

real/embedding/quicgym/controller.h says what every call means. Other languages call the library.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
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
from functools import cache
from typing import Any

import quicgym
from quicgym import _core, controllers
from quicgym.errors import UserError
from quicgym.real.stacks import Steering

API_VERSION = 1
_CAPSULE = _core.CONTROLLER_CAPSULE.encode()
_SPECIFICATIONS: list[Any] = []
"""Capsules of users' controllers, which stacks point to; they are freed with the process."""


class Snapshot(ctypes.Structure):
    """quicgym_snapshot_t."""

    _fields_ = (
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
    )


_NUMBERS = (POINTER(c_uint64), c_size_t)
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "api_version": (c_int,),
    "last_error": (c_char_p,),
    "controller_new": (c_void_p, c_char_p, c_uint64, c_uint64, c_int64),
    "controller_of": (c_void_p, c_void_p, c_uint64, c_uint64, c_int64),
    "controller_free": (None, c_void_p),
    "set_parameter": (c_int, c_void_p, c_char_p, POINTER(c_double), c_size_t),
    "on_handshake": (c_int, c_void_p, c_int64, c_int64),
    "on_sent": (c_int, c_void_p, c_int64, c_uint64, c_uint64),
    "on_ack": (c_int, c_void_p, c_int64, c_int64, *_NUMBERS),
    "on_loss": (c_int, c_void_p, c_int64, *_NUMBERS),
    "on_persistent_congestion": (c_int, c_void_p, c_int64),
    "on_app_limited": (c_int, c_void_p, c_int64),
    "on_window_unused": (c_int, c_void_p, c_int64),
    "set_application": (c_int, c_void_p, c_uint64, c_uint64),
    "window_bytes": (c_uint64, c_void_p),
    "pacing_rate_bytes_per_s": (c_double, c_void_p),
    "snapshot": (c_int, c_void_p, POINTER(Snapshot)),
    "policy_load": (c_void_p, c_char_p),
    "policy_free": (None, c_void_p),
    "policy_controller_new": (c_void_p, c_void_p, c_uint64, c_uint64, c_int64),
    "policy_decide": (c_int, c_void_p, c_int64, POINTER(c_int64)),
}


@cache
def _library() -> dict[str, Any]:
    """Returns the functions by name, without "quicgym_"."""
    suffix = "dylib" if sys.platform == "darwin" else "so"
    library = ctypes.CDLL(f"{quicgym.get_library_dir()}/libquicgym-controller.{suffix}")
    functions = {}
    for name, (result, *arguments) in _SIGNATURES.items():
        function = library[f"quicgym_{name}"]
        function.restype, function.argtypes = result, arguments
        functions[name] = function
    if functions["api_version"]() != API_VERSION:
        raise UserError(
            f"libquicgym-controller has version {functions['api_version']()} of the C interface, "
            f"and not {API_VERSION}; install quicgym again"
        )
    return functions


def specification_of(steering: Steering) -> int:
    """Returns the address of what describes a user's controller to C++."""
    info = controllers.find(steering.name)
    if info.python_class is not None:  # whose on_start reads its parameters
        lists = {entry.name for entry in info.parameters if entry.is_list}
        given = {
            name: [*values] if name in lists else values[0]
            for name, values in steering.parameters.items()
        }
        info = controllers.describe(info.python_class.with_parameters(**given))
    capsule = info.plugin or _core.python_specification(info)
    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype, address.argtypes = c_void_p, (ctypes.py_object, c_char_p)
    _SPECIFICATIONS.append(capsule)
    pointer: int = address(capsule, _CAPSULE)
    return pointer


class HostedController:
    """Steers one connection; times are in ns, sizes in bytes of UDP payload.

    Every method raises UserError where the C interface refuses it: a fault of the stack's.
    """

    def __init__(self, steering: Steering, max_datagram_bytes: int, seed: int, now: int) -> None:
        """Makes it as the connection begins; UserError names what does not exist, or is wrong."""
        self._c = _library()
        self._handle = None
        if steering.kind == "user":
            self._handle = self._c["controller_of"](
                specification_of(steering), max_datagram_bytes, seed, now
            )
        elif steering.policy is None:
            name = steering.name.encode()
            self._handle = self._c["controller_new"](name, max_datagram_bytes, seed, now)
        else:
            policy = self._c["policy_load"](str(steering.policy).encode())
            if policy is None:
                raise UserError(f"{steering.name}: {self._last_error()}")
            new = self._c["policy_controller_new"]
            self._handle = new(policy, max_datagram_bytes, seed, now)
            self._c["policy_free"](policy)
        if self._handle is None:
            raise UserError(f"{steering.name}: {self._last_error()}")
        for parameter, values in steering.parameters.items():
            numbers = (c_double * len(values))(*values)
            self._call("set_parameter", parameter.encode(), numbers, len(values))
        self._window_bytes = self._c["window_bytes"]
        self._pacing_rate = self._c["pacing_rate_bytes_per_s"]

    def __del__(self) -> None:
        """Gives the memory back."""
        if getattr(self, "_handle", None) is not None:
            self._c["controller_free"](self._handle)

    def _last_error(self) -> str:
        text: bytes = self._c["last_error"]()
        return text.decode()

    def _call(self, function: str, *arguments: Any) -> None:
        if self._c[function](self._handle, *arguments) != 0:
            raise UserError(f"quicgym_{function}: {self._last_error()}")

    def on_handshake(self, now: int, rtt: int) -> None:
        """The handshake is complete; once, before the first packet."""
        self._call("on_handshake", now, rtt)

    def on_sent(self, now: int, number: int, size: int) -> None:
        """An ack-eliciting packet was sent."""
        self._call("on_sent", now, number, size)

    def on_ack(self, now: int, ack_delay: int, numbers: Sequence[int]) -> None:
        """Packets were acknowledged, in ascending order."""
        self._call("on_ack", now, ack_delay, (c_uint64 * len(numbers))(*numbers), len(numbers))

    def on_loss(self, now: int, numbers: Sequence[int]) -> None:
        """Packets were declared lost, in ascending order."""
        self._call("on_loss", now, (c_uint64 * len(numbers))(*numbers), len(numbers))

    def on_persistent_congestion(self, now: int) -> None:
        """RFC 9002 7.6."""
        self._call("on_persistent_congestion", now)

    def on_app_limited(self, now: int) -> None:
        """There is nothing to send although the window has room."""
        self._call("on_app_limited", now)

    def on_window_unused(self, now: int) -> None:
        """Flow control holds data back although the window has room."""
        self._call("on_window_unused", now)

    def set_application(self, unsent_bytes: int, blocked_events: int) -> None:
        """The bytes that the application has written and the stack has not sent."""
        self._call("set_application", unsent_bytes, blocked_events)

    def decide(self, now: int) -> int:
        """Lets the policy decide; returns when the next decision is due."""
        following = c_int64()
        self._call("policy_decide", now, following)
        return following.value

    @property
    def window_bytes(self) -> int:
        """How much may be in flight."""
        size: int = self._window_bytes(self._handle)
        return size

    @property
    def pacing_rate(self) -> float:
        """In bytes per second."""
        rate: float = self._pacing_rate(self._handle)
        return rate

    def snapshot(self) -> Snapshot:
        """Returns the controller's state."""
        snapshot = Snapshot()
        self._call("snapshot", snapshot)
        return snapshot
