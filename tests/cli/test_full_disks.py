"""Commands that write: a full disk, a folder that is read-only or has no name, too few files.

A limit on the size of files stands for the full disk: writing fails in the middle of a file.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import resource
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from subprocess import CompletedProcess

import matplotlib.font_manager  # noqa: F401 (writes its list of fonts now, not on the full disk)
import pandas as pd
import pytest
from conftest import IN_CLUSTER, Command
from helpers.commands import run_forked, run_process, small_files
from helpers.inputs import write_inputs

from quicgym.jobs import read_finished

PR_CAPBSET_DROP = 24
CAPABILITY_VERSION = 0x20080522
CAPABILITIES = (1, 2)
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, by which root writes where it may not."""


@dataclass(frozen=True)
class Writer:
    """A command, the sizes of files at which it fails, and with how many of how many runs."""

    arguments: str
    limits: tuple[int, ...] = (60, 1_000, 6_000)
    partial: int | None = None
    runs: int = 0

    @property
    def goes_on(self) -> list[str]:
        """The arguments with which the command goes on where it has failed."""
        resumes = self.partial or self.arguments.startswith("train")
        return [*self.arguments.split(), *(["--resume"] if resumes else [])]


JOBS = "--jobs 1 --out out"
WRITERS = {
    "baselines": Writer(
        "baselines --scenario ./path.yaml --controller newreno bbr --engine native --seeds 3 "
        + JOBS,
        (60, 6_000), 9_000, 6,
    ),
    "evaluate": Writer(
        f"evaluate --policy cubic --suite suite.yaml --seeds 4 {JOBS}", (60, 6_000), 5_000, 8
    ),
    "league": Writer(f"league ./league.yaml --policies newreno {JOBS}"),
    "real": Writer("real --scenario ./path.yaml --controller cubic --out out --qlog out/qlog"),
    "train": Writer("train tiny.yaml --out out", (60, 6_000)),
    "sweep": Writer("sweep sweep.yaml --out out", (60,)),
}  # fmt: skip
NEEDS_STACK = pytest.mark.skipif(not find_spec("quicgym_aioquic"), reason="needs a QUIC stack")
MARKS = {
    "real": [NEEDS_STACK],
    "train": [pytest.mark.train],
    "sweep": [pytest.mark.train, IN_CLUSTER],
}
EVERY_WRITER = pytest.mark.parametrize(
    "writer",
    [pytest.param(writer, id=name, marks=MARKS.get(name, ())) for name, writer in WRITERS.items()],
)


def run(folder: Path, writer: Writer, before: Callable[[], object]) -> CompletedProcess[str]:
    """Runs a command that fails: a sweep does before it starts Ray, which no copy could."""
    return run_forked(folder, *writer.arguments.split(), before=before)


def check_whole(folder: Path) -> None:
    """What is there can be read; what was begun is not there."""
    for path in folder.rglob("*"):
        assert not path.name.endswith(".quicgym-new"), path
        if path.suffix == ".json":
            json.loads(path.read_text())
        if path.suffix == ".parquet":
            pd.read_parquet(path)


def check_refusal(done: CompletedProcess[str], reason: str) -> None:
    assert done.returncode in (1, 2), done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    text = " ".join(re.sub("[│╭╰─╮╯]", "", done.stderr).split())
    assert re.search(rf"\bout\b.*{reason}", text), done.stderr
    remedies = r"[Mm]ake room|give another|give a file|permissions|failed: "
    assert re.search(remedies, text), done.stderr


@EVERY_WRITER
def test_a_full_disk_leaves_whole_files_and_the_command_goes_on(
    writer: Writer, quicgym: Command, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    out = write_inputs(tmp_path) / "out"
    out.mkdir()
    for limit in writer.limits:
        done = run(tmp_path, writer, small_files(limit))
        if done.returncode:
            check_refusal(done, "[Tt]oo large")
        check_whole(out)
        assert done.returncode or limit > 60  # nothing can be done with so little
    finished = {}
    if writer.partial:
        shutil.rmtree(out)
        done = run(tmp_path, writer, small_files(writer.partial))
        assert done.returncode == 1 and "--resume" in done.stderr
        assert re.search(r"quicgym: \S*out/runs.jsonl: .*too large.*; make room", done.stderr, re.I)
        assert {path.name for path in out.iterdir()} <= {"runs.jsonl", "series", "traces"}
        finished = read_finished(out)
        assert 0 < len(finished) < writer.runs
    is_sweep = writer is WRITERS["sweep"]
    where = ["--address", request.getfixturevalue("ray_cluster")] if is_sweep else []
    quicgym(*writer.goes_on, *where)
    if writer.partial:
        assert len(read_finished(out)) == writer.runs
        assert finished.items() <= read_finished(out).items()


@EVERY_WRITER
def test_a_folder_that_is_read_only_is_named(writer: Writer, tmp_path: Path) -> None:
    def powerless() -> None:
        libc, sets = ctypes.CDLL(None), (ctypes.c_uint32 * 6)()
        header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
        libc.capget(header, sets)
        for capability in CAPABILITIES:  # fails where there is none to give up, which is as good
            libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)  # for a program that is started
            sets[0] &= ~(1 << capability)  # for this process
        libc.capset(header, sets)

    write_inputs(tmp_path)
    (tmp_path / "out").mkdir(mode=0o555)
    check_refusal(run(tmp_path, writer, powerless), "Permission denied")
    assert not list((tmp_path / "out").iterdir())


RUN = WRITERS["baselines"].arguments.replace(JOBS, "--jobs 1").split()


@pytest.mark.parametrize(
    ("name", "text"),
    [(b"out\xff", "is not UTF-8"), (b"o" * 300, "name too long; give a shorter name")],
)
def test_a_folder_that_cannot_be_named_is_refused(
    name: bytes, text: str, quicgym: Command, tmp_path: Path
) -> None:
    write_inputs(tmp_path)
    before = set(tmp_path.iterdir())
    done = quicgym(*RUN, "--out", os.fsdecode(name), status=None)
    assert done.returncode in (1, 2)
    assert text in " ".join(done.stderr.split())
    assert set(tmp_path.iterdir()) == before


def test_too_many_open_files_end_with_the_remedy(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    done = run_process(  # a copy would have the open files of the tests
        tmp_path, *RUN, "--out", "out", status=1,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (12, 12)),
    )  # fmt: skip
    assert "Too many open files; allow more open files (ulimit -n 1024)" in done.stderr
