"""The examples of docs/reference/networks.md: short, whole, and run by the page's command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import Command

from quicgym import load_scenario
from quicgym.envs.scenarios.engines import ENGINES

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "networks.md"
EXAMPLES = {
    re.search(r"^name: (.*)$", block, re.M)[1]: block  # type: ignore[index]
    for block in re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M)
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cell.trace").write_text("".join(f"{time}\n" for time in range(1, 2000, 2)))
    paths = {name: tmp_path / f"{name}.yaml" for name in EXAMPLES}
    for name, path in paths.items():
        path.write_text(EXAMPLES[name])
    return paths


NATIVE_ONLY = {"dualpi2"}
"""Examples of which the page says so."""


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_has_ten_lines_at_most_and_runs_on_its_engines(
    name: str, files: dict[str, Path]
) -> None:
    assert len(EXAMPLES[name].splitlines()) <= 10
    for engine in ["native"] if name in NATIVE_ONLY else ENGINES:
        load_scenario(files[name]).check_engine(engine)


def test_the_command_of_the_page_runs_them(quicgym: Command, files: dict[str, Path]) -> None:
    scenarios = [text for path in files.values() for text in ("--scenario", str(path))]
    done = quicgym("baselines", *scenarios, "--controller", "cubic")
    for name in files:
        assert name in done.stdout
