"""The page of the leaderboard."""

from __future__ import annotations

import itertools
import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quicgym import Scenario, ScenarioError, __version__, _core, controllers, load_scenario
from quicgym.agents.evaluation.jobs import make_jobs
from quicgym.agents.policies.hand_coded import STEERED
from quicgym.benchmarks.leaderboard import (
    LEADERBOARD,
    LeaderboardError,
    load_entries,
    make_sections,
    page,
)
from quicgym.benchmarks.leaderboard_data import (
    BEST,
    Entry,
    Result,
    draw_leaderboard,
    leaderboard_data,
    robustness,
)
from quicgym.benchmarks.papers.paper import load_paper
from quicgym.benchmarks.reports import main
from quicgym.controllers.choices import parse_parameters
from quicgym.envs.scenarios.applications import Bursts, ConstantRate
from quicgym.envs.scenarios.suites import WORLD_SUITES, load_suite
from quicgym.envs.simulation.traffic import burst_times_s
from quicgym.jobs import LocalProcesses
from quicgym.output_folders import file_name


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    (tmp_path / "tiny.yaml").write_text("{base: ebcc-flows-3, name: tiny, duration_s: 2}")
    (tmp_path / "two.yaml").write_text(
        "- {name: eBCC, policy: ebcc, kind: baseline}\n"
        "- {name: swept, policy: 'ebcc:gamma=60', kind: static}\n"
    )
    return ["--suite", "tiny.yaml", "--policies", "two.yaml", "--engine", "native", "--seeds", "2"]


