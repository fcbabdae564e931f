"""A disk that becomes full: the file is named, what was finished is kept, the command goes on.

`quicgym evaluate`, `train` and `compare` have theirs beside their other tests.
"""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from quicgym.jobs import read_finished
from quicgym.output_folders import write_atomically

SCENARIO = {
    "name": "path",
    "duration_s": 2,
    "bottleneck": {"rate_mbps": 3, "delay_ms": 5, "queue": {"limit": 20}},
    "access": {"rate_mbps": 50, "delay_ms": 1},
    "flows": [{"name": "flow"}],
}
PATH = ["--scenario", "./path.yaml"]


def run(
    folder: Path, *arguments: str, limit: int | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a command whose files may have so many bytes at most."""

    def small_files() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    (folder / "path.yaml").write_text(yaml.safe_dump(SCENARIO))
    return subprocess.run(
        [sys.executable, "-m", "quicgym.cli", *arguments, "--out", "out"],
        cwd=folder,
        capture_output=True,
        text=True,
        preexec_fn=small_files,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        timeout=300,
    )


def refused(done: subprocess.CompletedProcess[str], file: str) -> None:
    assert done.returncode == 1, done.stderr
    assert re.search(rf"quicgym: \S*out/{file}: .*too large.*; make room", done.stderr), done.stderr
    assert "Traceback" not in done.stderr


def test_baselines_keep_finished_runs_and_go_on(tmp_path: Path) -> None:
    command = ["baselines", *PATH, "--controller", "newreno", "bbr", "--engine", "native"]
    refused(run(tmp_path, *command, "--seeds", "3", limit=2_500), "runs.jsonl")
    finished = read_finished(tmp_path / "out")
    assert 0 < len(finished) < 6
    assert not (tmp_path / "out/results.json").exists()
    again = run(tmp_path, *command, "--seeds", "3", "--resume")
    assert again.returncode == 0, again.stderr
    rows = json.loads((tmp_path / "out/results.json").read_text())["runs"]
    assert len(rows) == 6
    assert finished.items() <= read_finished(tmp_path / "out").items()


def test_an_error_without_a_name_gets_that_of_the_file(tmp_path: Path) -> None:
    def fails(path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "first").write_text("of before")
    with pytest.raises(OSError, match="No space left on device: '.*second'"):
        write_atomically({tmp_path / "first": "new", tmp_path / "second": fails})
    assert (tmp_path / "first").read_text() == "of before"
    assert [path.name for path in tmp_path.iterdir()] == ["first"]
