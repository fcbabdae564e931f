"""Each flow an agent: PettingZoo's own tests, and what they do not look at."""

import warnings

import gymnasium
import numpy as np
import pytest
from helpers import environments as helper
from pettingzoo.test import parallel_api_test, parallel_seed_test

import quicgym
from quicgym import ScenarioError, Simulation, preset_action
from quicgym.envs.actions import WINDOW_EXPONENTS
from quicgym.envs.parallel import ParallelCongestionControlEnv
from quicgym.envs.registration import environments
from quicgym.envs.scenarios.flows import Flow

ENGINES = ["native", pytest.param("ns3", marks=pytest.mark.ns3)]
every_environment = pytest.mark.parametrize("name", environments())
JOIN_AND_LEAVE = (
    Flow(name="all-along", start_s=0.1),
    Flow(name="theirs", controller="newreno", start_s=0.1),
    Flow(name="early", start_s=0.1, stop_s=0.9),
    Flow(name="late", start_s=0.75),
)


def rest(environment):
    return {agent: helper.rest(environment.action_space(agent)) for agent in environment.agents}


@every_environment
@pytest.mark.parametrize("engine", ENGINES)
def test_pettingzoos_own_tests_pass(name, engine):
    scenario = helper.scenario(flow_list=JOIN_AND_LEAVE)
    environment = ParallelCongestionControlEnv(name, scenario, engine=engine)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="reset option 'options' is ignored")
        parallel_api_test(environment, num_cycles=60)
    environment.close()
    if engine == "native":  # it steps two at a time
        parallel_seed_test(lambda: ParallelCongestionControlEnv(name, scenario), num_cycles=60)


def test_agents_join_and_leave_with_their_flows():
    environment = ParallelCongestionControlEnv(
        "tuning", helper.scenario(flow_list=JOIN_AND_LEAVE, loss=0)
    )
    assert environment.possible_agents == ["all-along", "early", "late"]
    observations, infos = environment.reset(seed=1)
    assert set(observations) == set(infos) == {"all-along", "early"}
    seen = [set(environment.agents)]
    ends = {}
    while environment.agents:
        observations, rewards, terminations, truncations, infos = environment.step(
            rest(environment)
        )
        assert len({*rewards.values()}) == 1
        for agent in observations:
            if terminations[agent] or truncations[agent]:
                ends[agent] = (terminations[agent], truncations[agent], infos[agent]["time_s"])
        seen.append(set(environment.agents))
    assert seen[0] == {"all-along", "early"}
    assert {"all-along", "early", "late"} in seen and {"all-along", "late"} in seen
    assert ends["early"][:2] == (True, False) and ends["early"][2] == pytest.approx(0.9, abs=0.11)
    assert ends["all-along"] == ends["late"] == (False, True, 2.0)
    assert environment.step({}) == ({}, {}, {}, {}, {})


def test_between_two_agents_time_goes_on_without_decisions():
    flows = (Flow(name="first", stop_s=0.4), Flow(name="second", start_s=1.3))
    environment = ParallelCongestionControlEnv("tuning", helper.scenario(flow_list=flows, loss=0))
    environment.reset(seed=1)
    steps = []
    while environment.agents:
        acted = list(environment.agents)
        results = environment.step(rest(environment))
        assert len({frozenset(result) for result in results}) == 1
        steps.append((acted, set(results[0]), dict(results[2]), environment.agents))
    (meeting,) = [step for step in steps if len(step[1]) == 2]
    assert meeting[0] == ["first"] and meeting[2] == {"first": True, "second": False}
    assert {acting for acted, *_ in steps for acting in acted} == {"first", "second"}
    assert steps[-1][0] == ["second"] and results[3] == {"second": True}
    assert results[4]["second"]["time_s"] == 2.0


def test_without_an_agent_to_come_nothing_more_is_simulated():
    flows = (Flow(name="first", stop_s=0.4), Flow(name="theirs", controller="newreno"))
    environment = ParallelCongestionControlEnv("tuning", helper.scenario(flow_list=flows, loss=0))
    environment.reset(seed=1)
    while environment.agents:
        *_, infos = environment.step(rest(environment))
    assert infos["first"]["time_s"] < 0.6


def test_an_agent_that_its_jitter_delays_still_joins():
    flows = (Flow(name="first", stop_s=0.3), Flow(name="second", start_s=0.4, start_jitter_ms=900))
    environment = ParallelCongestionControlEnv("rate", helper.scenario(flow_list=flows, loss=0))
    latest = 0
    for seed in range(3):
        environment.reset(seed=seed)
        acted = set()
        while environment.agents:
            acted |= set(environment.agents)
            environment.step(rest(environment))
        assert acted == {"first", "second"}
        latest = max(latest, environment.statistics(1)["start"])
    assert latest > 600_000_000  # decisions after start_s at which it had not begun


