"""The page of the leaderboard."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from quicgym import Scenario, ScenarioError, __version__, _core, load_scenario
from quicgym.agents.evaluation.jobs import make_jobs
from quicgym.agents.policies.hand_coded import BASELINES
from quicgym.benchmarks.leaderboard import (
    LEADERBOARD,
    LeaderboardError,
    load_entries,
    make_sections,
)
from quicgym.benchmarks.leaderboard_data import Entry, draw_leaderboard, leaderboard_data
from quicgym.benchmarks.leaderboard_page import page
from quicgym.benchmarks.papers.model import load_paper
from quicgym.benchmarks.reports import main
from quicgym.controllers.choices import parse_parameters
from quicgym.envs.scenarios.applications import Bursts, ConstantRate
from quicgym.envs.scenarios.suites import WORLD_SUITES, load_suite
from quicgym.envs.simulation.traffic import burst_times_s


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    scenario = load_scenario("ebcc-flows-3").model_copy(update={"duration_s": 2.0})
    data = json.loads(json.dumps(scenario.model_dump(exclude_none=True), default=str))
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(data))
    (tmp_path / "two.yaml").write_text(
        "- {name: eBCC, policy: ebcc, kind: baseline}\n"
        "- {name: swept, policy: 'ebcc:gamma=60', kind: static}\n"
    )
    return ["--suite", "tiny.yaml", "--policies", "two.yaml", "--engine", "native", "--seeds", "2"]


def test_a_second_run_writes_the_same_bytes(
    files: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)

    for folder in "abcd":
        (tmp_path / folder).mkdir()

    def here(*more: str) -> str:
        monkeypatch.setattr(sys, "argv", ["reports", "leaderboard", *files, *more])
        with pytest.raises(SystemExit) as end:
            main()
        errors = capsys.readouterr().err
        assert not end.value.code, errors
        return errors

    first = here("--jobs", "1", "--out", "a/leaderboard.md", "--results", "first")
    here("--jobs", "2", "--out", "b/leaderboard.md", "--results", "other")
    text = (tmp_path / "a/leaderboard.md").read_text()
    for name in ("leaderboard.md", "leaderboard.json", "leaderboard.svg"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert "4 episodes with 1 processes" in first and "about" in first
    assert f"quicgym {__version__}, commit {_core.commit}" in text
    assert "## Suite `tiny.yaml`, native engine" in text and "1 scenarios, seeds 0 to 1" in text
    assert "quicgym evaluate --policy ebcc ebcc:gamma=60 --suite tiny.yaml" in text
    document = json.loads((tmp_path / "first/tiny-native/evaluation.json").read_text())
    for entry in document["policies"]:
        assert f"| {entry['iqm_reward']:.4f} |" in text
    (section,) = json.loads((tmp_path / "a/leaderboard.json").read_text())["sections"]
    assert section["best_baseline"] == "ebcc" and section["seeds"] == 2
    shown = {row["policy"]: row["iqm_reward"] for row in section["rows"]}
    assert shown == {
        entry["policy"]: pytest.approx(entry["iqm_reward"], abs=1e-6)
        for entry in document["policies"]
    }
    assert str(tmp_path) not in text
    assert "0 to run of 4" in here("--out", "c/leaderboard.md", "--results", "first", "--resume")
    assert (tmp_path / "c/leaderboard.md").read_text() == text
    assert "attacks.md) |" not in text
    (tmp_path / "d/attacks").mkdir()
    for name, found in (("ebcc", {"difference": -0.4567}), ("ebcc:gamma=60", None)):
        attack = {"policy": name, "found": found}
        (tmp_path / f"d/attacks/{len(name)}.json").write_text(json.dumps(attack))
    here("--out", "d/leaderboard.md", "--results", "first", "--resume")
    attacked = (tmp_path / "d/leaderboard.md").read_text()
    assert "| what it is | [worst found](attacks.md) |" in attacked
    assert "| `ebcc` | baseline |  | -0.46 |" in attacked
    assert "| `ebcc:gamma=60` | static |  | +0.00 |" in attacked


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("- {name: a, policy: cubic}", "0.kind: is missing"),
        ("- {name: a, policy: cubic, kind: learned}", "0.kind = 'learned': cubic is baseline"),
        ("- {name: a, policy: cubic, kind: baseline, gruop: b}", "0.gruop = 'b': unknown"),
        ("[]", "at least one"),
        ("- [", "not valid YAML"),
        (
            "- {name: a, policy: cubic, kind: baseline}\n- {name: a, policy: bbr, kind: baseline}",
            "name = 'a': is there twice",
        ),
        (
            "- {name: a, policy: bbr, kind: baseline}\n- {name: b, policy: bbr, kind: baseline}",
            "policy = 'bbr': is there twice",
        ),
    ],
)
def test_mistakes_in_the_list_are_named(content: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "list.yaml"
    path.write_text(content)
    with pytest.raises(LeaderboardError, match=f"list.yaml.*: .*{words}"):
        load_entries(path)


@pytest.mark.parametrize(
    "arguments", [["--suite", "heldot"], ["--engine", "ns2"], ["--policies", "none.yaml"]]
)
def test_bad_input_ends_with_a_message(
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["reports", "leaderboard", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert arguments[1] in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_shipped_list_has_every_baseline() -> None:
    entries = load_entries(LEADERBOARD)
    listed = [entry.policy for entry in entries if entry.kind == "baseline"]
    assert listed == list(BASELINES)


def document() -> dict:
    """Two trainings of one policy: the better ahead of the baseline in one scenario of two."""

    def row(policy: str, iqm: float, rewards: list[float], share: float) -> dict:
        metrics = (
            "reward", "throughput_share", "loss_rate", "jain_of_intervals", "goodput_mbps",
            "agent_goodput_mbps", "loss_percent", "mean_rtt_ms", "mean_queue_delay_ms",
        )  # fmt: skip
        return {
            "policy": policy,
            "iqm_reward": iqm,
            "iqm_low": iqm - 0.01,
            "iqm_high": iqm + 0.01,
            "level_share": share,
            "mean": dict.fromkeys(metrics, 0.25),
            "scenarios": [
                {"scenario": name, "reward": reward}
                for name, reward in zip(("one", "two"), rewards, strict=True)
            ],
        }

    def difference(a: str, b: str, value: float, low: float, high: float) -> dict:
        numbers = {"iqm_difference": value, "low": low, "high": high}
        return {"a": a, "b": b, **numbers, "probability_of_improvement": 0.75}

    return {
        "version": "1",
        "commit": "c",
        "ns3_version": None,
        "suite": "s",
        "engine": "native",
        "seeds": [0, 1],
        "command": "quicgym evaluate",
        "policies": [
            row("ebcc:gamma=60", 0.9, [0.9, 0.9], 1.0),
            row("a.json", 0.8, [1.0, 0.6], 0.5),
            row("cubic", 0.7, [0.6, 0.8], 1.0),
            row("b.json", 0.5, [0.5, 0.5], 0.0),
        ],
        "differences": [
            difference("ebcc:gamma=60", "a.json", 0.1, 0.05, 0.2),
            difference("a.json", "cubic", 0.1, 0.04, 0.16),
        ],
    }


def test_the_page_says_how_far_the_best_learned_is_ahead_or_behind() -> None:
    entries = [
        Entry(name="CUBIC", policy="cubic", kind="baseline"),
        Entry(name="Swept", policy="ebcc:gamma=60", kind="static"),
        Entry(name="PPO 1", policy="a.json", kind="learned", group="PPO"),
        Entry(name="PPO 2", policy="b.json", kind="learned", group="PPO"),
    ]
    text = page(entries, [document()], "make reports", {}, {})
    assert (
        "best learned (PPO 1) − best hand-coded baseline (CUBIC): +0.1000, "
        "95% interval [0.0400, 0.1600]; probability of improvement 0.75" in text
    )
    assert (
        "best learned (PPO 1) − best static parameters (Swept): -0.1000, "
        "95% interval [-0.2000, -0.0500]; probability of improvement 0.25" in text
    )
    assert "in 1 of 2; furthest behind in two (-0.200)" in text
    assert "| PPO | 2 | 0.6500 | 0.5000 | 0.8000 |" in text
    without = page(
        entries[:2],
        [document() | {"policies": [document()["policies"][i] for i in (0, 2)]}],
        "x",
        {},
        {},
    )
    assert "best learned" not in without and "training seeds" not in without


def test_the_page_counts_who_was_left_out_and_where_the_best_learned_is_furthest_behind() -> None:
    entries = [
        Entry(name="CUBIC", policy="cubic", kind="baseline"),
        Entry(name="PPO 1", policy="a.json", kind="learned"),
        Entry(name="Slow", policy="slow.json", kind="learned"),
    ]
    data = document()
    data["policies"] = [data["policies"][index] for index in (1, 2)]
    earned = ([0.1, 0.6, 0.2, 0.3, 0.5, 0.4], [0.7] * 6)
    for row, rewards in zip(data["policies"], earned, strict=True):
        row["scenarios"] = [
            {"scenario": f"s{number}", "reward": reward} for number, reward in enumerate(rewards)
        ]
    text = page(entries, [data], "make reports", {}, {})
    assert "1 of the 3 policies did not run here." in text
    worst = "s0 (-0.600), s2 (-0.500), s3 (-0.400), s5 (-0.300), s4 (-0.200)"
    assert f"in 0 of 6; furthest behind in {worst}" in text and "s1 (" not in text
    assert "did not run here" not in page(entries[:2], [data], "make reports", {}, {})


def test_the_data_has_the_differences_from_the_best_baseline_and_what_attacks_found() -> None:
    entries = [
        Entry(name="CUBIC", policy="cubic", kind="baseline"),
        Entry(name="Swept", policy="ebcc:gamma=60", kind="static"),
        Entry(name="PPO 1", policy="a.json", kind="learned", group="PPO"),
        Entry(name="PPO 2", policy="b.json", kind="learned", group="PPO"),
    ]
    data = leaderboard_data(entries, [document()], "make reports", {"a.json": -0.5})
    assert [entry["worst_found"] for entry in data["policies"]] == [None, None, -0.5, None]
    (section,) = data["sections"]
    assert section["best_baseline"] == "cubic"
    rows = {row["policy"]: row for row in section["rows"]}
    assert rows["a.json"]["furthest_behind"] == [{"scenario": "two", "difference": -0.2}]
    assert [cell["scenario"] for cell in rows["b.json"]["furthest_behind"]] == ["two", "one"]
    assert rows["cubic"]["furthest_behind"] == [] and rows["cubic"]["iqm_low"] == 0.69


def test_the_picture_has_a_cell_for_each_policy_and_suite_and_frames_the_best_baseline() -> None:
    entries = [
        Entry(name="CUBIC", policy="cubic", kind="baseline"),
        Entry(name="Swept", policy="ebcc:gamma=60", kind="static"),
        Entry(name="PPO 1", policy="a.json", kind="learned"),
        Entry(name="PPO 2", policy="b.json", kind="learned"),
        Entry(name="Elsewhere", policy="other.json", kind="learned"),
    ]
    figure = draw_leaderboard(leaderboard_data(entries, [document()], "make reports", {}))
    axes = figure.axes[0]
    cells = {text.get_position()[1]: text.get_text() for text in axes.texts}
    assert cells == {0: "0.700", 1: "0.900", 2: "0.800", 3: "0.500"}
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == [entry.name for entry in entries]
    (frame,) = axes.patches
    assert frame.get_xy() == (-0.5, -0.5)


def test_where_cubic_and_bbr_were_run_the_page_counts_collapses_beside_them() -> None:
    entries = [
        Entry(name="CUBIC", policy="cubic", kind="baseline"),
        Entry(name="BBR", policy="bbr", kind="baseline"),
        Entry(name="PPO 1", policy="a.json", kind="learned", group="PPO"),
    ]
    data = document()
    rows = {row["policy"]: row for row in data["policies"]}
    bbr = {**rows["b.json"], "policy": "bbr"}
    data["policies"] = [rows["a.json"], rows["cubic"], bbr]
    shares = {"a.json": (0.9, 0.1), "cubic": (0.8, 0.8), "bbr": (0.7, 0.7)}
    for row in data["policies"]:
        for scenario, share in zip(row["scenarios"], shares[row["policy"]], strict=True):
            measured = {"loss_rate": 0.0, "goodput_mbps": 2.0, "mean_rtt_ms": 100.0}
            scenario.update({"throughput_share": share, **measured})
    data["differences"].append({**data["differences"][1], "a": "a.json", "b": "bbr"})
    text = page(entries, [data], "make reports", {}, {})
    assert "| PPO 1 | 1 | 50 | -0.200 | 20.00 |" in text
    assert "collapses on" not in text
    data["suite"] = "stress"
    marked = page(entries, [data], "make reports", {}, {})
    assert "collapses on `stress`, of 2 networks |" in marked
    assert "| PPO 1 | `a.json` | learned |  | 1 |" in marked
    data["policies"].pop()
    assert "more than 0.1 behind" not in page(entries, [data], "make reports", {}, {})


def test_the_page_says_what_each_section_is() -> None:
    entries = [
        Entry(name="CUBIC", policy="cubic", kind="baseline"),
        Entry(name="Swept", policy="ebcc:gamma=60", kind="static"),
        Entry(name="PPO 1", policy="a.json", kind="learned", group="PPO"),
        Entry(name="PPO 2", policy="b.json", kind="learned", group="PPO"),
    ]
    about = {"s": "Two paths.", "t": "Others."}
    text = page(entries, [document()], "make reports", about, {})
    assert "## Suite `s`, native engine\n\nTwo paths.\n" in text and "Others." not in text
    assert "| `s` | native engine | 2 | 2 | 4 |" in text


def sections(**chosen: Any) -> dict[str, int]:
    """Suite and engine -> seeds, of the shipped policies."""
    nothing: dict[str, Any] = {"suites": (), "engines": (), "seeds": {"native": None, "ns3": None}}
    made = make_sections(load_entries(LEADERBOARD), **nothing | chosen, results=Path())
    assert len({section.folder for section in made}) == len(made)
    return {section.title: section.seeds for section in made}


def test_each_suite_has_its_own_engines_and_seeds() -> None:
    assert sections() == {
        "papers, native engine": 40, "heldout, native engine": 16, "stress, native engine": 4,
        "papers, ns-3": 2, "heldout, ns-3": 2, "ibcca-wireless, ns-3": 2,
        **{f"{world}, native engine": 2 for world in WORLD_SUITES},
    }  # fmt: skip
    assert sections(suites=["stress"]) == {"stress, native engine": 4}
    assert sections(suites=["ibcca-single"], engines=["ns3"]) == {"ibcca-single, ns-3": 2}
    assert sections(suites=["papers", "stress"], seeds={"native": 3, "ns3": None}) == {
        "papers, native engine": 3, "stress, native engine": 3, "papers, ns-3": 2,
    }  # fmt: skip
    with pytest.raises(LeaderboardError, match="--suite stress: does not run on ns3; leave out"):
        sections(suites=["stress"], engines=["ns3"])


@pytest.mark.parametrize("suite", ["heldout", "stress"])
def test_a_suite_of_many_networks_pairs_policies_on_1024_paths(suite: str) -> None:
    (section,) = make_sections(
        [Entry(name="CUBIC", policy="cubic", kind="baseline")],
        [suite], ["native"], {"native": None}, Path(),
    )  # fmt: skip
    assert len({(job.scenario.name, job.seed) for job in section.jobs()}) == 1024


def test_the_wireless_section_has_what_the_paper_compares_and_runs_on_ns3_alone() -> None:
    seeds = {"native": None, "ns3": None}
    entries = load_entries(LEADERBOARD)
    (section,) = make_sections(entries, ["ibcca-wireless"], (), seeds, Path())
    assert {"ibcca", "cubic", "bbr", "ebcc"} <= set(section.policies)
    assert {entry.kind for entry in section.entries} == {"baseline", "learned"}
    with pytest.raises(ScenarioError, match="wifi"):
        make_jobs(["ibcca"], load_suite("ibcca-wireless"), 1, engine="native")


def test_every_reading_of_ibcca_has_a_name_on_the_leaderboard() -> None:
    policies = [entry.policy for entry in load_entries(LEADERBOARD)]
    shown = [
        {name: np.ravel(value).tolist() for name, value in parse_parameters(parameters).items()}
        for policy, _, parameters in (policy.partition(":") for policy in policies)
        if policy == "ibcca" and parameters
    ]
    for variation in load_paper("ibcca").variations:
        if reading := variation.controller_parameters.get("ibcca"):
            expected = {name: np.ravel(value).tolist() for name, value in reading.items()}
            assert expected in shown, variation.name


def test_the_wireless_suite_has_the_networks_of_the_paper_s_scenarios() -> None:
    for short in load_suite("ibcca-wireless"):
        assert isinstance(short, Scenario)
        full = load_scenario(short.name.replace("ibcca-wireless-", "ibcca-"))
        assert (short.wifi, short.access, short.source) == (full.wifi, full.access, full.source)
        assert short.duration_s < full.duration_s
        assert short.flows[0] == full.flows[0]
        # Each burst is a flow here, from its begin to its end.
        begins = [(flow.start_s, flow.stop_s) for flow in short.flows[1:]]
        assert begins == burst_times_s(full)[: len(begins)]
        for burst, bursts in itertools.product(short.flows[1:], full.flows[1:]):
            assert isinstance(burst.application, ConstantRate)
            assert isinstance(bursts.application, Bursts)
            assert burst.application.rate_mbps == bursts.application.burst_rate_mbps
            assert (burst.controller, burst.parameters) == (bursts.controller, bursts.parameters)
