"""Distributions of scenarios, and that training never meets the held-out suite."""

import json
from collections import Counter
from functools import cache
from hashlib import sha256

import gymnasium
import numpy as np
import pytest
import yaml
from helpers.scenarios import packaged_suite

import quicgym
from quicgym.envs import ENVIRONMENTS, ScenarioError, load_distribution, load_scenario, load_suite
from quicgym.envs.scenarios.distribution_parts import Range, RateWalk
from quicgym.envs.scenarios.distributions import (
    HELD_OUT,
    HELD_OUT_STRESS,
    HeldOutCells,
    distribution_names,
)
from quicgym.envs.scenarios.mixtures import Mixture, load_mixture
from quicgym.envs.scenarios.suites import WORLD_SUITES, load_entry, scenario_of


def path(scenario):
    """Rate in Mbps, of a trace the mean, and RTT in ms."""
    link = scenario.bottleneck
    rate_mbps = link.rate_mbps if link.trace is None else scenario.reverse.rate_mbps
    return rate_mbps, 2 * (link.delay_ms + 2 * scenario.access.delay_ms)


def test_a_distribution_starts_from_another_one(tmp_path):
    (tmp_path / "mine.yaml").write_text(
        "base: training-50\nname: mine\nrate_mbps: {maximum: 30}\nloss: null\n"
    )
    (tmp_path / "yours.yaml").write_text("base: mine.yaml\nname: yours\nduration_s: 10\n")
    training, mine = load_distribution("training"), load_entry(tmp_path / "mine.yaml")
    yours = load_entry(tmp_path / "yours.yaml")
    assert mine == training.model_copy(
        update={
            "name": "mine",
            "description": "",
            "rate_mbps": training.rate_mbps.model_copy(update={"maximum": 30}),
            "loss": None,
        }
    )
    assert yours == mine.model_copy(update={"name": "yours", "duration_s": 10.0})


def draws(name, count, seed=0):
    rng = np.random.default_rng(seed)
    distribution = load_distribution(name)
    return [distribution.sample(rng) for _ in range(count)]


@cache
def first_draws(name):
    return draws(name, 300)


MIXTURES = ("wide", "worlds", "worlds-training")
WORLDS = [name.removeprefix("heldout-") for name in WORLD_SUITES]
OUTSIDE_STRESS = ("5g", "attacked", "leo", "ordinary", "responsive", "stress-training", *WORLDS)


def test_mixtures_are_made_of_what_never_draws_a_held_out_path():
    known = [name for name in distribution_names() if isinstance(load_entry(name), Mixture)]
    assert known == list(MIXTURES)
    for name in MIXTURES:
        assert set(load_mixture(name).mixture) <= set(OUTSIDE_STRESS)
    assert set(load_mixture("worlds").mixture) >= set(WORLDS)


def test_worlds_training_has_the_worlds_with_their_weights_and_a_tenth_of_attacked():
    worlds, training = (load_mixture(name).mixture for name in ("worlds", "worlds-training"))
    shares = {name: weight / sum(worlds.values()) for name, weight in worlds.items()}
    assert training == pytest.approx({**shares, "attacked": 0.1})


@pytest.mark.parametrize("name", sorted(set(distribution_names()) - set(MIXTURES)))
def test_training_never_draws_a_held_out_path(name):
    limits = load_distribution(name)
    assert limits.held_out
    # Traces have other files than the suite's.
    paths = [path(entry) for entry in first_draws(name) if entry.bottleneck.trace is None]
    assert not any(HELD_OUT.contain(*entry) for entry in paths)
    stress = any(HELD_OUT_STRESS.contain(*entry) for entry in paths)
    assert stress == (name not in OUTSIDE_STRESS)
    # Nothing but those cells is left out: the ranges are used from end to end.
    rates, rtts = zip(*paths, strict=True)
    for values, expected in ((rates, limits.rate_mbps), (rtts, limits.rtt_ms)):
        assert min(values) < 1.1 * expected.minimum and max(values) > 0.9 * expected.maximum


def cells_of(world):
    limits = load_distribution(world)
    ranges = (limits.rate_mbps, limits.rtt_ms)
    return HeldOutCells(*((of.minimum, of.maximum) for of in ranges))


