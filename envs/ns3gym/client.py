"""An ns3-gym simulation as a Gymnasium environment."""

from __future__ import annotations

import math
import shlex
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
from gymnasium.error import ResetNeeded

from quicgym.envs.ns3gym.codecs import refuse
from quicgym.envs.ns3gym.connection import Connection
from quicgym.envs.ns3gym.descriptions import codec_of_description
from quicgym.envs.ns3gym.errors import MessageError, PeerError, PeerGoneError
from quicgym.envs.ns3gym.messages import (
    EnvActMsg,
    EnvStateMsg,
    Reason,
    SimInitAck,
    SimInitMsg,
)
from quicgym.envs.ns3gym.process import SimulationProcess

_FAREWELL_S = 2.0


class Ns3GymEnv(gymnasium.Env[Any, Any]):
    """Drives an ns3-gym simulation.

    The spaces are those that the simulation describes, so the constructor waits for it. An
    episode that ends with GameOver is terminated, one that ends with SimulationEnd truncated.
    `info` holds the simulation's text under "info".

    A simulation that is started here runs one episode; each reset starts it anew. In its command,
    `{port}` and `{seed}` are replaced. The seed is the one of the reset, or a random one from the
    environment's generator. The protocol has no other way to pass a seed.

    Without a command, the simulation is started by somebody else, before or after, and connects
    again for each episode.

    Simulations may send observations beyond the bounds that they declare, as ns3-gym's own
    `rl-tcp` does. Such an observation is returned as it is, with a RuntimeWarning for the first
    one, unless `strict` is set.

    Args:
        port: TCP port to listen on; 0 takes a free one, see `port`.
        command: A program with its arguments that is started for each episode.
        cwd: Folder that the program runs in.
        timeout_s: How long a simulation may take to connect or to answer, in s.
        host: Address to listen on; "*" for all of this machine's.
        strict: Whether to refuse an observation outside of the declared space with a MessageError.

    Attributes:
        port: The TCP port in use.

    Raises:
        ValueError: An argument is not valid.
        PeerError: No simulation connects or answers in time, or it ended; with its output if it was
            started here.
        MessageError: A message is wrong; the text names the field.
        Ns3GymError: The port cannot be used.

    Example:
        with Ns3GymEnv(command="./simulation --port={port} --seed={seed}", port=0) as env:
            observation, info = env.reset(seed=1)
            terminated = truncated = False
            while not (terminated or truncated):
                action = env.action_space.sample()
                observation, reward, terminated, truncated, info = env.step(action)
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        port: int = 5555,
        command: str | Sequence[str] | None = None,
        *,
        cwd: str | Path | None = None,
        timeout_s: float = 60.0,
        host: str = "127.0.0.1",
        strict: bool = False,
    ) -> None:
        """Waits until the simulation has described its spaces."""
        if not timeout_s > 0:
            raise ValueError(f"timeout_s = {timeout_s}: is not above 0")
        self._connection: Connection | None = None
        self._process: SimulationProcess | None = None
        # Between its introduction and our answer to it.
        self._introduced = False
        # It waits for an action.
        self._running = False
        self._command = None if command is None else _arguments(command, port)
        self._takes_seed = self._command is not None and any("{seed}" in a for a in self._command)
        self._cwd = cwd
        self._timeout_s = timeout_s
        self._host = host
        self._strict = strict
        self._warned = False
        self.port = port
        try:
            init = self._begin(self._draw_seed())
            self._observations = codec_of_description(init.obsSpace, "SimInitMsg.obsSpace")
            self._actions = codec_of_description(init.actSpace, "SimInitMsg.actSpace")
        except BaseException:
            self.close()
            raise
        self._spaces = (init.obsSpace, init.actSpace)
        self.observation_space = self._observations.space
        self.action_space = self._actions.space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins an episode; one that is under way is ended.

        Args:
            seed: Seed of this episode, and of the generator that seeds the following ones. The
                simulation gets the seed by `{seed}` in the command only; otherwise a RuntimeWarning
                says so.
            options: Options of the episode: None or empty, as the protocol has none.

        Returns:
            The first observation, and the simulation's text in {"info": text}.

        Raises:
            ValueError: Some options are given.
            PeerError: No simulation connects or answers in time, or it ended.
            MessageError: A message is wrong, or the spaces are other than at first.
        """
        super().reset(seed=seed)
        if options:
            raise ValueError(f"options = {options}: ns3-gym's protocol has none; leave them out")
        if seed is not None and not self._takes_seed:
            warnings.warn(
                f"seed = {seed} does not reach the simulation: ns3-gym's protocol has no seed; "
                "give a command with {seed} in it",
                RuntimeWarning,
                stacklevel=2,
            )
        if not self._introduced or (seed is not None and self._takes_seed):
            self._end_episode()
            init = self._begin(self._draw_seed() if seed is None else seed)
            if (init.obsSpace, init.actSpace) != self._spaces:
                self.close()
                raise MessageError(
                    "SimInitMsg: describes other spaces than at first; make a new Ns3GymEnv for it"
                )
        self._introduced = False
        self._open_connection().send(SimInitAck(done=True))
        observation, _, over, _, info = self._receive_state()
        if over:
            raise MessageError("EnvStateMsg.isGameOver: is set before the first step")
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Sends an action and waits for what comes of it.

        Raises:
            ResetNeeded: No episode is under way.
            MessageError: The action is not in the space (the episode continues), or a message is
                wrong.
            PeerError: The simulation ended, or is silent.
        """
        if not self._running:
            raise ResetNeeded("no episode is under way; call reset() first")
        data = self._actions.encode(action, "action")
        self._open_connection().send(EnvActMsg(actData=data))
        observation, reward, over, game_over, info = self._receive_state()
        return observation, reward, over and game_over, over and not game_over, info

    def close(self) -> None:
        """Ends the episode, the simulation that was started here, and the connection."""
        self._end_episode()
        self._abandon()

    def _draw_seed(self) -> int:
        return int(self.np_random.integers(2**31)) if self._takes_seed else 0

    def _open_connection(self) -> Connection:
        if self._connection is None:
            self._connection = Connection(self._host, self.port, listens=True)
        return self._connection

    def _begin(self, seed: int) -> Any:
        """Starts the simulation, if it is ours, and returns its SimInitMsg."""
        connection = self._open_connection()
        self.port = connection.port
        if self._command is not None:
            values = {"{port}": str(self.port), "{seed}": str(seed)}
            self._process = SimulationProcess(_replace(self._command, values), self._cwd)
        init = self._receive(SimInitMsg, await_peer=True)
        self._introduced = True
        return init

    def _end_episode(self) -> None:
        """Releases a simulation that waits for us; one of ours ends, with its connection."""
        if self._connection is not None:
            if self._introduced:
                self._connection.send(SimInitAck(done=True, stopSimReq=True))
            elif self._running:
                self._connection.send(EnvActMsg(stopSimReq=True))
        self._introduced = self._running = False
        if self._process is not None:
            self._process.wait(_FAREWELL_S)
            # Closing the socket discards what a stopped simulation may still have sent.
            self._abandon()

    def _abandon(self) -> None:
        self._introduced = self._running = False
        if self._process is not None:
            self._process.stop()
            self._process = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _receive_state(self) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Returns observation, reward, whether it is over, by GameOver, and the info."""
        state = self._receive(EnvStateMsg)
        try:
            if not state.HasField("obsData"):
                raise MessageError("EnvStateMsg.obsData: is missing")
            # Not kept: an environment that holds its own method would wait for the garbage
            # collector, with its port and its simulation.
            outside = refuse if self._strict else self._warn_once
            observation = self._observations.decode(state.obsData, "EnvStateMsg.obsData", outside)
            if not math.isfinite(state.reward):
                raise MessageError(f"EnvStateMsg.reward = {state.reward}: is not finite")
            if state.reason not in list(Reason):
                raise MessageError(
                    f"EnvStateMsg.reason = {state.reason}: is not SimulationEnd or GameOver"
                )
        except MessageError:
            self._abandon()
            raise
        self._running = not state.isGameOver
        if state.isGameOver:
            self._open_connection().send(EnvActMsg(stopSimReq=True))
        game_over = state.reason == Reason.GameOver
        return observation, state.reward, state.isGameOver, game_over, {"info": state.info}

    def _warn_once(self, text: str) -> None:
        if not self._warned:
            warnings.warn(
                f"{text}; observations outside of the declared space are returned as they are, "
                "without another warning; Ns3GymEnv(strict=True) refuses them",
                RuntimeWarning,
                stacklevel=4,
            )
        self._warned = True

    def _receive(self, message_class: Any, await_peer: bool = False) -> Any:
        end_seen = False

        def look_round() -> None:
            # Once more after its end: its last message may be under way.
            nonlocal end_seen
            if self._process is not None and not connection.has_peer and self._process.has_ended:
                if end_seen:
                    raise PeerGoneError(f"{connection.endpoint}: nobody is left to connect")
                end_seen = True

        connection = self._open_connection()
        try:
            return connection.receive(
                message_class, self._timeout_s, await_peer=await_peer, look_round=look_round
            )
        except PeerError as error:
            report = ""
            if self._process is not None:
                if isinstance(error, PeerGoneError):
                    self._process.wait(_FAREWELL_S)
                report = f"; {self._process.report()}"
            self._abandon()
            raise type(error)(f"{error}{report}") from None
        except BaseException:
            self._abandon()
            raise


def _arguments(command: str | Sequence[str], port: int) -> list[str]:
    arguments = shlex.split(command) if isinstance(command, str) else [str(a) for a in command]
    if not arguments:
        raise ValueError("command: is empty; give a program and its arguments")
    if port == 0 and not any("{port}" in argument for argument in arguments):
        raise ValueError(
            f"command = {shlex.join(arguments)!r}: does not say where {{port}} goes; "
            "write it there, or give the port that the simulation connects to"
        )
    return arguments


def _replace(arguments: Sequence[str], values: Mapping[str, str]) -> list[str]:
    replaced = []
    for argument in arguments:
        for name, value in values.items():
            argument = argument.replace(name, value)
        replaced.append(argument)
    return replaced
