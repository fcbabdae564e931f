"""Agent and simulation over loopback: episodes, ends of all kinds, wrong frames, silence."""

from __future__ import annotations

import gc
import json
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import zmq
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from helpers.environments import child_processes
from helpers.ns3gym_peers import (
    NESTED,
    PATIENCE_S,
    SMALL_INIT,
    Background,
    ExistingClient,
    NestedEnv,
    SameEpisodes,
    agent,
    await_listener,
    box_state,
    container,
    description,
    free_port,
    raw_socket,
    same,
    small_env,
)

from quicgym.envs.ns3gym import (
    MessageError,
    Ns3GymEnv,
    Ns3GymError,
    PeerError,
    PeerGoneError,
    messages,
    serve,
    server,
)
from quicgym.envs.ns3gym.messages import Dtype, SpaceType

Rows = list[tuple[Any, float, bool, bool]]


def serving(env: gymnasium.Env[Any, Any], port: int, **arguments: Any) -> Background:
    arguments = {"timeout_s": PATIENCE_S} | arguments
    return Background(lambda: serve(env, port, **arguments))


@contextmanager
def playing(env: gymnasium.Env[Any, Any], **arguments: Any) -> Iterator[Ns3GymEnv]:
    """An agent whose simulation plays one episode of the environment."""
    port = free_port()
    simulation = serving(env, port, episodes=1, **arguments)
    with agent(port) as remote:
        yield remote
    assert simulation.join() == 1


@contextmanager
def met(*answers: bytes, **arguments: Any) -> Iterator[tuple[Background, Any]]:
    """A simulation that was answered so, and the socket at which it is."""
    port = free_port()
    with raw_socket(zmq.REP, port) as end:
        simulation = serving(small_env(), port, **arguments)
        for answer in answers:
            end.recv()
            end.send(answer)
        yield simulation, end


def rows(env: gymnasium.Env[Any, Any], actions: list[Any], seed: int | None = None) -> Rows:
    """One episode: what each step shows."""
    observation, _ = env.reset(seed=seed)
    result: Rows = [(observation, 0.0, False, False)]
    for action in actions:
        observation, reward, terminated, truncated, _ = env.step(action)
        result.append((observation, float(reward), terminated, truncated))
        if terminated or truncated:
            break
    return result


@pytest.mark.parametrize("first", ["agent", "simulation"])
def test_episodes_are_those_of_the_environment_itself(first: str) -> None:
    actions = [0, 1, 1] * 100
    env = gymnasium.make("CartPole-v1")
    expected = [rows(env, actions, seed=3), rows(env, actions), rows(env, actions)]
    port = free_port()

    def run_agent() -> list[Rows]:
        with agent(port) as remote:
            return [rows(remote, actions) for _ in range(3)]

    def run_simulation() -> int:
        return serve(env, port, episodes=3, seed=3, timeout_s=PATIENCE_S)

    if first == "agent":
        running = Background(run_agent)
        await_listener(port)
        assert run_simulation() == 3
        episodes = running.join()
    else:
        simulation = Background(run_simulation)
        time.sleep(0.3)  # long enough to be refused a few times
        episodes = run_agent()
        assert simulation.join() == 3
    for episode, of_itself in zip(episodes, expected, strict=True):
        assert len(episode) == len(of_itself)
        assert episode[-1][2:] == (True, False)
        for row, expected_row in zip(episode, of_itself, strict=True):
            assert same(row[0], expected_row[0])
            assert row[1:] == expected_row[1:]


def test_nested_spaces_and_info_arrive() -> None:
    simulated = NestedEnv()
    with playing(simulated) as env:
        observation, info = env.reset()
        assert info == {"info": '{"capacity": 1.5, "queue": [0, 1]}'}
        received, actions = [observation], []
        truncated = False
        while not truncated:
            actions.append(env.action_space.sample())
            observation, reward, _, truncated, info = env.step(actions[-1])
            assert env.observation_space.contains(observation)
            assert (reward, info) == (0.5, {"info": ""})
            received.append(observation)
        with pytest.raises(ResetNeeded, match="call reset"):
            env.step(actions[-1])
    for ours, theirs in zip(received, simulated.observations, strict=True):
        assert same(ours["matrix"], theirs["matrix"])
        assert same(ours["inner"], theirs["inner"])
        assert ours["pair"][0] == theirs["pair"][0] + 1
    for ours, theirs in zip(actions, simulated.actions, strict=True):
        assert NESTED.contains(theirs)
        np.testing.assert_array_equal(ours["pair"][1], theirs["pair"][1])
        np.testing.assert_allclose(ours["matrix"], theirs["matrix"], rtol=1e-6)


