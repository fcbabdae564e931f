"""What holds for every registered environment, on both engines."""

import copy
import gc
import itertools
import pickle
import resource
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from helpers import environments as helper
from matplotlib.backends.backend_agg import FigureCanvasAgg

import quicgym
from quicgym import Decisions, Simulation, make_vec, preset_action
from quicgym.agents.evaluation.rollouts import play
from quicgym.agents.policies import ConstantPolicy
from quicgym.envs import ENVIRONMENTS, ScenarioError
from quicgym.envs.environment import CongestionControlEnv
from quicgym.envs.observations import observation_names
from quicgym.envs.parallel import ParallelCongestionControlEnv
from quicgym.envs.render import EpisodePlot
from quicgym.envs.scenarios.applications import Transfer
from quicgym.envs.scenarios.flows import Flow
from quicgym.envs.scenarios.suites import load_suite, scenario_of
from quicgym.envs.window import WindowEnv

ENGINES = ["native", pytest.param("ns3", marks=pytest.mark.ns3)]
every_environment = pytest.mark.parametrize("name", ENVIRONMENTS)
# Gymnasium says of every environment that there is a newer version of it.
no_warnings = pytest.mark.filterwarnings("error", "ignore:.*v0 is out of date")
every_engine = pytest.mark.parametrize("engine", ENGINES)


@pytest.fixture
def make():
    """Makes environments, and closes them: ns-3 allows one at a time."""
    made = []

    def make(name, *arguments, **keywords):
        made.append(gymnasium.make(name, *arguments, **keywords))
        return made[-1]

    yield make
    for environment in made:
        environment.close()


@every_environment
@every_engine
@no_warnings
def test_gymnasiums_checker_finds_nothing(name, engine, make):
    environment = make(name, scenario=helper.scenario(), engine=engine)
    # The check of the pictures makes a second environment, and ns-3 allows one at a time.
    check_env(environment.unwrapped, skip_render_check=engine == "ns3")


