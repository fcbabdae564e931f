"""quicgym's own endpoints over sockets, with a peer that is not what it should be."""

import socket
import sys
import time

import pytest

from quicgym import _core

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the endpoints need Linux")
SECOND = 1_000_000_000


@pytest.fixture
def peer():
    """A socket in the relay's place."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        opened.bind(("127.0.0.1", 0))
        opened.settimeout(10)
        yield opened


@pytest.fixture
def flows(peer):
    """A flow that is about to start; its sender sends to the peer."""
    flow = _core.Flow()
    flow.controller = "newreno"
    flow.max_datagram_bytes = 1400
    made = _core.UdpFlows([(flow, 1, None)], SECOND // 100, 30 * SECOND)
    made.connect(0, peer.getsockname(), peer.getsockname())
    made.start(time.monotonic_ns())
    yield made


def end_of(flows):
    while not flows.finished:
        time.sleep(0.01)
    with pytest.raises(RuntimeError) as error:
        flows.stop()
    return str(error.value)


def test_a_peer_that_sends_garbage_ends_the_run(flows, peer):
    _, sender = peer.recvfrom(2048)
    peer.sendto(b"garbage" * 10, sender)
    assert "the sender got 70 bytes that are no datagram of its peer" in end_of(flows)


def test_a_datagram_that_is_altered_on_the_way_ends_the_run(flows, peer):
    datagram, _ = peer.recvfrom(2048)
    altered = bytearray(datagram)
    altered[600] ^= 1
    peer.sendto(bytes(altered), flows.receiver_address(0))
    assert f"the receiver got {len(datagram)} bytes that are no datagram" in end_of(flows)


def test_strangers_are_ignored(flows, peer):
    datagram, sender = peer.recvfrom(2048)
    receiver = flows.receiver_address(0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for address in (sender, receiver):
            stranger.sendto(b"garbage" * 10, address)
    peer.sendto(datagram, receiver)
    while peer.recvfrom(2048)[1] != receiver:  # but the sender, which tries again
        assert not flows.finished


def test_a_peer_that_dies_ends_the_run(flows, peer):
    peer.recvfrom(2048)
    peer.close()
    assert "the sender has lost its peer: the relay is gone" in end_of(flows)


def test_a_flow_without_a_peer_does_not_start():
    flow = _core.Flow()
    flow.controller = "newreno"
    flows = _core.UdpFlows([(flow, 1, None)], SECOND // 100, SECOND)
    with pytest.raises(RuntimeError, match="not connected"):
        flows.start(time.monotonic_ns())


def test_an_unknown_controller_or_policy_is_named():
    flow = _core.Flow()
    flow.controller = "cubik"
    with pytest.raises(ValueError, match="cubik"):
        _core.UdpFlows([(flow, 1, None)], SECOND // 100, SECOND)
    with pytest.raises(ValueError, match=r"missing\.json"):
        _core.UdpFlows([(flow, 1, "missing.json")], SECOND // 100, SECOND)


def test_what_comes_at_the_wrong_time_is_an_error(flows, peer):
    for call, arguments in (
        (flows.start, (0,)),
        (flows.connect, (0, peer.getsockname(), peer.getsockname())),
        (flows.record_events, ()),
        (flows.record, (0,)),
        (flows.events, (0,)),
    ):
        with pytest.raises(RuntimeError, match=r"the flows (were|have been|still)"):
            call(*arguments)
    flows.stop()
    assert flows.record(0)["probe_timeouts"] == 0
    with pytest.raises(ValueError, match="interval = 0"):
        _core.UdpFlows([], 0, SECOND)
