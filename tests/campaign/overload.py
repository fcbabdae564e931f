"""Hosts that send faster than a relay passes on: it stays small, counts, and says invalid."""

from __future__ import annotations

import socket
import time
from collections.abc import Set
from contextlib import ExitStack
from functools import partial

import numpy as np
from helpers.memory import peak_bytes

from campaign.part import Found, Part, numbered
from quicgym import _core
from quicgym.envs import load_scenario
from quicgym.real import Relay, RelayReport

MOST_BYTES = 100 * 2**20
"""What a relay takes at most: the 64 MiB that it holds, and what it knows of each packet."""
MOST_S = 60.0


def flood(number: int) -> None:
    """Overloads a relay in one or both directions; AssertionError where something is wrong."""
    rng = np.random.default_rng([number, *b"overload"])
    scenario = load_scenario("ebcc-single")
    rate_mbps = float(10 ** rng.uniform(-1, 2))
    access = scenario.access.model_copy(update={"rate_mbps": rate_mbps})
    scenario = scenario.model_copy(update={"access": access})
    payload = bytes(int(rng.integers(20, 1472)))
    directions = [(True, False), (False, True), (True, True)][int(rng.integers(3))]
    datagrams = int(rng.integers(1_000, 60_000))
    with ExitStack() as opened:
        hosts = [
            opened.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in "ab"
        ]
        for host in hosts:
            host.bind(("127.0.0.1", 0))
        relay = opened.enter_context(Relay(scenario, seed=number))
        sender, receiver = (host.getsockname() for host in hosts)
        to = relay.connect(sender=sender, receiver=receiver)
        relay.start()
        sent = 0
        for begin in range(0, datagrams, 1000):
            for sends, host, address in zip(directions, hosts, to, strict=True):
                for _ in range(1000 if sends else 0):
                    host.sendto(payload, address)
                    sent += 1
            if begin % 10_000 == 0:
                relay.report()
        deadline = time.monotonic() + MOST_S
        while (found := counted(relay.report())) != sent:
            assert time.monotonic() < deadline, f"{found} of {sent} datagrams are accounted for"
            time.sleep(0.01)
        began = time.monotonic()
        relay.stop()
        assert time.monotonic() - began < MOST_S, "stop() took too long"
        audit = relay.report().audit
        lost = audit.overflow_packets + audit.kernel_drops
        assert lost == 0 or not audit.valid, f"{lost} datagrams are missing, and the audit is valid"


def counted(report: RelayReport) -> int:
    """Returns how many datagrams reached the network, or were dropped before it."""
    audit = report.audit
    passed = report.forward.sent_packets + report.backward.sent_packets
    return passed + audit.overflow_packets + audit.kernel_drops


def check(number: int) -> Found:
    """Overloads a relay in a process of its own."""
    taken = peak_bytes(partial(flood, number))
    failures = [f"{number}: the relay took {taken} bytes"] if taken > MOST_BYTES else []
    return Found({"overloaded relays": 1}, failures)


def _run(first: int, until: float, jobs: int, wanted: Set[str]) -> tuple[Found, int]:
    return numbered(check, first, until, jobs)


PART = Part(
    name="overload",
    title="hosts that send faster than a relay passes on",
    goals={"overloaded relays": 10**3},
    share=0.5,
    run=_run,
    missing=lambda: None if hasattr(_core, "Relay") else "the relay needs Linux",
    in_real_time=True,
)
