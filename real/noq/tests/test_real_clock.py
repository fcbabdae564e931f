"""noq over UDP sockets in real time."""

from __future__ import annotations

import socket
import sys
import threading
import time
from contextlib import closing

import pytest
from runs import SECOND, catalogue, goodput_mbps, mean_rtt_ms, plans, policy, run, short

from quicgym.real import Relay
from quicgym.real.stacks import StackError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the relay needs Linux")
ATTEMPTS = 3


def audited(scenario, flows):
    """The records of a run that may be believed, where the machine is quiet enough for one."""
    for _ in range(ATTEMPTS):
        with Relay(scenario, seed=1) as relay:
            records = run(scenario, flows, network=relay, clock="real")
        audit = relay.report().audit
        if audit.valid:
            return records
    pytest.skip(f"this machine is too busy for a valid run: {audit.problems}")


def test_tls_over_sockets_does_what_virtual_time_does(tmp_path):
    scenario = short(tmp_path)
    flows = plans(scenario, catalogue("newreno"))
    (real,) = audited(scenario, flows)
    (virtual,) = run(scenario, flows)
    assert real.compared_bytes == real.rows["goodput_bytes"][-1]
    assert goodput_mbps(scenario, flows[0], real) == pytest.approx(
        goodput_mbps(scenario, flows[0], virtual), rel=0.1
    )
    assert mean_rtt_ms(real) == pytest.approx(mean_rtt_ms(virtual), rel=0.1)
    assert real.rows["time"].tolist() == virtual.rows["time"].tolist()


def test_a_policy_steers_two_flows_in_real_time(tmp_path):
    scenario = short(tmp_path, flows="flows: [{}, {start_s: 0.5}]")
    records = audited(scenario, plans(scenario, policy("window")))
    for record in records:
        assert len(record.decision_lateness) > 10
        assert (record.decision_lateness >= 0).all()
        assert record.compared_bytes > 100_000


class Peerless:
    """A relay whose other end is a socket of the test's."""

    def __init__(self, address) -> None:
        self._address = address

    def connect(self, path, *, receiver):
        return self._address, self._address

    def start(self):
        self.started_at_ns = time.monotonic_ns()


def test_a_peer_that_is_silent_ends_the_run_at_its_deadline(tmp_path):
    scenario = short(tmp_path)
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as silent:
        silent.bind(("127.0.0.1", 0))
        network = Peerless(silent.getsockname())
        with pytest.raises(StackError, match=r"the deadline of 0\.5 s has passed"):
            run(
                scenario,
                plans(scenario, catalogue("cubic")),
                network=network,
                clock="real",
                deadline_s=0.5,
            )


def test_garbage_is_no_handshake(tmp_path):
    scenario = short(tmp_path)
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as peer:
        peer.bind(("127.0.0.1", 0))
        peer.settimeout(0.2)

        def answer():
            try:
                while True:
                    datagram, sender = peer.recvfrom(2048)
                    peer.sendto(datagram[::-1], sender)
            except OSError:
                return

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(StackError, match="deadline"):
            run(
                scenario,
                plans(scenario, catalogue("cubic")),
                network=Peerless(peer.getsockname()),
                clock="real",
                deadline_s=1.0,
            )
        thread.join()


def test_an_exception_of_progress_ends_the_threads(tmp_path):
    scenario = short(tmp_path)

    def stop(now, received, rtts):
        raise KeyboardInterrupt

    before = threading.active_count()
    with Relay(scenario) as relay:
        with pytest.raises(KeyboardInterrupt):
            run(
                scenario,
                plans(scenario, catalogue("cubic")),
                network=relay,
                clock="real",
                progress=stop,
            )
    assert threading.active_count() == before


def test_rows_are_as_of_their_time(tmp_path):
    scenario = short(tmp_path)
    (record,) = audited(scenario, plans(scenario, catalogue("cubic")))
    assert record.rows["time"][-1] == 3 * SECOND
    assert record.rows["goodput_bytes"][0] == 0