def test_numbers_that_json_does_not_have_are_null_in_the_info() -> None:
    class NotMeasured(NestedEnv):
        def reset(self, **arguments: Any) -> Any:
            observation, _ = super().reset(**arguments)
            rtts = np.array([[np.nan, 20.5], [np.inf, -np.inf]])
            info = {"rtt": rtts, "loss": np.float32("nan"), "flows": {"a": (float("inf"), 1, None)}}
            return observation, info | {
                "ended": True,
                "name": np.str_("x"),
                "space": NESTED["scalar"],
            }

    def no_constant(text: str) -> None:
        raise AssertionError(f"{text} is no JSON")

    with playing(NotMeasured()) as env:
        _, info = env.reset()
    assert json.loads(info["info"], parse_constant=no_constant) == {
        "rtt": [[None, 20.5], [None, None]],
        "loss": None,
        "flows": {"a": [None, 1, None]},
        "ended": True,
        "name": "x",
        "space": "Box(-5, 5, (), int64)",
    }


def test_reset_and_close_in_mid_episode() -> None:
    port = free_port()
    simulation = serving(gymnasium.make("CartPole-v1"), port, episodes=3)
    env = agent(port)
    env.reset()
    env.step(0)
    env.reset()
    env.reset()
    env.step(1)
    env.close()
    assert simulation.join() == 3
    env.close()


def test_close_before_the_first_reset_ends_the_simulation() -> None:
    port = free_port()
    simulation = serving(gymnasium.make("CartPole-v1"), port, episodes=5)
    agent(port).close()
    assert simulation.join() == 0


def test_gymnasium_s_checker_has_nothing_to_say(recwarn: pytest.WarningsRecorder) -> None:
    port = free_port()
    stop = threading.Event()

    class UntilStopped(SameEpisodes):
        def reset(self, **arguments: Any) -> Any:
            if stop.is_set():
                raise StopIteration
            return super().reset(**arguments)

    simulation = serving(UntilStopped(gymnasium.make("CartPole-v1")), port)
    env = agent(port)
    check_env(env)
    stop.set()
    with pytest.raises(PeerGoneError):
        env.reset()
    with pytest.raises(StopIteration):
        simulation.join()
    said = [str(warning.message) for warning in recwarn]
    unexpected = [
        text
        for text in said
        # No seed in the protocol, CartPole's own bounds, and no spec: it is not registered.
        if not any(part in text for part in ("no seed", "infinity", "alternative render modes"))
    ]
    assert not unexpected


def test_a_seed_that_cannot_arrive_is_said() -> None:
    with playing(gymnasium.make("CartPole-v1")) as env:
        with pytest.warns(RuntimeWarning, match="seed = 7 does not reach the simulation"):
            env.reset(seed=7)
        with pytest.raises(ValueError, match="options = {'a': 1}: ns3-gym's protocol has none"):
            env.reset(options={"a": 1})


def test_an_action_outside_of_the_space_leaves_the_episode_as_it_was() -> None:
    with playing(gymnasium.make("CartPole-v1")) as env:
        env.reset()
        with pytest.raises(MessageError, match="action = 2: is not in"):
            env.step(2)
        assert env.step(1)[1] == 1.0


# A client that exists.


def test_the_existing_client_plays_several_episodes() -> None:
    actions = [1, 0, 0] * 30
    env = gymnasium.make("CartPole-v1")
    expected = [rows(env, actions, seed=5), rows(env, actions)]
    port = free_port()
    simulation = serving(env, port, episodes=3, seed=5)
    client = ExistingClient(port)
    for of_itself in expected:
        observation = client.reset()
        # The simulation connects again at once, to the socket that is about to be closed.
        time.sleep(0.2)
        np.testing.assert_array_equal(np.float32(observation), of_itself[0][0])
        for action, row in zip(actions, of_itself[1:], strict=False):
            observation, reward, over, _ = client.step(action)
            np.testing.assert_array_equal(np.float32(observation), row[0])
            assert (reward, over) == (row[1], row[2])
        assert over and client.reason == 1
        time.sleep(0.2)
    client.reset()
    client.step(0)
    client.close()
    assert simulation.join() == 3