@pytest.mark.parametrize("world", WORLDS)
def test_a_world_s_suite_lies_in_cells_that_its_training_never_draws(world):
    cells = cells_of(world)
    assert not any(cells.contain(*path(entry)) for entry in first_draws(world))
    suite = packaged_suite(f"heldout-{world}")
    assert len({entry.name for entry in suite}) == len(suite) == 128
    assert all(cells.contain(*path(entry)) for entry in suite)
    assert len({cells.cell(*path(entry)) for entry in suite}) == 8


def test_coexistence_has_agents_and_others_on_every_path():
    counts = [
        (len(entry.flows), sum(flow.controller is None for flow in entry.flows))
        for entry in first_draws("coexistence")
    ]
    assert {agents for _, agents in counts} == {1, 2, 3}
    assert all(1 <= flows - agents <= 4 for flows, agents in counts)
    assert load_distribution("coexistence").most_agents == 3


def test_a_rate_walk_stays_between_nothing_and_twice_its_rate():
    walk = RateWalk(chance=1, volatility=Range(minimum=0.4, maximum=0.4), every_s=0.1)
    rates = np.array([walk.rates(30, np.random.default_rng(seed)) for seed in range(400)])
    assert rates.shape == (400, 299) and rates.min() >= 0 and rates.max() <= 2
    # Uniform at every moment: mean 1, deviation 1 / sqrt(3).
    assert np.abs(rates.mean(axis=0) - 1).max() < 0.15
    assert rates[:, 150].std() == pytest.approx(3**-0.5, abs=0.05)
    free = np.diff(rates)[np.abs(rates[:, :-1] - 1) < 0.5]  # too far from the ends for a reflection
    assert free.std() == pytest.approx(0.4 * 0.1**0.5, rel=0.05)


def test_reconfigurations_change_rate_and_delay_together_at_equal_intervals():
    for entry in draws("satellite", 40):
        link = entry.bottleneck
        times = [step.at_s for step in link.delay_schedule]
        assert np.ptp(np.diff(times)) < 1e-9 and 10 <= np.diff(times)[0] <= 20
        silent = [step.at_s for step in link.rate_schedule if step.rate_mbps == 0]
        again = [step.at_s for step in link.rate_schedule if step.rate_mbps > 0]
        assert silent == times and all(0 <= b - a <= 0.3 for a, b in zip(times, again, strict=True))
        rates = [step.rate_mbps / link.rate_mbps for step in link.rate_schedule if step.rate_mbps]
        assert all(0.4 <= rate <= 1.6 for rate in rates)


def test_low_orbit_satellites_reconfigure_every_15_s_with_an_outage():
    suite = packaged_suite("leo")
    assert len({entry.name for entry in suite}) == len(suite) == 32
    assert load_suite("leo") == suite
    for entry in suite:
        steps = entry.bottleneck.rate_schedule
        times = [step.at_s for step in entry.bottleneck.delay_schedule]
        assert np.diff(times) == pytest.approx(15)
        assert len(times) == 4 and times[0] < 15
        assert [step.at_s for step in steps[::2]] == times
        # The last outage may last to the end of the run, so that it has no end.
        outages = zip(steps[::2], steps[1::2], strict=False)
        assert all(0.07 <= up.at_s - down.at_s <= 0.22 for down, up in outages)
        assert all(step.at_s < entry.duration_s for step in steps)
        assert all(step.rate_mbps == 0 for step in steps[::2])


def test_responsive_paths_change_every_10_s_and_stay_open():
    for entry in packaged_suite("responsive"):
        for schedule in (entry.bottleneck.rate_schedule, entry.bottleneck.delay_schedule):
            assert np.diff([step.at_s for step in schedule]) == pytest.approx(10)
            assert len(schedule) == 6
        assert all(step.rate_mbps > 0 for step in entry.bottleneck.rate_schedule)


