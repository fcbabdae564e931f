"""The examples of two pages on scenarios: short, whole, and run by the page's command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import Command

from quicgym import load_scenario
from quicgym.envs.scenarios.engines import ENGINES

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
PAGES = {
    name: (REFERENCE / name).read_text(encoding="utf-8") for name in ("networks.md", "traffic.md")
}
EXAMPLES = {
    page: {
        found[1]: block
        for block in re.findall(r"^```yaml\n(.*?)^```", text, re.S | re.M)
        if (found := re.search(r"^name: (.*)$", block, re.M))
    }
    for page, text in PAGES.items()
}
NATIVE_ONLY = {"dualpi2", "sfq"}
"""Examples of networks.md of which the page says so."""


def write(page: str, folder: Path) -> None:
    (folder / "cell.trace").write_text("".join(f"{time}\n" for time in range(1, 2000, 2)))
    for name, text in EXAMPLES[page].items():
        (folder / f"{name}.yaml").write_text(text)


@pytest.mark.parametrize("page", PAGES)
def test_an_example_has_ten_lines_at_most_and_the_command_of_the_page_runs_it(
    page: str, quicgym: Command, tmp_path: Path
) -> None:
    write(page, tmp_path)
    names = EXAMPLES[page]
    assert max(len(text.splitlines()) for text in names.values()) <= 10
    files = [f"{name}.yaml" for name in names]
    command = re.search(r"^    quicgym baselines --scenario \S+ (.*)$", PAGES[page], re.M)
    assert command is not None
    done = quicgym("baselines", "--scenario", *files, *command[1].split(), "--seeds", "1")
    assert all(name in done.stdout for name in names)


def test_examples_of_networks_are_for_both_engines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write("networks.md", tmp_path)
    for name in EXAMPLES["networks.md"]:
        for engine in ["native"] if name in NATIVE_ONLY else ENGINES:
            load_scenario(tmp_path / f"{name}.yaml").check_engine(engine)


def test_traffic_has_an_example_of_each() -> None:
    assert set(EXAMPLES["traffic.md"]) == {
        *("short-flows", "requests", "page", "video", "call", "offload")
    }
