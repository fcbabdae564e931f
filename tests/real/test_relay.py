"""The relay over loopback, in real time: what it passes, what it refuses, and its audit."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from helpers.memory import peak_bytes

from quicgym import _core
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.scenarios.files import load_scenario
from quicgym.errors import UserError
from quicgym.real import MOST_LATE_MS, Audit, Relay, RelayReport, replay

pytestmark = pytest.mark.skipif(not hasattr(_core, "Relay"), reason="needs Linux")

DATAGRAMS = 100


@pytest.fixture
def hosts() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A sender's and a receiver's socket on loopback."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
    ):
        for host in (sender, receiver):
            host.bind(("127.0.0.1", 0))
            host.settimeout(10)
        yield sender, receiver


def test_datagrams_arrive_whole_in_order_and_after_the_delay(
    hosts: tuple[socket.socket, socket.socket],
) -> None:
    sender, receiver = hosts
    with Relay("ebcc-single") as relay:
        to_receiver, to_sender = relay.connect(receiver=receiver.getsockname())
        relay.start()
        began = time.monotonic()
        sent = [bytes([number]) * (20 + number) for number in range(DATAGRAMS)]
        for datagram in sent:
            sender.sendto(datagram, to_receiver)
        received = []
        for _ in sent:
            datagram, source = receiver.recvfrom(2048)
            assert source == to_sender
            received.append(datagram)
        assert received == sent
        # 20 + 10 + 20 ms of propagation, one way; no test looks at how much more it was.
        assert time.monotonic() - began > 0.05
        receiver.sendto(b"back", to_sender)
        assert sender.recvfrom(2048) == (b"back", to_receiver)
        report = relay.report()
    assert report.forward.sent_packets == report.forward.delivered_packets == DATAGRAMS
    assert report.backward.delivered_packets == 1
    assert report.audit.packets == DATAGRAMS + 1


def test_a_full_queue_drops_what_the_model_drops(
    hosts: tuple[socket.socket, socket.socket],
) -> None:
    sender, receiver = hosts
    burst, size = 300, 50
    with Relay("ebcc-single") as relay:
        to_receiver, _ = relay.connect(receiver=receiver.getsockname())
        # All of them are there at time 0, however long it takes to send them.
        for number in range(burst):
            sender.sendto(number.to_bytes(2, "big") + bytes(size - 2), to_receiver)
        relay.start()
        model = replay("ebcc-single", [0] * burst, [size + 30] * burst)
        delivered = [*np.flatnonzero(model.fates == "delivered")]
        assert 100 < len(delivered) < burst
        numbers = [int.from_bytes(receiver.recv(2048)[:2], "big") for _ in delivered]
        report = relay.report()
    assert numbers == delivered
    assert report.forward.dropped_packets == burst - len(delivered)
    assert report.audit.kernel_drops == 0


STALLED = """
import json, sys, time
from dataclasses import asdict
from quicgym.real import Relay

with Relay("ebcc-single") as relay:
    to_receiver, _ = relay.connect(receiver=("127.0.0.1", int(sys.argv[1])))
    relay.start()
    print(to_receiver[1], flush=True)
    sys.stdin.readline()
    audit = relay.report().audit