@pytest.mark.parametrize("name", ["5g", "cellular"])
def test_cellular_rates_walk_on_every_path_and_stop_on_some(name):
    suite = packaged_suite(name)
    assert {entry.name for entry in suite} == {f"{name}-{seed}" for seed in range(32)}
    schedules = [[step.rate_mbps for step in entry.bottleneck.rate_schedule] for entry in suite]
    assert all(len(set(rates)) > 200 for rates in schedules)
    assert 5 <= sum(0 in rates for rates in schedules) <= 25


@pytest.mark.parametrize(
    "text, message",
    [
        (
            "scenarios: 3\ndrawn_from: leo\nheld_out_of: lan\n",
            "give either held_out_of or drawn_from",
        ),
        ("scenarios: 3\ndrawn_from: leon\n", "suite.yaml: drawn_from: .*leon.*did you mean leo"),
        ("scenarios: 3\nheld_out_of: ./no\n", "suite.yaml: held_out_of: .*/no: No such file"),
        ("scenarios: 0\ndrawn_from: leo\n", "scenarios = 0"),
    ],
)
def test_a_drawn_suite_has_one_distribution(tmp_path, text, message):
    (tmp_path / "suite.yaml").write_text(text)
    with pytest.raises(ScenarioError, match=message):
        load_suite(tmp_path / "suite.yaml")


def test_the_held_out_suite_is_64_held_out_paths_in_every_size():
    suite = packaged_suite("heldout")
    assert len({scenario.name for scenario in suite}) == len(suite) == 64
    assert all(HELD_OUT.contain(*path(scenario)) for scenario in suite)
    rates, rtts = zip(*map(path, suite), strict=True)
    for values, parts in ((rates, np.geomspace(1, 200, 9)), (rtts, np.geomspace(10, 600, 9))):
        assert np.histogram(values, parts)[0].tolist() == [8] * 8
    assert {len(scenario.flows) for scenario in suite} >= {1, 2, 4, 8}
    assert any(scenario.bottleneck.loss for scenario in suite)
    assert any(scenario.bottleneck.rate_schedule for scenario in suite)


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("heldout", "1e14266242f70ac9"),
        ("stress", "c5364e12d046d4f3"),
        ("validation", "5d36086830753b51"),
    ],
)
def test_the_networks_of_a_fixed_suite_stay_the_same(name, digest):
    """Another NumPy or another distribution must not change what results are compared on."""
    suite = packaged_suite(name)
    fields = [entry.model_dump(mode="json", exclude_defaults=True) for entry in suite]
    text = json.dumps(fields, sort_keys=True)
    assert sha256(text.encode()).hexdigest()[:16] == digest


def test_the_stress_suite_is_256_held_out_networks_of_everything(stress):
    assert len({scenario.name for scenario in stress}) == len(stress) == 256
    cells = Counter(HELD_OUT_STRESS.cell(*path(scenario)) for scenario in stress)
    assert all(HELD_OUT_STRESS.contain(*path(scenario)) for scenario in stress)
    assert sorted(cells.values()) == [32] * 8
    links = [scenario.bottleneck for scenario in stress]
    rates, rtts = zip(*map(path, stress), strict=True)
    assert min(rates) < 0.2 and max(rates) > 300 and min(rtts) < 3 and max(rtts) > 1000
    assert {len(scenario.flows) for scenario in stress} >= set(range(1, 17))
    steps = [step.rate_mbps / link.rate_mbps for link in links for step in link.rate_schedule]
    assert min(step for step in steps if step) < 0.08 and 0 in steps
    assert max(link.loss.probability for link in links if link.loss) > 0.03
    assert {link.queue.discipline for link in links} >= {"drop-tail", "codel", "fq-codel", "pie"}
    assert any(link.queue.ecn_marking for link in links)
    assert any(scenario.reverse.opens_every_ms for scenario in stress)
    assert any(link.trace for link in links)
    assert any(scenario.short_flows for scenario in stress)
    for field in ("delay_schedule", "jitter", "reordering", "policer"):
        assert any(getattr(link, field) for link in links), field


def test_the_stress_suite_has_traces_that_training_never_sees(stress):
    own = {entry.bottleneck.trace for entry in stress} - {None}
    assert own.isdisjoint(load_distribution("stress-training").traces.paths)
    assert len(own) == 8


