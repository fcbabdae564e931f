"""The C interface to an emulated network: every arrival is the one that Python gets."""

from __future__ import annotations

import ctypes
import gc
import subprocess
from ctypes import (
    CFUNCTYPE,
    POINTER,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
)

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quicgym
from quicgym import _core
from quicgym.real import replay
from quicgym.real.network import as_scenario, to_network

CAPSULE = b"quicgym.network"
API_VERSION = 1


class Outcome(ctypes.Structure):
    _fields_ = [
        ("id", c_uint64),
        ("time_ns", c_int64),
        ("path", c_uint32),
        ("backward", c_uint8),
        ("fate", c_uint8),
        ("ecn", c_uint8),
        ("reserved", c_uint8),
    ]


class Interface(ctypes.Structure):
    _fields_ = [
        ("api_version", c_int32),
        ("path_count", c_uint32),
        ("network", c_void_p),
        ("send", CFUNCTYPE(c_int64, c_void_p, c_uint64, c_int64, c_uint32, c_int, c_uint32, c_int)),
        ("advance", CFUNCTYPE(c_int64, c_void_p, c_int64, POINTER(POINTER(Outcome)))),
        ("next_event", CFUNCTYPE(c_int64, c_void_p)),
        ("last_error", CFUNCTYPE(c_char_p, c_void_p)),
    ]


def interface_of(capsule):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = c_void_p, [ctypes.py_object, c_char_p]
    return ctypes.cast(get(capsule, CAPSULE), POINTER(Interface)).contents


class Network:
    """The scenario's network through the C interface alone."""

    def __init__(self, scenario: str, seed: int = 0) -> None:
        core = to_network(as_scenario(scenario))
        self.capsule = _core.EmulatedNetwork(core, seed).capsule
        gc.collect()  # the capsule alone keeps the network
        self.c = interface_of(self.capsule)

    def send(self, number, time, wire_bytes=1430, *, path=0, backward=False, ecn=0):
        return self.c.send(self.c.network, number, time, path, backward, wire_bytes, ecn)

    def advance(self, end):
        outcomes = POINTER(Outcome)()
        count = self.c.advance(self.c.network, end, ctypes.byref(outcomes))
        return [outcomes[place] for place in range(count)]

    @property
    def next_event(self):
        return self.c.next_event(self.c.network)

    @property
    def last_error(self):
        return self.c.last_error(self.c.network).decode()


def test_the_capsule_says_its_version_and_its_paths():
    network = Network("ebcc-flows-3")
    assert (network.c.api_version, network.c.path_count) == (API_VERSION, 3)
    assert network.last_error == ""


@settings(deadline=None, max_examples=10)
@given(gaps=st.lists(st.integers(0, 2_000_000), min_size=1, max_size=300), seed=st.integers(0, 100))
def test_arrivals_and_drops_are_those_of_a_replay(gaps, seed):
    times = np.cumsum(gaps)
    expected = replay("ebcc-single", times, 1430, seed=seed)
    network = Network("ebcc-single", seed)
    arrivals = np.full(len(times), -1)
    fates = [""] * len(times)
    names = [fate.name for fate in _core.Fate]

    def advance(end):
        for outcome in network.advance(end):
            fates[outcome.id] = names[outcome.fate]
            if names[outcome.fate] == "delivered":
                arrivals[outcome.id] = outcome.time_ns

    for number, time in enumerate(times):
        assert network.send(number, int(time)) == 0
        while network.next_event <= time:
            advance(network.next_event + 1)
    while network.next_event < 2**63 - 1:
        advance(network.next_event + 1)
    assert arrivals.tolist() == expected.arrivals_ns.tolist()
    assert fates == expected.fates.tolist()


def test_both_ways_and_the_codepoint_come_back():
    network = Network("ebcc-single")
    assert network.send(7, 0, backward=True, ecn=2) == 0
    (outcome,) = network.advance(10**9)
    assert (outcome.id, outcome.path, outcome.backward, outcome.ecn) == (7, 0, 1, 2)


def test_a_packet_that_comes_late_is_told_by_how_much():
    network = Network("ebcc-single")
    network.advance(10**9)
    assert network.send(0, 10**8) == 10**9 - 10**8 - first_transit_ns()


def first_transit_ns():
    """From a host to the first queue: 1430 bytes at 50 Mbps and 20 ms."""
    return 1430 * 8 * 1000 // 50 + 20_000_000


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"path": 3}, "path 3 does not exist; there are 1"),
        ({"wire_bytes": 10}, "bytes on the wire, not 10"),
        ({"time": -1}, "at 0 ns at the earliest"),
    ],
)
def test_what_cannot_be_sent_is_refused_with_a_reason(arguments, text):
    network = Network("ebcc-single")
    assert network.send(0, **{"time": 0, **arguments}) < 0
    assert text in network.last_error
    assert network.next_event == 2**63 - 1


def test_the_header_is_c99_without_extensions_and_c_plus_plus(tmp_path):
    source = tmp_path / "header.c"
    outcome, interface = ctypes.sizeof(Outcome), ctypes.sizeof(Interface)
    source.write_text(
        "#include <quicgym/network.h>\n"
        f"char outcome[sizeof(quicgym_outcome_t) == {outcome} ? 1 : -1];\n"
        f"char interface[sizeof(quicgym_network_interface_t) == {interface} ? 1 : -1];\n"
        f"char version[QUICGYM_NETWORK_API_VERSION == {API_VERSION} ? 1 : -1];\n"
    )
    for options in ("-xc -std=c99", "-xc++ -std=c++11"):
        subprocess.run(
            ["cc", *options.split(), "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
            + [f"-I{quicgym.get_include()}", str(source)],
            check=True,
        )
