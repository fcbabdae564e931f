"""The processes that hold the controllers of `quicgym linux load`.

A registration lasts as long as a process has it. So each controller that is loaded without a link
has a process of its own, which ends with `quicgym linux unload`. A file in FOLDER names it; the
process has a lock on the file for as long as it lives, so that files of dead ones are recognised.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TextIO, TypedDict

from quicgym.errors import UserError

FOLDER = Path("/run/quicgym-linux")
END_S = 10.0


class Record(TypedDict):
    """Content of a holder's file."""

    controller: str
    process: int


def start(controller: str) -> str:
    """Loads a controller in a process of its own; returns the name for TCP_CONGESTION.

    Args:
        controller: Name of the controller.

    Raises:
        UserError: The controller does not load.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "quicgym_linux.holder", controller],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout as answer:
        text = answer.readline()
    if not text:
        raise UserError(
            f"the process that was to hold {controller!r} has ended with status {process.wait()}"
        )
    message = json.loads(text)
    if "error" in message:
        process.wait()
        raise UserError(message["error"])
    return str(message["kernel_name"])


def held() -> dict[str, str]:
    """Returns the names for TCP_CONGESTION of what is loaded, and the controllers' names."""
    return {file.stem: record["controller"] for file, record in _records().items()}


def end(kernel_name: str) -> None:
    """Ends the process that holds a controller, and with it the registration.

    Args:
        kernel_name: Name for TCP_CONGESTION, or the controller's where there is one of it.

    Raises:
        UserError: Nothing of this name is held, or its process does not end.
    """
    records = _records()
    chosen = [
        file
        for file, record in records.items()
        if file.stem == kernel_name or record["controller"] == kernel_name
    ]
    if len(chosen) != 1:
        loaded = ", ".join(sorted(file.stem for file in records)) or "nothing"
        what = "several are" if chosen else "nothing is"
        raise UserError(f"{what} loaded as {kernel_name!r}; loaded: {loaded}")
    process = records[chosen[0]]["process"]
    os.kill(process, signal.SIGTERM)
    deadline = time.monotonic() + END_S
    while chosen[0] in _records():
        if time.monotonic() > deadline:
            raise UserError(f"process {process} holds {kernel_name!r} and does not end; kill it")
        time.sleep(0.02)


def _records() -> dict[Path, Record]:
    """Returns file -> content of every holder that lives; removes the files of others."""
    records = {}
    for file in sorted(FOLDER.glob("*.json")):
        try:
            with file.open(encoding="utf-8") as text:
                if _lock(text):
                    file.unlink(missing_ok=True)
                else:
                    records[file] = json.load(text)
        except FileNotFoundError:
            continue
    return records


def _lock(file: TextIO) -> bool:
    """Whether this process has the lock now; False where the holder has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _hold(controller: str) -> None:
    from quicgym_linux.kernel import KERNEL

    ending = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, ending)
    try:
        loaded = KERNEL.load(controller)
    except UserError as error:
        print(json.dumps({"error": str(error)}), flush=True)
        sys.exit(2)
    FOLDER.mkdir(mode=0o755, exist_ok=True)
    file = FOLDER / f"{loaded.kernel_name}.json"
    new = file.with_suffix(".new")
    with new.open("w", encoding="utf-8") as record:
        with loaded:
            _lock(record)
            json.dump({"controller": controller, "process": os.getpid()}, record)
            record.flush()
            new.rename(file)
            print(json.dumps({"kernel_name": loaded.kernel_name}), flush=True)
            os.close(sys.stdout.fileno())
            signal.sigwait(ending)
        # Only now, because `end` takes it for the registration's end.
        file.unlink(missing_ok=True)


if __name__ == "__main__":
    _hold(sys.argv[1])