print(json.dumps(asdict(audit) | {"valid": audit.valid, "problems": audit.problems}))
"""


def test_a_relay_that_was_stopped_for_a_while_is_invalid(
    hosts: tuple[socket.socket, socket.socket],
) -> None:
    sender, receiver = hosts
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(STALLED), str(receiver.getsockname()[1])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    port = int(process.stdout.readline())
    try:
        for number in range(DATAGRAMS):
            if number == DATAGRAMS // 2:
                os.kill(process.pid, signal.SIGSTOP)
            sender.sendto(b"datagram", ("127.0.0.1", port))
            time.sleep(0.001)
        time.sleep(0.1)
        os.kill(process.pid, signal.SIGCONT)
        for _ in range(DATAGRAMS):
            receiver.recv(2048)
        output, _ = process.communicate("\n", timeout=20)
    finally:
        process.kill()
    audit = json.loads(output)
    assert not audit["valid"]
    assert audit["packets"] == DATAGRAMS
    assert audit["lateness_p99_ms"] > 50
    assert any("late at the 99th percentile" in problem for problem in audit["problems"])


GOOD = Audit(
    packets=1000, lateness_p50_ms=0.05, lateness_p99_ms=MOST_LATE_MS, lateness_max_ms=9.0,
    cpu_steal_percent=0.0, relay_cpu_percent=5.0, realtime_priority=False, kernel_drops=0,
    overflow_packets=0, unsent_packets=3, refused_packets=3, socket_errors=0, last_socket_error="",
    moved_packets=2, moved_max_ms=0.1, foreign_packets=1, oversized_packets=0, clock_steps=0,
)  # fmt: skip


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"lateness_p99_ms": 0.51}, "0.51 ms late"),
        ({"packets": 0}, "no packet"),
        ({"kernel_drops": 1}, "kernel dropped 1"),
        ({"overflow_packets": 7}, "dropped 7 packets on arrival"),
        ({"moved_max_ms": 0.6}, "reached a queue 0.60 ms late"),
        ({"socket_errors": 2, "last_socket_error": "No buffer space"}, "No buffer space"),
        ({"oversized_packets": 1}, "above 2048 bytes"),
        ({"clock_steps": 1}, "time of day"),
        ({"cpu_steal_percent": 1.1}, "1.1% of the CPU time was stolen"),
        ({"decisions": 9, "decision_late_p99_ms": 5.1}, "decisions came 5.10 ms late"),
    ],
)
def test_an_audit_says_what_makes_a_run_invalid(change: dict, text: str) -> None:
    assert GOOD.valid
    bad = replace(GOOD, **change)
    assert not bad.valid
    assert text in bad.problems[0]


ROOM = 64 * 2**20 // 2052
"""Packets that a relay holds, with the length of each."""


def overload(hosts: tuple[socket.socket, socket.socket]) -> RelayReport:
    """Sends twice what a relay has room for over a slow access link."""
    sender, receiver = hosts
    slow = load_scenario("ebcc-single")
    slow = slow.model_copy(update={"access": slow.access.model_copy(update={"rate_mbps": 0.1})})
    with Relay(slow) as relay:
        to_receiver, _ = relay.connect(receiver=receiver.getsockname())
        relay.start()
        deadline = time.monotonic() + 60
        while (report := relay.report()).audit.overflow_packets < ROOM:
            assert time.monotonic() < deadline, report
            for _ in range(1000):
                sender.sendto(bytes(1400), to_receiver)
    return report


def test_what_a_relay_has_no_room_for_is_dropped_counted_and_invalid(
    hosts: tuple[socket.socket, socket.socket],
) -> None:
    report = overload(hosts)
    assert ROOM * 0.9 < report.forward.sent_packets < ROOM * 1.1
    assert any("packets on arrival" in problem for problem in report.audit.problems)


def test_a_relay_takes_little_more_than_64_mib(hosts: tuple[socket.socket, socket.socket]) -> None:
    assert peak_bytes(lambda: overload(hosts)) < 100 * 2**20


def test_strangers_and_giants_are_counted_and_go_nowhere(
    hosts: tuple[socket.socket, socket.socket],
) -> None:
    sender, receiver = hosts
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger,
        Relay("ebcc-single") as relay,
    ):
        to_receiver, to_sender = relay.connect(receiver=receiver.getsockname())
        # Before the relay runs, nothing tells the sender from a stranger but who was first.
        sender.sendto(b"first", to_receiver)
        stranger.sendto(b"garbage", to_receiver)
        sender.sendto(bytes(3000), to_receiver)
        relay.start()
        assert receiver.recv(4096) == b"first"
        receiver.settimeout(0.3)
        with pytest.raises(TimeoutError):
            receiver.recv(4096)
        audit = relay.report().audit
    assert (audit.foreign_packets, audit.oversized_packets) == (1, 1)
    assert not audit.valid


def test_a_host_that_has_gone_does_not_hang_the_relay(
    hosts: tuple[socket.socket, socket.socket],
) -> None:
    sender, receiver = hosts
    with Relay("ebcc-single") as relay:
        to_receiver, _ = relay.connect(receiver=receiver.getsockname())
        receiver.close()
        relay.start()
        audit, deadline = relay.report().audit, time.monotonic() + 10
        while audit.refused_packets == 0 and time.monotonic() < deadline:
            sender.sendto(b"nobody is there", to_receiver)
            time.sleep(0.02)
            audit = relay.report().audit
    assert audit.refused_packets > 0
    assert audit.socket_errors == 0


def test_sockets_beyond_this_machine_must_be_asked_for() -> None:
    relay = Relay("ebcc-single")
    with pytest.raises(UserError, match="beyond_loopback=True"):
        relay.connect(host="0.0.0.0")
    with Relay("ebcc-single", beyond_loopback=True) as outside:
        assert outside.connect(host="0.0.0.0")[0][0] == "0.0.0.0"


def test_misuse_is_an_error_and_no_hang() -> None:
    relay = Relay("ebcc-single")
    with pytest.raises(RuntimeError, match="path 0 has no port"):
        relay.start()
    with pytest.raises(ValueError, match="path 7 does not exist"):
        relay.connect(7)
    with pytest.raises(ValueError, match="not an IPv4 address"):
        relay.connect(receiver=("localhost", 1))
    with pytest.raises(UserError, match=r"connect 127.0.0.1 to 192.0.2.1:9.*beyond_loopback=True"):
        relay.connect(receiver=("192.0.2.1", 9))
    for interval, duration, text in (
        (0, 10**9, "interval = 0"),
        (10**6, -1, "duration = -1"),
        (1, 2**62, "takes over 1 GiB; make interval at least 4"),
    ):
        with pytest.raises(ValueError, match=text):
            relay.record(interval, duration)
    relay.connect()  # no call before has left a socket
    relay.start()
    with pytest.raises(RuntimeError, match="record before"):
        relay.record(10**6, 10**9)
    with pytest.raises(RuntimeError, match="stop it before"):
        relay.recording()
    relay.stop()
    for time_ns in (-1, 2**63 - 1):
        with pytest.raises(ValueError, match=f"not at {time_ns}"):
            replay("ebcc-single", [time_ns], [1000])
    with pytest.raises(ScenarioError, match="a wireless LAN cannot be emulated"):
        Relay("ibcca-single")
    wired = load_scenario("ebcc-single")
    fragmenting = wired.model_copy(
        update={"access": wired.access.model_copy(update={"mtu_bytes": 1000})}
    )
    with pytest.raises(ScenarioError, match="fragments nothing"):
        Relay(fragmenting)


@pytest.mark.parametrize(
    "use",
    [
        pytest.param("ask([relay.stop] * 4)", id="stop"),
        pytest.param("ask([relay.report] * 4)", id="report"),
        pytest.param("ask([relay.report, relay.report, relay.stop])", id="report and stop"),
        pytest.param(
            """if (child := os.fork()) == 0:
                for call in (relay.report, relay.stop):
                    try:
                        call()
                    except RuntimeError as error:
                        assert "forked" in str(error)
                    else:
                        os._exit(1)
                del relay, call
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            """,
            id="fork",
        ),
    ],
)
def test_threads_and_forked_processes_do_not_hang(use: str) -> None:
    code = f"""if True:
        import os
        from concurrent.futures import ThreadPoolExecutor
        from quicgym.real import Relay

        def ask(calls):
            with ThreadPoolExecutor(len(calls)) as pool:
                for done in [pool.submit(call) for call in calls]:
                    done.result()

        for _ in range(20):
            relay = Relay("ebcc-single")
            relay.connect()
            relay.start()
            {use}
            relay.stop()
            assert relay.report().elapsed_s > 0
    """
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_codepoints_and_marks_pass_the_relay(hosts: tuple[socket.socket, socket.socket]) -> None:
    sender, receiver = hosts
    receiver.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
    scenario = load_scenario("ebcc-single")
    bottleneck = scenario.bottleneck
    assert bottleneck is not None
    queue = bottleneck.queue.model_copy(update={"discipline": "dualpi2"})
    scenario = scenario.model_copy(
        update={"bottleneck": bottleneck.model_copy(update={"queue": queue})}
    )
    with Relay(scenario) as relay:
        to_receiver, _ = relay.connect(receiver=receiver.getsockname())
        relay.start()
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 1)
        for _ in range(40):
            sender.sendto(bytes(1400), to_receiver)
        codepoints = [receiver.recvmsg(2048, 64)[1][0][2][0] & 3 for _ in range(40)]
    # DualPI2's L4S queue marks what has waited for more than 1.2 ms (RFC 9332, appendix A).
    assert codepoints[0] == 1
    assert codepoints[20] == 3
