"""The native vector environment: rows equal single environments, seeds, autoreset, threads."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from helpers import environments as helper
from helpers.environments import StoppedInTheMiddle

import quicgym
from quicgym import Reward
from quicgym.envs import ENVIRONMENTS
from quicgym.envs.info import INFO_COLUMNS
from quicgym.envs.scenarios.applications import Transfer
from quicgym.envs.scenarios.flows import Flow
from quicgym.envs.vector import row_seed

every_environment = pytest.mark.parametrize("name", ENVIRONMENTS)
every_mode = pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
SHORT = {"scenario": helper.scenario(flows=2, duration_s=0.8)}


def batches(environments, count, seed=0):
    environments.action_space.seed(seed)
    return [environments.action_space.sample() for _ in range(count)]


@every_environment
@every_mode
@pytest.mark.parametrize("threads", [1, 2])
def test_rows_equal_single_environments_through_all_episodes(name, mode, threads):
    rows = 5
    vector = quicgym.make_vec(
        name, num_envs=rows, num_threads=threads, autoreset_mode=mode, **SHORT
    )
    # Gymnasium's own vector environment over single ones says what autoreset is.
    reference = gymnasium.vector.SyncVectorEnv(
        [lambda: gymnasium.make(name, **SHORT).unwrapped] * rows, autoreset_mode=mode
    )
    observations, info = vector.reset(seed=11)
    expected, expected_info = reference.reset(seed=[row_seed(11, row) for row in range(rows)])
    assert vector.np_random_seed == reference.np_random_seed
    assert np.array_equal(observations, expected)
    ends = 0
    for batch in batches(vector, 40):
        result, wanted = vector.step(batch), reference.step(batch)
        for ours, theirs in zip(result[:4], wanted[:4], strict=True):
            assert np.array_equal(ours, theirs) and ours.dtype == theirs.dtype
        assert helper.equal(result[4], wanted[4])
        assert np.isfinite(result[1] * result[4]["step_s"]).all()  # as a loop sums rewards up
        ends += int(result[3].sum())
    assert ends >= 4 * rows
    vector.close()


@every_environment
def test_the_seed_decides_everything_and_rows_differ(name):
    def trajectory(seed, threads=1):
        vector = quicgym.make_vec(name, num_envs=4, num_threads=threads, **SHORT)
        observations = [vector.reset(seed=seed)[0]]
        observations += [vector.step(batch)[0] for batch in batches(vector, 15)]
        return np.array(observations)

    first = trajectory(1)
    assert np.array_equal(first, trajectory(1, threads=2))
    assert not np.array_equal(first, trajectory(2))
    for row in range(1, 4):
        assert not np.array_equal(first[:, 0], first[:, row])


def test_seeds_by_list_are_the_single_environments():
    vector = quicgym.make_vec("quicgym/Tuning-v1", num_envs=3, **SHORT)
    single = gymnasium.make("quicgym/Tuning-v1", **SHORT).unwrapped
    vector.reset(seed=[5, None, 7])
    assert vector.np_random_seed[0] == 5 and vector.np_random_seed[2] == 7
    single.reset(seed=7)
    assert vector.episode_seeds()[2] == single.episode_seed
    vector.reset()
    single.reset()
    assert vector.episode_seeds()[2] == single.episode_seed
    with pytest.raises(ValueError, match="2 seeds for 3 simulations"):
        vector.reset(seed=[1, 2])
    seeds = vector.np_random_seed
    with pytest.raises(ValueError, match="seed of simulation 2 = -1"):
        vector.reset(seed=[9, 9, -1])
    assert vector.np_random_seed == seeds
    # A row's seed does not depend on how many there are, nor follow from its neighbour's seed.
    assert len({row_seed(seed, row) for seed in range(20) for row in range(20)}) == 400


@every_mode
@pytest.mark.parametrize(
    "name, value, message",
    [
        ("tuning", np.nan, r"row 2: \[3\], entry_gain_minimum = nan; give a number from -1 to 1"),
        ("tuning", -np.inf, "row 2.*-inf"),
        ("tuning", 1.01, r"row 2.*1.01"),
        *(("window", value, rf"row 2: \[0\], factor = {value}; .* from 0 to 12$")
          for value in (13, -1, 1.5, np.nan)),
    ],
)  # fmt: skip
def test_a_bad_action_names_its_row_and_moves_nothing(mode, name, value, message):
    vector = quicgym.make_vec(name, num_envs=3, autoreset_mode=mode, out_of_range="error", **SHORT)
    chosen = batches(vector, 6)
    vector.reset(seed=1)
    expected = [vector.step(batch)[0] for batch in chosen]
    vector.reset(seed=1)
    for batch, observations in zip(chosen, expected, strict=True):
        bad = batch.astype(float)
        bad[(2, 3) if bad.ndim == 2 else 2] = value
        with pytest.raises(ValueError, match=message):
            vector.step(bad)
        if bad.ndim == 2:
            with pytest.raises(ValueError, match=r"shape \(2, 13\); give \(3, 13\)"):
                vector.step(batch[:2])
        assert np.array_equal(vector.step(batch)[0], observations)


def test_options_hold_through_autoresets_until_the_next_reset():
    vector = quicgym.make_vec("quicgym/Tuning-v1", num_envs=2, **SHORT)
    single = gymnasium.make("quicgym/Tuning-v1", **SHORT).unwrapped
    options = {"controller": "newreno"}
    vector.reset(seed=[3, 4], options=options)
    for episode in range(3):
        alone = helper.play(
            single,
            [np.zeros(13, np.float32)] * 10,
            seed=4 if episode == 0 else None,
            options=options,
        )
        for row in alone[1:]:
            observations, rewards, *_ = vector.step(np.zeros((2, 13), np.float32))
            assert np.array_equal(observations[1], row[0]) and rewards[1] == row[1]
        vector.step(np.zeros((2, 13), np.float32))  # begins the next episode
    vector.reset(seed=[3, 4])
    single.reset(seed=4)
    after = vector.step(np.zeros((2, 13), np.float32))[0][1]
    assert np.array_equal(after, single.step(np.zeros(13, np.float32))[0])


def test_options_are_those_of_the_reset_whatever_the_caller_does_with_them_later():
    vector = quicgym.make_vec("quicgym/Tuning-v1", num_envs=1, **SHORT)
    options = {"controller": "newreno"}
    vector.reset(seed=1, options=options)
    options["controller"] = "cubik"
    episodes = set()
    for _ in range(12):
        vector.step(np.zeros((1, 13), np.float32))
        episodes |= {episode.controller for episode in vector.batch.episodes}
    assert len(vector.episode_seeds()) == 1 and episodes == {"newreno"}


def test_each_flow_can_be_a_row():
    scenario = helper.scenario(flows=3)
    arguments = {"scenario": scenario, "per_flow": True}
    common = quicgym.make_vec("quicgym/Tuning-v1", num_envs=2, **arguments)
    own = quicgym.make_vec("quicgym/Tuning-v1", num_envs=2, reward_per_flow=True, **arguments)
    assert common.num_envs == own.num_envs == 6
    common.reset(seed=1)
    own.reset(seed=1)
    for batch in batches(common, 15):
        observations, rewards, _, truncations, info = common.step(batch)
        _, own_rewards, *_ = own.step(batch)
        for first in (0, 3):
            group = slice(first, first + 3)
            assert len(set(rewards[group])) == 1
            assert len(set(info["flow_window_bytes"][group])) > 1
            if info["active_flows"][first] == 3:
                # An equal part of the link each: the mean of the shares is the common share.
                loss = 5 * info["flow_loss_rate"][group]
                shares = own_rewards[group] + loss + (1 - info["jain"][group])
                assert shares.mean() == pytest.approx(info["throughput_share"][first])
        assert not np.array_equal(observations[0], observations[1])
    with pytest.raises(ValueError, match="how many agents an episode may have"):
        quicgym.make_vec("quicgym/Tuning-v1", scenario=Draws(), per_flow=True)


class Draws:
    """A distribution over two rates."""

    def sample(self, rng):
        return helper.scenario(flows=2, duration_s=0.8, rate_mbps=float(rng.choice([4.0, 8.0])))


class DrawsAgents:
    """A distribution over one to three open flows."""

    most_agents = 3

    def sample(self, rng):
        return helper.scenario(flows=int(rng.integers(1, 4)), duration_s=0.8)


OF_THE_INTERVAL = (
    "throughput_mbps", "capacity_mbps", "throughput_share", "loss_rate", "jain",
    "active_flows", "flow_throughput_mbps", "flow_loss_rate",
)  # fmt: skip
RTTS = ("rtt_ms", "rtt_ratio", "flow_rtt_ms")


def check_info(info, has_agent, unknown):
    """Checks that NaN is where there is no agent, and in the unknown columns; but for RTTs."""
    for name in INFO_COLUMNS:
        if name in ("active", "step_s"):
            assert not info[name][~has_agent].any() and not np.isnan(info[name]).any()
            continue
        assert np.isnan(info[name][~has_agent]).all()
        if name not in RTTS:
            assert (np.isnan(info[name][has_agent]) == (name in unknown)).all()
    assert np.array_equal(np.isnan(info["rtt_ms"]), np.isnan(info["rtt_ratio"]))


@every_environment
def test_rows_of_an_episode_with_fewer_agents_are_0_and_the_others_as_ever(name):
    vector = quicgym.make_vec(name, num_envs=12, scenario=DrawsAgents(), per_flow=True)
    observations, info = vector.reset(seed=1)
    agents = [
        len([flow for _, flow in episode.scenario.single_flows()])
        for episode in vector.batch.episodes
    ]
    assert set(agents) == {1, 2, 3}
    has_agent = np.concatenate([np.arange(3) < count for count in agents])
    check_info(info, has_agent, OF_THE_INTERVAL)
    alone = quicgym.make_vec(
        name, num_envs=1, scenario=vector.batch.episodes[0].scenario, per_flow=True
    )
    alone.reset(seed=[0])
    alone.batch.begin_chosen([0], vector.batch.episodes[:1])
    for batch in batches(vector, 7):
        observations, rewards, _, _, info = vector.step(batch)
        assert vector.observation_space.contains(observations)
        for values in (observations, rewards):
            assert not values[~has_agent].any()
        check_info(info, has_agent, ())
        assert rewards[has_agent].any()
        expected = alone.step(batch[: agents[0]])
        assert np.array_equal(observations[: agents[0]], expected[0])
        assert np.array_equal(rewards[: agents[0]], expected[1])


def test_reward_functions_see_rows_with_an_agent_alone():
    def reward(info):
        assert info["capacity_mbps"].all()
        return info["throughput_mbps"] / info["capacity_mbps"]

    vector = quicgym.make_vec(
        "quicgym/Tuning-v1", num_envs=12, scenario=DrawsAgents(), per_flow=True, reward=reward
    )
    vector.reset(seed=1)
    _, rewards, *_, info = vector.step(batches(vector, 1)[0])
    assert np.array_equal(rewards > 0, info["throughput_mbps"] > 0)


class DrawsLengths:
    """A distribution over two durations."""

    most_agents = 2

    def sample(self, rng):
        return helper.scenario(flows=2, duration_s=float(rng.choice([0.5, 0.9])))


def until_some_have_ended(vector):
    """Steps to the first end of an episode; returns which simulations ended, and by row."""
    vector.reset(seed=1)
    durations_s = np.array([episode.scenario.duration_s for episode in vector.batch.episodes])
    assert set(durations_s) == {0.5, 0.9}
    for batch in batches(vector, 10):
        _, _, _, truncations, _ = vector.step(batch)
        if truncations.any():
            break
    return durations_s == 0.5, truncations


def test_the_end_of_a_simulation_is_that_of_all_its_rows():
    vector = quicgym.make_vec("quicgym/Rate-v1", num_envs=6, scenario=DrawsLengths(), per_flow=True)
    ended, truncations = until_some_have_ended(vector)
    assert truncations.tolist() == np.repeat(ended, 2).tolist()


def test_a_reward_function_is_asked_of_the_simulations_that_moved():
    vector = quicgym.make_vec(
        "quicgym/Rate-v1",
        num_envs=6,
        scenario=DrawsLengths(),
        per_flow=True,
        reward=lambda info: np.ones(len(info["jain"])),
    )
    ended, _ = until_some_have_ended(vector)
    _, rewards, *_ = vector.step(vector.action_space.sample())  # begins their next episodes
    assert rewards.tolist() == np.repeat(~ended, 2).tolist()


def test_scenarios_are_drawn_from_each_rows_own_generator():
    vector = quicgym.make_vec("quicgym/Rate-v1", num_envs=4, scenario=Draws())
    singles = [gymnasium.make("quicgym/Rate-v1", scenario=Draws()).unwrapped for _ in range(4)]
    vector.reset(seed=2)
    observations = np.array(
        [single.reset(seed=row_seed(2, row))[0] for row, single in enumerate(singles)]
    )
    rates = set()
    for batch in batches(vector, 30):
        result = vector.step(batch)
        rates |= set(result[4]["capacity_mbps"])
        for row, single in enumerate(singles):
            if result[1][row] == 0.0 and not np.array_equal(result[0][row], observations[row]):
                observations[row] = single.reset()[0]
            else:
                observations[row] = single.step(batch[row])[0]
        assert np.array_equal(result[0], observations)
    assert {4.0, 8.0} <= rates


def test_reward_functions_see_columns():
    def reward(info):
        return info["throughput_mbps"] / 8 - 0.01 * info["queue_packets"]

    vector = quicgym.make_vec("quicgym/Tuning-v1", num_envs=3, reward=reward, **SHORT)
    vector.reset(seed=1)
    for batch in batches(vector, 12):
        _, rewards, terminations, truncations, info = vector.step(batch)
        begun = info["time_s"] < 0.2
        assert np.array_equal(rewards[~begun], reward(info)[~begun])
    named = quicgym.make_vec("quicgym/Tuning-v1", num_envs=3, reward=Reward("power"), **SHORT)
    assert np.all(named.reset(seed=1)[1]["_jain"])


def test_a_transfer_that_ends_is_a_termination():
    flow = Flow(start_s=0.1, application=Transfer(size_bytes=60_000))
    vector = quicgym.make_vec(
        "quicgym/Rate-v1", num_envs=2, scenario=helper.scenario(flow_list=(flow,), loss=0)
    )
    vector.reset(seed=1)
    rest = np.zeros((2, 2), np.float32)
    for _ in range(20):
        _, _, terminations, truncations, _ = vector.step(rest)
        if terminations.any():
            break
    assert terminations.all() and not truncations.any()


class Failing(quicgym.Controller):
    """Fails in one of four runs, at its first loss."""

    def on_ack(self, event):
        if self.fails_at is None:
            self.fails_at = event.random.below(4)

    def on_loss(self, event):
        if self.fails_at == 0:
            raise ValueError("nothing is left")

    def on_start(self, max_datagram_bytes):
        self.fails_at = None
        self.window_bytes = 200 * max_datagram_bytes


@every_mode
def test_a_failing_controller_is_named_and_the_other_rows_go_on(mode):
    scenario = helper.scenario(loss=0.05)
    vector = quicgym.make_vec(
        "quicgym/Tuning-v1", num_envs=16, num_threads=2, autoreset_mode=mode, scenario=scenario
    )
    vector.reset(seed=1, options={"controller": Failing})
    rest = np.zeros((16, 13), np.float32)
    with pytest.raises(quicgym.ControllerError, match="nothing is left") as error:
        for _ in range(15):
            vector.step(rest)
    (note,) = error.value.__notes__
    assert "scenario short, seed " in note
    with pytest.raises(RuntimeError, match="has no running episode; reset it"):
        vector.step(rest)
    vector.reset()
    vector.step(rest)


def test_what_began_after_a_close_can_be_closed_too():
    vector = quicgym.make_vec("quicgym/Tuning-v1", num_envs=2, **SHORT)
    assert vector.np_random_seed == (-1, -1)  # before the first reset
    for _ in range(2):
        vector.reset(seed=1)
        assert None not in vector.episode_seeds()
        vector.close()
        assert vector.episode_seeds() == (None, None)


def test_the_autoreset_mode_is_each_instances_own():
    modes = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP]
    made = [quicgym.make_vec("quicgym/Tuning-v1", autoreset_mode=mode) for mode in modes]
    assert [vector.metadata["autoreset_mode"] for vector in made] == modes


def python(code, timeout=60):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=timeout
    )


@pytest.mark.long
def test_4096_simulations_fit_into_two_gigabytes():
    code = """
