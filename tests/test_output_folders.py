"""Output folders: one writer at a time, resumed or moved aside, files as a whole or not at all."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from quicgym.errors import RunError
from quicgym.output_folders import (
    IDENTITY_FILE,
    LOCK_FILE,
    Identity,
    digest,
    locked,
    output_folder,
    read_parquet,
    write_atomically,
)

HOLDER = """
import sys, time
from pathlib import Path
from quicgym.output_folders import locked

with locked(Path(sys.argv[1])):
    print("locked", flush=True)
    time.sleep(60)
"""
SWEEP = Identity("sweep", "mine", digest(["one"]))


@pytest.fixture
def holder(tmp_path: Path):
    """A process that holds tmp_path/out."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "locked\n"
        yield process
        process.kill()


def test_a_second_process_is_refused_until_the_first_is_killed(holder, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    (folder / "results.json").write_text("of the first")
    expected = (
        f"{folder}: another quicgym command is writing there (process {holder.pid} on "
        f"{os.uname().nodename}); wait until it has ended, or give another folder with --results"
    )
    with pytest.raises(RunError, match=re.escape(expected)), locked(folder, "--results"):
        pass
    with pytest.raises(RunError), output_folder(folder, ["results.json"], resume=False):
        pass
    assert (folder / "results.json").read_text() == "of the first"
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert (folder / LOCK_FILE).exists()  # it had no time to remove it
    with locked(folder):
        assert (folder / LOCK_FILE).read_text().startswith(f"process {os.getpid()} on ")
    assert not (folder / LOCK_FILE).exists()


def test_a_lock_is_given_back_by_an_error_too(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), locked(tmp_path):
        raise KeyboardInterrupt
    with locked(tmp_path):
        pass


def test_a_lock_file_that_is_removed_before_it_is_locked_locks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock, removed = fcntl.flock, []

    def late(file, operation) -> None:  # the first holder ends between opening and locking
        if not removed:
            removed.append((tmp_path / LOCK_FILE).unlink())
        flock(file, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    with locked(tmp_path), pytest.raises(RunError), locked(tmp_path):
        pass
    assert removed


def test_a_file_system_without_locks_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with locked(tmp_path):
        pass
    assert f"note: {tmp_path} is on a file system without locks" in capsys.readouterr().err


def test_a_folder_that_cannot_be_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="file: is a file; give a folder with --out"):
        with locked(tmp_path / "file"):
            pass
    expected = "cannot be written to .Not a directory.; give another folder with --out"
    with pytest.raises(RunError, match=expected), locked(tmp_path / "file/inside"):
        pass


def test_earlier_results_are_moved_aside_unless_they_are_resumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("results.json", "notes.txt"):
        (tmp_path / name).write_text(name)
    with output_folder(tmp_path, ["results.json"], resume=True):
        assert (tmp_path / "results.json").exists()
    with output_folder(tmp_path, ["results.json"], resume=False):
        assert not (tmp_path / "results.json").exists()
    (previous,) = tmp_path.glob("previous-*")
    assert [path.name for path in previous.iterdir()] == ["results.json"]
    assert capsys.readouterr().err == f"earlier results are now in {previous}\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt", previous.name]


def test_only_a_folder_that_exists_is_resumed(tmp_path: Path) -> None:
    folder = tmp_path / "nothere"
    with pytest.raises(RunError, match="nothere: does not exist"):
        with output_folder(folder, [], resume=True):
            pass
    assert not folder.exists()


def test_only_the_same_study_is_resumed(tmp_path: Path) -> None:
    with output_folder(tmp_path, [], resume=True, identity=SWEEP):
        pass  # there was nothing yet
    with output_folder(tmp_path, [], resume=True, identity=SWEEP):
        pass
    other = Identity("sweep", "yours", digest(["two"]))
    expected = f"{tmp_path}: holds the sweep 'mine' with another configuration"
    with pytest.raises(RunError, match=re.escape(expected)):
        with output_folder(tmp_path, [], resume=True, identity=other):
            pass
    with output_folder(tmp_path, [], resume=False, identity=other):
        pass
    (previous,) = tmp_path.glob("previous-*")
    SWEEP.check(previous)
    (tmp_path / IDENTITY_FILE).write_text("{")
    with pytest.raises(RunError, match="not valid JSON.* leave --resume away to begin anew"):
        other.check(tmp_path)


def test_files_are_on_the_disk_before_any_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = []
    fsync, rename = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda number: (done.append("sync"), fsync(number)))
    monkeypatch.setattr(
        Path, "replace", lambda self, target: (done.append("rename"), rename(self, target))
    )
    paths = [tmp_path / "folder" / name for name in ("one", "two")]
    write_atomically({paths[0]: "new", paths[1]: lambda new: new.write_text("new")})
    assert done == ["sync", "sync", "rename", "rename"]
    assert sorted(paths[0].parent.iterdir()) == paths


def test_an_error_without_a_name_gets_that_of_the_file(tmp_path: Path) -> None:
    def fails(path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "first").write_text("of before")
    with pytest.raises(OSError, match="No space left on device: '.*second'"):
        write_atomically({tmp_path / "first": "new", tmp_path / "second": fails})
    assert (tmp_path / "first").read_text() == "of before"
    assert [path.name for path in tmp_path.iterdir()] == ["first"]


def test_a_table_that_is_large_only_in_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pandas = pytest.importorskip("pandas", reason="needs the extra `reports`")
    table, path = pandas.DataFrame({"reward": [0.5] * 10**6}), tmp_path / "results.parquet"
    table.to_parquet(path)
    assert path.stat().st_size < 10_000
    pandas.testing.assert_frame_equal(read_parquet(path), table)
    monkeypatch.setattr("quicgym.output_folders.MOST_TABLE_BYTES", 2**20)
    with pytest.raises(RunError, match="results.parquet: cannot be read: it has more than"):
        read_parquet(path)
