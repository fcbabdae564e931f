"""How a policy does on the worst networks: what a collapse is, what is behind, and power."""

from __future__ import annotations

import pytest

from quicgym.benchmarks.robustness import robustness


def cell(reward=0.5, share=0.8, loss=0.02, goodput=8.0, rtt=50.0):
    return {
        "reward": reward,
        "throughput_share": share,
        "loss_rate": loss,
        "goodput_mbps": goodput,
        "mean_rtt_ms": rtt,
    }


@pytest.mark.parametrize(
    ("own", "collapses"),
    [
        (cell(), 0),
        (cell(share=0.41), 0),
        (cell(share=0.39), 1),  # below half of the better share
        (cell(loss=0.16), 0),
        (cell(loss=0.18), 1),  # 10 points above the larger loss
    ],
)
def test_a_collapse_is_half_the_share_or_ten_points_of_loss(own, collapses):
    cubic, bbr = cell(share=0.8, loss=0.02), cell(share=0.3, loss=0.07)
    assert robustness([own], [[cubic], [bbr]]).collapses == collapses


def test_behind_is_measured_from_the_better_reward_on_each_network():
    cubic, bbr = [cell(0.5), cell(0.1), cell(0.3)], [cell(0.2), cell(0.6), cell(0.3)]
    found = robustness([cell(0.45), cell(0.3), cell(0.9)], [cubic, bbr])
    assert found.behind == pytest.approx(1 / 3)
    assert found.worst == pytest.approx(-0.3)


def test_power_is_the_geometric_mean_of_goodput_over_rtt():
    cells = [cell(goodput=1.0, rtt=10.0), cell(goodput=4.0, rtt=10.0), cell(goodput=None)]
    assert robustness(cells, [cells, cells]).power == pytest.approx(200.0)
    nothing = [cell(goodput=0.0), cell(rtt=None)]
    assert robustness(nothing, [nothing, nothing]).power is None