@pytest.mark.parametrize(
    "display, modes",
    [
        ({"DISPLAY": ":0"}, ["rgb_array", "human"]),
        ({"WAYLAND_DISPLAY": "wayland-0"}, ["rgb_array", "human"]),
        ({"MPLBACKEND": "TkAgg"}, ["rgb_array", "human"]),
        ({"DISPLAY": ":0", "MPLBACKEND": "agg"}, ["rgb_array"]),
        ({}, ["rgb_array"]),
    ],
)
def test_human_is_a_render_mode_where_there_is_a_display(display, modes, make, monkeypatch):
    for variable in ("DISPLAY", "WAYLAND_DISPLAY", "MPLBACKEND"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in display.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr("sys.platform", "linux")
    assert make("quicgym/Tuning-v1").metadata["render_modes"] == modes


@every_environment
@every_engine
def test_the_seed_decides_the_trajectory(name, engine, make):
    environment = make(name, scenario=helper.scenario(flows=2), engine=engine)
    chosen = helper.actions(environment.action_space, 12)
    first = helper.play(environment, chosen, seed=3)
    going_on = helper.play(environment, chosen)
    assert helper.same(first, helper.play(environment, chosen, seed=3))
    assert helper.same(going_on, helper.play(environment, chosen))
    assert not helper.same(first, helper.play(environment, chosen, seed=4))
    assert not helper.same(first, going_on)


@pytest.mark.ns3
@every_environment
def test_both_engines_give_the_same_trajectory(name, make):
    def trajectory(engine):
        environment = make(name, scenario=helper.scenario(flows=2), engine=engine)
        rows = helper.play(environment, helper.actions(environment.action_space, 30), seed=3)
        environment.close()
        return rows

    assert helper.same(trajectory("native"), trajectory("ns3"))


@every_environment
def test_every_element_of_an_observation_has_a_name(name, make):
    environment = make(name, history_length=2)
    names = observation_names(2, name)
    assert len(names) == len(set(names)) == environment.observation_space.shape[0]
    assert names[:2] == ("known[0]", "delivery_rate[0]")


@every_environment
def test_observations_stay_in_the_space_whatever_the_actions(name, make):
    environment = make(name, scenario=helper.scenario(flows=2, duration_s=4, loss=0.05))
    space = environment.observation_space
    assert np.all(np.isfinite(space.low)) and np.all(np.isfinite(space.high))
    for seed in range(6):
        chosen = helper.actions(environment.action_space, 50, seed)
        if seed % 2:
            chosen = [np.sign(action) for action in chosen]
        for observation, reward, *_ in helper.play(environment, chosen, seed=seed):
            assert space.contains(observation)
            assert np.isfinite(reward)


COORDINATES = (
    (lambda size: np.full(size, np.nan), r"row 0: \[0\].* = nan; give a number from -1 to 1"),
    (lambda size: np.full(size, np.inf), r"row 0: \[0\].* = inf"),
    (lambda size: [0.0] * (size - 1) + [1.5], r"row 0: \[\d+\].* = 1.5"),
    (lambda size: np.zeros(size + 1), r"shape \(\d+,\); give \(\d+,\)"),
    (lambda size: ["fast"] * size, "give an array of numbers"),
)


def bad_choices(choice, count):
    said = rf"row 0: \[0\], {choice} = .*number from 0 to {count - 1}$"
    values = [(bad, said) for bad in (count, -1, 0.5, np.nan)]
    return [(lambda _, bad=bad: bad, text) for bad, text in [*values, ([3], r"\(1,\); give \(\)")]]


@pytest.mark.parametrize(
    "name, bad",
    [
        *itertools.product(("quicgym/Tuning-v1", "quicgym/Rate-v1"), COORDINATES),
        *itertools.product(("quicgym/Window-v1",), bad_choices("factor", 13)),
    ],
    ids=lambda it: it if isinstance(it, str) else it[1],
)
@every_engine
def test_a_bad_action_is_an_error_and_harms_nothing(name, engine, bad, make):
    environment = make(
        name, scenario=helper.scenario(), engine=engine, out_of_range="error",
        disable_env_checker=True,
    )  # fmt: skip
    chosen = helper.actions(environment.action_space, 10)
    untouched = helper.play(environment, chosen, seed=3)
    rows = helper.play(environment, chosen[:4], seed=3)
    action, message = bad
    with pytest.raises(ValueError, match=message):
        environment.step(action(sum(environment.action_space.shape)))
    rows += [environment.step(action) for action in chosen[4:]]
    assert helper.same(untouched, rows)


@every_environment
def test_stepping_without_an_episode_is_an_error(name, make):
    environment = make(name, scenario=helper.scenario(duration_s=0.5), disable_env_checker=True)
    action = environment.action_space.sample()
    with pytest.raises(RuntimeError, match="reset"):
        environment.unwrapped.step(action)
    rows = helper.play(environment, [action] * 100)
    assert rows[-1][3]
    with pytest.raises(RuntimeError, match="last one is over; reset it"):
        environment.step(action)
    environment.reset()
    environment.step(action)


@every_environment
@every_engine
def test_a_finished_transfer_terminates_and_the_end_of_time_truncates(name, engine, make):
    flow = Flow(start_s=0.1, application=Transfer(size_bytes=60_000))
    environment = make(name, scenario=helper.scenario(flow_list=(flow,), loss=0), engine=engine)
    rest = helper.rest(environment.action_space)
    *_, terminated, truncated, info = helper.play(environment, [rest] * 50, seed=1)[-1]
    assert (terminated, truncated, info["active"]) == (True, False, 0.0)
    assert info["time_s"] < 2
    environment.close()
    environment = make(name, scenario=helper.scenario(), engine=engine, episode_s=0.35)
    rows = helper.play(environment, [rest] * 50, seed=1)
    assert (rows[-1][2], rows[-1][3]) == (False, True)
    assert rows[-1][4]["time_s"] - rows[0][4]["time_s"] == pytest.approx(0.35, abs=1e-9)
    assert len(rows) == 1 + 4


@pytest.mark.parametrize("name", ["quicgym/Tuning-v1", "quicgym/Window-v1"])
def test_200_resets_leave_nothing_behind(name, make):
    environment = make(name, scenario=helper.scenario(flows=3))
    rest = helper.rest(environment.action_space)

    def largest_kilobytes(resets):
        for _ in range(resets):
            environment.reset()
            environment.step(rest)
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = largest_kilobytes(40)
    assert largest_kilobytes(200) - before < 4_000


@every_engine
@pytest.mark.parametrize("controller", ["cubic", "newreno", "vegas", "ibcca", "ebcc", "cubic+"])
def test_any_controller_runs_in_the_agents_place(controller, engine, make):
    scenario = helper.scenario(flows=2)
    environment = make(
        "quicgym/Tuning-v1", scenario=scenario, engine=engine, record_deliveries=True
    )
    chosen = helper.actions(environment.action_space, 50)
    rows = helper.play(environment, chosen, seed=3, options={"controller": controller})
    deliveries = environment.unwrapped.deliveries()
    seed = environment.unwrapped.episode_seed
    environment.close()
    assert rows[-1][3]
    with Simulation(
        scenario, engine, seed, [controller, "cubic"], record_deliveries=True
    ) as simulation:
        simulation.run()
        assert np.array_equal(simulation.deliveries(), deliveries)


def test_reset_options_hold_for_one_episode(make):
    environment = make("quicgym/Tuning-v1", scenario=helper.scenario())
    chosen = helper.actions(environment.action_space, 12)
    other = helper.scenario(rate_mbps=4.0)
    helper.play(environment, chosen, seed=3, options={"controller": "cubic", "scenario": other})
    assert environment.unwrapped.scenario == other
    after = helper.play(environment, chosen, seed=3)
    assert environment.unwrapped.scenario == helper.scenario()
    assert helper.same(after, helper.play(environment, chosen, seed=3))
    with pytest.raises(ScenarioError, match="'controler'; did you mean controller"):
        environment.reset(options={"controler": "cubic"})
    with pytest.raises(ScenarioError, match="'cubik'; did you mean cubic"):
        environment.reset(options={"controller": "cubik"})


@pytest.mark.parametrize("scenario", ["training-50", "beyond-ebcc-mixed-cubic", "validation"])
def test_the_option_episode_seed_plays_the_episodes_of_an_evaluation(make, scenario):
    entries = load_suite(scenario)[:3]
    for entry, seed in itertools.product(entries, (0, 7)):
        environment = make("quicgym/Window-v1", scenario=entry)
        _, info = environment.reset(seed=3, options={"episode_seed": seed})
        ends_s, rewards, over = [info["time_s"]], [], False
        while not over:
            _, reward, terminated, truncated, info = environment.step(7)
            ends_s.append(info["time_s"])
            rewards.append(reward)
            over = terminated or truncated
        policy = ConstantPolicy("wider", np.array(7), decisions=Decisions("window"))
        evaluated = play(policy, scenario_of(entry, seed), seed=seed)
        earned = np.average(rewards, weights=np.diff(ends_s))
        assert earned == pytest.approx(evaluated.metrics["reward"], abs=1e-12)
        assert environment.unwrapped.episode_seed == seed


def test_the_next_episodes_do_not_depend_on_the_option_episode_seed(make):
    environment = make("quicgym/Window-v1", scenario=helper.scenario())
    drawn = []
    for options in (None, {"episode_seed": 7}):
        environment.reset(seed=3, options=options)
        environment.reset()
        drawn.append(environment.unwrapped.episode_seed)
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("seed", [-1, 1.5, "7", True])
def test_an_episode_seed_that_is_none_is_refused(make, seed):
    environment = make("quicgym/Window-v1", scenario=helper.scenario())
    with pytest.raises(ScenarioError, match="reset option episode_seed = .*give a whole number"):
        environment.reset(options={"episode_seed": seed})
    environments = make_vec("quicgym/Window-v1", num_envs=2, scenario=helper.scenario())
    with pytest.raises(ScenarioError, match="'episode_seed' = 7: .*take a single environment"):
        environments.reset(options={"episode_seed": 7})


def test_the_agent_has_the_first_open_flow_or_the_one_named(make):
    flows = (
        Flow(name="theirs", controller="newreno", start_s=0.1),
        Flow(name="first", start_s=0.3),
        Flow(name="second", controller="ebcc", parameters={"gamma": 7}, start_s=0.2),
    )
    scenario = helper.scenario(flow_list=flows)
    environment = make("quicgym/Tuning-v1", scenario=scenario)
    assert environment.reset()[1]["time_s"] == pytest.approx(0.3)
    environment = make("quicgym/Tuning-v1", scenario=scenario, flow="second")
    observation, info = environment.reset()
    assert info["time_s"] == pytest.approx(0.2)
    # It starts as BBR, not with what the scenario gives eBCC.
    assert observation[-13:].tolist() == [0.0] * 13
    with pytest.raises(ScenarioError, match="no flow 'third'; .*theirs, first, second"):
        make("quicgym/Tuning-v1", scenario=scenario, flow="third")
    back = Flow(name="back", controller="cubic", direction="backward")
    scenario = helper.scenario(flow_list=(*flows, back))
    with pytest.raises(ScenarioError, match="flow back goes backward, .*name a forward flow"):
        make("quicgym/Tuning-v1", scenario=scenario, flow="back")


def test_decisions_follow_the_round_trip_time_where_asked(make):
    environment = make(
        "quicgym/Tuning-v1", scenario=helper.scenario(loss=0),
        decision_interval_ms=1, decision_interval_rtts=2,
    )  # fmt: skip
    rows = helper.play(environment, helper.actions(environment.action_space, 8), seed=1)
    times = np.array([row[4]["time_s"] for row in rows])
    assert times[1] - times[0] == pytest.approx(2 * 0.333)
    # The path has 40 ms, and its queue adds at most 35 packets.
    assert np.all((np.diff(times)[1:-1] > 0.079) & (np.diff(times)[1:-1] < 2 * 0.085))


def test_the_decision_interval_is_the_longer_of_time_and_round_trips(make):
    environment = make(
        "quicgym/Tuning-v1", scenario=helper.scenario(loss=0),
        decision_interval_ms=200, decision_interval_rtts=2,
    )  # fmt: skip
    rows = helper.play(environment, helper.actions(environment.action_space, 8), seed=1)
    seconds = np.diff([row[4]["time_s"] for row in rows])
    assert seconds[0] == pytest.approx(2 * 0.333)
    assert seconds[1:-1] == pytest.approx(0.2)


TERMS = ("throughput_mbps", "capacity_mbps", "throughput_share", "loss_rate", "jain", "rtt_ratio")


@pytest.mark.parametrize("reward", ["fair-throughput", "delay"])
def test_a_long_decision_earns_the_mean_of_short_ones(reward, make):
    arguments = {"scenario": helper.scenario(duration_s=1.95), "reward": reward}
    action = preset_action("ebcc")
    short = make("quicgym/Tuning-v1", **arguments)
    begin, *rows = helper.play(short, [action] * 20, seed=3)
    longer = make(
        "quicgym/Tuning-v1", decision_interval_ms=500, reward_interval_ms=100, **arguments
    )
    decisions = helper.play(longer, [action] * 4, seed=3)[1:]
    durations = np.diff([row[4]["time_s"] for row in [begin, *rows]])
    assert durations[-1] < 0.099  # what is left of the episode
    for number, (_, earned, _, _, info) in enumerate(decisions):
        inside = slice(5 * number, 5 * number + 5)
        share = durations[inside] / durations[inside].sum()
        assert info["time_s"] == rows[inside][-1][4]["time_s"]
        for term in TERMS:
            values = [row[4][term] for row in rows[inside]]
            assert info[term] == pytest.approx(np.dot(share, values), rel=1e-9), term
        if reward == "fair-throughput":
            assert earned == pytest.approx(np.dot(share, [row[1] for row in rows[inside]]))
    assert decisions[-1][3] and rows[-1][3]


def test_a_scenario_by_option_that_is_none_is_an_error(make):
    environment = make("quicgym/Tuning-v1")
    with pytest.raises(ScenarioError, match=r"scenario = 7: give a Scenario, a distribution"):
        environment.reset(options={"scenario": 7})


def test_what_was_not_measured_is_nan(make):
    # 40 ms, and the handshake before: the agent's flow has its first sample after 80 ms.
    flows = (
        Flow(name="agent", start_s=0.1),
        Flow(name="early", controller="cubic", pace_initial_window=True),
    )
    environment = make(
        "quicgym/Tuning-v1",
        scenario=helper.scenario(flow_list=flows, loss=0),
        decision_interval_ms=20,
    )
    rows = helper.play(environment, [preset_action("bbr")] * 20, seed=1)
    samples = 0
    for observation, reward, *_, info in rows:
        assert np.isfinite(observation).all() and np.isfinite(reward)
        samples += info["flow_rtt_ms"] > 39
        assert np.isnan(info["flow_rtt_ms"]) == (samples == 0)
    assert 10 < samples < 20
    first, *others = (row[4] for row in rows)
    of_interval = {key for key, value in first.items() if np.isnan(value)} - {"flow_rtt_ms"}
    assert of_interval == {
        "throughput_mbps", "capacity_mbps", "throughput_share", "loss_rate", "jain", "rtt_ms",
        "rtt_ratio", "active_flows", "flow_throughput_mbps", "flow_loss_rate",
    }  # fmt: skip
    assert not any(np.isnan(info[key]) for info in others for key in of_interval)
    assert all(info["rtt_ms"] > 39 for *_, info in rows[1:])  # of the other flow's samples
    for reward in ("delay", "power"):
        alone = make(
            "quicgym/Tuning-v1",
            scenario=helper.scenario(loss=0),
            reward=reward,
            decision_interval_ms=20,
        )
        alone.reset(seed=1)
        _, earned, _, _, info = alone.step(preset_action("bbr"))
        assert all(np.isnan(info[key]) for key in ("rtt_ms", "rtt_ratio", "flow_rtt_ms"))
        assert np.isfinite(earned)
    # Only the part of a longer interval after the first sample counts.
    coarse = make(
        "quicgym/Tuning-v1",
        scenario=helper.scenario(flow_list=flows[:1], loss=0),
        decision_interval_ms=200,
        reward_interval_ms=20,
    )
    assert helper.play(coarse, [preset_action("bbr")], seed=1)[-1][4]["rtt_ms"] > 39


def test_a_scenario_without_an_open_flow_needs_a_name(make):
    flows = (Flow(name="theirs", controller="newreno"),)
    with pytest.raises(ScenarioError, match="every flow names its controller.*flow="):
        make("quicgym/Tuning-v1", scenario=helper.scenario(flow_list=flows))


def test_environments_are_found_without_importing_quicgym(tmp_path):
    code = (
        "import gymnasium; environment = gymnasium.make('quicgym:quicgym/Tuning-v1'); "
        "print(environment.reset(seed=1)[0].shape)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout.strip() == "(105,)", done.stderr


def test_pictures_show_the_episode_and_can_be_recorded(make, tmp_path):
    environment = make("quicgym/Tuning-v1", scenario=helper.scenario(), render_mode="rgb_array")
    environment.reset(seed=1)
    first = environment.render()
    environment.step(helper.rest(environment.action_space))
    second = environment.render()
    assert first.shape == second.shape and first.shape[2] == 3 and first.dtype == np.uint8
    assert not np.array_equal(first, second)
    environment.reset(seed=1)
    assert np.array_equal(environment.render(), first)
    collected = gymnasium.wrappers.RenderCollection(environment)
    helper.play(collected, [helper.rest(environment.action_space)] * 3, seed=1)
    frames = collected.render()
    assert len(frames) == 4 and np.array_equal(frames[0], first)


def test_pictures_do_not_depend_on_those_that_were_drawn_before(make):
    often, once = (
        make("quicgym/Window-v1", scenario=helper.scenario(), render_mode="rgb_array")
        for _ in range(2)
    )
    for environment in (often, once):
        environment.reset(seed=1)
    for action in (12, 12, 0, 6, 0):
        often.step(action)
        once.step(action)
        drawn = often.render()
    assert np.array_equal(drawn, once.render())


def test_an_episode_draws_its_axes_only_where_they_change(make, monkeypatch):
    axes_drawn = []
    draw = FigureCanvasAgg.draw
    monkeypatch.setattr(
        FigureCanvasAgg, "draw", lambda canvas: (axes_drawn.append(canvas), draw(canvas))
    )
    environment = make(
        "quicgym/Window-v1", scenario=helper.scenario(duration_s=4.0), render_mode="rgb_array"
    )
    environment.reset(seed=1)
    for _ in range(15):
        environment.step(6)
        environment.render()
    drawn_before = len(axes_drawn)
    for _ in range(10):
        environment.step(6)
        environment.render()
    assert 1 <= len(axes_drawn) - drawn_before <= 5


def test_a_video_of_an_episode_is_recorded_with_its_first_and_last_picture(make, tmp_path):
    moviepy = pytest.importorskip("moviepy", reason="RecordVideo needs it")
    environment = make("quicgym/Window-v1", scenario=helper.scenario(), render_mode="rgb_array")
    recorder = gymnasium.wrappers.RecordVideo(environment, str(tmp_path), disable_logger=True)
    steps = helper.play(recorder, [6] * 8, seed=1)
    last = environment.render()
    recorder.close()
    (file,) = tmp_path.glob("*.mp4")
    with moviepy.VideoFileClip(str(file)) as clip:
        frames = list(clip.iter_frames())
    assert len(frames) == len(steps) == 9 and frames[-1].shape == last.shape
    difference = np.abs(frames[-1].astype(int) - last.astype(int))
    assert difference.mean() < 5 < np.abs(frames[0].astype(int) - last.astype(int)).max()


@pytest.mark.filterwarnings("ignore:.*render_mode='ansi'")
def test_render_modes_that_cannot_be_are_errors(make, monkeypatch):
    with pytest.raises(ValueError, match="render_mode = 'ansi': give rgb_array, human, or None"):
        make("quicgym/Tuning-v1", render_mode="ansi", disable_env_checker=True)
    monkeypatch.setattr("matplotlib.get_backend", lambda: "agg")
    with pytest.raises(RuntimeError, match="finds no display"):
        make("quicgym/Tuning-v1", render_mode="human")


def test_windows_are_drawn_in_kilobytes_and_rates_as_they_are(make):
    environment = make("quicgym/Tuning-v1", scenario=helper.scenario())
    _, info = environment.reset(seed=1)
    plot = EpisodePlot("rgb_array")
    plot.begin(info)
    plot.draw()  # of which nothing in the interval is known yet
    *_, info = environment.step(preset_action("bbr"))
    plot.add(info)
    plot.draw()
    panels = plot.figure.axes
    shown = {line.get_label(): line.get_ydata()[1] for axes in panels for line in axes.lines}
    assert shown["window"] == info["flow_window_bytes"] / 1e3 > 1
    assert shown["capacity"] == info["capacity_mbps"]


def test_a_chain_s_capacity_is_drawn_as_that_of_one_hop(make):
    hop = {"rate_mbps": 10, "delay_ms": 5, "queue": {"limit": 50}}
    chain = {"name": "chain", "duration_s": 5, "bottleneck": hop, "chain": [hop, hop],
             "access": {"rate_mbps": 100, "delay_ms": 1}, "flows": [{}]}  # fmt: skip
    scenario = quicgym.Scenario.model_validate(chain)
    arguments = {"scenario": scenario, "render_mode": "rgb_array"}
    environment = make("quicgym/Tuning-v1", **arguments)
    several = make_vec("quicgym/Tuning-v1", 1, **arguments)
    plot = EpisodePlot("rgb_array")
    plot.begin(environment.reset(seed=1)[1], "quicgym/Tuning-v1, chain, agent")
    several.reset(seed=1)
    action = preset_action("bbr")
    for _ in range(3):
        _, reward, *_, info = environment.step(action)
        several.step(action[None])
        plot.add({**info, "capacity_mbps": info["capacity_mbps"] / 3}, reward)
    expected = plot.draw()
    assert np.array_equal(environment.render(), expected)
    assert np.array_equal(several.render()[0], expected)
    several.close()


def test_a_window_is_drawn_anew_by_every_reset_and_step(make, monkeypatch):
    monkeypatch.setattr("matplotlib.get_backend", lambda: "a window's")
    drawn = []
    monkeypatch.setattr("matplotlib.pyplot.pause", drawn.append)
    environment = make("quicgym/Tuning-v1", scenario=helper.scenario(), render_mode="human")
    environment.reset(seed=1)
    assert len(drawn) == 1
    environment.step(helper.rest(environment.action_space))
    assert len(drawn) == 2
    assert environment.render() is None


def test_totals_and_parameters_are_those_of_the_flow_that_is_asked_for(make):
    flows = (
        Flow(name="agent", start_s=0.1),
        Flow(name="other", controller="ebcc", parameters={"gamma": 7}, start_s=0.2),
    )
    environment = make("quicgym/Tuning-v1", scenario=helper.scenario(flow_list=flows)).unwrapped
    environment.reset(seed=1)
    for _ in range(3):
        environment.step(preset_action("bbr"))
    starts = [environment.statistics(flow)["start"] for flow in (0, 1)]
    assert starts == [100_000_000, 200_000_000]
    assert environment.parameters()["gamma"] == environment.parameters(0)["gamma"] == [np.inf]
    assert environment.parameters(1)["gamma"] == [7]


def test_parameters_in_the_options_hold_for_one_episode(make):
    environment = make("quicgym/Tuning-v1", scenario=helper.scenario()).unwrapped
    ebcc = {"controller": "ebcc"}
    environment.reset(seed=1, options={**ebcc, "parameters": {"gamma": 60}})
    assert environment.parameters()["gamma"] == [60]
    environment.reset(options=ebcc)
    assert environment.parameters()["gamma"] == [30]


def test_parameters_in_the_options_leave_the_scenario_s_others_in_force(make):
    scenario = helper.scenario(controller_parameters={"ebcc": {"beta": 0.7, "gamma": 20.0}})
    environment = make("quicgym/Tuning-v1", scenario=scenario).unwrapped
    environment.reset(seed=1, options={"controller": "ebcc", "parameters": {"gamma": 60}})
    assert environment.parameters()["beta"] == [0.7] and environment.parameters()["gamma"] == [60]


@pytest.mark.ns3
def test_no_agent_controls_ns3s_tcp():
    flows = (Flow(name="theirs", transport="tcp", controller="cubic"), Flow(name="ours"))
    scenario = helper.scenario(flow_list=flows)
    with pytest.raises(ScenarioError, match="flow theirs is ns-3's TCP, which no agent can"):
        gymnasium.make("quicgym/Tuning-v1", scenario=scenario, engine="ns3", flow="theirs")


MADE = {
    "single": lambda: WindowEnv(scenario="ebcc-single"),
    "vector": lambda: quicgym.make_vec("window", scenario="training-50", num_envs=2),
    "parallel": lambda: ParallelCongestionControlEnv("window"),
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
@pytest.mark.parametrize("copied", [pickle.dumps, copy.deepcopy, copy.copy])
def test_a_copy_is_refused_with_the_remedy(make, copied):
    with pytest.raises(TypeError, match="make another one with the same arguments"):
        copied(make())


def test_the_class_is_pickled():
    assert pickle.loads(pickle.dumps(CongestionControlEnv)) is CongestionControlEnv
