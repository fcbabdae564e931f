"""README.md: its Python and its commands run, and print what stands below them."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from helpers.commands import check_end, run_forked, start_process
from helpers.commands import command as command_line
from helpers.processes import run_program

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "README.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"^```python\n(.*?)^```\n\n```\n(.*?)^```", PAGE, re.S | re.M)
"""Each block with what it prints."""
CONSOLE = re.findall(r"^```console\n(.*?)^```", PAGE, re.S | re.M)
COMMANDS = [
    part.partition("\n")[::2] for block in CONSOLE for part in ("\n" + block).split("\n$ ")[1:]
]
"""Each command with what it prints; `...` stands for lines that were left out."""
TRAINING, SWEEPS, OVER_NS3 = (
    [pair for pair in COMMANDS if mark in pair[0]]
    for mark in ("quicgym train ", "quicgym sweep ", "--engine ns3")
)


def run(folder: Path, command: str) -> str:
    return check_end(run_forked(folder, *shlex.split(command)[1:]), 0).stdout


def print_what_stands_below(folder: Path, commands: list[tuple[str, str]]) -> None:
    for command, output in commands:
        printed = run(folder, command)
        for line in output.splitlines():
            assert line == "..." or line in printed


def test_readme_is_short_and_has_no_block_that_no_test_runs() -> None:
    assert len(PAGE.splitlines()) <= 150
    assert len(TRAINING) == 1
    assert all(command.startswith("quicgym ") for command, _ in COMMANDS)
    assert PAGE.count("```") == 2 * (2 * len(PYTHON) + len(CONSOLE))


def test_the_python_prints_what_stands_below_it(tmp_path: Path) -> None:
    for program, output in PYTHON:
        (tmp_path / "block.py").write_text(program, encoding="utf-8")
        assert run_program(tmp_path / "block.py", tmp_path).stdout == output


def test_the_commands_print_what_stands_below_them(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    others = [pair for pair in COMMANDS if pair not in (*TRAINING, *SWEEPS, *OVER_NS3)]
    print_what_stands_below(tmp_path, others)
    pictures = {path.name for path in (tmp_path / "results/film/plots").iterdir()}
    assert "changing-path--cubic--tuning.gif" in pictures


@pytest.mark.ns3
def test_the_commands_over_ns3_print_what_stands_below_them(tmp_path: Path) -> None:
    print_what_stands_below(tmp_path, OVER_NS3)


@pytest.mark.train
@pytest.mark.long
def test_the_sweep_prints_what_stands_below_it(tmp_path: Path) -> None:
    print_what_stands_below(tmp_path, SWEEPS)


def evaluations(text: str) -> dict[str, str]:
    """Returns the reward of each evaluation by its step, as a training prints them."""
    return dict(re.findall(r"^step +([\d,]+)  (IQM reward [-\d.]+)", text, re.M))


@pytest.mark.train
def test_the_training_begins_with_the_evaluation_that_stands_below_it(tmp_path: Path) -> None:
    """It is of the controller at the policy's start, so it changes with the safe envelope."""
    for command, output in TRAINING:
        process = start_process(tmp_path, *shlex.split(command)[1:])
        assert process.stderr is not None
        first = next(line for line in process.stderr if line.startswith("step"))
        process.kill()
        process.communicate()
        assert evaluations(first) == {"0": evaluations(output)["0"]}


@pytest.mark.train
@pytest.mark.long
def test_the_training_learns_and_prints_what_stands_below_it(tmp_path: Path) -> None:
    for command, output in TRAINING:
        # PyTorch's sums depend on its threads: on two, as on the machine whose output this is.
        environment = {**os.environ, "OMP_NUM_THREADS": "2"}
        program = command_line(*shlex.split(command)[1:])
        done = subprocess.run(
            program, cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        check_end(done, 0)
        printed = done.stdout + done.stderr
        assert "Learned: best − start is +" in printed
        assert evaluations(output).items() <= evaluations(printed).items()
