"""The report of an evaluation: what it says, and that it is one file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from quicgym.agents.evaluation.evaluate import run_evaluate
from quicgym.agents.evaluation.report import Network, subject_of, verdict

pytestmark = pytest.mark.usefixtures("jobs_here", "plain_figures")


@pytest.fixture
def suite(tmp_path: Path) -> list[str]:
    """Two short networks."""
    files = []
    for name, rate_mbps in (("slow", 5.0), ("fast", 20.0)):
        link = f"bottleneck: {{rate_mbps: {rate_mbps}}}"
        file = tmp_path / f"{name}.yaml"
        file.write_text(f"{{base: ebcc-flows-3, name: {name}, duration_s: 3, {link}}}")
        files.append(str(file))
    return files


def text_of(report: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", report))


def test_the_report_has_verdict_table_differences_and_the_worst_networks(
    suite: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    policies = ("cubic", "bbr", "mine=ebcc:gamma=3")
    assert run_evaluate(directory=out, policies=policies, suite=suite, seeds=2, command="c") == 0
    assert f"read {out / 'report.html'} first" in capsys.readouterr().err
    report = (out / "report.html").read_text()
    # Three figures, and a picture of each network; everything is in the file.
    urls = re.findall(r'(?:src|href|data)="([^"]*)"', report)
    assert sum(url.startswith("data:image/png;base64,") for url in urls) == 3 + 2
    assert all(url.startswith(("data:", "#")) for url in urls)
    text = text_of(report)
    assert re.search(
        r"has an interquartile mean reward of .* \(2 networks, 2 seeds\), which is", text
    )
    assert "fewer than 5 seeds is too narrow to be trusted" in text
    for expected in ("CUBIC", "BBR", "mine", "compared with", "slow: 5 Mbps, 100 ms, 3 flows"):
        assert expected in text
    # Every scenario has the interval of each metric.
    document = json.loads((out / "evaluation.json").read_text())
    entry = next(entry for entry in document["policies"] if entry["policy"] == "bbr")
    for cell in entry["scenarios"]:
        table = text.partition(f" {cell['scenario']} policy ")[2]
        table = re.split(" policy | How this was measured ", table)[0]
        low, high = cell["intervals"]["goodput_mbps"]
        assert f" {cell['goodput_mbps']:.2f} [{low:.2f}, {high:.2f}] " in table
        assert table.count("[") == len(policies) * len(cell["intervals"])


def test_each_network_that_a_seed_draws_has_a_picture(tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments: dict[str, Any] = {"policies": ("cubic", "bbr"), "suite": "training-50"}
    assert run_evaluate(directory=out, seeds=3, figure_format="svg", **arguments) == 0
    report = (out / "report.html").read_text()
    assert report.count("data:image/png;base64,") == 3
    assert "training-50, seed 2: " in report


def document(low: float | None, high: float | None) -> dict[str, Any]:
    means = {"mean_queue_delay_ms": 10.0, "loss_percent": 1.0}
    policies = [
        {"policy": name, "kind": kind, "iqm_reward": reward, "iqm_low": low, "iqm_high": high,
         "mean": means}
        for name, kind, reward in (("bbr3", "baseline", 0.6), ("window", "learned", 0.5))
    ]  # fmt: skip
    pair = {
        "a": "bbr3",
        "b": "window",
        "iqm_difference": 0.1,
        "low": low,
        "high": high,
        "probability_of_improvement": 0.75,
        "probability_low": low,
        "probability_high": high,
    }
    seeds = list(range(1 if low is None else 5))
    return {"policies": policies, "differences": [pair], "distributions": [], "seeds": seeds}


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.05, 0.15, "to BBRv3 is -0.100 [-0.150, -0.050]; the interval does not contain 0, so "
         "Window is behind."),
        (-0.05, 0.25, "the interval contains 0, so the order of the two is open."),
        (None, None, "is -0.100; one seed gives no interval"),
    ],
)  # fmt: skip
def test_the_verdict_is_of_the_learned_policy_and_says_how_sure_it_is(
    low: float | None, high: float | None, expected: str
) -> None:
    of = document(low, high)
    assert subject_of(of) == "window"
    text = " ".join(verdict(of, [Network("a", {}, {"window": 0.9, "bbr3": 0.8})]))
    assert expected in text and "which is second of 2." in text
    assert "earns more in 25%" in text and "level with the best, on 1 of 1 network." in text


def test_without_a_complete_policy_there_is_no_verdict() -> None:
    of = document(None, None)
    for entry in of["policies"]:
        entry["iqm_reward"] = None
    assert verdict(of, []) == ["Every policy lacks runs, so there is no verdict."]
