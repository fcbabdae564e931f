"""The examples of the environments run, and print what they say."""

import re
from pathlib import Path

import pytest
from helpers.processes import run_program

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    "name, lines",
    [
        ("single", [rf"{name}: score -?\d\.\d+, .* three seeds" for name in ("ebcc", "cubic")]),
        ("vector", [r"[\d,]+ steps per second, mean reward -?\d+\.\d\d"]),
        (
            "pettingzoo_parallel",
            [rf"flow-{number} as {name}: mean reward over time -?\d\.\d+"
             for number, name in enumerate(("ebcc", "ebcc", "bbr"), start=1)],
        ),
    ],
)  # fmt: skip
def test_an_example_runs(name, lines, tmp_path):
    done = run_program(EXAMPLES / f"{name}.py", tmp_path)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.splitlines()
    assert len(printed) == len(lines)
    assert all(re.fullmatch(pattern, line) for pattern, line in zip(lines, printed, strict=True))
