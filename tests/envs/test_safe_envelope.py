"""The safe envelope and the guard: no action floods a path, and none leaves a guarded one empty."""

import numpy as np
import pytest
from helpers import environments as helper

from quicgym import Scenario
from quicgym.envs import find_environment
from quicgym.envs.actions import preset_action
from quicgym.envs.scenarios.flows import Flow
from quicgym.envs.scenarios.links import Link, Queue, RateStep
from quicgym.envs.window import WindowEnv

DATAGRAM = 1200
RTT_S, QUEUE = 0.038, 300


def falling_rate(queue: int = QUEUE) -> Scenario:
    """10 Mbps and 38 ms; 0.5 Mbps from 8 s to 14 s."""
    link = Link(
        rate_mbps=10,
        delay_ms=17,
        queue=Queue(limit=queue),
        rate_schedule=(RateStep(at_s=8, rate_mbps=0.5), RateStep(at_s=14, rate_mbps=10)),
    )
    return helper.scenario(duration_s=20).model_copy(update={"bottleneck": link})


def as_bold_as_possible(name: str, **arguments: object):
    if name == "tuning":
        arguments["coordinates"] = ("all",)
    environment = find_environment(name)(falling_rate(), **arguments)
    boldest = {"window": np.array(12), "rate": np.ones(2)}
    action = boldest.get(name)
    if action is None:
        action = environment.preset_action("bbr", cwnd_gain=8.0)
    rows = helper.play(environment, [action] * 200, seed=1)
    total = environment.statistics(0)
    return rows, total["dropped_packets"] / total["sent_packets"]


@pytest.mark.parametrize("name", ["tuning", "rate", "window"])
def test_no_action_loses_more_than_a_quarter_too_much_can(name):
    rows, loss = as_bold_as_possible(name)
    # All that fits is a queue of 300 packets and what is on the wire, and a quarter more is asked
    # for; at the fall of the rate the path holds much less than it has just carried.
    assert max(row[4]["flow_window_bytes"] for row in rows[20:]) < 3 * (QUEUE + 40) * DATAGRAM
    assert loss < 0.25


def standing_queue() -> Scenario:
    """2 Mbps and 33 ms under a queue of 2 s, which Reno keeps full: no RTT is short for long."""
    link = Link(rate_mbps=2, delay_ms=15, queue=Queue(limit=400))
    flows = (Flow(name="agent"), Flow(name="other", controller="newreno"))
    return helper.scenario(duration_s=60).model_copy(update={"bottleneck": link, "flows": flows})


def three_packets() -> Scenario:
    """0.2 Mbps, 6 ms and a queue of two packets: the path holds less than the initial window."""
    link = Link(rate_mbps=0.2, delay_ms=2, queue=Queue(limit=2))
    return helper.scenario(duration_s=30).model_copy(update={"bottleneck": link})


@pytest.mark.parametrize("path", [standing_queue(), three_packets()], ids=["deep", "tiny"])
def test_what_a_path_drops_is_not_sent_again_and_again(path):
    environment = WindowEnv(path)
    rows = helper.play(environment, [np.array(12)] * 1000, seed=1)
    late = [row[4]["flow_loss_rate"] for row in rows[len(rows) // 2 :]]
    assert np.nanmean(late) < 0.15


def test_without_it_a_window_has_no_bound():
    rises, holds = [np.array(12)] * 10, [np.array(6)] * 190
    losses = []
    for safe_envelope in (True, False):
        environment = WindowEnv(falling_rate(), safe_envelope=safe_envelope)
        rows = helper.play(environment, rises + holds, seed=1)
        total = environment.statistics(0)
        losses.append(total["dropped_packets"] / total["sent_packets"])
    assert max(row[4]["flow_window_bytes"] for row in rows) > 3 * (QUEUE + 40) * DATAGRAM
    assert losses[0] < 0.5 * losses[1]


def test_bbr_and_ebcc_do_not_feel_it_where_the_rate_is_constant():
    for name in ("bbr", "bbr-extended", "ebcc"):
        played = []
        for safe_envelope in (True, False):
            environment = find_environment("tuning")(
                "ebcc-flows-3", flow=0, record_deliveries=True, safe_envelope=safe_envelope
            )
            helper.play(environment, [preset_action(name)] * 200, seed=2)
            played.append(environment.deliveries())
        assert np.array_equal(*played)


def test_controllers_in_the_agents_place_have_no_envelope():
    environment = WindowEnv(falling_rate(), record_deliveries=True)
    free = WindowEnv(falling_rate(), record_deliveries=True, safe_envelope=False)
    options = {"controller": "cubic"}
    for one in (environment, free):
        helper.play(one, [np.array(6)] * 200, seed=3, options=options)
    assert np.array_equal(environment.deliveries(), free.deliveries())


def timid(**arguments: object) -> tuple[float, float]:
    """The share of 10 Mbps and the loss rate while an agent holds what it has fallen to."""
    link = Link(rate_mbps=10, delay_ms=17, queue=Queue(limit=QUEUE))
    scenario = helper.scenario(duration_s=20).model_copy(update={"bottleneck": link})
    environment = WindowEnv(scenario, **arguments)
    rises, falls, holds = [np.array(10)] * 15, [np.array(0)] * 8, [np.array(6)] * 200
    rows = helper.play(environment, rises + falls + holds, seed=1)
    total = environment.statistics(0)
    late = [row[4]["throughput_share"] for row in rows[100:]]
    return float(np.mean(late)), total["dropped_packets"] / total["sent_packets"]


def test_a_guarded_agent_does_not_leave_an_empty_path():
    (share, loss), (guarded_share, guarded_loss) = timid(), timid(guard=True)
    assert share < 0.2
    assert guarded_share > 0.5
    assert guarded_loss <= loss


def test_the_guard_gives_way_to_other_flows_and_is_not_felt_by_bbr():
    for name, scenario in (("window", standing_queue()), ("tuning", "ebcc-flows-3")):
        played = []
        for guard in (False, True):
            environment = find_environment(name)(
                scenario, flow=0, record_deliveries=True, guard=guard
            )
            action = np.array(6) if name == "window" else preset_action("bbr")
            helper.play(environment, [action] * 200, seed=2)
            played.append(environment.deliveries())
        assert np.array_equal(*played)