@pytest.mark.parametrize(
    "arguments",
    [
        {"episode_s": 0.35},
        {"decision_interval_ms": 500, "reward_interval_ms": 100},
        {"decision_interval_rtts": 2.0},
        {"history_length": 2, "reward": "power"},
    ],
    ids=lambda arguments: ", ".join(arguments),
)
def test_an_agent_alone_has_the_episode_of_the_single_environment(arguments):
    flows = (Flow(name="agent"), Flow(name="other", controller="cubic", start_s=0.2))
    scenario = helper.scenario(flow_list=flows)
    single = gymnasium.make("quicgym/Rate-v1", scenario=scenario, **arguments).unwrapped
    environment = ParallelCongestionControlEnv("rate", scenario, **arguments)
    chosen = helper.actions(single.action_space, 30)
    begin, *rows = helper.play(single, chosen, seed=3)
    observations, infos = environment.reset(seed=3)
    assert np.array_equal(observations["agent"], begin[0]) and infos["agent"] == begin[4]
    for expected, action in zip(rows, chosen, strict=False):
        observations, *others = environment.step({"agent": action})
        assert np.array_equal(observations["agent"], expected[0])
        assert tuple(result["agent"] for result in others) == expected[1:]
    assert not environment.agents and expected[3]


def test_the_samples_of_an_agent_do_not_depend_on_those_of_others():
    environment = ParallelCongestionControlEnv("rate", helper.scenario(flows=2))
    first, second = (environment.action_space(agent) for agent in environment.possible_agents)
    samples = []
    for draws_of_the_other in (0, 3):
        first.seed(1)
        for _ in range(draws_of_the_other):
            second.sample()
        samples.append(first.sample().tolist())
    assert samples[0] == samples[1]


def test_all_as_ebcc_is_the_simulation_of_ebcc():
    scenario = helper.scenario(flows=3)
    environment = ParallelCongestionControlEnv("tuning", scenario, record_deliveries=True)
    environment.reset(seed=4)
    seed = environment.episode_seed
    with Simulation(scenario, "native", seed, "ebcc", record_deliveries=True) as simulation:
        simulation.run()
        expected = simulation.deliveries()
    while environment.agents:
        environment.step({agent: preset_action("ebcc") for agent in environment.agents})
    # A flow that starts between two decisions is BBR until the next, still in its handshake.
    assert np.array_equal(environment.deliveries(), expected)


def test_windows_of_flows_without_an_agent_stay_as_they_are():
    scenario = helper.scenario(flow_list=JOIN_AND_LEAVE, loss=0)
    environment = ParallelCongestionControlEnv(
        "window", scenario, record_deliveries=True, safe_envelope=False
    )
    same = WINDOW_EXPONENTS.index(0.0)
    observations, _ = environment.reset(seed=4)
    seed = environment.episode_seed
    joined = 0
    while environment.agents:
        before = set(environment.agents)
        observations, *_ = environment.step(dict.fromkeys(before, same))
        for agent, observation in observations.items():
            # A 1 in the place of the last action; there is none before the first.
            assert observation[-13:].sum() == (agent in before)
            joined += agent not in before
    assert joined == 1
    with Simulation(scenario, "native", seed, "guided", record_deliveries=True) as simulation:
        simulation.run()
        assert np.array_equal(environment.deliveries(), simulation.deliveries())


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda actions: actions.pop("flow-2"), r"actions for \['flow-1'\]; give one for each"),
        (lambda actions: actions.update(other=0), "actions for .*other"),
        (lambda actions: actions.update({"flow-2": np.zeros(3)}), r"action of flow-2.*\(13,\)"),
        (
            lambda actions: actions.update({"flow-2": np.full(13, 2.0)}),
            "row 1.* = 2; give a number",
        ),
    ],
)
def test_bad_actions_are_errors_and_harm_nothing(change, message):
    environment = ParallelCongestionControlEnv(
        "tuning", helper.scenario(flows=2), out_of_range="error"
    )
    environment.reset(seed=1)
    while len(environment.agents) < 2:
        environment.step(rest(environment))
    actions = rest(environment)
    change(actions)
    with pytest.raises(ValueError, match=message):
        environment.step(actions)
    environment.step(rest(environment))