def test_the_validation_suite_is_training_paths_and_none_held_out():
    suite = packaged_suite("validation")
    assert len({scenario.name for scenario in suite}) == len(suite) == 32
    assert not any(HELD_OUT.contain(*path(scenario)) for scenario in suite)
    limits = load_distribution("training")
    for rate, rtt in map(path, suite):
        assert limits.rate_mbps.minimum <= rate <= limits.rate_mbps.maximum
        assert limits.rtt_ms.minimum <= rtt <= limits.rtt_ms.maximum
    assert {len(scenario.flows) for scenario in suite} >= {1, 2, 4}
    assert 8 <= sum(bool(scenario.bottleneck.loss) for scenario in suite) <= 24
    assert any(scenario.bottleneck.rate_schedule for scenario in suite)
    heldout = {scenario.name for scenario in packaged_suite("heldout")}
    assert not heldout & {scenario.name for scenario in suite}


def test_the_papers_suite_has_their_wired_scenarios_with_a_flow_for_a_policy():
    suite = packaged_suite("papers")
    assert len({scenario.name for scenario in suite}) == len(suite) == 21
    for scenario in suite:
        scenario.check_engine("native")
        assert any(flow.controller is None for flow in scenario.flows)
        assert scenario.bottleneck.rate_mbps * scenario.duration_s <= 600  # megabits


def test_a_suite_may_name_its_scenarios(tmp_path):
    (tmp_path / "own.yaml").write_text("{base: ebcc-single, name: own}")
    file = tmp_path / "suite.yaml"
    file.write_text("- ebcc-flows-3\n- own.yaml\n", encoding="utf-8")
    assert [scenario.name for scenario in load_suite(file)] == ["ebcc-flows-3", "own"]
    assert load_suite(tmp_path / "own.yaml")[0].name == "own"
    assert load_suite("ebcc-flows-3") == (load_scenario("ebcc-flows-3"),)
    (drawn,) = load_suite("training-50")
    assert drawn == load_distribution("training-50")
    assert scenario_of(drawn, 3) == scenario_of(drawn, 3) != scenario_of(drawn, 4)
    file.write_text("- ebcc-flows-3\n- ebcc-flows-33\n", encoding="utf-8")
    with pytest.raises(ScenarioError, match="suite.yaml: 1: .*did you mean ebcc-flows-3?"):
        load_suite(file)
    file.write_text("- {name: own, duration_s: -1}\n", encoding="utf-8")
    with pytest.raises(ScenarioError, match="suite.yaml: 0: duration_s = -1"):
        load_suite(file)


def test_one_cell_of_each_row_and_column_is_held_out():
    rates, rtts = np.geomspace(1, 200, 17)[1::2], np.geomspace(10, 600, 17)[1::2]
    cells = np.array([[HELD_OUT.contain(rate, rtt) for rate in rates] for rtt in rtts])
    assert cells.sum(axis=0).tolist() == cells.sum(axis=1).tolist() == [1] * 8


def test_training_has_what_it_promises():
    scenarios = draws("training", 400)
    assert {len(scenario.flows) for scenario in scenarios} == set(range(1, 9))
    controllers = {flow.controller for scenario in scenarios for flow in scenario.flows}
    assert controllers == {None, "newreno", "cubic", "bbr", "ebcc", "vegas"}
    assert 0.4 < np.mean([bool(scenario.bottleneck.loss) for scenario in scenarios]) < 0.6
    changing = [bool(scenario.bottleneck.rate_schedule) for scenario in scenarios]
    assert 0.15 < np.mean(changing) < 0.35
    for scenario in scenarios:
        rate, rtt = path(scenario)
        bdp = rate * rtt * 1e3 / 8 / 1230
        assert 0.2 * bdp - 1 < scenario.bottleneck.queue.limit < max(2, 5 * bdp) + 1


