"""How flows share a bottleneck, against values computed by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from helpers import environments as helper

import quicgym
from quicgym.agents.evaluation.rollouts import play
from quicgym.agents.policies.by_name import find_policy
from quicgym.envs.scenarios.fair_share import fair_window_bytes
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.scenarios.flows import Flow
from quicgym.envs.scenarios.links import Access
from quicgym.envs.simulation.metrics import OF_SHARING, SHARING_METRICS
from quicgym.envs.simulation.series import Series
from quicgym.envs.simulation.sharing import Member, Sharing

SECOND = 10**9
CAPACITY_MBPS = 8.0  # 1,000,000 bytes per second


def sharing(
    rates: Sequence[Sequence[float]],
    active: Sequence[tuple[float, float]],
    *,
    window_s: tuple[float, float] | None = None,
    begin_s: float = 0,
    policies: Sequence[int] = (0,),
    wire_share: float = 1.0,
) -> Sharing:
    """Flows with a rate in each second, in shares of the capacity, known every 100 ms."""
    per_second = np.array(rates, float)
    seconds = len(per_second)
    received = np.cumsum(np.repeat(per_second, 10, axis=0), axis=0) * 100_000
    times = np.arange(1, 10 * seconds + 1) * SECOND // 10
    later = times > begin_s * SECOND
    columns = {
        "time_s": times[later] * 1e-9,
        "capacity_mbps": np.full(int(later.sum()), CAPACITY_MBPS),
    }
    series = Series(
        round(begin_s * SECOND), columns, times[later], np.rint(received[later]).astype(np.uint64)
    )
    members = [
        Member(round(begin * SECOND), round(end * SECOND), place in policies, wire_share)
        for place, (begin, end) in enumerate(active)
    ]
    begin, end = window_s or (0, seconds)
    window = (round(begin * SECOND), round(end * SECOND))
    return Sharing.of(series, members, range(len(members)), window)


def values(found: Sharing) -> dict[str, float | None]:
    return {entry.name: entry.compute(found) for entry in OF_SHARING}


def test_a_share_is_the_rate_over_the_capacity_by_the_number_of_active_flows() -> None:
    found = sharing(
        [[0.5, 0, 0]] * 2 + [[0.5, 0.25, 0.05]] * 8, [(0, 10), (2, 10), (2, 10)], policies=(1, 2)
    )
    measured = values(found)
    assert measured["agent_fair_share"] == pytest.approx(3 * (0.25 + 0.05) / 2)
    assert measured["others_fair_share"] == pytest.approx(1.5)
    time_s, shares = found.over_time()
    assert time_s == pytest.approx(np.arange(1, 11))
    assert shares[1] == pytest.approx([0.5, np.nan, np.nan], nan_ok=True)
    assert shares[2] == pytest.approx([1.5, 0.75, 0.15])


def test_headers_count_in_a_share() -> None:
    found = sharing([[0.5]] * 6, [(0, 6)], wire_share=1.025)
    assert found.mean_share(of_policy=True) == pytest.approx(0.5125)
    assert found.mean_share(of_policy=False) is None


def test_a_share_is_that_of_the_window() -> None:
    found = sharing([[0.2, 0.8]] * 5 + [[0.4, 0.6]] * 5, [(0, 10), (0, 10)], window_s=(5, 10))
    assert found.mean_share(of_policy=True) == pytest.approx(0.8)


def test_what_arrived_before_the_series_began_is_not_counted() -> None:
    found = sharing([[0.9, 0]] * 4 + [[0.5, 0.5]] * 6, [(0, 10), (4, 10)], begin_s=4)
    assert found.mean_share(of_policy=True) == pytest.approx(1.0)
    assert found.mean_share(of_policy=False) == pytest.approx(1.0)


def test_convergence_counts_from_the_arrival_and_needs_five_seconds() -> None:
    # A newcomer at 2 s. The shares are within 25% from 4 s to 8 s, and for good from 9 s on. A
    # second that begins at 8.3 s has a mean of 1.4 · 0.7 + 0.8 · 0.3 = 1.22.
    rates = [[1, 0]] * 2 + [[0.8, 0.2]] * 2 + [[0.6, 0.4]] * 4 + [[0.7, 0.3]] + [[0.4, 0.6]] * 7
    found = sharing(rates, [(0, 16), (2, 16)])
    assert found.convergence_after("arrival") == pytest.approx(6.3)
    at_25_percent = [[1, 0]] * 2 + [[0.63, 0.37]] * 14
    assert sharing(at_25_percent, [(0, 16), (2, 16)]).convergence_after("arrival") is None
    below = [[1, 0]] * 2 + [[0.62, 0.38]] * 14
    assert sharing(below, [(0, 16), (2, 16)]).convergence_after("arrival") == pytest.approx(0)


def test_a_flow_that_arrives_alone_has_nobody_to_converge_with() -> None:
    rates = [[1, 0]] * 8 + [[0.9, 0.1]] * 4 + [[0.5, 0.5]] * 8
    assert sharing(rates, [(0, 20), (8, 20)]).convergence_after("arrival") == pytest.approx(
        4, abs=0.5
    )
    assert sharing([[1.0]] * 8, [(0, 8)]).convergence_after("arrival") is None


def test_one_flow_away_from_its_share_is_no_convergence() -> None:
    rates = [[0.33, 0.33, 0.2]] * 10
    assert sharing(rates, [(0, 10)] * 3).convergence_after("arrival") is None


def test_a_departure_leaves_the_rest_to_take_what_is_free() -> None:
    rates = [[0.5, 0.5]] * 6 + [[0.5, 0]] * 3 + [[0.8, 0]] * 6
    found = sharing(rates, [(0, 15), (0, 6)])
    assert found.convergence_after("departure") == pytest.approx(3, abs=0.9)
    assert found.convergence_after("arrival") == pytest.approx(0)


def test_a_mean_over_changes_is_none_where_one_of_them_does_not_converge() -> None:
    both = [[1, 0, 0]] * 6 + [[0.5, 0.5, 0]] * 6
    third = [[0.34, 0.33, 0.33]] * 6
    active = [(0, 18), (6, 18), (12, 18)]
    assert sharing([*both, *third], active).convergence_after("arrival") == pytest.approx(0)
    unfair = [[0.9, 0.05, 0.05]] * 6
    assert sharing([*both, *unfair], active).convergence_after("arrival") is None


def test_changes_that_follow_soon_do_not_count() -> None:
    found = sharing([[1, 0]] * 2 + [[0.5, 0.5]] * 8, [(0, 10), (2, 10)])
    assert [epoch.begin for epoch in found.epochs()] == [2 * SECOND]


def test_the_deviation_is_that_of_the_share_after_convergence() -> None:
    # Shares of 0.9 and 1.1 in turn after 2 s without convergence: a deviation of 0.1.
    rates = [[0.9, 0.1]] * 2 + [[0.45, 0.55], [0.55, 0.45]] * 4
    found = sharing(rates, [(0, 10), (0, 10)])
    converged = found.convergence_after("arrival")
    assert converged is not None and 1 < converged <= 2
    still = sharing([[0.45, 0.55], [0.55, 0.45]] * 4, [(0, 8), (0, 8)])
    assert still.deviation() == pytest.approx(0.1)
    assert sharing([[0.9, 0.1]] * 8, [(0, 8), (0, 8)]).deviation() is None


def test_a_response_is_ninety_percent_of_the_new_capacity() -> None:
    # Halves of the capacity for 2 s, then all of it; at 6 s half again, and never more.
    rates = [[0.5, 0.0]] * 2 + [[0.5, 0.5]] * 4 + [[0.5, 0.0]] * 4
    found = replace(sharing(rates, [(0, 10), (0, 10)]), changes=(0, 6 * SECOND))
    (first_s, deviation), (second_s, nothing) = found.responses()
    assert 1.5 <= first_s <= 2
    assert second_s == 4 and nothing is None
    assert deviation == pytest.approx(0, abs=0.1)
    assert found.response_s() == pytest.approx((first_s + 4) / 2)
    assert replace(found, changes=()).response_s() is None
    turns = [[0.95, 0], [0.85, 0]] * 4
    steady = replace(sharing(turns, [(0, 8), (0, 8)]), changes=(0,))
    assert steady.response_s() == pytest.approx(0)
    assert steady.response_deviation() == pytest.approx(0.05, abs=0.005)


def test_the_beginning_of_an_outage_is_no_response() -> None:
    scenario = quicgym.load_scenario("ebcc-single").model_dump(mode="json", exclude_none=True)
    rate_mbps = scenario["bottleneck"]["rate_mbps"]
    steps = [{"at_s": 5, "rate_mbps": 0}, {"at_s": 7, "rate_mbps": rate_mbps}]
    scenario["bottleneck"]["rate_schedule"] = steps
    run = quicgym.run(quicgym.Scenario.model_validate({**scenario, "duration_s": 14.0}), "bbr")
    assert run.sharing is not None
    ((after_s, _),) = run.sharing.responses()
    assert after_s > 0


def test_a_run_responds_to_the_changes_of_its_schedule() -> None:
    scenario = quicgym.load_scenario("ebcc-single")
    assert scenario.bottleneck is not None
    rate_mbps = scenario.bottleneck.rate_mbps
    steps = [{"at_s": 4, "rate_mbps": rate_mbps / 4}, {"at_s": 8, "rate_mbps": rate_mbps}]
    document = scenario.model_dump(mode="json", exclude_none=True)
    document["bottleneck"]["rate_schedule"] = steps
    changed = quicgym.Scenario.model_validate({**document, "duration_s": 14.0})
    run = quicgym.run(changed, "bbr")
    assert run.sharing is not None
    down, up = run.sharing.responses()
    assert down[0] == 0  # the queue is full
    assert 0 < up[0] < 6
    assert run.metric("response_time_s") == pytest.approx(up[0] / 2)
    assert quicgym.run(scenario, "bbr").metric("response_time_s") is None


def test_nothing_is_measured_of_flows_that_never_meet() -> None:
    measured = values(sharing([[1, 0]] * 5 + [[0, 1]] * 5, [(0, 5), (5, 10)]))
    assert measured["agent_fair_share"] is measured["others_fair_share"] is None


def test_a_run_and_an_episode_have_the_metrics_by_name() -> None:
    scenario = quicgym.load_scenario("copa-cubic-1bdp").model_copy(update={"duration_s": 20.0})
    run = quicgym.run(scenario, "cubic")
    found = {name: run.metric(name) for name in SHARING_METRICS}
    others = found["others_fair_share"] or 0.0
    assert found["agent_fair_share"] == pytest.approx(2 - others, abs=0.2)
    shares = run.fair_shares()
    assert list(shares.columns) == ["time_s", *(flow.name for flow in run.flows)]
    episode = play(find_policy("cubic"), scenario)
    assert {name: episode.metric(name) for name in SHARING_METRICS} == pytest.approx(found)


def test_a_chain_has_no_fair_share() -> None:
    link = {"rate_mbps": 5.0, "delay_ms": 5.0}
    scenario = quicgym.Scenario.model_validate(
        {
            "name": "chain",
            "duration_s": 2.0,
            "bottleneck": link,
            "chain": [link],
            "access": {"rate_mbps": 50.0, "delay_ms": 0.0},
            "flows": [{}],
        }
    )
    run = quicgym.run(scenario, "cubic")
    assert {run.metric(name) for name in SHARING_METRICS} == {None}
    assert run.fair_shares().empty


def test_the_fair_share_is_an_equal_part_of_the_bandwidth_delay_product(tmp_path):
    shared = helper.scenario(
        flow_list=(
            Flow(name="agent", extra_delay_ms=5),
            Flow(name="other", controller="cubic", extra_delay_ms=50),
        )
    )
    # 8 Mbps for two, 40 ms of the scenario and 10 ms of the agent's own.
    assert fair_window_bytes(shared) == pytest.approx(8e6 / 8 / 2 * 0.05)
    trace = tmp_path / "link.trace"
    trace.write_text("1\n2\n")
    traced = shared.bottleneck.model_copy(update={"rate_mbps": None, "trace": trace})
    both = {"bottleneck": traced, "reverse": shared.bottleneck}
    # Two packets of 1500 bytes in 2 ms.
    assert fair_window_bytes(shared.model_copy(update=both)) == pytest.approx(12e6 / 8 / 2 * 0.05)
    # The way back is 80 ms longer.
    slow = {"reverse": shared.bottleneck.model_copy(update={"delay_ms": 90})}
    there_ms = shared.bottleneck.delay_ms
    assert fair_window_bytes(shared.model_copy(update=slow)) == pytest.approx(
        8e6 / 8 / 2 * (0.05 + (90 - there_ms) / 1e3)
    )
    taken = helper.scenario(flow_list=(Flow(name="other", controller="cubic"),))
    with pytest.raises(ScenarioError, match="names its controller"):
        fair_window_bytes(taken)


def test_the_agent_s_own_access_links_are_those_that_count():
    own = Flow(name="agent", access=Access(rate_mbps=50, delay_ms=15))
    # 10 ms of the bottleneck and 15 at either end, there and back.
    assert fair_window_bytes(helper.scenario(flow_list=(own,))) == pytest.approx(8e6 / 8 * 0.08)
