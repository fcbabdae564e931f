"""RFC 9000 on the wire: what our parser reads, and what it does with anything else."""

import pytest
from endpoints import Pair, make_flow
from hypothesis import given
from hypothesis import strategies as st

from quicgym import _core

SHORT_HEADER = bytes([0x40]) + bytes(8) + bytes([5])
TAG = 16


def read(frames, size=None):
    prefix = SHORT_HEADER + bytes(frames)
    return _core.read_datagram(prefix, (size or len(prefix)) + TAG)


def varint(value):
    for count, prefix in ((1, 0), (2, 1), (4, 2), (8, 3)):
        if value < 1 << (8 * count - 2):
            return (value | prefix << (8 * count - 2)).to_bytes(count, "big")
    raise AssertionError(value)


varints = st.integers(0, 2**62 - 1)


@given(varints)
def test_every_varint_is_read_back_from_max_data(value):
    assert read(b"\x10" + varint(value))["frames"] == [("MAX_DATA", value)]


def test_varint_examples_of_rfc_9000_a1():
    for raw, value in (
        ("c2197c5eff14e88c", 151288809941952652),
        ("9d7f3e7d", 494878333),
        ("7bbd", 15293),
        ("25", 37),
        ("4025", 37),
    ):
        assert read(b"\x10" + bytes.fromhex(raw))["frames"] == [("MAX_DATA", value)]


def test_packet_number_example_of_rfc_9000_a3():
    assert _core.decode_packet_number(0xA82F30EA + 1, 0x9B32, 2) == 0xA82F9B32


@given(st.integers(0, 2**40), st.integers(0, 2**30))
def test_packet_number_survives_truncation_as_rfc_9000_a2_sizes_it(largest_acked, unacknowledged):
    number = largest_acked + unacknowledged + 1
    count = _core.packet_number_bytes(unacknowledged + 1)
    truncated = number % 2 ** (8 * count)
    # The peer has seen anything between the largest that it acknowledged and the one before this.
    for seen in (largest_acked, number - 1):
        assert _core.decode_packet_number(seen + 1, truncated, count) == number


def test_frames_are_read_in_order_with_their_fields():
    frames = (
        b"\x01"
        + b"\x02"
        + varint(100)
        + varint(7)
        + varint(1)
        + varint(3)
        + varint(0)
        + varint(9)
        + b"\x14"
        + varint(77)
        + b"\x1e"
        + b"\x0d"
        + varint(2)
        + varint(5000)
    )
    result = read(frames, size=len(SHORT_HEADER) + len(frames) + 1000)
    assert result["error"] is None
    assert result["frames"] == [
        ("PING",),
        ("ACK", 7, [(97, 100), (86, 95)]),
        ("DATA_BLOCKED", 77),
        ("HANDSHAKE_DONE",),
        ("STREAM", 2, 5000, 1000, True),
    ]


def test_implied_zeros_after_the_prefix_are_padding():
    assert read(b"\x01", size=1000)["frames"] == [("PING",)]


@pytest.mark.parametrize(
    ("frames", "error"),
    [
        (b"", "a packet without frames"),
        (b"\x10", "the datagram ends inside a field"),
        (b"\x10\xc0\x00", "the datagram ends inside a field"),
        (b"\x02\x05\x00\x00\x06", "an ACK range below packet number 0"),
        (b"\x02\x05\x00\x01\x00\x04\x00", "an ACK range below packet number 0"),
        (
            b"\x02\x05\x00\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00",
            "the datagram ends inside a field",
        ),
        (b"\x0a\x02\x05abc", "the datagram ends inside a field"),
        (b"\x0c\x02" + b"\xff" * 8 + b"x", "stream data beyond offset 2^62 - 1"),
        (b"\x06\x00\x09abc", "the datagram ends inside a field"),
        (b"\x04\x00\x00\x00", "a frame type that this endpoint does not use"),
        (b"\x1c\x00\x00\x09ab", "the datagram ends inside a field"),
    ],
)
def test_malformed_frames_are_error_values(frames, error):
    assert read(frames)["error"] == error


def test_malformed_headers_are_error_values():
    def error(data):
        return _core.read_datagram(data, len(data))["error"]

    initial = bytes.fromhex("c000000001") + b"\x08" + bytes(8) + b"\x08" + bytes(8) + b"\x00"
    assert error(b"") == "the datagram ends inside a field"
    assert error(bytes(40)) == "the fixed bit of the first byte is 0"
    assert error(b"\xd0" + bytes(60)) == "a long header that is not an Initial packet"
    assert error(b"\xc0\x00\x00\x00\x02" + bytes(60)) == "a version other than 1"
    assert (
        error(b"\xc0\x00\x00\x00\x01\x07" + bytes(60))
        == "a connection id that is not eight bytes long"
    )
    assert (
        error(initial + b"\x40\x30" + bytes(60)) == "the Length field does not match the datagram"
    )
    stream_in_initial = initial + varint(1 + 3 + TAG) + b"\x00" + b"\x08\x02x" + bytes(TAG)
    assert error(stream_in_initial) == "a frame that an Initial packet may not carry"


@given(st.binary(max_size=300), st.integers(0, 1500))
def test_any_bytes_give_frames_or_an_error_value(data, size):
    result = _core.read_datagram(data, size)
    assert result["error"] is None or isinstance(result["error"], str)


@given(st.binary(max_size=120), st.integers(0, 1500))
def test_any_frame_bytes_give_frames_or_an_error_value(data, padding):
    result = read(data, size=len(SHORT_HEADER) + len(data) + padding)
    for frame in result["frames"]:
        if frame[0] == "ACK":
            flat = [number for smallest, largest in frame[2] for number in (largest, smallest)]
            assert flat == sorted(flat, reverse=True) and len(frame[2]) <= 32


@given(
    st.lists(st.tuples(st.booleans(), st.binary(max_size=120), st.integers(0, 1500)), max_size=20)
)
def test_endpoints_survive_any_datagrams(datagrams):
    pair = Pair(make_flow())
    pair.run_until(200_000_000)
    for to_sender, data, size in datagrams:
        endpoint = pair.sender if to_sender else pair.receiver
        endpoint.on_datagram(pair.now, data, size, 0)
        endpoint.on_datagram(pair.now, SHORT_HEADER + data, len(data) + size, 1)
        while endpoint.poll_datagram(pair.now) is not None:
            pass
    assert pair.sender.in_flight_bytes <= pair.sender.statistics()["sent_bytes"]