@pytest.mark.parametrize("name", ["self-play", "self-play-50"])
def test_with_self_play_all_flows_of_some_paths_are_agents(name):
    distribution, scenarios = load_distribution(name), draws(name, 600)
    assert distribution.most_agents == 8
    assert load_distribution(name.replace("self-play", "training")).most_agents == 1
    several = [scenario for scenario in scenarios if len(scenario.flows) > 1]
    open_flows = [sum(flow.controller is None for flow in path.flows) for path in several]
    alike = [count == len(path.flows) for count, path in zip(open_flows, several, strict=True)]
    assert 0.2 < np.mean(alike) < 0.3
    assert {count for count, all_open in zip(open_flows, alike, strict=True) if not all_open} == {1}
    assert max(open_flows) == 8


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_environments_draw_from_a_distribution_by_name(name):
    environment = gymnasium.make(name, scenario="training", episode_s=0.3).unwrapped
    seen = []
    for seed in (1, None, 1, None):
        observation, _ = environment.reset(seed=seed)
        assert environment.observation_space.contains(observation)
        environment.step(environment.action_space.sample())
        seen.append((environment.scenario, environment.episode_seed))
    assert seen[:2] == seen[2:] and seen[0] != seen[1]
    vector = quicgym.make_vec(name, num_envs=3, scenario="training", episode_s=0.3)
    vector.reset(seed=1)
    assert len(set(vector.step(vector.action_space.sample())[4]["capacity_mbps"])) == 3


DISTRIBUTION = """
name: mine
duration_s: 5
rate_mbps: {minimum: 2, maximum: 4}
rtt_ms: {minimum: 20, maximum: 30}
queue_bdp: {minimum: 1, maximum: 1}
"""


CHANGES = (
    "rate_changes: {{chance: 1, count: {{minimum: 1, maximum: 2}}, "
    "factor: {{minimum: {least}, maximum: {most}}}}}"
)
RECONFIGURATIONS = (
    "reconfigurations: {{chance: 0, every_s: {{minimum: {least}, maximum: 2}}, rate: *one, "
    "delay: *one, outage_s: *one}}"
)
TRACE = '"3g:mean_mbps=1,duration_s=20,seed=1"'


