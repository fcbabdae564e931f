"""Runs many ns-3 simulations at a time: a process for each, behind the interface of a batch.

ns-3 can hold only one simulation per process. A worker is a separate Python process that runs
`serve`, takes episodes and actions from a pipe, and answers with its rows. Its output goes to a
file, which is shown if the worker dies.
"""

from __future__ import annotations

import contextlib
import io
import pickle
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from types import FunctionType
from typing import IO, Any, Literal

import numpy as np

from quicgym import _core
from quicgym.envs.batch import EpisodeBatch
from quicgym.envs.episodes import EpisodeChoice, EpisodeSource
from quicgym.envs.rewards import Reward

WorkerDeath = Literal["raise", "restart"]
_OUTPUT_SHOWN = 2000  # characters
_END_S = 10.0  # which a worker has to end when it is told to
_ARRAYS = ("observations", "rewards", "info", "terminations", "truncations")


class WorkerDiedError(RuntimeError):
    """A worker process ended by itself; the text has its scenario, seed and output."""


class Ns3WorkerBatch(EpisodeBatch):
    """An EpisodeBatch whose simulations run in worker processes, over ns-3.

    Args:
        on_worker_death: "raise": `begin` and `step` raise WorkerDiedError; the other rows have made
            the step, and the next `begin` starts a new worker. "restart": a step warns, truncates
            the row with its last observation and reward 0, and continues it in a new worker;
            `begin` warns and tries once more.

    The other arguments are those of EpisodeBatch.
    """

    def __init__(
        self,
        source: EpisodeSource,
        simulations: int,
        *,
        on_worker_death: WorkerDeath,
        **settings: Any,
    ) -> None:
        """Allocates the arrays; workers start with their first episode."""
        self._restart = on_worker_death == "restart"
        reward = settings["reward"]
        named = reward if isinstance(reward, str | Reward) else "fair-throughput"
        self._space = _core.find_action_space(source.decisions.interface.action_space)
        self._arguments = (source.for_prepared(), {**settings, "reward": named})
        super().__init__(source, simulations, threads=1, **settings)

    def _make_batch(self, settings: Any, simulations: int, threads: int) -> Any:
        sizes = _core.native_batch(settings, 1, self.source.agent_count, 1)
        clips = self.source.decisions.out_of_range == "clip" and not self._space.choices
        return _Workers(
            self._arguments, self._space, clips, simulations, sizes, self._describe, self._restart
        )

    def _reset(
        self,
        simulations: Sequence[int],
        choices: Sequence[EpisodeChoice],
        prepared: Sequence[tuple[_core.Scenario, _core.EpisodePlan]],
    ) -> None:
        self._batch.reset(simulations, choices)

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
        space: _core.ActionSpace,
        clips: bool,
        simulations: int,
        sizes: Any,
        describe: Any,
        restart: bool,
    ) -> None:
        self._arguments = _pickled(arguments)
        self._space, self._clips = space, clips
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
        errors = self._begin(orders)
        died = {
            simulation: orders[simulation]
            for simulation, error in errors.items()
            if self._restart and isinstance(error, WorkerDiedError)
        }
        for simulation in died:
            self._warn(errors.pop(simulation))
        self._raise_first({**errors, **self._begin(died)})

    def _begin(self, orders: dict[int, Any]) -> dict[int, Exception]:
        for simulation in orders:
            self._running[simulation] = False
            if self._workers[simulation] is None:
                self._workers[simulation] = _Worker(self._arguments)
        errors = self._exchange(orders)
        for simulation in orders:
            self._running[simulation] = simulation not in errors
        return errors

    def step(self) -> None:
        self.failed = None
        chosen = np.flatnonzero(self.selected).tolist()
        for simulation in chosen:
            over = self.terminations[simulation] or self.truncations[simulation]
            if over or not self._running[simulation]:
                reason = ": the last one is over" if over else ""
                raise RuntimeError(
                    f"environment {simulation} has no running episode{reason}; reset it"
                )
            for row in range(simulation * self._agents, (simulation + 1) * self._agents):
                action = self.actions[row]
                if self._clips:
                    np.clip(action, -1.0, 1.0, out=action, where=np.isfinite(action))
                self._space.check(row, action.tolist())
        errors = self._exchange(
            {simulation: ("step", self._rows("actions", simulation)) for simulation in chosen}
        )
        self.died = []
        for simulation, error in list(errors.items()):
            if self._restart and isinstance(error, WorkerDiedError):
                self._warn(error)
                self._rows("rewards", simulation)[...] = 0.0
                self.truncations[simulation] = True
                self.died.append(simulation)
                del errors[simulation]
            else:
                self._running[simulation] = False
        self._raise_first(errors)

    @staticmethod
    def _warn(error: Exception) -> None:
        warnings.warn(f"{error}\nA new worker continues.", RuntimeWarning, stacklevel=5)

    def simulation(self, simulation: int) -> _SimulationOfWorker:
        return _SimulationOfWorker(self, simulation)

    def ask(self, simulation: int, order: Any) -> Any:
        if not self._running[simulation]:
            raise RuntimeError(f"environment {simulation} has no running episode; reset it")
        with self._none_owing():
            self._worker(simulation).send(order)
            return self._answer(simulation)

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
        with self._none_owing():
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

    @contextlib.contextmanager
    def _none_owing(self) -> Iterator[None]:
        """Ends the workers whose answers nobody waits for any more, as after Ctrl-C.

        Else the next order would get the answer to this one.
        """
        try:
            yield
        except BaseException:
            for simulation, worker in enumerate(self._workers):
                if worker is not None and worker.owes_answer:
                    worker.kill()
                    self._workers[simulation] = None
                    self._running[simulation] = False
            raise

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

    def _worker(self, simulation: int) -> _Worker:
        worker = self._workers[simulation]
        assert worker is not None
        return worker

    def _raise_first(self, errors: dict[int, Exception]) -> None:
        self.failed = min(errors, default=None)
        if self.failed is not None:
            raise errors[self.failed]


