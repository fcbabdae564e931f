"""The C interface: controllers behind it do what they do in the simulator."""

from __future__ import annotations

import ctypes
import math
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from helpers.c_interface import Bottleneck, C, CController, MirroredPair, Snapshot, last_error
from helpers.endpoints import MILLISECOND, SECOND, make_flow

import quicgym
from quicgym import _core, controllers

INVALID = 1


def assert_equal(pair):
    sender, ours = pair.sender.snapshot, pair.controller
    assert (ours.window_bytes, ours.pacing_rate) == (sender.window_bytes, sender.pacing_rate), (
        f"at {pair.now / SECOND} s"
    )


NETWORKS = {
    "losses": lambda: Bottleneck(4_000_000, 20, lost=range(350, 900, 97), ecn_packets=2),
    "reordering": lambda: Bottleneck(4_000_000, 30, late=range(200, 900, 75)),
    "outage": lambda: Bottleneck(4_000_000, 20, outage=(SECOND, 3 * SECOND)),
}


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("name", [entry.name for entry in controllers.catalogue()])
def test_a_controller_has_the_window_and_rate_that_it_has_in_the_simulator(name, network):
    flow = make_flow(controller=name, ecn=network == "losses")
    end = (4 if network == "outage" else 2) * SECOND
    pair = MirroredPair(flow, CController(name), NETWORKS[network](), assert_equal)
    pair.run_until(end)
    assert_equal(pair)
    statistics, snapshot = pair.sender.statistics(end), pair.controller.snapshot
    assert snapshot.delivered_bytes > 300_000
    assert snapshot.in_flight_bytes == pair.sender.in_flight_bytes
    assert snapshot.smoothed_rtt_ns == pair.sender.smoothed_rtt
    if name not in ("external", "guided"):  # whose windows nobody sets here
        assert statistics["declared_lost_packets"] > 0
        if network == "losses":
            assert statistics["ecn_marks"] > 0
        if network == "outage" and name in ("newreno", "bbr3"):  # others wait for a probe's end
            assert statistics["persistent_congestion_events"] > 0


def newreno():
    controller = CController("newreno")
    for number in range(10):
        controller.on_sent(number * MILLISECOND, number, 1200)
    return controller


def refused(code, *words):
    assert code == INVALID
    for word in words:
        assert word in last_error()


def numbers(*values):
    return (ctypes.c_uint64 * len(values))(*values), len(values)


def test_an_unknown_controller_and_bad_arguments_of_new_are_refused():
    for arguments, word in [
        ((b"cubik", 1200, 1, 0), "cubik"),
        ((None, 1200, 1, 0), "name is NULL"),
        ((b"cubic", 1199, 1, 0), "max_datagram_bytes = 1199"),
        ((b"cubic", 1200, 1, -1), "now_ns = -1"),
    ]:
        assert C["controller_new"](*arguments) is None
        assert word in last_error()


