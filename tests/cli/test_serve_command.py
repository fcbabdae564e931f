"""`quicgym serve`, as a user runs it."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from conftest import Command
from gymnasium import spaces
from helpers.commands import command, run_process, start_process
from helpers.ns3gym_peers import PATIENCE_S, Background, free_port

from quicgym.envs.ns3gym import Ns3GymEnv
from quicgym.envs.ns3gym.command import run_serve

CART_POLE = ("serve", "CartPole-v1", "--port")


def test_a_served_environment_is_driven(tmp_path: Path) -> None:
    port = free_port()
    arguments = (*CART_POLE, port, "--dtype", "float", "--episodes", 2, "--seed", 3)
    served = Background(lambda: run_process(tmp_path, *arguments))
    with Ns3GymEnv(port, timeout_s=PATIENCE_S) as env:
        observation, _ = env.reset()
        env.reset()
    expected, _ = gymnasium.make("CartPole-v1").reset(seed=3)
    np.testing.assert_array_equal(observation, expected)
    done = served.join()
    assert done.stderr == ""
    assert done.stdout == (
        f"serving CartPole-v1 to an agent at tcp://127.0.0.1:{port}; Ctrl-C ends it\n"
        "served 2 episodes\n"
    )


def test_a_started_simulation_gets_port_and_seed() -> None:
    simulation = command(
        *CART_POLE, "{port}", "--seed", "{seed}", "--episodes", "1", "--dtype", "float"
    )
    env = gymnasium.make("CartPole-v1")
    with Ns3GymEnv(0, simulation, timeout_s=PATIENCE_S) as remote:
        for seed in (7, 8):
            observation, _ = remote.reset(seed=seed)
            np.testing.assert_array_equal(observation, env.reset(seed=seed)[0])
            np.testing.assert_array_equal(remote.step(1)[0], env.step(1)[0])


def test_a_box_goes_in_the_type_that_ns3_gym_s_own_client_reads(tmp_path: Path) -> None:
    port = free_port()
    served = Background(lambda: run_process(tmp_path, *CART_POLE, port, "--episodes", 1))
    with Ns3GymEnv(port, timeout_s=PATIENCE_S) as env:
        assert env.observation_space.dtype == np.uint32
        env.reset()
    assert served.join().stderr == ""


def test_ctrl_c_ends_it_without_a_traceback(tmp_path: Path) -> None:
    with start_process(tmp_path, *CART_POLE, free_port()) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("serving CartPole-v1")
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, output, errors) == (130, "stopped\n", "")


def test_no_agent_is_exit_status_1(quicgym: Command) -> None:
    done = quicgym("serve", "CartPole-v1", "--port", free_port(), "--timeout-s", 0.1, status=1)
    assert "no SimInitAck within 0.1 s: the agent is not there" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["NoSuchGame-v0"], "quicgym: environment 'NoSuchGame-v0': Environment `NoSuchGame`"),
        (["CartPole-v1", "--env-arg", "size=1"], "environment 'CartPole-v1': .*'size'"),
        (["CartPole-v1", "--env-arg", "size"], "--env-arg 'size': is not key=value"),
        (["CartPole-v1", "--dtype", "int"], "Invalid value for '--dtype'"),
    ],
)
def test_bad_input_is_exit_status_2(quicgym: Command, arguments: list[str], message: str) -> None:
    assert re.search(message, quicgym("serve", *arguments, status=2).stderr)


@pytest.mark.parametrize(("given", "engine"), [([], "ns3"), (["engine=native"], "native")])
def test_quicgym_s_environments_run_on_ns3_unless_told_otherwise(
    given: list[str], engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[dict[str, Any]] = []

    class Probe(gymnasium.Env[Any, Any]):
        observation_space = action_space = spaces.Discrete(2)

        def __init__(self, **arguments: Any) -> None:
            made.append(arguments)

    monkeypatch.setattr(gymnasium, "make", lambda env_id, **arguments: Probe(**arguments))
    status = run_serve(
        "quicgym/Probe-v0",
        ["flows=[1, 2]", *given],
        port=free_port(),
        host="127.0.0.1",
        dtype="float",
        episodes=None,
        seed=None,
        timeout_s=0.1,
    )
    assert status == 1
    assert made == [{"flows": [1, 2], "engine": engine}]
