"""Jobs in processes of this machine: what they load and end, and what is read of earlier ones."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from helpers.brief_job import Brief

from quicgym.errors import RunError
from quicgym.jobs import RUNS_FILE, LocalProcesses, read_finished, run_jobs
from quicgym.output_folders import read_json_lines, read_parquet


def test_a_module_of_the_current_folder_is_no_part_of_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "signal.py").write_text("open('ran', 'w')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    assert not run_jobs([Brief("one")], tmp_path / "out", 1).failures
    assert not (tmp_path / "ran").exists()
    assert "PYTHONSAFEPATH" not in os.environ


def test_jobs_run_outside_of_the_main_thread(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as thread:
        outcome = thread.submit(run_jobs, [Brief("one")], tmp_path, 1).result()
    assert outcome.finished == {"one": {"seed": 0}}


def test_an_interruption_ends_no_process_but_the_workers(tmp_path: Path) -> None:
    own = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
    own.start()

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    try:
        with pytest.raises(KeyboardInterrupt):
            LocalProcesses(1).run([Brief("one")], tmp_path, interrupt)
        assert multiprocessing.active_children() == [own]
        assert own.is_alive()
    finally:
        own.kill()
        own.join()


@pytest.mark.parametrize("change", [{"run": {}}, {"run": 1}, {"key": "two"}])
def test_a_line_that_is_not_as_it_was_written_is_left_out(
    change: dict[str, Any], tmp_path: Path
) -> None:
    run_jobs([Brief("one")], tmp_path, 1)
    assert read_finished(tmp_path) == {"one": {"seed": 0}}
    runs = tmp_path / RUNS_FILE
    runs.write_text(json.dumps(json.loads(runs.read_text()) | change) + "\n")
    assert read_finished(tmp_path) == {}


@pytest.mark.parametrize("content", [None, "{}\n", "torn"])
def test_results_are_not_written_through_a_link(content: str | None, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    if content is not None:
        target.write_text(content)
    (tmp_path / RUNS_FILE).symlink_to(target)
    with pytest.raises(RunError, match=f"{RUNS_FILE}: is a link, .*; move it away"):
        run_jobs([Brief("one")], tmp_path, 1, resume=True)
    assert content is None and not target.exists() or target.read_text() == content


@pytest.mark.parametrize("kind", ["fifo", "device", "folder"])
def test_results_are_read_from_regular_files_only(kind: str, tmp_path: Path) -> None:
    path = tmp_path / RUNS_FILE
    if kind == "device":
        path.symlink_to("/dev/zero")
    else:
        (os.mkfifo if kind == "fifo" else os.mkdir)(path)
    text = f"{RUNS_FILE}: cannot be read: .*" + ("a directory" if kind == "folder" else "a pipe or")
    for read in (lambda path: read_finished(path.parent), read_json_lines, read_parquet):
        with pytest.raises(RunError, match=text):
            read(path)
    with pytest.raises(RunError, match=text):
        run_jobs([Brief("one")], tmp_path, 1)