@pytest.mark.parametrize("dtype", ["float", "uint"])
def test_the_existing_client_s_nested_actions_are_understood(dtype: str) -> None:
    class Vectors(NestedEnv):
        observation_space = action_space = spaces.Dict(
            {"double": spaces.Box(-2, 2, (2, 2), np.float64), "port": spaces.Discrete(4)}
        )

    port = free_port()
    simulated = Vectors(length=2)
    simulation = serving(simulated, port, episodes=1, dtype=dtype)
    client = ExistingClient(port)
    over = False
    while not over:
        observation, _, over, _ = client.step(client.observation)
        assert all(len(values) == 4 for name, values in observation.items() if name != "port")
    assert client.reason == 0
    client.close()
    assert simulation.join() == 1
    for action, observation in zip(simulated.actions, simulated.observations[:-1], strict=True):
        np.testing.assert_allclose(action["double"], observation["double"], rtol=1e-6, atol=1e-8)
        assert action["port"] == observation["port"]


# Peers that fail. Every wait that succeeds has PATIENCE_S; those that must end in time, little.

ACK = messages.SimInitAck(done=True).SerializeToString()


def test_a_silent_agent_is_an_error_in_time() -> None:
    port = free_port()
    with raw_socket(zmq.REP, port), pytest.raises(PeerError, match="no SimInitAck within 0.3 s"):
        serve(small_env(), port, timeout_s=0.3)


def test_without_a_number_of_episodes_an_agent_that_stays_away_is_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    meet, timeouts = server._meet, iter([PATIENCE_S, 0.2])
    monkeypatch.setattr(
        server, "_meet", lambda host, port, init, _: meet(host, port, init, next(timeouts))
    )
    with met(ACK, messages.EnvActMsg(stopSimReq=True).SerializeToString()) as (simulation, _):
        assert simulation.join() == 1


def test_an_agent_that_goes_away_ends_the_simulation_at_once() -> None:
    with met(ACK, timeout_s=10 * PATIENCE_S) as (simulation, end):
        end.recv()
    with pytest.raises(PeerGoneError, match="agent closed the connection where EnvActMsg"):
        simulation.join()


def test_an_agent_that_refuses_or_stops_at_once() -> None:
    stop = messages.SimInitAck(done=True, stopSimReq=True).SerializeToString()
    with met(stop) as (simulation, _):
        assert simulation.join() == 0
    with met(b"") as (simulation, _), pytest.raises(MessageError, match="SimInitAck.done = false"):
        simulation.join()


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (b"\x0a\x05", "EnvActMsg: 2 bytes are not a valid EnvActMsg"),
        (b"", "EnvActMsg.actData: is missing"),
        (
            messages.EnvActMsg(
                actData=container(1, messages.DiscreteDataContainer(data=3))
            ).SerializeToString(),
            r"EnvActMsg\.actData\.data\.data = 3: is not in 0 to 2",
        ),
    ],
)
def test_a_wrong_answer_of_an_agent_is_named(frame: bytes, message: str) -> None:
    with met(ACK, frame) as (simulation, _), pytest.raises(MessageError, match=message):
        simulation.join()


@pytest.mark.parametrize(
    ("reward", "info", "message"),
    [
        (np.nan, {}, "reward = nan"),
        (1e300, {}, "reward = 1e.300: is not a finite float32"),
        (0.0, {np.nan: 3}, "info: cannot be written as JSON: Out of range float values"),
    ],
)
def test_a_wrong_reward_or_info_of_the_environment_is_named(
    reward: float, info: dict[str, Any], message: str
) -> None:
    class Wrong(NestedEnv):
        observation_space = action_space = spaces.Discrete(2)

        def step(self, action: Any) -> Any:
            return 0, reward, False, False, info

    port = free_port()
    simulation = serving(Wrong(), port)
    with agent(port) as env:
        env.reset()
        with pytest.raises(PeerGoneError, match="the simulation closed the connection"):
            env.step(0)
    with pytest.raises(MessageError, match=message):
        simulation.join()


def against(*frames: Any, **arguments: Any) -> tuple[Ns3GymEnv, Background]:
    """An agent, and a simulation that sends these, each after the answer to the one before."""
    port = free_port()

    def play() -> list[bytes]:
        with raw_socket(zmq.REQ, port) as end:
            answers = []
            for frame in frames:
                end.send(frame if isinstance(frame, bytes) else frame.SerializeToString())
                answers.append(end.recv())
            return answers

    simulation = Background(play)
    return agent(port, **arguments), simulation


