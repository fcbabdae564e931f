"""Every command that writes: a full disk, a folder that is read-only, and results that are damaged.

A limit on the size of files stands for the full disk: writing fails in the middle of a file.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import pytest
import yaml
from helpers.papers import SMALL
from helpers.training import write_config

PR_CAPBSET_DROP = 24
CAPABILITIES = (1, 2)
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, by which root writes where it may not."""


def scenario(**changes: object) -> dict[str, object]:
    return {
        "name": "path",
        "duration_s": 2,
        "bottleneck": {"rate_mbps": 3, "delay_ms": 5, "queue": {"limit": 20}},
        "access": {"rate_mbps": 50, "delay_ms": 1},
        "flows": [{"name": "flow"}],
        **changes,
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Has what the commands name."""
    write_config(tmp_path)
    (tmp_path / "path.yaml").write_text(yaml.safe_dump(scenario()))
    (tmp_path / "suite.yaml").write_text(yaml.safe_dump([scenario(), scenario(name="again")]))
    (tmp_path / "paper.yaml").write_text(yaml.safe_dump(SMALL))
    alone = {key: value for key, value in scenario().items() if key != "name"}
    check = {
        "question": "Is the link used?", "scenarios": ["alone"], "number": "utilisation",
        "at_least": 0.1, "source": "ours",
    }  # fmt: skip
    checklist = {
        "name": "small", "title": "Small", "scenarios": {"alone": alone},
        "items": [{"section": "1", "title": "Use", "checks": [check]}],
    }  # fmt: skip
    (tmp_path / "checks.yaml").write_text(yaml.safe_dump(checklist))
    sweep = {
        "name": "s", "controller": "ebcc", "parameters": {"gamma": {"values": [5, 40]}},
        "scenarios": ["./path.yaml"], "seeds": 1,
    }  # fmt: skip
    (tmp_path / "sweep.yaml").write_text(yaml.safe_dump(sweep))
    return tmp_path


def run(
    folder: Path, *arguments: str, before: Callable[[], object] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "quicgym.cli", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        preexec_fn=before,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        timeout=600,
    )


@dataclass(frozen=True)
class Writer:
    """A command, and the sizes of files at which it fails."""

    arguments: str
    limits: tuple[int, ...] = (60, 1_000, 6_000)
    needs: tuple[str, ...] = field(default=())


TRAIN = ("torch", "stable_baselines3")
WRITERS = {
    "baselines": Writer(
        "baselines --scenario ./path.yaml --controller newreno --engine native --seeds 2 --out out"
    ),
    "papers": Writer("papers --paper paper.yaml --seeds 1 --jobs 1 --out out"),
    "evaluate": Writer("evaluate --policy cubic --suite suite.yaml --seeds 1 --jobs 1 --out out"),
    "checklist": Writer("checklist newreno --checklist checks.yaml --seeds 1 --jobs 1 --out out"),
    "real": Writer("real --scenario ./path.yaml --controller cubic --out out --qlog out/qlog"),
    "trace": Writer("trace out/link.trace"),
    "train": Writer("train tiny.yaml --out out", (60, 6_000), TRAIN),
    "sweep": Writer("sweep sweep.yaml --jobs 1 --out out", (60,), ("ray", "optuna")),
}


def writers() -> list[object]:
    found = []
    for name, writer in WRITERS.items():
        marks = [pytest.mark.train] if writer.needs else []
        if not all(map(importlib.util.find_spec, writer.needs)):
            marks.append(pytest.mark.skip(reason=f"{', '.join(writer.needs)} is missing"))
        found.append(pytest.param(writer, id=name, marks=marks))
    return found


def as_arguments(name: str) -> list[str]:
    """The command with a folder of its own name."""
    return WRITERS[name].arguments.replace("--out out", f"--out {name}").split()


def check_whole(folder: Path) -> None:
    """What is there can be read; what was begun is not there."""
    for path in folder.rglob("*"):
        assert not path.name.endswith(".new"), path
        if path.suffix == ".json":
            json.loads(path.read_text())
        if path.suffix == ".parquet":
            pd.read_parquet(path)


def check_refusal(done: subprocess.CompletedProcess[str], reason: str) -> None:
    assert done.returncode in (1, 2), done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    text = " ".join(re.sub("[│╭╰─╮╯]", "", done.stderr).split())
    assert re.search(rf"\bout\b.*{reason}", text), done.stderr
    remedies = r"[Mm]ake room|give another|give a file|permissions|failed: "
    assert re.search(remedies, text), done.stderr


@pytest.mark.parametrize("writer", writers())
def test_a_full_disk_leaves_whole_files_and_the_command_goes_on(
    writer: Writer, folder: Path
) -> None:
    # Matplotlib writes its list of fonts at the first import, which a limit would disturb.
    pytest.importorskip("matplotlib.font_manager")
    arguments = writer.arguments.split()
    (folder / "out").mkdir()
    for limit in writer.limits:
        fails = [resource.RLIMIT_FSIZE, (limit, limit)]
        done = run(folder, *arguments, before=lambda fails=fails: resource.setrlimit(*fails))
        if done.returncode:
            check_refusal(done, "[Tt]oo large")
        check_whole(folder / "out")
        assert done.returncode or limit > 60  # nothing can be done with so little
    done = run(folder, *arguments, *(["--resume"] if arguments[0] == "train" else []))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("writer", writers())
def test_a_folder_that_is_read_only_is_named(writer: Writer, folder: Path) -> None:
    def powerless() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in CAPABILITIES:  # fails where there is none to give up, which is as good
            libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)

    (folder / "out").mkdir(mode=0o555)
    done = run(folder, *writer.arguments.split(), before=powerless)
    check_refusal(done, "Permission denied")
    assert not list((folder / "out").iterdir())


def half(data: bytes) -> bytes:
    return data[: len(data) // 2]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "torn": half,
    "not text": lambda data: b"\xff\xfe" + data[2:],
    "other JSON": lambda data: b'[{"key": 1, "run": 2}]\n' + data,
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of finished commands; tests copy it."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "path.yaml").write_text(yaml.safe_dump(scenario()))
    (folder / "suite.yaml").write_text(yaml.safe_dump([scenario(), scenario(name="again")]))
    (folder / "paper.yaml").write_text(yaml.safe_dump(SMALL))
    for name in ("baselines", "papers", "evaluate"):
        done = run(folder, *as_arguments(name))
        assert done.returncode == 0, done.stderr
    return folder


# The command that reads, a file that it reads, and whether it can do without.
READERS = {
    "baselines, runs": ("baselines --resume", "baselines/runs.jsonl", True),
    "papers, runs": ("papers --resume", "papers/runs.jsonl", True),
    "papers, traces": ("papers --resume", "papers/traces/*.parquet", False),
    "evaluate, runs": ("evaluate --resume", "evaluate/runs.jsonl", True),
    "plot, runs": ("plot baselines", "baselines/runs.jsonl", False),
    "plot, traces": ("plot baselines", "baselines/traces/*.parquet", False),
    "plot, series": ("plot evaluate", "evaluate/series/*.parquet", False),
    "compare, evaluation": ("compare evaluate", "evaluate/evaluation.json", False),
    "compare, results": ("compare evaluate", "evaluate/results.parquet", False),
}


def damaged() -> list[tuple[str, str]]:
    """Each reader with each damage that its kind of file can have."""
    text = ("not text", "other JSON")
    return [
        (reader, damage)
        for reader, (_, pattern, _) in READERS.items()
        for damage in DAMAGES
        if damage not in text or pattern.endswith((".json", ".jsonl"))
    ]


@pytest.mark.parametrize(("reader", "damage"), damaged())
def test_a_damaged_file_is_named_or_made_again(
    reader: str, damage: str, finished: Path, tmp_path: Path
) -> None:
    if reader.startswith("compare") and not importlib.util.find_spec("tensorboard"):
        pytest.skip("TensorBoard is missing")
    command, pattern, is_made_again = READERS[reader]
    folder = tmp_path / "copy"
    shutil.copytree(finished, folder)
    files = sorted(folder.glob(pattern))
    assert files, pattern
    for path in files:
        path.write_bytes(DAMAGES[damage](path.read_bytes()))
    name, _, option = command.partition(" ")
    arguments = command.split()
    if option == "--resume":
        arguments = [*as_arguments(name), option]
    done = run(folder, *arguments)
    assert "Traceback" not in done.stderr, done.stderr
    if is_made_again:
        assert done.returncode == 0, done.stderr
    elif done.returncode:
        names = "|".join(re.escape(path.name) for path in files)
        text = "".join(done.stderr.split())
        assert done.returncode == 2 and re.search(names, text), done.stderr
