"""Many ns-3 simulations at a time: a process for each, behind the interface of a batch.

ns-3 keeps one simulation per process. A worker is a Python of its own that runs `serve`, takes
episodes and actions from a pipe, and answers with its rows. What it writes goes to a file that is
shown when it dies.
"""

from __future__ import annotations

import contextlib
import pickle
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import IO, Any, Literal

import numpy as np

from quicgym import _core
from quicgym.envs.batch import EpisodeBatch
from quicgym.envs.episodes import EpisodeChoice, EpisodeSource
from quicgym.envs.rewards import Reward

WorkerDeath = Literal["raise", "restart"]
_OUTPUT_SHOWN = 2000  # characters
_ARRAYS = ("observations", "rewards", "info", "terminations", "truncations")


class WorkerDiedError(RuntimeError):
    """A worker process ended by itself; the text has its scenario, seed and output."""


class Ns3WorkerBatch(EpisodeBatch):
    """An EpisodeBatch whose simulations run in worker processes, over ns-3.

    Args:
        on_worker_death: "raise": `begin` and `step` raise WorkerDiedError; the other rows have made
            the step, and the next `begin` starts a new worker. "restart": a step warns, the row is
            truncated with its last observation and reward 0, and goes on in a new worker.

    The other arguments are those of EpisodeBatch.
    """

    def __init__(
        self,
        kind: str,
        source: EpisodeSource,
        simulations: int,
        *,
        on_worker_death: WorkerDeath,
        **settings: Any,
    ) -> None:
        """Allocates the arrays; workers start with their first episode."""
        if on_worker_death not in ("raise", "restart"):
            raise ValueError(f"on_worker_death = {on_worker_death!r}: give 'raise' or 'restart'")
        self._restart = on_worker_death == "restart"
        reward = settings["reward"]
        named = reward if isinstance(reward, str | Reward) else "fair-throughput"
        self._arguments = (kind, source, {**settings, "reward": named})
        super().__init__(kind, source, simulations, threads=1, **settings)

    def _make_batch(self, settings: Any, simulations: int, threads: int) -> Any:
        sizes = _core.native_batch(settings, 1, self.source.agent_count, 1)
        return _Workers(
            self._arguments, settings.action, simulations, sizes, self._describe, self._restart
        )

    def _reset(self, simulations: Sequence[int], choices: Sequence[EpisodeChoice]) -> list[int]:
        self._batch.reset(simulations, choices)
        return [len(self.source.agents_of(choice.scenario)) for choice in choices]

    def _moved(self) -> np.ndarray:
        moved = self.selected.copy()
        moved[self._batch.died] = False  # the reward of such a step is 0
        return moved

    def _describe(self, simulation: int) -> str:
        episode = self.episodes[simulation]
        assert episode is not None
        return f"environment {simulation}, scenario {episode.scenario.name}, seed {episode.seed}"


