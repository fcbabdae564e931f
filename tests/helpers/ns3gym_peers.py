"""The other ends of ns3-gym's protocol, for tests: plain ZeroMQ sockets and small environments."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium
import numpy as np
import zmq
from gymnasium import spaces

from quicgym.envs.ns3gym import Ns3GymEnv, messages
from quicgym.envs.ns3gym.messages import Dtype, SpaceType, pack

PATIENCE_S = 60
"""Longer than anything takes that works."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Background:
    """A function in a thread, and what became of it."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self.result: Any = None
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.result = self._function()
        except BaseException as error:
            self.error = error

    def join(self) -> Any:
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "hangs"
        if self.error is not None:
            raise self.error
        return self.result


@contextmanager
def raw_socket(kind: int, port: int) -> Iterator[zmq.Socket[bytes]]:
    """A socket that listens (REP) or connects (REQ) on loopback and whose waits end."""
    context = zmq.Context()
    end = context.socket(kind)
    end.rcvtimeo = end.sndtimeo = PATIENCE_S * 1000
    end.linger = 1000
    end.reconnect_ivl = 10
    address = f"tcp://127.0.0.1:{port}"
    try:
        if kind == zmq.REP:
            end.bind(address)
        else:
            end.connect(address)
        yield end
    finally:
        context.destroy(linger=1000)


def container(kind: int, data: Any, name: str = "") -> Any:
    result = messages.DataContainer(type=kind, name=name)
    pack(result.data, data)
    return result


def description(kind: int, space: Any, name: str = "") -> Any:
    result = messages.SpaceDescription(type=kind, name=name)
    pack(result.space, space)
    return result


def box_state(*numbers: float, **fields: Any) -> Any:
    """A state of SMALL_INIT's simulation."""
    data = messages.BoxDataContainer(dtype=Dtype.FLOAT, shape=[2], floatData=numbers)
    return messages.EnvStateMsg(obsData=container(SpaceType.Box, data), **fields)


SMALL_INIT = messages.SimInitMsg(
    simProcessId=1,
    obsSpace=description(
        SpaceType.Box, messages.BoxSpace(low=-1, high=1, dtype=Dtype.FLOAT, shape=[2])
    ),
    actSpace=description(SpaceType.Discrete, messages.DiscreteSpace(n=3)),
)


