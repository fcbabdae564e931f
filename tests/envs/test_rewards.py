"""The terms of the reward against the totals of a simulation, and the rewards against the terms."""

import gymnasium
import numpy as np
import pytest
from helpers import environments as helper

from quicgym import Reward, Scenario, Simulation, make_vec, preset_action
from quicgym.envs.scenarios.flows import Flow
from quicgym.envs.scenarios.links import Access, Link, Queue, RateStep
from quicgym.envs.simulation.metrics import jain


def play(scenario, reward="fair-throughput", **arguments):
    environment = gymnasium.make(
        "quicgym/Tuning-v1", scenario=scenario, reward=reward, **arguments
    ).unwrapped
    return helper.play(environment, [preset_action("bbr")] * 100, 7), environment.episode_seed


def test_the_terms_are_those_of_the_simulation():
    scenario = helper.scenario(flows=3, duration_s=4, loss=0.01)
    rows, seed = play(scenario)
    infos = [row[4] for row in rows]
    with Simulation(scenario, "native", seed, ["bbr", "cubic", "cubic"]) as simulation:

        def totals(info):
            simulation.run_until(info["time_s"])
            return [flow.statistics for flow in simulation.flows]

        before = totals(infos[0])
        for earlier, info in zip(infos, infos[1:], strict=False):
            after = totals(info)

            def change(key, before=before, after=after):
                return np.array([b[key] - a[key] for a, b in zip(before, after, strict=True)])

            seconds = info["time_s"] - earlier["time_s"]
            wire = change("received_bytes") + 30 * change("received_packets")
            drops, received = change("dropped_packets"), change("received_packets")
            running = [total["start"] * 1e-9 <= earlier["time_s"] for total in before]
            assert info["throughput_mbps"] == pytest.approx(wire.sum() * 8e-6 / seconds)
            assert info["flow_throughput_mbps"] == pytest.approx(wire[0] * 8e-6 / seconds)
            assert info["throughput_share"] == pytest.approx(info["throughput_mbps"] / 8)
            assert info["loss_rate"] == pytest.approx(
                drops.sum() / max(1, drops.sum() + received.sum())
            )
            assert info["active_flows"] == sum(running)
            assert info["jain"] == pytest.approx(jain(wire[running]) or 1.0)
            samples = change("rtt_samples")
            if samples.sum():
                seconds = change("rtt_sum_seconds")
                minimum = np.array([max(1, total["min_rtt"]) * 1e-9 for total in after])
                assert info["rtt_ms"] == pytest.approx(1e3 * seconds.sum() / samples.sum())
                assert info["rtt_ratio"] == pytest.approx((seconds / minimum).sum() / samples.sum())
            before = after


FORMULAS = {
    "fair-throughput": lambda i: i["throughput_share"] - 5 * i["loss_rate"] - (1 - i["jain"]),
    "delay": lambda i: i["throughput_share"] - 5 * i["loss_rate"] - (i["rtt_ratio"] - 1),
    "power": lambda i: i["throughput_share"] / i["rtt_ratio"],
}


@pytest.mark.parametrize("name", FORMULAS)
def test_named_rewards_are_their_formulas(name):
    rows, _ = play(helper.scenario(flows=2), name)
    assert len(rows) > 15
    for _, reward, _, _, info in rows[1:]:
        assert reward == pytest.approx(FORMULAS[name](info))


@pytest.mark.parametrize("name", FORMULAS)
def test_a_long_decision_earns_what_short_ones_earn_on_the_same_network(name):
    flow = Flow(start_s=0.1, application={"kind": "on-off", "rate_mbps": 20, "on_s": 1, "off_s": 2})
    scenario = helper.scenario(flow_list=(flow,), duration_s=8)

    def earned(decision_interval_ms):
        rows, _ = play(scenario, name, decision_interval_ms=decision_interval_ms)
        return sum(reward * info["step_s"] for _, reward, _, _, info in rows[1:])

    assert earned(2000) == pytest.approx(earned(100))


def test_the_rtt_ratio_of_a_long_decision_begins_with_the_first_sample():
    scenario = helper.scenario(flow_list=(Flow(),)).model_copy(
        update={"bottleneck": Link(rate_mbps=10, delay_ms=290)}
    )
    short = [row[4] for row in play(scenario, decision_interval_ms=100)[0][1:21]]
    (long,) = [row[4] for row in play(scenario, decision_interval_ms=2000)[0][1:2]]
    assert long["time_s"] == pytest.approx(short[-1]["time_s"])
    measured = [info["rtt_ratio"] for info in short if not np.isnan(info["rtt_ratio"])]
    assert 5 < len(measured) < 18
    assert long["rtt_ratio"] == pytest.approx(np.mean(measured))


