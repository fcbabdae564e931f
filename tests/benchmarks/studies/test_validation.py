"""Our controllers against ns-3's own TCP; docs/reports/validation.md has the whole study."""

import pytest
from validation import (
    BBR,
    CUBIC,
    LINUX_RENO,
    NEWRENO,
    compare,
    lasting,
    tcp_scenario,
    window_cut,
    with_random_loss,
)

pytestmark = [pytest.mark.ns3, pytest.mark.long]


@pytest.mark.parametrize("scenario", ["ebcc-single", "ebcc-flows-3"])
def test_newreno_has_the_goodput_and_rtt_of_ns3s_newreno(scenario):
    result = compare(lasting(scenario), "newreno", NEWRENO)
    assert result.goodput_ratio == pytest.approx(1, abs=0.05)
    assert result.mean_rtt_ratio == pytest.approx(1, abs=0.10)


def test_newreno_under_random_loss_grows_as_ns3s_byte_counting_reno():
    result = compare(with_random_loss(0.01), "newreno", LINUX_RENO, seeds=(0, 1, 2))
    assert result.goodput_ratio == pytest.approx(1, abs=0.05)
    assert result.mean_rtt_ratio == pytest.approx(1, abs=0.10)


def test_cubic_has_the_goodput_and_rtt_of_ns3s_cubic_when_flows_share_the_link():
    result = compare(lasting("ebcc-flows-3"), "cubic", CUBIC)
    assert result.goodput_ratio == pytest.approx(1, abs=0.05)
    assert result.mean_rtt_ratio == pytest.approx(1, abs=0.10)


def test_cubic_under_random_loss_grows_as_ns3s_cubic():
    result = compare(with_random_loss(0.1), "cubic", CUBIC, seeds=(0, 1))
    assert result.goodput_ratio == pytest.approx(1, abs=0.05)
    assert result.mean_rtt_ratio == pytest.approx(1, abs=0.10)


def test_a_queue_overflow_cuts_our_cubic_once_and_ns3s_twice():
    # Why the mean RTT of a lone CUBIC flow differs.
    single = lasting("ebcc-single", 60)
    assert window_cut(single, "cubic") == pytest.approx(0.7, abs=0.03)
    assert window_cut(tcp_scenario(single, CUBIC), None) == pytest.approx(0.7 * 0.7, abs=0.03)


def test_bbr_has_the_goodput_of_ns3s_bbr():
    result = compare(lasting("ebcc-single"), "bbr", BBR)
    assert result.goodput_ratio == pytest.approx(1, abs=0.05)
