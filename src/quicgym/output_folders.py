"""Folders that results go to: one writer at a time, what may be resumed, files written atomically.

An earlier run's results are never lost: they are resumed, or moved into previous-<time>/.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from quicgym.console import say
from quicgym.errors import RunError
from quicgym.input_files import read_input_json

if TYPE_CHECKING:
    from pandas import DataFrame

RUN_FILE = "run.json"
"""Only the folder of a training has this file."""
_DOCUMENTS = {
    RUN_FILE: "a run of `quicgym train`",
    "results.json": "results of `quicgym baselines --scenario`",
    "evaluation.json": "results of `quicgym evaluate` or `baselines`",
    **{
        f"{command}.json": f"results of `quicgym {command}`"
        for command in ("attack", "checklist", "coexist", "league", "papers", "sweep")
    },
}
"""What a folder holds, by the file that only this command writes."""
LOCK_FILE = ".quicgym-lock"
"""Is in a folder while a command writes there, and after a kill, when it locks nothing."""
IDENTITY_FILE = "identity.json"
MOST_TABLE_BYTES = 2**31
"""The largest Parquet file that is read, by its size in memory."""


def digest(parts: Any) -> str:
    """Returns 32 hexadecimal digits that are the same where `parts` are, as JSON has them."""
    return sha256(json.dumps(parts, default=str, sort_keys=True).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Identity:
    """Which study a folder holds. Only the same one, by its fingerprint, is resumed."""

    study: str
    name: str
    fingerprint: str

    def check(self, directory: Path) -> None:
        """Raises RunError where the folder holds another study."""
        file = directory / IDENTITY_FILE
        if not file.exists():
            return
        try:
            held = read_json(file, ("fingerprint",))
        except RunError as error:
            raise RunError(
                f"{error}; leave --resume away to begin anew, what is there is moved aside"
            ) from None
        if held["fingerprint"] != self.fingerprint:
            raise RunError(
                f"{directory}: holds the {self.study} {held.get(self.study)!r} with another "
                "configuration, another scenario or of another quicgym; give another folder with "
                "--out, or leave --resume away: what is there is moved aside"
            )

    def write(self, directory: Path) -> None:
        """Writes it into the folder."""
        text = json.dumps({self.study: self.name, "fingerprint": self.fingerprint}) + "\n"
        write_atomically({directory / IDENTITY_FILE: text})


def check_resumable(directory: Path) -> None:
    """Raises RunError where there is no folder that could be resumed."""
    if not directory.exists():
        raise RunError(
            f"{directory}: does not exist, so there is nothing to resume; give the folder of the "
            "run with --out, or leave --resume away to begin anew"
        )


@contextmanager
def output_folder(
    directory: Path, names: Iterable[str], *, resume: bool, identity: Identity | None = None
) -> Iterator[None]:
    """Makes a folder, keeps it locked, and moves an earlier run's results aside unless resumed.

    `names` are those of results; other files stay where they are, and a folder with the results of
    another command is refused. Only a folder that exists may be resumed, and with an `identity`
    only the same study. RunError says why the folder cannot be used, and what to do.
    """
    names = tuple(names)
    own = [name for name in names if name in _DOCUMENTS]
    taken = own[:1] if resume else own  # the first is this command's, others are moved aside
    for document, what in _DOCUMENTS.items():
        if document not in taken and (directory / document).exists():
            raise RunError(f"{directory}: holds {what}; give another folder with --out")
    if resume:
        check_resumable(directory)
    with locked(directory):
        if resume and identity is not None:
            identity.check(directory)
        try:
            if not resume:
                _move_aside(directory, (*names, IDENTITY_FILE))
            if identity is not None:
                identity.write(directory)
        except OSError as error:
            raise _unwritable(directory, error, "--out") from None
        yield


def _move_aside(directory: Path, names: Iterable[str]) -> None:
    there = [directory / name for name in names if (directory / name).exists()]
    if not there:
        return
    previous = directory / datetime.now().strftime("previous-%Y%m%d-%H%M%S-%f")
    previous.mkdir()
    for path in there:
        path.rename(previous / path.name)
    say(f"earlier results are now in {previous}")


@contextmanager
def locked(directory: Path, option: str = "--out") -> Iterator[None]:
    """Makes a folder, and keeps other commands from writing there.

    The lock belongs to the open file, so the system takes it away from a process that is killed.
    RunError, with the `option` that gave the folder, where another command writes there, or nobody
    can.
    """
    if directory.exists() and not directory.is_dir():
        raise RunError(f"{directory}: is a file; give a folder with {option}")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = _acquire(directory / LOCK_FILE, option)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise  # DISK_ERRORS has its remedy; before Python 3.14, exists() raises it
        raise _unwritable(directory, error, option) from None
    with lock:
        try:
            yield
        finally:
            with suppress(OSError):  # whoever has opened it meanwhile sees that it is gone
                (directory / LOCK_FILE).unlink()


def _acquire(path: Path, option: str) -> IO[str]:
    while True:
        file = path.open("a+", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with file:
                file.seek(0)
                holder = file.read().strip() or "another process"
            raise RunError(
                f"{path.parent}: another quicgym command is writing there ({holder}); wait until "
                f"it has ended, or give another folder with {option}"
            ) from None
        except OSError as error:  # such as a network file system that is mounted without locks
            say(
                f"note: {path.parent} is on a file system without locks ({error.strerror}); make "
                "sure that no other command writes there"
            )
            return file
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                file.truncate(0)
                file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
                file.flush()
                return file
        file.close()  # its holder ended after it was opened here, and has removed it


def _unwritable(directory: Path, error: OSError, option: str) -> RunError:
    return RunError(
        f"{directory}: cannot be written to ({error.strerror}); give another folder with {option}"
    )


def beside(path: Path) -> Path:
    """Returns where `write_atomically` writes a file first; a killed command may leave it there."""
    return path.with_name(f".{path.name}.quicgym-new")


def write_atomically(contents: Mapping[Path, str | Callable[[Path], object]]) -> None:
    """Writes files next to their places, and renames them when all are on the disk.

    `contents` has for each file its text, or what writes it to the path that it is given. After
    OSError all are as they were; `filename` says which one cannot be written.
    """
    news = {path: beside(path) for path in contents}
    try:
        for path, content in contents.items():
            with naming(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                if isinstance(content, str):
                    news[path].write_text(content, encoding="utf-8")
                else:
                    content(news[path])
                with news[path].open("rb") as file:
                    os.fsync(file.fileno())
        for path, new in news.items():
            new.replace(path)
    except OSError:
        for new in news.values():
            new.unlink(missing_ok=True)
        raise


DISK_ERRORS: Mapping[int, str] = {
    errno.EACCES: "change its permissions",
    errno.EDQUOT: "make room",
    errno.EFBIG: "make room",
    errno.EIO: "check the disk",
    errno.EMFILE: "allow more open files (ulimit -n 1024)",
    errno.ENAMETOOLONG: "give a shorter name",
    errno.ENOSPC: "make room",
    errno.EROFS: "make its file system writable",
}
"""Errors that stop a command while it writes, with their remedies."""


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Gives an error of DISK_ERRORS the file's name: writing to an open file names none."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno in DISK_ERRORS:
            error.filename = str(path)
        raise


def read_json(path: Path, keys: Sequence[str] = ()) -> dict[str, Any]:
    """Reads a JSON object that has the keys; RunError where the file is none."""
    try:
        data = read_input_json(path)
    except OSError as error:
        raise RunError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise RunError(f"{path}: not valid JSON: {error}") from None
    for key in keys:
        if not isinstance(data, dict) or key not in data:
            raise RunError(f"{path}: has no {key!r}; it was not written by this quicgym")
    if not isinstance(data, dict):
        raise RunError(f"{path}: is no JSON object; it was not written by this quicgym")
    return data


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """Reads a file that has a JSON object in each line; RunError where one is damaged."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise RunError(f"{path}: cannot be read: {reason}") from None
    records = []
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
            if not isinstance(record, dict):
                raise ValueError("no JSON object")
        except ValueError as error:
            raise RunError(f"{path}:{number}: {error}; the line is damaged, train again") from None
        records.append(record)
    return records


def read_parquet(path: Path) -> DataFrame:
    """Reads a table; RunError where the file is not there, or is something else."""
    import pyarrow
    import pyarrow.parquet as pq

    batches, read = [], 0
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(2**14):  # a column of equal values has almost no bytes
                batches.append(batch)
                read += batch.nbytes
                if read > MOST_TABLE_BYTES:
                    raise ValueError(f"it has more than {MOST_TABLE_BYTES >> 30} GiB of numbers")
            frame = pyarrow.Table.from_batches(batches, file.schema_arrow).to_pandas()
            # Older versions of PyArrow leave it to pandas to read what pandas has written here.
            attributes = json.loads((file.schema_arrow.metadata or {}).get(b"PANDAS_ATTRS", "{}"))
            frame.attrs = attributes if isinstance(attributes, dict) else {}
            return frame
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise RunError(
            f"{path}: cannot be read: {str(error).strip().partition(chr(10))[0]}"
        ) from None


def file_name(text: str) -> str:
    """Returns the text as a part of a file's name, without the `:`, `=` and `/` of parameters."""
    return re.sub(r"[^\w.,+@-]", "-", text).lstrip(".") or "-"