def test_weights_are_taken():
    reward = Reward("fair-throughput", loss_weight=2, fairness_weight=3)
    for _, reward_, _, _, i in play(helper.scenario(flows=2), reward)[0][1:]:
        expected = i["throughput_share"] - 2 * i["loss_rate"] - 3 * (1 - i["jain"])
        assert reward_ == pytest.approx(expected)
    with pytest.raises(ValueError, match="loss_weight = nan"):
        Reward(loss_weight=float("nan"))


def test_the_weight_of_delay_is_taken():
    reward = Reward("delay", loss_weight=2, delay_weight=3)
    for _, reward_, _, _, i in play(helper.scenario(flows=2), reward)[0][1:]:
        expected = i["throughput_share"] - 2 * i["loss_rate"] - 3 * (i["rtt_ratio"] - 1)
        assert reward_ == pytest.approx(expected)
    with pytest.raises(ValueError, match="delay_weight = inf: give a finite number"):
        Reward("delay", delay_weight=float("inf"))
    with pytest.raises(ValueError, match="loss_weight = '5': give a finite number"):
        Reward("delay", loss_weight="5")


def test_a_function_of_the_terms_is_a_reward():
    rows, _ = play(helper.scenario(), lambda info: info["throughput_mbps"] - info["queue_packets"])
    for _, reward, _, _, info in rows[1:]:
        assert reward == info["throughput_mbps"] - info["queue_packets"]
    with pytest.raises(ValueError, match=r"give finite numbers of the shape \(1,\)"):
        play(helper.scenario(), lambda info: np.nan * info["jain"])

    def forgets(info):
        pass

    with pytest.raises(ValueError, match=r"the reward function .*forgets returned None; give"):
        play(helper.scenario(), forgets)


def test_a_function_can_compare_with_the_last_step_of_a_row():
    last = np.zeros(3)

    def gained(info):
        gain = info["time_s"] - last[info["row"]]
        last[info["row"]] = info["time_s"]
        return gain

    environments = make_vec("window", 3, reward=gained, scenario=helper.scenario())
    environments.reset(seed=1)
    environments.step(np.zeros(3, np.int64))  # begins when the flow does
    for _ in range(3):
        _, rewards, _, _, info = environments.step(np.zeros(3, np.int64))
        assert np.allclose(rewards, info["step_s"])
    assert last.tolist() == info["time_s"].tolist()


def capacities(bottleneck, reverse=None):
    scenario = Scenario(
        name="capacity", duration_s=2, bottleneck=bottleneck, reverse=reverse,
        access=Access(rate_mbps=50, delay_ms=5), flows=(Flow(start_s=0.05),),
    )  # fmt: skip
    rows, _ = play(scenario)
    return [(row[4]["time_s"], row[4]["capacity_mbps"]) for row in rows[1:]]


def test_capacity_follows_a_rate_schedule():
    steps = (RateStep(at_s=0.5, rate_mbps=4.0), RateStep(at_s=0.97, rate_mbps=12.0))
    link = Link(rate_mbps=8.0, delay_ms=10, queue=Queue(limit=35), rate_schedule=steps)
    for time, capacity in capacities(link):
        moments = np.linspace(time - 0.1, time, 10_001)[:-1]
        if time > 1.99:
            continue  # the last interval is shorter
        rates = np.where(moments < 0.5, 8.0, np.where(moments < 0.97, 4.0, 12.0))
        assert capacity == pytest.approx(rates.mean(), abs=0.01)


def test_the_mean_share_of_an_episode_is_all_that_was_carried_over_all_that_could_have_been():
    steps = (RateStep(at_s=3.0, rate_mbps=0.0), RateStep(at_s=3.9, rate_mbps=12.0))
    link = Link(rate_mbps=4.0, delay_ms=10, queue=Queue(limit=35), rate_schedule=steps)
    scenario = helper.scenario(duration_s=8).model_copy(update={"bottleneck": link})
    for arguments in ({}, {"decision_interval_ms": 370, "reward_interval_ms": 100}):
        rows, _ = play(scenario, "fair-throughput", **arguments)
        times = np.array([row[4]["time_s"] for row in rows])
        seconds = np.diff(times)
        column = {
            name: np.array([row[4][name] for row in rows[1:]])
            for name in ("throughput_mbps", "capacity_mbps", "throughput_share")
        }
        carried = (column["throughput_mbps"] * seconds).sum()
        possible = (column["capacity_mbps"] * seconds).sum()
        # From the flow's start, which is drawn, to the end of the scenario.
        assert possible == pytest.approx(4 * (3 - times[0]) + 12 * 4.1)
        mean_share = (column["throughput_share"] * seconds).sum() / seconds.sum()
        assert mean_share == pytest.approx(carried / possible)
        assert column["throughput_share"].max() > 1 > mean_share > 0.3


