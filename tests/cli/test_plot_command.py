"""`quicgym plot`: which pictures a result folder gives; the formats of all commands' figures."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from conftest import Command

from quicgym import load_scenario


@pytest.fixture
def short(tmp_path: Path) -> Path:
    data = load_scenario("ebcc-flows-3").model_dump(exclude_none=True)
    path = tmp_path / "short.yaml"
    path.write_text(yaml.safe_dump({**data, "name": "short", "duration_s": 3.0}))
    return path


def test_baselines_are_drawn_as_runs_and_as_a_plane(
    quicgym: Command, short: Path, tmp_path: Path
) -> None:
    arguments = ("--scenario", short, "--controller", "cubic", "bbr", "--seeds", "2")
    done = quicgym("baselines", *arguments, "--figures", "svg", "--out", "r", "--format", "csv")
    assert {path.name for path in (tmp_path / "r/figures").iterdir()} == {
        "short.svg",
        "captions.md",
    }
    done = quicgym("plot", "r", "--figures", "pdf")
    assert "3 pictures are in r/plots" in done.stderr
    assert {path.name for path in (tmp_path / "r/plots").iterdir()} == {
        "plane--short.pdf",
        "short--bbr--native--0.pdf",
        "short--cubic--native--0.pdf",
    }
    wrong = quicgym("plot", "r", "--scenario", "shirt", status=2)
    assert "r: has no run of scenario 'shirt'; did you mean short?" in wrong.stderr


def test_an_evaluation_has_a_plane_of_its_policies(
    quicgym: Command, short: Path, tmp_path: Path
) -> None:
    arguments = ("--policy", "cubic", "ebcc:gamma=3", "--suite", short, "--seeds", "2")
    quicgym("evaluate", *arguments, "--figures", "pdf", "--out", "e", "--format", "csv")
    figures = {path.name for path in (tmp_path / "e/figures").iterdir()}
    assert figures == {"iqm.pdf", "profiles.pdf", "scenarios.pdf"}
    quicgym("plot", "e", "--figures", "svg", "--out", "pictures")
    plane = (tmp_path / "pictures/plane--short.svg").read_text()
    assert "ebcc:gamma=3" in plane and "mean queueing delay (ms)" in plane
    episodes = (tmp_path / "pictures/episodes--short.svg").read_text()
    for text in ("cubic", "ebcc:gamma=3", "capacity", "throughput (Mbps)", "RTT (ms)"):
        assert text in episodes


def test_a_folder_without_runs_is_an_error(quicgym: Command, tmp_path: Path) -> None:
    done = quicgym("plot", str(tmp_path / "none"), status=2)
    assert (
        "has no runs.jsonl with runs; give a folder that quicgym baselines, papers" in done.stderr
    )
