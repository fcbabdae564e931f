"""Jobs in processes of this machine: what they load and end, and what is read of earlier ones."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from helpers.brief_job import Brief

from quicgym.errors import RunError
from quicgym.jobs import PROCESS_DIED, RUNS_FILE, LocalProcesses, read_finished, run_jobs
from quicgym.output_folders import read_json_lines


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


def test_a_pool_takes_jobs_as_it_finishes_them_and_a_new_one_those_that_are_left(
    tmp_path: Path,
) -> None:
    taken: list[str] = []

    def jobs() -> Iterator[Brief]:
        for number in range(60):
            taken.append(str(number))
            yield Brief(str(number), dies=number == 30)

    finished: dict[str, tuple[int, Any]] = {}

    def finish(job: Brief, result: Any) -> None:
        finished[job.key] = (len(taken), result)

    LocalProcesses(1).run(jobs(), tmp_path, finish)
    assert sorted(finished) == sorted(taken) and len(taken) == 60
    assert finished["0"][0] < 10
    assert [key for key, (_, result) in finished.items() if result != {"seed": 0}] == ["30"]
    assert finished["30"][1] == PROCESS_DIED


@pytest.mark.parametrize("change", [{"run": {}}, {"run": 1}, {"key": "two"}])
def test_a_line_that_is_not_as_it_was_written_is_left_out(
    change: dict[str, Any], tmp_path: Path
) -> None:
    run_jobs([Brief("one")], tmp_path, 1)
    assert read_finished(tmp_path) == {"one": {"seed": 0}}
    runs = tmp_path / RUNS_FILE
    runs.write_text(json.dumps(json.loads(runs.read_text()) | change) + "\n")
    assert read_finished(tmp_path) == {}


def test_results_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    path = tmp_path / RUNS_FILE
    path.mkdir()
    for read in (lambda path: read_finished(path.parent), read_json_lines):
        with pytest.raises(RunError, match=f"{RUNS_FILE}: cannot be read: "):
            read(path)
    with pytest.raises(RunError, match=f"{RUNS_FILE}: cannot be read: .*a directory"):
        run_jobs([Brief("one")], tmp_path, 1)