WRONG_STATES = [
    (b"", r"EnvStateMsg\.obsData: is missing"),
    (box_state(0.5, 2), r"EnvStateMsg\.obsData\.data\.floatData\[1\] = 2\.0: is not in -1 to 1"),
    (box_state(0, 0, reward=float("nan")), r"EnvStateMsg\.reward = nan: is not finite"),
    (box_state(0, 0, reason=5), r"EnvStateMsg\.reason = 5: is not SimulationEnd or GameOver"),
    (box_state(0, 0, isGameOver=True), r"EnvStateMsg\.isGameOver: is set before the first step"),
]


@pytest.mark.parametrize(("state", "message"), WRONG_STATES)
def test_a_wrong_state_of_a_simulation_is_named(state: Any, message: str) -> None:
    with against(SMALL_INIT, state, strict=True)[0] as env:
        with pytest.raises(MessageError, match=message):
            env.reset()


# As ns3-gym's example rl-tcp: it declares 0 to 1e9 and begins with a threshold of 2^32 - 1.
RL_TCP_INIT = messages.SimInitMsg(
    obsSpace=description(
        SpaceType.Tuple,
        messages.TupleSpace(
            element=[
                description(
                    SpaceType.Box, messages.BoxSpace(low=0, high=1e9, dtype=Dtype.UINT, shape=[3])
                ),
                description(SpaceType.Discrete, messages.DiscreteSpace(n=3)),
            ]
        ),
    ),
    actSpace=description(SpaceType.Discrete, messages.DiscreteSpace(n=3)),
)


def rl_tcp_state(threshold: int, phase: int) -> Any:
    numbers = messages.BoxDataContainer(dtype=Dtype.UINT, uintData=[0, threshold, 1000])
    elements = [
        container(SpaceType.Box, numbers),
        container(SpaceType.Discrete, messages.DiscreteDataContainer(data=phase)),
    ]
    tuple_data = messages.TupleDataContainer(element=elements)
    return messages.EnvStateMsg(obsData=container(SpaceType.Tuple, tuple_data))


def test_an_observation_outside_of_the_declared_space_is_returned_with_one_warning() -> None:
    state = rl_tcp_state(2**32 - 1, 1)
    env, _ = against(RL_TCP_INIT, state, rl_tcp_state(2**32 - 2, 7), rl_tcp_state(5, 2))
    text = r"uintData\[1\] = 4294967295: is not in 0 to 1e\+09; .*strict=True"
    with pytest.warns(RuntimeWarning, match=text) as warned:
        observation, _ = env.reset()
        assert observation[0].tolist() == [0, 2**32 - 1, 1000]
        assert observation[0].dtype == np.uint32
        observation, *_ = env.step(0)
        assert observation[0].tolist() == [0, 2**32 - 2, 1000]
        assert observation[1] == 7
    assert len(warned) == 1
    observation, *_ = env.step(0)
    assert env.observation_space.contains(observation)
    env.close()


def test_an_observation_that_is_no_number_is_always_refused() -> None:
    with against(SMALL_INIT, box_state(2, float("nan")))[0] as env:
        with pytest.raises(MessageError, match=r"floatData\[1\] = nan: is not in -1 to 1"):
            env.reset()


def test_a_wrong_introduction_of_a_simulation_is_named() -> None:
    with pytest.raises(MessageError, match=r"SimInitMsg\.actSpace\.type = NoSpaceType"):
        against(messages.SimInitMsg(obsSpace=SMALL_INIT.obsSpace))


def test_other_spaces_in_the_second_episode_are_refused() -> None:
    env, simulation = against(SMALL_INIT, box_state(0, 0), SMALL_INIT, box_state(0, 0))
    env.reset()
    env.reset()
    env.close()
    other = messages.SimInitMsg(obsSpace=SMALL_INIT.actSpace, actSpace=SMALL_INIT.actSpace)
    env, simulation = against(SMALL_INIT, box_state(0, 0), other)
    env.reset()
    with pytest.raises(MessageError, match="describes other spaces than at first"):
        env.reset()
    assert messages.SimInitAck.FromString(simulation.join()[-1]).stopSimReq


def test_what_the_agent_answers_at_the_end_is_what_simulations_know() -> None:
    last = box_state(0, 0, isGameOver=True, reason=1, info="done", reward=2)
    env, simulation = against(SMALL_INIT, box_state(0, 0), last)
    env.reset()
    _, reward, terminated, truncated, info = env.step(1)
    assert (reward, terminated, truncated, info) == (2.0, True, False, {"info": "done"})
    act = messages.EnvActMsg(actData=container(1, messages.DiscreteDataContainer(data=1)))
    stop = messages.EnvActMsg(stopSimReq=True)
    assert simulation.join() == [ACK, act.SerializeToString(), stop.SerializeToString()]
    env.close()


