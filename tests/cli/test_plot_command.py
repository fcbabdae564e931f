"""`quicgym plot`: which pictures a result folder gives; the formats of all commands' figures."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import yaml
from conftest import Command

from quicgym.benchmarks.plot import run_plot
from quicgym.envs.simulation.animation import Take, write_film


@pytest.fixture
def short(tmp_path: Path) -> Path:
    path = tmp_path / "short.yaml"
    path.write_text("{base: ebcc-flows-3, name: short, duration_s: 3}")
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
    assert "3 pictures are in r/plots; begin with plane--short.pdf" in done.stderr
    assert {path.name for path in (tmp_path / "r/plots").iterdir()} == {
        "captions.md",
        "plane--short.pdf",
        "short--bbr--native--0.pdf",
        "short--cubic--native--0.pdf",
    }
    captions = (tmp_path / "r/plots/captions.md").read_text()
    assert (
        "- `plane--short.pdf`: Goodput over queueing delay on short, engine native. A mark is the "
        "mean of a controller's flows over 2 seeds (0 to 1), and an ellipse is 1 standard deviation"
    ) in captions
    assert "on short, engine native, seed 0." in captions
    figures = (tmp_path / "r/figures/captions.md").read_text()
    assert "on short (15 Mbps, 100 ms, 3 flows; queue of " in figures and "seed 0." in figures
    wrong = quicgym("plot", "r", "--scenario", "shirt", status=2)
    assert "r: has no run of scenario 'shirt'; did you mean short?" in wrong.stderr


def test_a_plane_shows_the_subject_against_the_others(
    quicgym: Command, short: Path, tmp_path: Path
) -> None:
    fields = yaml.safe_load(short.read_text())
    fields["flows"] = [{}, {"controller": "cubic", "count": 2}]
    short.write_text(yaml.safe_dump(fields))
    arguments = ("--scenario", short, "--controller", "bbr3", "--seeds", "2", "--out", "r")
    quicgym("baselines", *arguments, "--format", "csv")
    quicgym("plot", "r", "--figures", "svg")
    plane = (tmp_path / "r/plots/plane--short.svg").read_text()
    assert "BBRv3 next to CUBIC" in plane and "CUBIC next to BBRv3" in plane


def test_an_evaluation_has_a_plane_of_its_policies(
    quicgym: Command, short: Path, tmp_path: Path
) -> None:
    longer = tmp_path / "longer.yaml"
    longer.write_text(yaml.safe_dump({**yaml.safe_load(short.read_text()), "name": "longer"}))
    arguments = ("--policy", "cubic", "ebcc:gamma=3", "--suite", short, longer, "--seeds", "2")
    quicgym("evaluate", *arguments, "--figures", "pdf", "--out", "e", "--format", "csv")
    figures = {path.name for path in (tmp_path / "e/figures").iterdir()}
    assert figures == {"iqm.pdf", "profiles.pdf", "scenarios.pdf", "captions.md"}
    captions = (tmp_path / "e/figures/captions.md").read_text()
    assert (
        f"its 95% bootstrap interval (bar), on {short}, {longer}, engine native, over 2" in captions
    )
    quicgym("plot", "e", "--figures", "svg", "--out", "pictures")
    assert (tmp_path / "pictures/captions.md").read_text().startswith("- `overview.svg`: All runs")
    plane = (tmp_path / "pictures/plane--short.svg").read_text()
    assert "eBCC:gamma=3" in plane and "mean queueing delay (ms)" in plane
    episodes = (tmp_path / "pictures/episodes--short.svg").read_text()
    for text in ("CUBIC", "eBCC:gamma=3", "capacity", "base RTT", "throughput (Mbps)", "RTT (ms)"):
        assert text in episodes


def test_the_caption_of_episodes_names_their_seed(
    quicgym: Command, short: Path, tmp_path: Path
) -> None:
    arguments = ("--suite", short, "--policy", "cubic", "--first-seed", "7", "--seeds", "2")
    quicgym("evaluate", *arguments, "--out", "e")
    run_plot(tmp_path / "e")
    captions = (tmp_path / "e/plots/captions.md").read_text().splitlines()
    of_episodes = next(line for line in captions if "episodes--short" in line)
    assert "seed 7" in of_episodes and "seed 0" not in of_episodes


@pytest.mark.parametrize("command", ["baselines", "evaluate"])
def test_two_of_any_result_are_animated(
    command: str, quicgym: Command, short: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    which = ("--scenario", "--controller") if command == "baselines" else ("--suite", "--policy")
    names = ("cubic", "ebcc:gamma=3")
    quicgym(command, which[0], short, which[1], *names, "--seeds", "1", "--out", "r")
    monkeypatch.setattr("quicgym.benchmarks.plot.write_film", partial(write_film, frames=2))
    assert run_plot(tmp_path / "r", animate=names) == 0
    film = tmp_path / "r/plots/short--cubic--ebcc-gamma-3.gif"
    assert film.read_bytes().startswith(b"GIF89a")
    wrong = quicgym("plot", "r", "--animate", "cubic", "bbr", status=2)
    assert "r: has no run of 'bbr' on short; there are: cubic, ebcc:gamma=3" in wrong.stderr


def test_the_films_of_a_chain_s_runs_and_of_its_episodes_show_the_same_rates(
    quicgym: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hop = {"rate_mbps": 10, "delay_ms": 5, "queue": {"limit": 50}}
    flows = [{}, {"first_hop": 2, "last_hop": 2}]
    chain = {"name": "chain", "duration_s": 5, "bottleneck": hop, "chain": [hop], "flows": flows,
             "access": {"rate_mbps": 100, "delay_ms": 1}}  # fmt: skip
    (tmp_path / "chain.yaml").write_text(yaml.safe_dump(chain))
    quicgym("baselines", "--scenario", "chain.yaml", "--controller", "cubic", "bbr", "--out", "b")
    quicgym("evaluate", "--suite", "chain.yaml", "--policy", "cubic", "bbr", "--out", "e")
    takes: list[Take] = []
    monkeypatch.setattr("quicgym.benchmarks.plot.write_film", lambda shown, _: takes.extend(shown))
    for result in ("b", "e"):
        run_plot(tmp_path / result, animate=("cubic", "bbr"))
    assert len(takes) == 4
    for of_run, of_episode in zip(takes[:2], takes[2:], strict=True):
        for what in ("megabits", "capacity_megabits"):
            expected = pytest.approx(getattr(of_episode, what)[-1], rel=0.03)  # headers of packets
            assert getattr(of_run, what)[-1] == expected, what


def test_a_folder_without_runs_is_an_error(quicgym: Command, tmp_path: Path) -> None:
    done = quicgym("plot", str(tmp_path / "none"), status=2)
    assert (
        "has no runs.jsonl with runs; give a folder that quicgym baselines, papers" in done.stderr
    )


def test_runs_of_a_command_that_plot_does_not_know_are_refused(
    quicgym: Command, tmp_path: Path
) -> None:
    quicgym("evaluate", "--policy", "bbr", "--suite", "ebcc-single", "--seeds", "1", "--out", "e")
    (tmp_path / "e/evaluation.json").rename(tmp_path / "e/attack.json")
    done = quicgym("plot", "e", status=2)
    assert "e: has none of evaluation.json" in done.stderr
    assert not (tmp_path / "e/plots").exists()
