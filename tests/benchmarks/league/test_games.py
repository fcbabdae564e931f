"""The leagues of ccBench: their networks, scores, and who wins."""

from __future__ import annotations

import numpy as np
import pytest

import quicgym
from quicgym.benchmarks.league.competition import (
    Competition,
    Network,
    load_competition,
    queue_packets,
)
from quicgym.benchmarks.league.games import Games, LeagueJob, Participants
from quicgym.benchmarks.league.run_league import league_tables


def games(league: str, rates: list[float], delays: list[float] | None = None) -> Games:
    """Returns one game on 12 Mbps by what each participant has; they are named a, b, c."""
    found = next(entry for entry in load_competition("ccbench").leagues if entry.name == league)
    one = found.model_copy(
        update={"delays_ms": (10.0,), "queues_bdp": (1.0,), "windows_s": ((5.0, 10.0),),
                "rates": found.rates[:1]}
    )  # fmt: skip
    one = one.model_copy(update={"rates": (one.rates[0].model_copy(update={"factors": (1.0,)}),)})
    shape = (len(rates), 1, 1)
    measured = np.reshape(rates, shape).astype(float)
    waited = np.reshape(delays or [20.0] * len(rates), shape).astype(float)
    return Games(one, 0.1, "abc"[: len(rates)], measured, waited)


def winners(league: str, rates: list[float], delays: list[float] | None = None) -> str:
    of = games(league, rates, delays)
    return "".join(np.array(list(of.names))[of.wins(of.names).ravel()])


def test_ccbench_has_its_networks_windows_and_steps() -> None:
    single, beside = load_competition("ccbench").leagues
    assert (len(single.networks), len(beside.networks)) == (660, 125)
    assert len(single.windows_s) == len(beside.windows_s) == 4
    steps: dict[float, set[float]] = {}
    for network in single.networks:
        steps.setdefault(network.rate_mbps, set()).add(network.factor)
    assert {rate: len(factors) for rate, factors in steps.items()} == {
        12: 5, 24: 5, 48: 5, 96: 4, 192: 3
    }  # fmt: skip
    scenario = single.scenario(Network(48, 0.25, 20, 0.5))
    for link in (scenario.bottleneck, scenario.reverse):
        assert link is not None
        assert link.queue.limit == 80  # half of 48 Mbps · 40 ms / 1500 bytes
        assert [(step.at_s, step.rate_mbps) for step in link.rate_schedule] == [
            (7, 12), (14, 48), (21, 12)
        ]  # fmt: skip
    assert scenario.duration_s == 24
    shared = beside.scenario(Network(12, 1, 5, 16))
    assert shared.duration_s == 120
    assert [(flow.controller, flow.start_s) for flow in shared.flows] == [("cubic", 0), (None, 5)]
    assert queue_packets(Network(12, 1, 5, 16)) == 160


@pytest.mark.parametrize(
    ("rates", "delays", "who"),
    [
        ([10, 10, 10], [20, 22, 23], "ab"),  # 5, 4.5 and 4.3
        ([10.4, 9.6, 9.4], [20, 20, 20], "ab"),  # 10, 10 and 9 after rounding
        ([2.5, 2.4], [20, 20], "a"),  # halves go up: 3 and 2
        ([10, float("nan")], [20, float("nan")], "a"),
    ],
)
def test_power_wins_within_a_tenth_of_the_best(
    rates: list[float], delays: list[float], who: str
) -> None:
    assert winners("single-flow", rates, delays) == who


@pytest.mark.parametrize(
    ("rates", "who"),
    [
        ([6, 5, 7], "a"),  # the band is 5.4 to 6.6
        ([5, 7, 8], "ab"),  # nobody is fair: 4.5 to 7.7
        ([2, 12, float("nan")], "a"),  # 1.8 to 11
        ([3.4, 8.6], "ab"),  # 3 and 9 are as far: 2.7 to 9.9
    ],
)
def test_the_band_around_the_fair_share_reaches_to_the_nearest(
    rates: list[float], who: str
) -> None:
    assert winners("beside-cubic", rates) == who


def test_a_win_rate_is_that_of_its_field() -> None:
    of = games("single-flow", [10, 9, 5])
    kinds = {"a": "learned", "b": "baseline", "c": "baseline"}
    of_all, of_two = of.table("abc", kinds), of.table("bc", kinds)
    assert [row["policy"] for row in of_all["policies"]] == ["a", "b", "c"]
    assert [row["win_rate_percent"] for row in of_all["policies"]] == [100, 0, 0]
    assert of_two["field"] == ["b", "c"]
    assert [row["win_rate_percent"] for row in of_two["policies"]] == [100, 0]
    assert of_all["won_by_percent"]["learned alone"] == 100
    assert of_two["won_by_percent"]["hand-coded alone"] == 100


def test_win_rates_without_rounding() -> None:
    rows = games("single-flow", [2.5, 2.45]).table("ab", dict.fromkeys("ab", "baseline"))
    assert {row["policy"]: row["unrounded_win_rate_percent"] for row in rows["policies"]} == {
        "a": 100, "b": 100
    }  # fmt: skip
    by_policy = {row["policy"]: row for row in rows["policies"]}
    assert by_policy["b"]["win_rate_percent"] == 0
    assert by_policy["a"]["by"]["queue"] == {"1 BDP": 100}


def test_a_run_has_rate_and_delay_of_each_window() -> None:
    league = load_competition("ccbench").leagues[0]
    scenario = league.scenario(Network(12, 0.5, 10, 1))
    job = LeagueJob(
        scenario, "vegas", "native", 0, marks_s=league.marks_s, windows_s=league.windows_s
    )
    result = job.run()
    assert len(result["rate_mbps"]) == len(result["delay_ms"]) == 4
    # 10 to 17 s: 4 s with 6 Mbps, and 3 s with 12 Mbps
    assert result["rate_mbps"][2] == pytest.approx((4 * 6 + 3 * 12) / 7 * 1498 / 1500, rel=0.1)
    # the mean over packets of the way there, with the queue, and 10 ms back
    whole = quicgym.run(scenario, "vegas", from_s=10, until_s=17)
    one_way_ms = whole.flows[0].mean_one_way_delay_ms
    assert one_way_ms is not None
    assert result["delay_ms"][2] == pytest.approx(one_way_ms + 10)
    assert result["rate_mbps"][2] == pytest.approx(whole.flows[0].ip_receive_rate_mbps)
    other = LeagueJob(scenario, "vegas", "native", 0, windows_s=((0, 3),))
    assert other.key != job.key


@pytest.mark.long
def test_the_win_rates_with_slow_start_until_a_loss_are_those_of_the_report() -> None:
    """The column of docs/reports/hard-tests.md."""
    ccbench = load_competition("ccbench")
    standard = {"slow_start": "standard"}
    beside = ccbench.leagues[1]
    flow = beside.beside[0].model_copy(update={"parameters": standard})
    beside = beside.model_copy(update={"beside": (flow,)})
    competition = Competition.model_construct(
        name="ccbench", source="", margin=ccbench.margin, leagues=(beside,)
    )
    field = ["cubic=cubic:slow_start=standard", "vegas", "copa", "bbr", "bbr3"]
    of = Participants.of(competition, field)
    (table,) = league_tables(of, {job.key: job.run() for job in of.every_job})
    rates = {row["policy"]: row["win_rate_percent"] for row in table["policies"]}
    expected = {"cubic": 55.6, "vegas": 0.8, "copa": 26.4, "bbr": 28.0, "bbr3": 66.2}
    assert rates == pytest.approx(expected, abs=1)
