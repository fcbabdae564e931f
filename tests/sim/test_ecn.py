"""Explicit congestion notification: codepoints, counts, prompt feedback (RFC 9000 13.4, 13.2.1)."""

import pytest
from helpers.endpoints import SECOND, Pair, make_flow

NOT_ECT, ECT_1, ECT_0 = 0, 1, 2


class Codepoints(Pair):
    """Keeps the ECN codepoint of every datagram, as it was sent."""

    def __init__(self, flow, **arguments):
        self.sent = {"data": [], "ack": []}
        super().__init__(flow, **arguments)

    def carry(self, direction, now, datagram):
        self.sent[direction].append(datagram[2])
        super().carry(direction, now, datagram)


@pytest.mark.parametrize(
    "controller, ecn, codepoint",
    [
        ("newreno", False, NOT_ECT),
        ("newreno", True, ECT_0),
        ("prague", False, ECT_1),
        ("prague", True, ECT_1),
    ],
)
def test_a_controller_for_l4s_gets_ect_1_whether_or_not_the_flow_has_ecn(
    controller, ecn, codepoint
):
    pair = Codepoints(make_flow(controller=controller, ecn=ecn)).run_until(SECOND // 4)
    handshake, *others = pair.sent["data"]
    assert handshake == NOT_ECT
    assert set(others) == {codepoint}
    assert set(pair.sent["ack"]) == {NOT_ECT}


@pytest.mark.parametrize("controller, counted", [("newreno", 0), ("prague", 1)])
def test_ack_frames_count_each_codepoint(controller, counted):
    marked = {20, 21, 40, 77}
    pair = Codepoints(
        make_flow(controller=controller, ecn=True), mark=marked.__contains__
    ).run_until(SECOND)
    _, (_, _, ranges, counts) = pair.frames("ack", "ACK")[-1]
    received = sum(last - first + 1 for first, last in ranges)
    assert received > 100
    assert counts[2] == len(marked)
    assert counts[counted] == received - len(marked)
    assert counts[1 - counted] == 0