# Simulations in processes of their own.

# Without quicgym, whose import would take most of the time.
SIMULATION = f"""
    import sys, time, zmq

    INIT, STATE = {SMALL_INIT.SerializeToString()!r}, {box_state(0, 0).SerializeToString()!r}
    port, what = sys.argv[1:3]
    print("simulation", *sys.argv[1:], flush=True)
    end = zmq.Context().socket(zmq.REQ)
    end.connect("tcp://127.0.0.1:" + port)
    if what == "silent":
        time.sleep(1000)
    end.send(INIT)
    end.recv()
    end.send(STATE)
    end.recv()
    if what == "dies":
        sys.exit("assert failed: queue")
    if what == "stubborn":
        import signal, subprocess
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen(["sleep", "1000"])
        open(sys.argv[3], "w").write(str(child.pid))
        end.send(STATE)
        end.recv()
        time.sleep(1000)
"""


@pytest.fixture
def simulation_command(tmp_path: Path) -> Callable[..., list[str]]:
    script = tmp_path / "simulation.py"
    script.write_text(textwrap.dedent(SIMULATION))
    return lambda *arguments: [sys.executable, str(script), "{port}", *map(str, arguments)]


def test_a_simulation_that_dies_is_shown_with_its_output(
    simulation_command: Callable[..., list[str]],
) -> None:
    with agent(0, command=simulation_command("dies", "{seed}")) as env:
        env.reset(seed=11)
        with pytest.raises(PeerGoneError) as caught:
            env.step(0)
        text = str(caught.value)
        assert "ended with status 1 and wrote:\nsimulation" in text
        assert text.endswith("dies 11\nassert failed: queue")
        env.reset()  # a new one
        with pytest.raises(PeerGoneError):
            env.step(0)


def test_a_silent_simulation_is_stopped_in_time(
    simulation_command: Callable[..., list[str]],
) -> None:
    with pytest.raises(PeerError, match="no SimInitMsg within 0.5 s: .* is running and wrote"):
        agent(0, command=simulation_command("silent"), timeout_s=0.5)


def test_a_simulation_that_does_not_want_to_end_is_killed_with_its_children(
    simulation_command: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quicgym.envs.ns3gym.client._FAREWELL_S", 0.1)
    monkeypatch.setattr("quicgym.envs.ns3gym.process._TERMINATE_S", 0.1)
    env = agent(0, command=simulation_command("stubborn", tmp_path / "child"))
    env.reset()
    env.step(0)
    child = int((tmp_path / "child").read_text())
    env.close()
    deadline = time.monotonic() + PATIENCE_S
    while is_alive(child):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_alive(process_id: int) -> bool:
    try:
        state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_an_environment_that_is_forgotten_frees_port_and_process(
    simulation_command: Callable[..., list[str]],
) -> None:
    before = child_processes()
    env = agent(0, command=simulation_command("runs"))
    env.reset()
    port = env.port
    (process_id,) = set(child_processes()) - set(before)
    del env
    gc.collect()
    assert not is_alive(process_id)
    with raw_socket(zmq.REP, port):
        pass


def test_a_port_in_use_is_named() -> None:
    port = free_port()
    with raw_socket(zmq.REP, port), pytest.raises(Ns3GymError, match="Address already in use; giv"):
        agent(port)


def make_agent(**arguments: Any) -> Ns3GymEnv:
    return Ns3GymEnv(**{"port": 0, "timeout_s": PATIENCE_S} | arguments)


def make_simulation(**arguments: Any) -> int:
    return serve(small_env(), **arguments)


@pytest.mark.parametrize(
    ("make", "arguments", "error", "message"),
    [
        (make_agent, {"command": "no-such-program {port}"}, PeerError,
         "cannot start .*`no-such-program"),
        (make_agent, {"command": "sim"}, ValueError, "command = 'sim': does not say where {port} "),
        (make_agent, {"port": 65536}, Ns3GymError, "port = 65536: is not in 0 to 65535"),
        (make_agent, {"host": "no.such.interface"}, Ns3GymError,
         "cannot listen on tcp://no.such.interface"),
        (make_simulation, {"host": "a b"}, Ns3GymError, "cannot connect to tcp://a b:5555"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_named(
    make: Callable[..., Any], arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make(**arguments)