def test_capacity_counts_the_opportunities_of_a_trace(tmp_path):
    times = [3, 3, 10, 40, 41, 42, 120, 130]
    trace = tmp_path / "link.trace"
    trace.write_text("\n".join(map(str, times)), encoding="ascii")
    reverse = Link(rate_mbps=8.0, delay_ms=10)
    every = np.array([period * 130 + time for period in range(40) for time in times])
    for time, capacity in capacities(Link(trace=trace, delay_ms=10), reverse):
        if time > 1.99:
            continue
        inside = (every > round(time * 1e3) - 100) & (every <= round(time * 1e3))
        assert capacity == pytest.approx(inside.sum() * 1500 * 8e-6 / 0.1)


@pytest.mark.ns3
def test_capacity_of_a_wireless_lan_is_the_rate_of_its_symbols():
    environment = gymnasium.make(
        "quicgym/Tuning-v1", scenario="ibcca-burst-28", engine="ns3", episode_s=0.5
    ).unwrapped
    rows = helper.play(environment, [preset_action("bbr")] * 5, 7)
    environment.close()
    # 40 MHz, MCS 7, long guard interval: 108 subcarriers of 5 bits in 4 microseconds.
    assert [row[4]["capacity_mbps"] for row in rows[1:]] == pytest.approx([135] * 5)
    assert 0.1 < rows[-1][4]["throughput_share"] < 1


def test_without_an_rtt_sample_in_an_interval_the_last_mean_stays():
    # A packet takes 20 ms, so that acknowledgements are rare and a queue builds up.
    scenario = helper.scenario(rate_mbps=0.5, loss=0)
    rows, seed = play(scenario, decision_interval_ms=20)
    with Simulation(scenario, "native", seed, "bbr", trace_interval_ms=None) as simulation:
        samples = []
        for row in rows:
            simulation.run_until(row[4]["time_s"])
            samples.append(simulation.flows[0].statistics["rtt_samples"])
    quiet = []
    for step in range(1, len(rows)):
        before, info = rows[step - 1][4], rows[step][4]
        if 0 < samples[step - 1] == samples[step]:
            quiet.append(info["rtt_ratio"])
            for term in ("rtt_ms", "rtt_ratio", "flow_rtt_ms"):
                assert info[term] == before[term]
    assert len(quiet) > 10 and max(quiet) > 2


def test_the_capacity_is_that_of_the_whole_interval_between_two_decisions():
    steps = (RateStep(at_s=0.3, rate_mbps=4.0), RateStep(at_s=0.95, rate_mbps=8.0))
    scenario = Scenario(
        name="capacity", duration_s=2, access=Access(rate_mbps=50, delay_ms=5),
        bottleneck=Link(rate_mbps=8.0, delay_ms=10, queue=Queue(limit=35), rate_schedule=steps),
        flows=(Flow(start_s=0.05),),
    )  # fmt: skip
    rows, _ = play(scenario, decision_interval_ms=500, reward_interval_ms=100)
    assert [row[4]["capacity_mbps"] for row in rows[1:]] == pytest.approx([6.0, 4.8, 8.0, 8.0])


def test_an_outage_of_the_link_is_a_share_of_0(tmp_path):
    trace = tmp_path / "link.trace"
    trace.write_text("\n".join(map(str, [*range(1, 601), 1500])), encoding="ascii")
    scenario = Scenario(
        name="outage", duration_s=2, access=Access(rate_mbps=50, delay_ms=5),
        bottleneck=Link(trace=trace, delay_ms=10), reverse=Link(rate_mbps=8.0, delay_ms=10),
        flows=(Flow(start_s=0.05),),
    )  # fmt: skip
    rows, _ = play(scenario, "power")
    outage = [row for row in rows[1:] if row[4]["capacity_mbps"] == 0]
    assert len(outage) >= 8
    for _, reward, _, _, info in outage:
        assert (reward, info["throughput_share"]) == (0, 0)


def test_a_flow_that_ends_with_the_scenario_has_reached_its_own_end():
    flow = Flow(start_s=0.1, stop_s=2.0)
    rows, _ = play(helper.scenario(flow_list=(flow,)))
    assert rows[-1][2:4] == (True, False)
    assert rows[-1][4]["time_s"] == 2


def test_the_loss_rate_of_a_flow_is_of_its_own_packets():
    scenario = helper.scenario(flows=2, loss=0.05)
    rows, seed = play(scenario)
    lossy = 0
    with Simulation(
        scenario, "native", seed, ["bbr", "cubic"], trace_interval_ms=None
    ) as simulation:
        before = (0, 0)
        for number, row in enumerate(rows):
            simulation.run_until(row[4]["time_s"])
            total = simulation.flows[0].statistics
            now = (total["dropped_packets"], total["received_packets"])
            drops, received = now[0] - before[0], now[1] - before[1]
            before = now
            if number and drops + received:
                lossy += drops > 0
                assert row[4]["flow_loss_rate"] == pytest.approx(drops / (drops + received))
    assert lossy > 5