class ExistingClient:
    """Speaks as ns3-gym's own client does: flat arrays, FLOAT for float64, a new bridge per reset.

    Only what it sends and when; nothing that it receives is checked.
    """

    over: bool

    def __init__(self, port: int) -> None:
        self.port = port
        self._fresh = False
        self._open()

    def _open(self) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.REP)
        self._socket.rcvtimeo = PATIENCE_S * 1000
        self._socket.linger = 1000
        self._socket.bind(f"tcp://127.0.0.1:{self.port}")
        self.init = self._receive(messages.SimInitMsg)
        self._send(messages.SimInitAck(done=True, stopSimReq=False))
        self._read_state()
        self._fresh = True

    def reset(self) -> Any:
        if not self._fresh:
            self.close()
            self._open()
        return self.observation

    def step(self, action: Any) -> tuple[Any, float, bool, str]:
        self._fresh = False
        self._send(messages.EnvActMsg(actData=self._action(self.init.actSpace, action)))
        self._read_state()
        if self.over:
            self._send(messages.EnvActMsg(stopSimReq=True))
        return self.observation, self.reward, self.over, self.info

    def close(self) -> None:
        if not self.over:
            self._send(messages.EnvActMsg(stopSimReq=True))
            self.over = True
        self._context.destroy(linger=1000)

    def _read_state(self) -> None:
        state = self._receive(messages.EnvStateMsg)
        self.observation = self._plain(state.obsData)
        self.reward, self.over, self.info = state.reward, state.isGameOver, state.info
        self.reason = state.reason

    def _receive(self, message_class: Any) -> Any:
        return message_class.FromString(self._socket.recv())

    def _send(self, message: Any) -> None:
        self._socket.send(message.SerializeToString())

    def _plain(self, data: Any) -> Any:
        if data.type == SpaceType.Discrete:
            return messages.DiscreteDataContainer.FromString(data.data.value).data
        if data.type == SpaceType.Box:
            box = messages.BoxDataContainer.FromString(data.data.value)
            return [*box.intData, *box.uintData, *box.floatData, *box.doubleData]
        if data.type == SpaceType.Tuple:
            inner = messages.TupleDataContainer.FromString(data.data.value)
            return tuple(self._plain(element) for element in inner.element)
        inner = messages.DictDataContainer.FromString(data.data.value)
        return {element.name: self._plain(element) for element in inner.element}

    def _action(self, space: Any, action: Any) -> Any:
        if space.type == SpaceType.Discrete:
            return container(space.type, messages.DiscreteDataContainer(data=int(action)))
        if space.type == SpaceType.Box:
            dtype = messages.BoxSpace.FromString(space.space.value).dtype
            data = messages.BoxDataContainer(dtype=dtype, shape=[len(action)])
            if dtype == Dtype.DOUBLE:
                data.dtype = Dtype.FLOAT
            if dtype == Dtype.INT:
                data.intData.extend(action)
            elif dtype == Dtype.UINT:
                data.uintData.extend(action)
            else:
                data.floatData.extend(action)
            return container(space.type, data, space.name)
        elements = messages.DictSpace.FromString(space.space.value).element
        return container(
            space.type,
            messages.DictDataContainer(
                element=[self._named(element, action[element.name]) for element in elements]
            ),
        )

    def _named(self, space: Any, action: Any) -> Any:
        result = self._action(space, action)
        result.name = space.name
        return result


NESTED = spaces.Dict(
    {
        "matrix": spaces.Box(-2.0, 2.0, (2, 3), np.float64),
        "pair": spaces.Tuple([spaces.Discrete(4, start=-1), spaces.Box(0, 255, (2,), np.uint8)]),
        "scalar": spaces.Box(-5, 5, (), np.int64),
        "inner": spaces.Dict({"unbounded": spaces.Box(-np.inf, np.inf, (1,), np.float32)}),
    }
)


class NestedEnv(gymnasium.Env[Any, Any]):
    """Shows samples of NESTED and keeps the actions that it gets."""

    observation_space = NESTED
    action_space = NESTED

    def __init__(self, length: int = 3) -> None:
        self.length = length
        self.observations: list[Any] = []
        self.actions: list[Any] = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.steps = 0
        return self._observe(), {"capacity": np.float32(1.5), "queue": np.arange(2)}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.actions.append(action)
        self.steps += 1
        return self._observe(), 0.5, False, self.steps == self.length, {}

    def _observe(self) -> Any:
        self.observations.append(self.observation_space.sample())
        return self.observations[-1]


def small_env() -> NestedEnv:
    """Returns an environment with the spaces of SMALL_INIT."""
    env = NestedEnv()
    env.observation_space = spaces.Box(-1, 1, (2,), np.float32)  # type: ignore[assignment]
    env.action_space = spaces.Discrete(3)  # type: ignore[assignment]
    return env


def agent(port: int, **arguments: Any) -> Ns3GymEnv:
    """Returns an agent that waits long for its simulation."""
    return Ns3GymEnv(port, **{"timeout_s": PATIENCE_S} | arguments)


class SameEpisodes(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Begins every episode with the same seed."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return self.env.reset(seed=0, options=options)


def same(a: Any, b: Any) -> bool:
    """Equal in value and dtype, at any depth."""
    if isinstance(a, dict):
        return set(a) == set(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return np.array_equal(a, b) and np.asarray(a).dtype == np.asarray(b).dtype


def await_listener(port: int) -> None:
    """Returns when something listens on the port."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.01)
    raise AssertionError(f"nobody listens on {port}")
