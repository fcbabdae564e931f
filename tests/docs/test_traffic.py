"""The examples of docs/reference/traffic.md: short, whole, and run by the page's command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import Command

from quicgym.envs.simulation.metrics import DECLARED_OF_TRAFFIC, metrics_table

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "traffic.md"
EXAMPLES = {
    name[1]: block
    for block in re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M)
    if (name := re.search(r"^name: (.*)$", block, re.M))
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_has_ten_lines_at_most_and_the_command_of_the_page_runs_it(
    name: str, quicgym: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(EXAMPLES[name].splitlines()) <= 10
    (tmp_path / f"{name}.yaml").write_text(EXAMPLES[name])
    done = quicgym(
        "baselines", "--scenario", f"{name}.yaml", "--controller", "cubic", "bbr", "--seeds", "2"
    )
    assert name in done.stdout


def test_there_is_an_example_of_each() -> None:
    assert set(EXAMPLES) == {"short-flows", "requests", "page", "video"}


def test_the_page_has_the_table_of_metrics() -> None:
    assert metrics_table(DECLARED_OF_TRAFFIC) in PAGE.read_text(encoding="utf-8")