class _SimulationOfWorker:
    """Answers what a batch asks of a simulation that runs in a worker."""

    def __init__(self, workers: _Workers, simulation: int) -> None:
        self._workers = workers
        self._number = simulation

    def statistics(self, flow: int) -> Any:
        return self._workers.ask(self._number, ("statistics", flow))

    def parameters(self, flow: int) -> Any:
        return self._workers.ask(self._number, ("parameters", flow))

    def deliveries(self) -> Any:
        return self._workers.ask(self._number, ("deliveries", None))


class _Worker:
    """One process; `owes_answer` to the last order."""

    def __init__(self, arguments: bytes) -> None:
        self.owes_answer = False
        self._connection, theirs = Pipe()
        self._output: IO[bytes] = tempfile.TemporaryFile()
        # Python would look for modules in the current folder first.
        program = (
            f"import sys; sys.path[:] = {sys.path!r}; "
            f"from {__name__} import serve; serve({theirs.fileno()})"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", program],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        with contextlib.suppress(OSError):
            self._connection.send_bytes(arguments)

    def send(self, order: Any) -> None:
        pickled = _pickled(order)
        self.owes_answer = True
        self._connection.send_bytes(pickled)

    def receive(self) -> Any:
        answer = self._connection.recv()
        self.owes_answer = False
        return answer

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
        # A closed pipe would end it too, but not while a fork of this process holds a copy.
        with contextlib.suppress(OSError):
            self._connection.send(("end", None))
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)
        self.kill()

    def kill(self) -> None:
        self._process.kill()  # which does nothing to one that has ended
        self._process.wait()
        self._connection.close()
        self._output.close()


def serve(file_descriptor: int) -> None:
    """Runs a worker on its end of the pipe, until it is told to end or the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that gives orders
    connection = Connection(file_descriptor)
    source, settings = pickle.loads(connection.recv_bytes())
    batch = EpisodeBatch(source, simulations=1, threads=1, **settings)
    while True:
        try:
            order, argument = connection.recv()
        except EOFError:
            return
        if order == "end":
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


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, type | FunctionType) and value.__module__ == "__main__":
            raise ValueError(
                f"{value.__qualname__} is defined in the script itself, which the worker processes "
                "of ns-3 do not run: put it into a module and import it from there"
            )
        return NotImplemented


def _pickled(value: Any) -> bytes:
    buffer = io.BytesIO()
    _Pickler(buffer).dump(value)
    return buffer.getvalue()


def _portable(error: Exception) -> Exception:
    """The error itself where it can travel, else its text."""
    error.__notes__ = []  # they would name this process's environment 0
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