@pytest.fixture
def leaderboard(
    files: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[..., str]:
    """Runs the report with more options; returns what it says."""
    monkeypatch.chdir(tmp_path)

    def run(*more: str) -> str:
        monkeypatch.setattr(sys, "argv", ["reports", "leaderboard", *files, *more])
        with pytest.raises(SystemExit) as end:
            main()
        errors = capsys.readouterr().err
        assert not end.value.code, errors
        return errors

    return run


def test_a_second_run_writes_the_same_bytes(
    leaderboard: Callable[..., str], tmp_path: Path
) -> None:
    for folder in "abcd":
        (tmp_path / folder).mkdir()
    first = leaderboard("--jobs", "1", "--out", "a/leaderboard.md", "--results", "first")
    leaderboard("--jobs", "2", "--out", "b/leaderboard.md", "--results", "other")
    text = (tmp_path / "a/leaderboard.md").read_text()
    for name in ("leaderboard.md", "leaderboard.json", "leaderboard.svg"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert "4 episodes with 1 processes" in first
    assert f"quicgym {__version__}, commit {_core.commit}" in text
    assert "### Suite `tiny.yaml`, native engine\n\n1 scenario, seeds 0 to 1." in text
    document = json.loads((tmp_path / "first/tiny-native/evaluation.json").read_text())
    for entry in document["policies"]:
        assert f"| {entry['iqm_reward']:.4f} [" in text
    (section,) = json.loads((tmp_path / "a/leaderboard.json").read_text())["sections"]
    assert section["best_baseline"] == "ebcc" and section["seeds"] == 2
    shown = {row["policy"]: row["iqm_reward"] for row in section["rows"]}
    assert shown == {
        entry["policy"]: pytest.approx(entry["iqm_reward"], abs=1e-6)
        for entry in document["policies"]
    }
    assert str(tmp_path) not in text
    assert "0 to run of 4" in leaderboard(
        "--out", "c/leaderboard.md", "--results", "first", "--resume"
    )
    assert (tmp_path / "c/leaderboard.md").read_text() == text
    assert "| `ebcc` | baseline |  |\n" in text
    for name, found in (("ebcc", {"difference": -0.4567}), ("ebcc:gamma=60", None)):
        attack = {"policy": name, "found": found}
        folder = tmp_path / "d/attacks" / file_name(name)
        folder.mkdir(parents=True)
        (folder / "attack.json").write_text(json.dumps(attack))
    leaderboard("--out", "d/leaderboard.md", "--results", "first", "--resume")
    attacked = (tmp_path / "d/leaderboard.md").read_text()
    assert "| `ebcc` | baseline |  | -0.46 |" in attacked
    assert "| `ebcc:gamma=60` | static |  | +0.00 |" in attacked


def test_what_a_user_should_know_is_a_note_and_no_line_of_our_code(
    leaderboard: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "two.yaml").write_text("[{name: Prague, policy: prague, kind: baseline}]")
    errors = leaderboard("--out", "page.md")
    assert "\nnote: prague: asks for marks" in f"\n{errors}" and "UserWarning" not in errors


@pytest.mark.parametrize("interrupted", [False, True])
def test_the_commands_that_make_the_page_and_continue_it_name_a_list_with_a_space(
    interrupted: bool,
    files: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    Path("two.yaml").rename("my two.yaml")
    options = [name.replace("two", "my two") for name in files]
    monkeypatch.setattr(sys, "argv", ["reports", "leaderboard", *options, "--out", "page.md"])
    if interrupted:
        monkeypatch.setattr(LocalProcesses, "run", interrupt)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == (130 if interrupted else 0)
    if interrupted:
        (command,) = (line for line in capsys.readouterr().err.splitlines() if "--resume" in line)
    else:
        command = json.loads(Path("page.json").read_text())["command"]
    words = shlex.split(command)
    assert words[words.index("--policies") + 1] == "my two.yaml"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("- {name: a, policy: cubic, kind: learned}", "0.kind = 'learned': cubic is baseline"),
        ("[]", "at least one"),
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


def test_the_shipped_list_has_all_controllers_so_that_the_best_is_the_best_of_all() -> None:
    listed = {entry.policy for entry in load_entries(LEADERBOARD) if entry.kind == "baseline"}
    assert listed == set(controllers.names()) - set(STEERED) - {
        "ibcca-cubic"
    }  # untried, says IBCCA


ENTRIES = [
    Entry(name="CUBIC", policy="cubic", kind="baseline"),
    Entry(name="BBR", policy="bbr", kind="baseline"),
    Entry(name="Swept", policy="ebcc:gamma=60", kind="static"),
    Entry(name="PPO 1", policy="a.json", kind="learned", group="PPO"),
    Entry(name="PPO 2", policy="b.json", kind="learned", group="PPO"),
]


def result(rewards: dict[str, list[float]], suite: str = "s", engine: str = "native") -> Result:
    """An evaluation with two seeds; both give the policy's reward on the scenarios."""
    metrics = (
        "throughput_share", "loss_rate", "jain_of_intervals", "goodput_mbps", "mean_rtt_ms",
        "mean_queue_delay_ms",
    )  # fmt: skip
    measured = {
        "throughput_share": 0.8,
        "loss_rate": 0.0,
        "goodput_mbps": 2.0,
        "mean_rtt_ms": 100.0,
    }
    rows = [
        {
            "policy": policy,
            "iqm_reward": float(np.mean(of)) - 0.01,
            "iqm_low": 0.0,
            "iqm_high": 1.0,
            "level_share": 0.5,
            "mean": {"reward": float(np.mean(of)), **dict.fromkeys(metrics, 0.25)},
            "scenarios": [
                {"scenario": f"s{place}", "reward": reward, **measured}
                for place, reward in enumerate(of)
            ],
        }
        for policy, of in rewards.items()
    ]
    about: dict[str, Any] = {"version": "1", "commit": "c", "ns3_version": "3", "command": "x"}
    about |= {"suite": suite, "engine": engine, "distributions": []}
    document = {**about, "seeds": [0, 1], "policies": rows}
    return Result(document, np.array([[[reward] * 2 for reward in of] for of in rewards.values()]))


ONE = {
    "ebcc:gamma=60": [0.9, 0.9], "a.json": [1.0, 0.6], "cubic": [0.6, 0.8], "bbr": [0.2, 0.2],
    "b.json": [0.5, 0.5],
}  # fmt: skip
OTHER = {
    "ebcc:gamma=60": [0.1, 0.1], "a.json": [0.6, 0.6], "cubic": [0.3, 0.3], "bbr": [0.7, 0.7],
    "b.json": [0.2, 0.2],
}  # fmt: skip


def test_the_page_begins_with_the_finding_and_the_policies_in_rank_order() -> None:
    results = [result(ONE), result(OTHER, "t"), result(ONE, "s", "ns3")]
    data = leaderboard_data(ENTRIES, results, "make reports", {})
    text = page(data)
    assert text.startswith(
        "# Leaderboard\n\n**PPO 1 has the highest mean reward over the 2 suites, 0.700; the best "
        "hand-coded controller, CUBIC, has 0.500; PPO 1 is ahead of the best single hand-coded "
        "controller of a suite on 1 of 2, and the 95% interval is above 0 on 0.**\n\n| | policy | "
    )
    assert (
        "| policy | mean of all suites | normalized score | IQM | queueing delay (ms) | `s` | `t` |"
        in text
    )
    ranks = [
        line.rstrip() for line in text.splitlines() if line.startswith(("| 1", "| 2", "| 3", "| 4"))
    ]
    assert ranks == [
        "| 1 | PPO 1 | 0.700 | – | 0.690 | 0.2 | 0.800 | 0.600 |",
        "| 2 | CUBIC | 0.500 | – | 0.490 | 0.2 | 0.700 | 0.300 |",
        "| 3 | Swept | 0.500 | – | 0.490 | 0.2 | 0.900 | 0.100 |",
        "| 4 | BBR | 0.450 | – | 0.440 | 0.2 | 0.200 | 0.700 |",
    ]
    assert "### Suite `s`, ns-3" in text and ", ns-3 3. It also\n" in text
    assert "Over its 2 training seeds, PPO has an IQM of 0.5150 in the mean, 0.3400" in text


def test_the_finding_is_about_policies_that_do_not_know_the_network() -> None:
    yardstick = Entry(name="Omniscient", policy="omniscient", kind="static")
    tested = result({**ONE, "omniscient": [1.0, 1.0]})
    data = leaderboard_data([*ENTRIES, yardstick], [tested], "make reports", {})
    assert data["policies"][0]["name"] == "Omniscient"
    assert data["finding"].startswith("Swept has the highest mean reward over the suite, 0.900;")


def test_a_normalized_score_is_0_for_bbr_and_100_for_the_policy_that_knows_the_network() -> None:
    yardstick = Entry(name="Omniscient", policy="omniscient", kind="static")
    tested = result({**ONE, "bbr": [-0.6, -0.6], "omniscient": [1.0, 1.0]})
    data = leaderboard_data([*ENTRIES, yardstick], [tested], "make reports", {})
    scores = {row["name"]: row["normalized_score"] for row in data["policies"]}
    assert scores == {
        "Omniscient": 100, "Swept": 93.75, "PPO 1": 87.5, "CUBIC": 81.25, "PPO 2": 68.75, "BBR": 0,
    }  # fmt: skip
    assert "| 3 | PPO 1 | 0.800 | 88 |" in page(data)


def test_a_policy_without_a_run_on_a_suite_has_no_rank() -> None:
    without = {policy: of for policy, of in OTHER.items() if policy != "a.json"}
    text = page(leaderboard_data(ENTRIES, [result(ONE), result(without, "t")], "x", {}))
    assert "| – | PPO 1 | – | – | – | – | 0.800 | – |" in text
    assert "**CUBIC has the highest mean reward" in text and "### PPO 2" in text
    assert "### PPO 1" not in text


def interval(estimate: dict[str, float]) -> str:
    return f"{estimate['value']:+.3f} [{estimate['low']:+.3f}, {estimate['high']:+.3f}]"


def test_each_agent_has_its_paired_differences_to_the_papers_controllers_and_the_best() -> None:
    data = leaderboard_data(ENTRIES, [result(ONE), result(OTHER, "t")], "make reports", {})
    first, second = data["agents"]
    assert (first["name"], second["name"]) == ("PPO 1", "PPO 2")
    found = {
        each["name"]: [each["all"]["value"], *(suite["value"] for suite in each["suites"])]
        for each in first["against"]
    }
    assert found == {
        BEST: pytest.approx([0, 0.1, -0.1]),
        "CUBIC": pytest.approx([0.2, 0.1, 0.3]),
        "Swept": pytest.approx([0.2, -0.1, 0.5]),
        "BBR": pytest.approx([0.25, 0.6, -0.1]),
    }
    text = page(data)
    cubic = next(each for each in first["against"] if each["policy"] == "cubic")
    shown = f"| CUBIC | {interval(cubic['all'])} | {' | '.join(map(interval, cubic['suites']))} |"
    assert text.count(shown) == 1
    hand_coded = {policy: ONE[policy] for policy in ("cubic", "bbr")}
    text = page(leaderboard_data(ENTRIES[:2], [result(hand_coded)], "make reports", {}))
    assert "Agents against" not in text and "leaderboard.svg)" not in text


def test_the_mean_over_suites_has_the_interval_of_independent_suites() -> None:
    rng = np.random.default_rng(1)
    noisy = [
        Result(result(ONE, suite).document, rng.normal(0, 0.1, (len(ONE), 40, 2))) for suite in "st"
    ]
    against = leaderboard_data(ENTRIES, noisy, "x", {})["agents"][0]["against"][1]
    widths = [each["high"] - each["low"] for each in against["suites"]]
    own = against["all"]["high"] - against["all"]["low"]
    assert own == pytest.approx(np.hypot(*widths) / 2, rel=0.1)


def test_a_difference_has_the_interval_that_other_networks_would_give_even_with_one_seed() -> None:
    rewards = np.random.default_rng(1).normal(0, 0.1, (len(ONE), 40, 1))
    noisy = Result(result(ONE).document, np.repeat(rewards, 5, axis=2))
    for one in (Result(noisy.document, rewards), noisy):
        agent = leaderboard_data(ENTRIES, [one], "x", {})["agents"][0]
        other = agent["against"][1]
        spread = one.difference(agent["policy"], other["policy"]).mean(axis=1).std()
        (found,) = other["suites"]
        assert found["high"] - found["low"] == pytest.approx(2 * 1.96 * spread / 40**0.5, rel=0.1)


def test_each_seed_of_a_distribution_is_a_network_of_the_interval() -> None:
    rewards = np.random.default_rng(1).normal(0, 0.1, (len(ONE), 1, 40))
    document = {**result(ONE).document, "distributions": ["training-50"]}
    drawn = Result(document, rewards)
    listed = Result(result(ONE).document, rewards.reshape(len(ONE), 40, 1))
    of_drawn, of_listed = (
        leaderboard_data(ENTRIES, [each], "x", {})["agents"][0]["against"][1]["suites"]
        for each in (drawn, listed)
    )
    assert of_drawn == of_listed and of_drawn[0]["low"] < of_drawn[0]["high"]


def test_the_figure_has_a_panel_for_each_agent_and_a_dot_for_each_controller_and_suite() -> None:
    data = leaderboard_data(ENTRIES, [result(ONE), result(OTHER, "t")], "make reports", {})
    first, second = draw_leaderboard(data).axes
    assert [label.get_text() for label in first.get_yticklabels()] == ["s", "t", "all suites"]
    for axes, best, bbr in (
        (first, [0.1, -0.1, 0], [0.6, -0.1, 0.25]),
        (second, [-0.2, -0.5, -0.35], [0.3, -0.5, -0.1]),
    ):
        dots = {bars.get_label(): bars.lines[0].get_xdata() for bars in axes.containers}
        assert dots == {BEST: pytest.approx(best), "BBR": pytest.approx(bbr)}


def test_the_page_says_what_each_section_is_and_counts_collapses() -> None:
    tested = result(ONE, "stress")
    tested.document["policies"][1]["scenarios"][0]["throughput_share"] = 0.1
    text = page(leaderboard_data(ENTRIES, [tested], "make reports", {"a.json": -0.5}))
    assert "### Suite `stress`, native engine\n\nThe widest networks" in text
    assert "| PPO 1 | 0.8000 | 0.7900 [0.0000, 1.0000] | " in text
    assert "| 0.2 | 50 | 1 | 20.00 |\n" in text
    assert "| PPO 1 | `a.json` | learned |  | -0.50 |" in text
    without = {policy: of for policy, of in ONE.items() if policy != "bbr"}
    text = page(leaderboard_data(ENTRIES, [result(without)], "make reports", {}))
    assert "| 0.2 | 50 | – | – |\n" in text


def cell(
    share: float = 0.8,
    loss: float = 0.02,
    goodput: float | None = 8.0,
    rtt: float | None = 50.0,
) -> dict[str, Any]:
    return {
        "throughput_share": share,
        "loss_rate": loss,
        "goodput_mbps": goodput,
        "mean_rtt_ms": rtt,
    }


@pytest.mark.parametrize(
    ("own", "collapses"),
    [
        (cell(), 0),
        (cell(share=0.41), 0),
        (cell(share=0.39), 1),  # below half of the better share
        (cell(loss=0.16), 0),
        (cell(loss=0.18), 1),  # 10 points above the larger loss
    ],
)
def test_a_collapse_is_half_the_share_or_ten_points_of_loss(
    own: dict[str, Any], collapses: int
) -> None:
    cubic, bbr = cell(share=0.8, loss=0.02), cell(share=0.3, loss=0.07)
    assert robustness([own], [[cubic], [bbr]])["collapses"] == collapses


def test_power_is_the_geometric_mean_of_goodput_over_rtt() -> None:
    cells = [cell(goodput=1.0, rtt=10.0), cell(goodput=4.0, rtt=10.0), cell(goodput=None)]
    assert robustness(cells, [cells, cells])["power"] == pytest.approx(200.0)
    nothing = [cell(goodput=0.0), cell(rtt=None)]
    assert robustness(nothing, [nothing, nothing])["power"] is None


def sections(**chosen: Any) -> dict[str, int]:
    """Suite and engine -> seeds, of the shipped policies."""
    nothing: dict[str, Any] = {"suites": (), "engines": (), "seeds": {"native": None, "ns3": None}}
    made = make_sections(load_entries(LEADERBOARD), **nothing | chosen, results=Path())
    assert len({section.folder for section in made}) == len(made)
    return {section.title: section.seeds for section in made}


def test_each_suite_has_its_own_engines_and_seeds() -> None:
    assert sections() == {
        "papers, native engine": 10, "heldout, native engine": 4, "stress, native engine": 2,
        "papers, ns-3": 2, "heldout, ns-3": 2, "ibcca-wireless, ns-3": 2,
        **{f"{world}, native engine": 2 for world in WORLD_SUITES},
        "heldout-long-fat, native engine": 1,
    }  # fmt: skip
    assert sections(suites=["stress"]) == {"stress, native engine": 2}
    assert sections(suites=["ibcca-single"], engines=["ns3"]) == {"ibcca-single, ns-3": 2}
    assert sections(suites=["papers", "stress"], seeds={"native": 3, "ns3": None}) == {
        "papers, native engine": 3, "stress, native engine": 3, "papers, ns-3": 2,
    }  # fmt: skip
    with pytest.raises(LeaderboardError, match="--suite stress: does not run on ns3; leave out"):
        sections(suites=["stress"], engines=["ns3"])


@pytest.mark.parametrize(("suite", "paths"), [("heldout", 256), ("stress", 512)])
def test_a_suite_of_many_networks_pairs_policies_on_hundreds_of_paths(
    suite: str, paths: int
) -> None:
    (section,) = make_sections(
        [Entry(name="CUBIC", policy="cubic", kind="baseline")],
        [suite], ["native"], {"native": None}, Path(),
    )  # fmt: skip
    assert len({(job.scenario.name, job.seed) for job in section.jobs()}) == paths


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