def test_null_is_refused_by_every_function_but_free():
    C["controller_free"](None)
    for code in (
        C["on_handshake"](None, 0, 0),
        C["on_sent"](None, 0, 0, 1200),
        C["on_ack"](None, 0, 0, None, 0),
        C["on_loss"](None, 0, None, 0),
        C["on_ecn"](None, 0, 1),
        C["on_persistent_congestion"](None, 0),
        C["on_app_limited"](None, 0),
        C["on_window_unused"](None, 0),
        C["set_application"](None, 0, 0),
        C["set_parameter"](None, b"beta", None, 0),
        C["snapshot"](None, Snapshot()),
    ):
        refused(code, "controller is NULL")
    assert C["window_bytes"](None) == 0 and C["pacing_rate_bytes_per_s"](None) == 0.0
    handle = newreno().handle
    refused(C["on_ack"](handle, SECOND, 0, None, 1), "packet_numbers is NULL")
    refused(C["on_loss"](handle, SECOND, None, 1), "packet_numbers is NULL")
    refused(C["snapshot"](handle, None), "snapshot is NULL")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda h: C["on_ack"](h, SECOND, 0, *numbers(2)), ("packet 2", "a second time")),
        (lambda h: C["on_ack"](h, SECOND, 0, *numbers(5, 5)), ("packet 5", "ascending order")),
        (lambda h: C["on_ack"](h, SECOND, 0, *numbers(5, 10)), ("packet 10 was never sent",)),
        (lambda h: C["on_ack"](h, SECOND, -1, *numbers(5)), ("ack_delay_ns = -1",)),
        (lambda h: C["on_ack"](h, MILLISECOND, 0, *numbers(5)), ("time goes backwards",)),
        (lambda h: C["on_loss"](h, SECOND, *numbers(2)), ("packet 2", "not in flight")),
        (lambda h: C["on_loss"](h, SECOND, *numbers(3)), ("packet 3", "not in flight")),
        (lambda h: C["on_sent"](h, SECOND, 9, 1200), ("packet 9", "numbers rise")),
        (lambda h: C["on_sent"](h, SECOND, 10_000, 1200), ("packet 10000", "4096")),
        (lambda h: C["on_sent"](h, SECOND, 10, 0), ("bytes = 0",)),
        (lambda h: C["on_sent"](h, SECOND, 10, 65536), ("bytes = 65536",)),
        (lambda h: C["on_sent"](h, MILLISECOND, 10, 1200), ("time goes backwards",)),
        (lambda h: C["on_sent"](h, 2**62, 10, 1200), ("now_ns = 4611686018427387904", "2^62 - 1")),
        (lambda h: C["on_ecn"](h, MILLISECOND, 1), ("time goes backwards",)),
        (lambda h: C["on_persistent_congestion"](h, -1), ("time goes backwards",)),
        (lambda h: C["on_handshake"](h, SECOND, 0), ("before the first packet",)),
    ],
)
def test_misuse_is_refused_and_changes_nothing(call, words):
    controller, other = newreno(), newreno()
    for each in (controller, other):
        each.on_ack(50 * MILLISECOND, 0, [0, 2])
        each.on_loss(50 * MILLISECOND, [3])
    refused(call(controller.handle), *words)
    for each in (controller, other):  # and both go on in the same way
        each.on_ack(60 * MILLISECOND, 0, [1, 4, 5])
        each.on_sent(61 * MILLISECOND, 10, 1200)
    assert bytes(controller.snapshot) == bytes(other.snapshot)


def test_numbers_that_no_connection_has_are_refused():
    handle = C["controller_new"](b"copa", 1200, 1, 0)
    day = 24 * 3600 * SECOND
    refused(C["on_handshake"](handle, SECOND, day + 1), f"rtt_ns = {day + 1}", "at most a day")
    refused(C["on_sent"](handle, SECOND, 2**62, 1200), "packet 4611686018427387904", "2^62 - 1")
    assert C["controller_new"](b"copa", 1200, 1, 2**62) is None
    assert "2^62 - 1" in last_error()
    assert C["on_handshake"](handle, SECOND, day) == 0
    C["controller_free"](handle)


@pytest.mark.parametrize("values", [(math.nan,), (2.0,), ()])
def test_a_parameter_that_is_not_valid_is_refused(values):
    controller = CController("cubic")
    before = bytes(controller.snapshot)
    refused(controller.set_parameter("beta", *values), "beta")
    refused(controller.set_parameter("betta", 0.5), "betta")
    assert bytes(controller.snapshot) == before


def test_a_parameter_takes_effect():
    quartered, kept = CController("newreno"), CController("newreno")
    assert quartered.set_parameter("loss_reduction_factor", 0.25) == 0
    for controller in (quartered, kept):
        for number in range(20):
            controller.on_sent(number * MILLISECOND, number, 1200)
        controller.on_ack(50 * MILLISECOND, 0, list(range(5, 15)))
        controller.on_loss(50 * MILLISECOND, [0, 1])
    assert quartered.window_bytes < kept.window_bytes


