"""Our controllers against ns-3's own TCP, in the same network and queue.

docs/reports/validation.md has more networks, and explains where the two differ.
"""

import numpy as np
import pytest

from quicgym.envs import Simulation, load_scenario, run
from quicgym.envs.scenarios.links import BernoulliLoss

pytestmark = [pytest.mark.ns3, pytest.mark.long]
# The papers' scenarios start ours with standard slow start, and ns-3's HyStart is the original one.
CUBIC = {"controller": "cubic", "parameters": {"HyStart": 0.0}}


def lasting(scenario, duration_s=100.0):
    """The scenario for so long that the slow start's overshoot does not decide."""
    return load_scenario(scenario).model_copy(update={"duration_s": duration_s})


def with_random_loss(percent):
    """A single flow whose losses are random and, with this long a queue, hardly ever its own."""
    scenario = lasting("ebcc-single")
    link = scenario.links["bottleneck"]
    queue = link.queue.model_copy(update={"limit": 400})
    lossy = {"queue": queue, "loss": BernoulliLoss(probability=percent / 100)}
    return scenario.model_copy(update={"bottleneck": link.model_copy(update=lossy)})


def over_tcp(scenario, peer):
    """The scenario with ns-3's TCP in place of every flow's transport."""
    change = {"transport": "tcp", "parameters": {}, **peer}
    flows = tuple(flow.model_copy(update=change) for flow in scenario.flows)
    return scenario.model_copy(update={"flows": flows})


def means(scenario, controller, seeds):
    runs = [run(scenario, controller, "ns3", seed, trace_interval_ms=None) for seed in seeds]
    return [
        np.mean([one.metrics[name] for one in runs]) for name in ("goodput_mbps", "mean_rtt_ms")
    ]


def ratios(scenario, controller, peer, seeds=(0,)):
    """Our goodput and mean RTT over those of ns-3's TCP."""
    ours, theirs = means(scenario, controller, seeds), means(over_tcp(scenario, peer), None, seeds)
    return np.divide(ours, theirs)


def window_cut(scenario, controller):
    """The share of the window that a loss leaves on average, once slow start is over."""
    with Simulation(scenario, "ns3", 0, controller, trace_interval_ms=10) as simulation:
        simulation.run()
        window = simulation.trace(0)["window_bytes"].to_numpy(float)[1500:]
    step, settle = 10, 100
    cuts = []
    index = 0
    while index + settle < len(window):
        if window[index + step] < 0.9 * window[index]:
            cuts.append(window[index : index + settle].min() / window[index])
            index += settle
        index += 1
    return np.mean(cuts)


@pytest.mark.parametrize(
    ("scenario", "controller", "peer", "seeds"),
    [
        (lasting("ebcc-single"), "newreno", {"controller": "newreno"}, (0,)),
        (lasting("ebcc-flows-3"), "newreno", {"controller": "newreno"}, (0,)),
        # TcpLinuxReno grows with every acknowledged segment, as RFC 9002 does.
        (with_random_loss(0.01), "newreno", {"controller": "linux-reno"}, (0, 1, 2)),
        (lasting("ebcc-flows-3"), "cubic", CUBIC, (0,)),
        (with_random_loss(0.1), "cubic", CUBIC, (0, 1)),
    ],
    ids=["newreno", "newreno, 3 flows", "newreno, loss", "cubic, 3 flows", "cubic, loss"],
)
def test_goodput_and_rtt_are_those_of_ns3s_tcp(scenario, controller, peer, seeds):
    goodput, mean_rtt = ratios(scenario, controller, peer, seeds)
    assert goodput == pytest.approx(1, abs=0.05)
    assert mean_rtt == pytest.approx(1, abs=0.10)


def test_a_queue_overflow_cuts_our_cubic_once_and_ns3s_twice():
    # Why the mean RTT of a lone CUBIC flow differs.
    single = lasting("ebcc-single", 60.0)
    assert window_cut(single, "cubic") == pytest.approx(0.7, abs=0.03)
    assert window_cut(over_tcp(single, CUBIC), None) == pytest.approx(0.7 * 0.7, abs=0.03)


def test_bbr_has_the_goodput_of_ns3s_bbr():
    assert ratios(lasting("ebcc-single"), "bbr", {"controller": "bbr"})[0] == pytest.approx(
        1, abs=0.05
    )
