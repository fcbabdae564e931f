"""RFC 9000 on the wire: what our parser reads, and what it does with anything else."""

import itertools

import pytest
from helpers.endpoints import Pair, make_flow, one_rtt
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
    ack = b"\x02" + b"".join(map(varint, (100, 7, 1, 3, 0, 9)))
    stream = b"\x0d" + varint(2) + varint(5000)
    frames = b"\x01" + ack + b"\x14" + varint(77) + b"\x1e" + stream
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


def test_a_close_by_the_application_names_no_frame():
    frames = b"\x1d" + varint(300) + b"\x02no" + b"\x1c" + varint(7) + b"\x06\x03bad" + b"\x01"
    closes = [("CONNECTION_CLOSE", 300), ("CONNECTION_CLOSE", 7)]
    assert read(frames)["frames"] == [*closes, ("PING",)]


CUT = "the datagram ends inside a field"


@pytest.mark.parametrize(
    ("frames", "error"),
    [
        (b"", "a packet without frames"),
        (b"\x10", CUT),
        (b"\x10\xc0\x00", CUT),
        (b"\x02\x05\x00\x00\x06", "an ACK range below packet number 0"),
        (b"\x02\x05\x00\x01\x00\x04\x00", "an ACK range below packet number 0"),
        (b"\x02\x05\x00\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00", CUT),
        (b"\x0a\x02\x05abc", CUT),
        (b"\x0c\x02" + b"\xff" * 8 + b"x", "stream data beyond offset 2^62 - 1"),
        (b"\x06\x00\x09abc", CUT),
        (b"\x04\x00\x00\x00", "a frame type that this endpoint does not use"),
        (b"\x1c\x00\x00\x09ab", CUT),
    ],
)
def test_malformed_frames_are_error_values(frames, error):
    assert read(frames)["error"] == error


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
    pair = Pair(make_flow()).run_until(200_000_000)
    numbers = itertools.count(1000)
    for to_sender, data, size in datagrams:
        endpoint = pair.sender if to_sender else pair.receiver
        endpoint.on_datagram(pair.now, (data, size, 0, 0))
        prefix, _, _, number = one_rtt(next(numbers), data)
        endpoint.on_datagram(pair.now, (prefix, len(data) + size, 1, number))
        while endpoint.poll_datagram(pair.now) is not None:
            pass
    assert pair.sender.in_flight_bytes <= pair.sender.statistics()["sent_bytes"]


@pytest.mark.parametrize(
    ("expected", "truncated", "number"),
    [
        (384, 0, 512),  # half a window below: the next window
        (384, 1, 257),
        (256, 128, 384),  # half a window above: this window
        (256, 129, 129),
        (10, 200, 200),  # there is no window before the first
        (2**62 - 1, 0, 2**62 - 256),  # and none after the last
    ],
)
def test_packet_numbers_at_the_ends_of_the_window_of_rfc_9000_a3(expected, truncated, number):
    assert _core.decode_packet_number(expected, truncated, 1) == number


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_packet_number_grows_before_the_window_is_used_up(count):
    half = 2 ** (8 * count - 1)
    assert [_core.packet_number_bytes(number) for number in (half - 1, half)] == [count, count + 1]


@pytest.mark.parametrize(
    "prefix, value", [(b"\x40", 0), (b"\x80\x01", 1 << 16), (b"\xc0\x00\x01", 1 << 40)]
)
def test_an_integer_may_end_in_implied_zeros(prefix, value):
    size = len(SHORT_HEADER) + 1 + (1 << (prefix[0] >> 6))
    assert read(b"\x10" + prefix, size=size)["frames"] == [("MAX_DATA", value)]
    cut = read(b"\x10" + prefix, size=size - 1)
    assert (cut["error"], cut["frames"]) == (CUT, [])


@pytest.mark.parametrize("frame", [b"\x06", b"\x0e\x02"])
def test_data_may_end_at_offset_2_to_the_62_minus_1_and_not_beyond(frame):
    errors = [
        read(frame + varint(offset) + varint(3) + b"abc")["error"]
        for offset in (2**62 - 4, 2**62 - 3)
    ]
    assert errors == [None, "stream data beyond offset 2^62 - 1"]


@pytest.mark.parametrize(
    "ranges, expected",
    [
        (b"\x00\x05", [(0, 5)]),
        (b"\x01\x00\x03\x00", [(5, 5), (0, 0)]),
        (b"\x01\x00\x01\x02", [(5, 5), (0, 2)]),
    ],
)
def test_an_acknowledgement_may_reach_down_to_packet_number_0(ranges, expected):
    assert read(b"\x02\x05\x00" + ranges)["frames"] == [("ACK", 0, expected)]


def test_of_many_acknowledged_ranges_the_32_newest_are_read():
    frames = b"\x02" + varint(200) + b"\x00" + varint(39) + bytes(1 + 39 * 2) + b"\x01"
    acknowledgement, ping = read(frames)["frames"]
    assert acknowledgement == ("ACK", 0, [(number, number) for number in range(200, 136, -2)])
    assert ping == ("PING",)


def initial(frames, token=b"", shorter=0, id_bytes=8):
    """An Initial packet; its Length field says `shorter` bytes too few."""
    ids = (bytes([id_bytes]) + bytes(id_bytes)) * 2
    header = bytes.fromhex("c000000001") + ids + varint(len(token)) + token
    return header + varint(1 + len(frames) + TAG - shorter) + b"\x00" + frames + bytes(TAG)


CRYPTO = b"\x06\x00\x01x"
LENGTH = "the Length field does not match the datagram"
ID_LENGTH = "a connection id that is not eight bytes long"
FORBIDDEN = "a frame that an Initial packet may not carry"


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", "the datagram ends inside a field"),
        (bytes(40), "the fixed bit of the first byte is 0"),
        (b"\xd0" + bytes(60), "a long header that is not an Initial packet"),
        (b"\xc0\x00\x00\x00\x02" + bytes(60), "a version other than 1"),
        (initial(b""), "a packet without frames"),
        (initial(CRYPTO, id_bytes=7), ID_LENGTH),
        (initial(CRYPTO, id_bytes=9), ID_LENGTH),
        (initial(CRYPTO, shorter=1), LENGTH),
        (initial(CRYPTO, shorter=-1), LENGTH),
        (initial(b"\x08\x02x"), FORBIDDEN),
        (initial(b"\x1d\x05\x00"), FORBIDDEN),
    ],
)
def test_malformed_headers_and_initial_packets_are_error_values(data, error):
    assert _core.read_datagram(data, len(data))["error"] == error


@pytest.mark.parametrize(
    ("data", "frame"),
    [
        (initial(CRYPTO, token=b"\x40token"), ("CRYPTO", 0, 1)),
        (initial(b"\x1c\x05\x00\x00"), ("CONNECTION_CLOSE", 5)),
    ],
)
def test_initial_packets_with_a_token_and_with_a_close_are_read(data, frame):
    result = _core.read_datagram(data, len(data))
    assert (result["type"], result["error"], result["frames"]) == ("Initial", None, [frame])
