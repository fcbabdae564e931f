"""What choosing can be worth at most: the paths nearby, the choices, and the command's table."""

import numpy as np
import oracle_per_path as study
import pytest
from helpers import environments as helper

from quicgym.agents.evaluation.rollouts import play
from quicgym.agents.policies.by_name import find_policy
from quicgym.envs import load_suite
from quicgym.envs.scenarios.flows import Flow


def test_a_nearby_path_differs_by_1_percent_at_most():
    rng = np.random.default_rng(1)
    for scenario in load_suite("heldout"):
        other = study.nearby(scenario, rng)
        assert other != scenario and other.bottleneck.queue == scenario.bottleneck.queue
        pairs = [
            (scenario.bottleneck.rate_mbps, other.bottleneck.rate_mbps),
            (scenario.bottleneck.delay_ms, other.bottleneck.delay_ms),
        ]
        for one, two in zip(scenario.flows, other.flows, strict=True):
            assert two.controller == one.controller
            assert two.start_s == pytest.approx(one.start_s, abs=0.02)
            pairs.append((one.extra_delay_ms, two.extra_delay_ms))
        for one, two in pairs:
            assert two == pytest.approx(one, rel=0.01)


def test_a_nearby_path_that_changes_its_rate_is_as_much_faster_afterwards():
    rng = np.random.default_rng(1)
    changing = [path for path in load_suite("heldout") if path.bottleneck.rate_schedule]
    for scenario in changing:
        link, other = scenario.bottleneck, study.nearby(scenario, rng).bottleneck
        for one, two in zip(link.rate_schedule, other.rate_schedule, strict=True):
            assert two.at_s == one.at_s
            assert two.rate_mbps / one.rate_mbps == pytest.approx(other.rate_mbps / link.rate_mbps)


def test_the_first_5_s_are_ibccas():
    scenario = helper.scenario(
        duration_s=7.0, flow_list=(Flow(name="agent"), Flow(name="other", controller="cubic"))
    )
    ibcca = play(find_policy("ibcca:rise_restarts_cycle=1"), scenario)
    same = play(study.FirstThen("ibcca"), scenario)
    assert same.metrics["agent_goodput_mbps"] == ibcca.metrics["agent_goodput_mbps"]
    assert play(study.FirstThen("cubic"), scenario).metrics != same.metrics
    early = scenario.model_copy(update={"duration_s": 5.0})
    assert (
        play(study.FirstThen("cubic"), early).metrics
        == play(study.FirstThen("ibcca"), early).metrics
    )


def test_a_fixed_window_is_a_power_of_2_of_the_fair_share():
    # Alone and below a BDP the throughput is in proportion, or less, for ACKs are delayed.
    alone = helper.scenario(duration_s=6.0, loss=0, flow_list=(Flow(name="agent"),))
    earned = study.rewards_of_windows([(alone, 0), (alone, 1)])
    assert earned.shape == (len(study.WINDOWS), 2)
    by_window = dict(zip(study.WINDOWS.tolist(), earned.mean(axis=1), strict=True))
    assert 0.5 * 2**-2.5 < by_window[-2.5] < 2**-2.5
    assert 0.7 * 2**-1.0 < by_window[-1.0] < 2**-1.0
    assert by_window[0.5] > 0.9 > by_window[3.0]


def test_a_choice_earns_what_was_chosen_and_is_within_1_percent_where_it_is_the_best():
    earned = np.array([[0.5, 0.1, 0.995], [0.4, 0.2, 1.0]])
    best = earned.max(axis=0)
    assert study.chosen(earned, earned, best) == (1.0, best.mean())
    by = np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    share, reward = study.chosen(earned, by, best)
    assert share == pytest.approx(2 / 3) and reward == pytest.approx(earned[0].mean())


def test_the_command_prints_a_row_for_each_choice(monkeypatch, capsys):
    monkeypatch.setattr(study, "SUITE", "ebcc-single")
    study.oracle_per_path(seeds=2, paths=1)
    rows = [line for line in capsys.readouterr().out.splitlines() if "│" in line]
    assert len(rows) == 6
    assert "100" in rows[0] and "nothing: ibcca everywhere" in rows[-1]


def test_other_seeds_choose_and_not_those_that_are_counted(monkeypatch, capsys):
    # Each seed has another best policy, so that what the others choose is not the best.
    def rewards(policies, cells, title):
        table = np.zeros((len(policies), len(cells) // 2, 2))
        table[0, :, 0] = table[1, :, 1] = 1.0
        return table.reshape(len(policies), -1)

    monkeypatch.setattr(study, "SUITE", "ebcc-single")
    monkeypatch.setattr(study, "rewards", rewards)
    monkeypatch.setattr(
        study, "rewards_of_windows", lambda cells: rewards(study.WINDOWS, cells, "")
    )
    study.oracle_per_path(seeds=2, paths=1)
    rows = [line for line in capsys.readouterr().out.splitlines() if "other seeds" in line]
    assert len(rows) == 3
    assert all(row.replace("│", " ").split()[-2:] == ["0", "0.0000"] for row in rows)