def test_packets_that_arrive_after_all_are_taken_once():
    controller = newreno()
    controller.on_ack(50 * MILLISECOND, 0, [8])
    controller.on_loss(50 * MILLISECOND, [0, 1])
    controller.on_ack(51 * MILLISECOND, 0, [0, 1])
    refused(C["on_ack"](controller.handle, SECOND, 0, *numbers(1)), "packet 1", "a second time")
    assert controller.snapshot.delivered_bytes == 1200
    assert controller.snapshot.in_flight_bytes == 7 * 1200


@pytest.mark.parametrize("told", [True, False])
def test_bbr_leaves_startup_by_rates_that_the_application_did_not_limit(told):
    controller = CController("bbr")
    controller.on_handshake(0, 50 * MILLISECOND)
    for turn in range(1, 30):  # a packet in each round trip
        now = turn * 100 * MILLISECOND
        controller.on_sent(now, turn, 1200)
        if told:
            controller.on_app_limited(now)
        controller.on_ack(now + 50 * MILLISECOND, 0, [turn])
    startup = _core.ControllerMode.startup.value
    assert (controller.snapshot.mode == startup) is told


def test_flow_control_stops_the_window_and_leaves_the_rates():
    """RFC 9002 7.8 asks what limits the window, a rate sample whether there was data to send."""

    def rounds(name, call):
        controller = CController(name)
        controller.on_handshake(0, 50 * MILLISECOND)
        for turn in range(1, 30):
            now = turn * 100 * MILLISECOND
            controller.on_sent(now, turn, 1200)
            if call:
                getattr(controller, call)(now)
            controller.on_ack(now + 50 * MILLISECOND, 0, [turn])
        return controller.snapshot

    ways = {"neither": None, "flow control": "on_window_unused", "application": "on_app_limited"}
    startup = _core.ControllerMode.startup.value
    in_startup = {way: rounds("bbr", call).mode == startup for way, call in ways.items()}
    assert in_startup == {"neither": False, "flow control": False, "application": True}
    grown = {way: rounds("newreno", call).window_bytes for way, call in ways.items()}
    initial = CController("newreno").snapshot.window_bytes
    assert grown["neither"] > grown["flow control"] == grown["application"] == initial


def test_memory_does_not_grow_with_the_number_of_packets():
    import resource

    controller = CController("cubic")

    def send(first, count):
        for number in range(first, first + count):
            controller.on_sent(number * 1000, number, 1200)
            if number >= 40:
                controller.on_ack(number * 1000, 0, [number - 40])

    send(0, 2000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    send(2000, 30_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 2000  # kB


def test_the_library_says_its_version():
    assert quicgym.__version__ in C["version"]().decode()
    assert C["api_version"]() == 1


def test_the_example_of_the_page_compiles_and_runs(tmp_path):
    root = Path(__file__).parents[2]
    page = (root / "docs/how-to/c-interface.md").read_text()
    command = re.search(r"^    (cc .*?[^\\])$", page, re.MULTILINE | re.DOTALL)
    assert command is not None
    (tmp_path / "sender.c").write_text((root / "examples/c/sender.c").read_text())
    build = (
        command.group(1).replace("python", sys.executable).replace("cc ", "cc -Wall -Werror ", 1)
    )
    subprocess.run(["sh", "-c", build], check=True, cwd=tmp_path)
    run = partial(subprocess.run, capture_output=True, text=True, cwd=tmp_path)
    lines = run(["./sender", "bbr3"], check=True).stdout.splitlines()
    assert len(lines) == 9
    assert 8 < float(lines[-1].split()[-2]) < 10  # Mbps, of 10
    unknown = run(["./sender", "cubik"])
    assert unknown.returncode == 1 and "no controller is named 'cubik'" in unknown.stderr


def test_the_header_is_c99_without_extensions_and_c_plus_plus(tmp_path):
    source = tmp_path / "header.c"
    source.write_text("#include <quicgym/controller.h>\n")
    for options in ("-xc -std=c99", "-xc++ -std=c++11"):
        subprocess.run(
            ["cc", *options.split(), "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
            + [f"-I{quicgym.get_include()}", str(source)],
            check=True,
        )