import resource, numpy as np, quicgym
vector = quicgym.make_vec("quicgym/Tuning-v1", num_envs=4096)
vector.reset(seed=1)
actions = np.tile(quicgym.preset_action("bbr"), (4096, 1))
for _ in range(60):
    vector.step(actions)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
    done = python(code, timeout=600)
    assert int(done.stdout) < 2_000_000, done.stderr


def test_a_forked_process_is_told_that_threads_do_not_come_along():
    code = """
import os, quicgym
vector = quicgym.make_vec("quicgym/Tuning-v1", num_envs=4, num_threads=2)
vector.reset(seed=1)
child = os.fork()
try:
    vector.step(vector.action_space.sample())
except RuntimeError as error:
    assert child == 0 and "forked" in str(error), error
    del vector
else:
    assert child and os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    done = python(code)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("call", ["step", "close", "deliveries"])
def test_a_call_from_another_thread_is_refused_while_one_is_running(call):
    stopped = StoppedInTheMiddle()
    vector = quicgym.make_vec(
        "quicgym/Tuning-v1",
        1,
        scenario=helper.scenario(flows=2),
        other_controllers=stopped.controller,
    )
    vector.reset(seed=1)
    actions = np.zeros(vector.action_space.shape, np.float32)
    calls = {
        "step": lambda: vector.step(actions),
        "close": vector.close,
        "deliveries": lambda: vector.deliveries(0),
    }
    with stopped.during(lambda: vector.step(actions)):
        with pytest.raises(RuntimeError, match="another thread"):
            calls[call]()
    vector.step(actions)
    vector.close()


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_a_picture_of_each_simulation_is_that_of_the_single_environment(mode):
    pytest.importorskip("matplotlib")
    arguments = {"scenario": helper.scenario(flows=1, duration_s=1.0), "render_mode": "rgb_array"}
    rows = quicgym.make_vec("quicgym/Rate-v1", 2, autoreset_mode=mode, **arguments)
    rows.reset(seed=[4, 5])
    singles = [quicgym.envs.find_environment("rate")(**arguments) for _ in range(2)]
    for single, seed in zip(singles, (4, 5), strict=True):
        single.reset(seed=seed)
    action = np.array([0.5, 0.1], np.float32)
    for _ in range(5):
        rows.step(np.tile(action, (2, 1)))
        for single in singles:
            single.step(action)
    pictures = rows.render()
    assert len(pictures) == 2
    for picture, single in zip(pictures, singles, strict=True):
        assert np.array_equal(picture, single.render())
    for _ in range(20):  # past the episode's end, after which the picture starts over
        rows.step(np.tile(action, (2, 1)))
    assert not np.array_equal(rows.render()[0], pictures[0])
    with pytest.raises(ValueError, match="render_mode = 'human'.*'rgb_array'"):
        quicgym.make_vec("quicgym/Rate-v1", 3, scenario=arguments["scenario"], render_mode="human")