class _Workers:
    """The processes, and the arrays into which their answers are written."""

    def __init__(
        self,
        arguments: tuple[Any, ...],
        kind: Any,
        simulations: int,
        sizes: Any,
        describe: Any,
        restart: bool,
    ) -> None:
        self._arguments = pickle.dumps(arguments)
        self._kind = kind
        self._describe = describe
        self._restart = restart
        self._workers: list[_Worker | None] = [None] * simulations
        self._running = [False] * simulations
        self.failed: int | None = None
        self.died: list[int] = []  # whose workers the last step has lost, and that go on

        def rows(array: np.ndarray) -> np.ndarray:
            return np.zeros((simulations * len(array), *array.shape[1:]), array.dtype)

        self._agents = len(sizes.rewards)
        self.actions = rows(sizes.actions)
        self.observations = rows(sizes.observations)
        self.rewards = rows(sizes.rewards)
        self.info = rows(sizes.info)
        self.selected = np.ones(simulations, np.bool_)
        self.terminations = np.zeros(simulations, np.bool_)
        self.truncations = np.zeros(simulations, np.bool_)

    def reset(self, simulations: Sequence[int], choices: Sequence[EpisodeChoice]) -> None:
        orders = dict(zip(simulations, (("begin", choice) for choice in choices), strict=True))
        for simulation in simulations:
            self._running[simulation] = False
            if self._workers[simulation] is None:
                self._workers[simulation] = _Worker(self._arguments)
        errors = self._exchange(orders)
        for simulation in simulations:
            self._running[simulation] = simulation not in errors
        self._raise_first(errors)

    def step(self) -> None:
        chosen = np.flatnonzero(self.selected).tolist()
        for simulation in chosen:
            over = self.terminations[simulation] or self.truncations[simulation]
            if over or not self._running[simulation]:
                reason = ": the last one is over" if over else ""
                raise RuntimeError(
                    f"environment {simulation} has no running episode{reason}; reset it"
                )
            for row in range(simulation * self._agents, (simulation + 1) * self._agents):
                _core.check_action(self._kind, row, self.actions[row].tolist())
        errors = self._exchange(
            {simulation: ("step", self._rows("actions", simulation)) for simulation in chosen}
        )
        self.died = []
        for simulation, error in list(errors.items()):
            if self._restart and isinstance(error, WorkerDiedError):
                warnings.warn(f"{error}\nA new worker goes on.", RuntimeWarning, stacklevel=4)
                self._rows("rewards", simulation)[...] = 0.0
                self.truncations[simulation] = True
                self.died.append(simulation)
                del errors[simulation]
            else:
                self._running[simulation] = False
        self._raise_first(errors)

    def statistics(self, simulation: int, flow: int) -> Any:
        return self._ask(simulation, ("statistics", flow))

    def parameters(self, simulation: int, flow: int) -> Any:
        return self._ask(simulation, ("parameters", flow))

    def deliveries(self, simulation: int) -> Any:
        return self._ask(simulation, ("deliveries", None))

    def close(self, simulation: int) -> None:
        worker = self._workers[simulation]
        if worker is not None:
            worker.close()
        self._workers[simulation] = None
        self._running[simulation] = False

    def _rows(self, name: str, simulation: int) -> np.ndarray:
        array: np.ndarray = getattr(self, name)
        if name in ("terminations", "truncations"):
            return array[simulation : simulation + 1]
        return array[simulation * self._agents : (simulation + 1) * self._agents]

    def _exchange(self, orders: dict[int, Any]) -> dict[int, Exception]:
        """Gives all orders, then takes all answers; returns what went wrong."""
        errors: dict[int, Exception] = {}
        for simulation, order in orders.items():
            with contextlib.suppress(OSError):  # its answer will show that it is gone
                self._worker(simulation).send(order)
        for simulation in orders:
            try:
                answer = self._answer(simulation)
            except Exception as error:
                errors[simulation] = error
                continue
            for name, rows in zip(_ARRAYS, answer, strict=True):
                self._rows(name, simulation)[...] = rows
        return errors

    def _answer(self, simulation: int) -> Any:
        worker = self._worker(simulation)
        try:
            succeeded, answer = worker.receive()
        except (EOFError, OSError):
            self._workers[simulation] = None
            raise WorkerDiedError(
                f"the worker of {self._describe(simulation)} ended with {worker.end()}"
            ) from None
        if not succeeded:
            raise answer
        return answer

    def _ask(self, simulation: int, order: Any) -> Any:
        if not self._running[simulation]:
            raise RuntimeError(f"environment {simulation} has no running episode; reset it")
        self._worker(simulation).send(order)
        return self._answer(simulation)

    def _worker(self, simulation: int) -> _Worker:
        worker = self._workers[simulation]
        assert worker is not None
        return worker

    def _raise_first(self, errors: dict[int, Exception]) -> None:
        self.failed = min(errors, default=None)
        if self.failed is not None:
            raise errors[self.failed]


class _Worker:
    """One process."""

    def __init__(self, arguments: bytes) -> None:
        self._connection, theirs = Pipe()
        self._output: IO[bytes] = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"from {__name__} import serve; serve({theirs.fileno()})"],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        with contextlib.suppress(OSError):
            self._connection.send_bytes(arguments)

    def send(self, order: Any) -> None:
        self._connection.send(order)

    def receive(self) -> Any:
        return self._connection.recv()

    def end(self) -> str:
        """Waits for the end of a process that has closed its pipe; says how it ended."""
        code = self._process.wait()
        self._output.seek(0)
        output = self._output.read().decode(errors="replace").strip()
        self._output.close()
        self._connection.close()
        how = f"signal {-code}" if code < 0 else f"exit status {code}"
        return f"{how}; its output:\n{output[-_OUTPUT_SHOWN:] or '(none)'}"

    def close(self) -> None:
        self._connection.close()  # which ends its loop
        self._process.wait()
        self._output.close()


def serve(file_descriptor: int) -> None:
    """Runs a worker on its end of the pipe, until the other end is closed."""
    connection = Connection(file_descriptor)
    kind, source, settings = pickle.loads(connection.recv_bytes())
    batch = EpisodeBatch(kind, source, simulations=1, threads=1, **settings)
    while True:
        try:
            order, argument = connection.recv()
        except EOFError:
            return
        answer: Any
        try:
            if order == "statistics":
                answer = batch.statistics(0, argument)
            elif order == "parameters":
                answer = batch.parameters(0, argument)
            elif order == "deliveries":
                answer = batch.deliveries(0).tobytes()
            else:
                if order == "begin":
                    batch.begin_chosen([0], [argument])
                else:
                    batch.actions[...] = argument
                    batch.step()
                answer = [np.array(getattr(batch, name)) for name in _ARRAYS]
        except Exception as error:
            connection.send((False, _portable(error)))
        else:
            connection.send((True, answer))


def _portable(error: Exception) -> Exception:
    """The error itself where it can travel, else its text."""
    error.__notes__ = []  # they would name this process's environment 0
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
