"""Starts a simulation in a separate process."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
import time
import weakref
from collections.abc import Sequence
from pathlib import Path

from quicgym.envs.ns3gym.errors import PeerError

_SHOWN_OUTPUT_BYTES = 4000
_TERMINATE_S = 5.0


class SimulationProcess:
    """A process group that ends with this object; `command` is as a shell would show it."""

    def __init__(self, command: Sequence[str], cwd: str | Path | None) -> None:
        """Starts a program, without a shell; PeerError where it cannot be started."""
        self.command = shlex.join(command)
        # A file: nobody has to read it for the simulation to go on.
        self._output = tempfile.TemporaryFile()  # noqa: SIM115
        try:
            self._process = subprocess.Popen(
                command,
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            place = f" in {cwd}" if cwd else ""
            raise PeerError(
                f"cannot start the simulation `{self.command}`{place}: {error}"
            ) from None
        self._finalizer = weakref.finalize(self, _stop, self._process)

    @property
    def has_ended(self) -> bool:
        """Whether it has ended."""
        return _has_ended(self._process)

    def wait(self, timeout_s: float) -> None:
        """Waits until it ends by itself, at most `timeout_s`, in s."""
        _wait(self._process, timeout_s)

    def report(self) -> str:
        """Returns how it is and the end of what it has written, for the text of an error."""
        state = "is running"
        if self.has_ended:
            self.stop()
            state = f"ended with status {self._process.returncode}"
        # The simulation writes where this file's position is, so it must not move.
        file = self._output.fileno()
        begin = max(0, os.fstat(file).st_size - _SHOWN_OUTPUT_BYTES)
        text = os.pread(file, _SHOWN_OUTPUT_BYTES, begin).decode(errors="replace").strip()
        wrote = f"wrote:\n{text}" if text else "wrote nothing"
        return f"the simulation `{self.command}` {state} and {wrote}"

    def stop(self) -> None:
        """Ends the whole process group: asks, waits, kills."""
        self._finalizer()


def _stop(process: subprocess.Popen[bytes]) -> None:
    # Until `wait` below, the process keeps its id, so the group is surely ours.
    ended = _has_ended(process)
    _signal(process, signal.SIGTERM)
    if not ended:
        _wait(process, _TERMINATE_S)
    _signal(process, signal.SIGKILL)
    process.wait()


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        pass  # nobody is left in the group but the process that waits to be reaped


def _wait(process: subprocess.Popen[bytes], timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while not _has_ended(process) and time.monotonic() < deadline:
        time.sleep(0.005)


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    # Popen.poll would reap it, and its id could then be somebody else's.
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return process.returncode is not None or bool(os.waitid(os.P_PID, process.pid, options))