def test_a_scenario_by_option_has_to_have_the_same_agents():
    environment = ParallelCongestionControlEnv(scenario=helper.scenario(flows=2, duration_s=1.0))
    longer = helper.scenario(flows=2, duration_s=1.5)
    environment.reset(seed=1, options={"scenario": longer})
    steps = 0
    while environment.agents:
        environment.step(
            {agent: environment.action_space(agent).sample() for agent in environment.agents}
        )
        steps += 1
    assert steps > 12  # the environment's own scenario has time for 9
    with pytest.raises(ScenarioError, match="its agents are .*give one with the environment's own"):
        environment.reset(options={"scenario": helper.scenario(flows=3, duration_s=1.0)})
    environment.close()


def test_a_flows_own_reward_is_measured_against_an_equal_part_of_the_link():
    environment = ParallelCongestionControlEnv(
        "tuning", helper.scenario(flow_list=JOIN_AND_LEAVE, loss=0.02), reward_per_flow=True
    )
    environment.reset(seed=1)
    active = set()
    while environment.agents:
        _, rewards, _, _, infos = environment.step(rest(environment))
        for agent, reward in rewards.items():
            info = infos[agent]
            active.add(info["active_flows"])
            share = info["flow_throughput_mbps"] / info["capacity_mbps"] * info["active_flows"]
            expected = share - 5 * info["flow_loss_rate"] - (1 - info["jain"])
            assert reward == pytest.approx(expected)
    assert active == {3, 4}


def test_decisions_follow_the_agent_with_the_shortest_round_trip_time():
    flows = (Flow(name="far", extra_delay_ms=60), Flow(name="near"))
    environment = ParallelCongestionControlEnv(
        "tuning",
        helper.scenario(loss=0, flow_list=flows),
        decision_interval_ms=1,
        decision_interval_rtts=2,  # fmt: skip
    )
    environment.reset(seed=1)
    times = []
    while environment.agents:
        *_, infos = environment.step(rest(environment))
        times.append(infos["near"]["time_s"])
    # 40 ms and at most 35 packets before it; the other one has 160 ms at least.
    assert np.all(np.diff(times)[:-1] < 2 * 0.085)


class OneToThree:
    """Draws short paths with one to three open flows beside one of CUBIC; the last starts late."""

    most_agents = 3

    def sample(self, rng):
        flows = [Flow(name="cubic", controller="cubic")]
        for number in range(int(rng.integers(1, 4))):
            flows.append(Flow(name=f"mine-{number}", start_s=0.1 + 0.3 * number))
        return helper.scenario(flow_list=tuple(flows), rate_mbps=float(rng.uniform(4, 8)))


def test_pettingzoos_own_tests_pass_with_a_distribution():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="reset option 'options' is ignored")
        parallel_api_test(ParallelCongestionControlEnv("rate", OneToThree()), num_cycles=60)
    parallel_seed_test(lambda: ParallelCongestionControlEnv("rate", OneToThree()), num_cycles=60)


def test_each_episode_of_a_distribution_has_the_open_flows_of_its_path_as_agents():
    environment = ParallelCongestionControlEnv("rate", OneToThree())
    assert environment.possible_agents == ["agent", "agent-2", "agent-3"]
    rows = quicgym.make_vec("rate", 1, scenario=OneToThree(), per_flow=True)
    counts = set()
    for seed in range(12):
        observations, _ = environment.reset(seed=seed)
        expected, _ = rows.reset(seed=[seed])
        seen, drawn = set(environment.agents), np.random.default_rng(seed).integers(1, 4)
        while environment.agents:
            for agent, observation in observations.items():
                row = environment.possible_agents.index(agent)
                assert np.array_equal(observation, expected[row])
            observations, *_ = environment.step(rest(environment))
            expected, *_ = rows.step(np.zeros(rows.action_space.shape, np.float32))
            seen |= set(environment.agents)
        assert seen == set(environment.possible_agents[:drawn])
        counts.add(len(seen))
    assert counts == {1, 2, 3}


def test_a_scenario_by_option_has_no_more_agents_than_the_distribution():
    environment = ParallelCongestionControlEnv("rate", OneToThree())
    environment.reset(seed=1, options={"scenario": helper.scenario(flows=2)})
    while len(environment.agents) < 2:
        environment.step(rest(environment))
    for more in (helper.scenario(flows=4), "self-play"):
        with pytest.raises(ScenarioError, match=r"up to [48] agents, and .* distribution 3; give"):
            environment.reset(options={"scenario": more})


def test_a_distribution_has_to_say_how_many_agents_its_paths_have_at_most():
    class Unbounded:
        def sample(self, rng):
            return helper.scenario()

    with pytest.raises(ScenarioError, match="a distribution with the attribute `most_agents`"):
        ParallelCongestionControlEnv("rate", Unbounded())
