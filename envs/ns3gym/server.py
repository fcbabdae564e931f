"""A Gymnasium environment as an ns3-gym simulation."""

from __future__ import annotations

import json
import math
import os
import time
from typing import Any, Literal, SupportsFloat

import gymnasium
import numpy as np

from quicgym.envs.ns3gym.codecs import SpaceCodec
from quicgym.envs.ns3gym.connection import Connection
from quicgym.envs.ns3gym.descriptions import codec_of_space
from quicgym.envs.ns3gym.errors import MessageError, PeerError, PeerGoneError
from quicgym.envs.ns3gym.messages import (
    EnvActMsg,
    EnvStateMsg,
    Reason,
    SimInitAck,
    SimInitMsg,
)

_RECONNECT_S = 0.05


def serve(
    env: gymnasium.Env[Any, Any],
    port: int = 5555,
    dtype: Literal["float", "uint"] = "float",
    episodes: int | None = None,
    host: str = "127.0.0.1",
    *,
    timeout_s: float = 600.0,
    seed: int | None = None,
) -> int:
    """Serves an environment to an ns3-gym agent, as a simulation would.

    It connects to the agent, which may start before or after, and connects again for each
    episode. An episode ends when the environment terminates (reason GameOver) or truncates
    (SimulationEnd), or when the agent asks for it. `info` is sent as JSON, with null for NaN
    and infinities. The environment is not closed.

    Args:
        env: Environment whose spaces are Box, Discrete, Tuple, Dict or nestings of these. A Box has
            one pair of bounds on the wire, the widest of its elements'; an action is clipped to the
            element's own.
        port: The agent's TCP port.
        dtype: "float": Boxes keep their types, in at most 32 bits if integer. "uint": every Box
            is sent in unsigned integers, and its name says `offset=… scale=…`: the number is
            offset + scale · unsigned.
        episodes: Number of episodes; None: until the agent stays away for `timeout_s` after one.
        host: The agent's address.
        timeout_s: Longest time that the agent may take for an answer, or to be there, in s.
        seed: Seed of the first episode's reset; the following ones continue its random numbers.

    Returns:
        The number of episodes served.

    Raises:
        ValueError: An argument is not valid.
        MessageError: The protocol does not have a space or value, or a message is wrong.
        PeerError: The agent went away in an episode, or is silent, or not there.
        Ns3GymError: The address cannot be used.
    """
    if dtype not in ("float", "uint"):
        raise ValueError(f"dtype = {dtype!r}: is neither 'float' nor 'uint'")
    if episodes is not None and episodes < 1:
        raise ValueError(f"episodes = {episodes}: is not above 0; None serves without end")
    if not timeout_s > 0:
        raise ValueError(f"timeout_s = {timeout_s}: is not above 0")
    observations = codec_of_space(env.observation_space, "observation_space", dtype == "uint")
    actions = codec_of_space(env.action_space, "action_space", dtype == "uint")
    init = SimInitMsg(
        simProcessId=os.getpid(),
        obsSpace=observations.description(),
        actSpace=actions.description(),
    )
    served = 0
    while episodes is None or served < episodes:
        try:
            connection, ack = _meet(host, port, init, timeout_s)
        except PeerError:
            if episodes is None and served > 0:
                return served
            raise
        try:
            if ack.stopSimReq:
                return served
            _serve_episode(env, connection, observations, actions, timeout_s, seed)
        finally:
            connection.close()
        served += 1
        seed = None
    return served


def _meet(host: str, port: int, init: Any, timeout_s: float) -> tuple[Connection, Any]:
    """Introduces the simulation to the agent; returns the agent's answer.

    An agent that begins a new episode closes its socket and opens another one. What was sent to
    the first is lost then, and is sent again.
    """
    began = time.monotonic()
    before = ""
    while True:
        connection = Connection(host, port, listens=False)
        try:
            connection.send(init)
            ack = connection.receive(SimInitAck, timeout_s, began=began)
            if not ack.done:
                raise MessageError(
                    "SimInitAck.done = false: the agent refuses the simulation; where it is in an "
                    "episode with another one, give each simulation its own port"
                )
            return connection, ack
        except PeerGoneError as gone:
            connection.close()
            before = f"; before: {gone}"
            time.sleep(_RECONNECT_S)
        except PeerError as error:
            connection.close()
            raise PeerError(f"{error}{before}") from None
        except BaseException:
            connection.close()
            raise


def _serve_episode(
    env: gymnasium.Env[Any, Any],
    connection: Connection,
    observations: SpaceCodec,
    actions: SpaceCodec,
    timeout_s: float,
    seed: int | None,
) -> None:
    observation, info = env.reset(seed=seed)
    reward: SupportsFloat = 0.0
    terminated = truncated = False
    while True:
        over = bool(terminated or truncated)
        state = EnvStateMsg(
            obsData=observations.encode(observation, "observation"),
            reward=_checked_reward(reward),
            isGameOver=over,
            reason=Reason.GameOver if terminated else Reason.SimulationEnd,
            info=_to_text(info),
        )
        connection.send(state)
        try:
            answer = connection.receive(EnvActMsg, timeout_s)
        except PeerGoneError:
            if over:
                return
            raise
        if over or answer.stopSimReq:
            return
        if not answer.HasField("actData"):
            raise MessageError("EnvActMsg.actData: is missing, and stopSimReq is not set")
        action = actions.decode(answer.actData, "EnvActMsg.actData")
        observation, reward, terminated, truncated, info = env.step(action)


def _checked_reward(reward: SupportsFloat) -> float:
    value = float(reward)
    if not abs(value) <= float(np.finfo(np.float32).max):  # so is NaN
        raise MessageError(f"reward = {reward}: is not a finite float32")
    return value


def _to_text(info: dict[str, Any]) -> str:
    try:
        return json.dumps(_finite(info), allow_nan=False) if info else ""
    except (TypeError, ValueError) as error:
        raise MessageError(f"info: cannot be written as JSON: {error}") from None


def _finite(value: Any) -> Any:
    """Returns a value as JSON has it: lists for arrays, null for NaN and infinities, else text."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | None) else str(value)