def test_one_s_own_distribution_is_found_by_its_path(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(DISTRIBUTION, encoding="utf-8")
    assert load_suite(file) == (load_distribution(file),)
    vector = quicgym.make_vec("quicgym/Tuning-v1", num_envs=4, scenario=str(file), episode_s=0.3)
    vector.reset(seed=1)
    rates = set(vector.step(vector.action_space.sample())[4]["capacity_mbps"])
    assert len(rates) == 4 and min(rates) >= 2 and max(rates) <= 4
    file.write_text(DISTRIBUTION + "rates: 3\n", encoding="utf-8")
    with pytest.raises(ScenarioError, match="rates = 3: unknown field"):
        quicgym.make_vec("quicgym/Tuning-v1", num_envs=1, scenario=str(file))


def drawn(folder, *lines):
    """A scenario of the distribution with other lines."""
    file = folder / "mine.yaml"
    file.write_text(yaml.safe_dump(yaml.safe_load(DISTRIBUTION) | yaml.safe_load("\n".join(lines))))
    return load_distribution(file).sample(np.random.default_rng(1))


def test_the_smallest_queue_holds_two_packets(tmp_path):
    few = "queue_bdp: {minimum: 0.01, maximum: 0.01}"
    assert drawn(tmp_path, few).bottleneck.queue.limit == 2


def test_access_links_are_faster_than_the_path_they_lead_to(tmp_path):
    fast = "rate_mbps: {minimum: 400, maximum: 400}"
    assert drawn(tmp_path, fast).access.rate_mbps == 2000
    assert drawn(tmp_path, "max_datagram_bytes: 1200").access.rate_mbps == 100


def test_extra_rtt_is_a_share_of_the_path_s(tmp_path):
    two = "flows: {minimum: 2, maximum: 2}"
    scenario = drawn(tmp_path, two, "extra_rtt: {minimum: 0.5, maximum: 0.5}")
    first, other = scenario.flows
    _, rtt_ms = path(scenario)
    assert first.extra_delay_ms == 0
    assert 2 * other.extra_delay_ms == pytest.approx(0.5 * rtt_ms)  # one way, twice


def test_agents_have_the_first_flows_and_others_the_rest(tmp_path):
    scenario = drawn(tmp_path, "flows: {minimum: 4, maximum: 4}", "agents: 2")
    assert [(flow.name, flow.controller) for flow in scenario.flows] == [
        ("agent", None),
        ("agent-2", None),
        ("other-1", "cubic"),
        ("other-2", "cubic"),
    ]


def test_traces_take_the_place_of_rates(tmp_path):
    (tmp_path / "link.trace").write_text("5\n10\n", encoding="ascii")
    file = tmp_path / "mine.yaml"
    file.write_text(DISTRIBUTION + "traces: {chance: 1, paths: [link.trace]}\n", encoding="utf-8")
    scenario = load_distribution(file).sample(np.random.default_rng(1))
    assert scenario.bottleneck.trace == tmp_path / "link.trace"
    assert scenario.reverse.rate_mbps == pytest.approx(2.4)
    gymnasium.make("quicgym/Tuning-v1", scenario=scenario).reset(seed=1)


@pytest.mark.parametrize(
    "line, message",
    [
        ("rtt_ms: {minimum: 30, maximum: 20}", "rtt_ms.*maximum 20 is below minimum 30"),
        ("extra_rtt: {minimum: 0, maximum: 2, scale: log}", "extra_rtt.*minimum above 0"),
        ("extra_rtt: {minimum: 0, maximum: 9000}", "extra_rtt: adds up to 135000 ms each way"),
        ("other_controllers: [cubic, cubik]", "other_controllers.1 = 'cubik'.*did you mean cubic"),
        (CHANGES.format(least=1, most=1e6), r"rates of 2 to 4e\+06 Mbps"),
        (CHANGES.format(least=1, most=2) + "\nduration_s: 0.05", "duration_s above 0.1"),
        (
            "outages: {chance: 0, count: *one, duration_s: *one}\nduration_s: 0.05",
            "outages: need a",
        ),
        ("queue_bdp: {minimum: 1, maximum: 1.0e+300}", r"maximum = 1e\+300: .*at most 1e9"),
        (
            "rate_walk: {chance: 0, volatility: *one, every_s: 1.0e-5}",
            "rate_walk.every_s = 1e-05: give at least 5e-05 s",
        ),
        (
            RECONFIGURATIONS.format(least=0.01),
            "reconfigurations.every_s.minimum = 0.01: give at least 0.1 s",
        ),
        (
            RECONFIGURATIONS.format(least=1) + f"\ntraces: {{chance: 0, paths: [{TRACE}]}}",
            "traces: reconfigurations draw the rate; leave out one of them",
        ),
        (
            "cells: held-out\nheld_out: true\nrate_mbps: {minimum: 1, maximum: 1.1}\n"
            "rtt_ms: {minimum: 10, maximum: 11}",
            "held-out cells; widen a range",
        ),
        ("mixture: {leo: 1}", "is a mixture; load one of its distributions, such as leo"),
        ("traces: {chance: 1, paths: [none.trace]}", "none.trace.*cannot read the trace"),
        (
            "rtt_ms: {minimum: 1, maximum: 20}",
            "rtt_ms.minimum = 1: the access links alone have 4 ms",
        ),
        ("agents: 2", "agents: there are only 1 flows at times"),
        ("start_spread_s: 5", "start_spread_s: make it shorter than duration_s"),
    ],
)
def test_mistakes_name_file_and_field(line, message, tmp_path):
    file = tmp_path / "mine.yaml"
    lines = line.replace("*one", "{minimum: 1, maximum: 1}")
    fields = yaml.safe_load(DISTRIBUTION) | yaml.safe_load(lines)
    file.write_text(yaml.safe_dump(fields), encoding="utf-8")
    with pytest.raises(ScenarioError, match=f"mine.yaml: .*{message}"):
        load_distribution(file)


def test_a_drawn_path_that_is_not_valid_names_distribution_field_and_value(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(
        DISTRIBUTION + "short_flows: {chance: 0.01, load: {minimum: 100, maximum: 100}}\n"
    )
    distribution, rng = load_distribution(file), np.random.default_rng(1)
    with pytest.raises(ScenarioError, match="mine: drew .* short_flows.0.load_mbps = .*smaller"):
        for _ in range(1000):
            distribution.sample(rng)
