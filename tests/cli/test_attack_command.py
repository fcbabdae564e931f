"""`quicgym attack`, run as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import Command
from helpers.commands import says

from quicgym import load_scenario
from quicgym.envs.scenarios.distributions import HELD_OUT, load_distribution
from quicgym.envs.scenarios.suites import load_entry

pytestmark = pytest.mark.train

SMALL: dict[str, Any] = yaml.safe_load("""
name: small
duration_s: 3
rate_mbps: {minimum: 1, maximum: 8, scale: log}
rtt_ms: {minimum: 20, maximum: 200, scale: log}
queue_bdp: {minimum: 0.5, maximum: 2}
loss: {chance: 0.5, probability: {minimum: 0.001, maximum: 0.01}}
flows: {minimum: 1, maximum: 2}
other_controllers: [newreno]
start_spread_s: 1
rate_changes: {chance: 0.5, count: {minimum: 1, maximum: 3}, factor: {minimum: 0.5, maximum: 1}}
held_out: true
cells: training
""")
# Its window shrinks to two packets: a weakness wherever path and queue hold more.
WEAK = "weak=bbr:cwnd_gain=0.1,min_window_packets=2"
FAILS = """
import quicgym


class Fails(quicgym.Controller):
    def on_ack(self, event):
        self.missing()

    def on_loss(self, event):
        pass
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump(SMALL))
    return path


def attack(quicgym: Command, small: Path, *more: str, policy: str = WEAK) -> Any:
    done = quicgym(
        "attack", policy, "--against", "cubic", "bbr", "--distribution", small, "--trials", "12",
        "--format", "json", "--out", "here", *more,
    )  # fmt: skip
    return json.loads(done.stdout)


def test_a_planted_weakness_is_found_and_made_simple(
    quicgym: Command, small: Path, tmp_path: Path
) -> None:
    document = attack(quicgym, small)
    assert document == json.loads((tmp_path / "here/attack.json").read_text())
    assert document["policy"] == "weak" and document["trials"] == 12
    worst = document["worst"]
    assert worst["difference"] <= document["found"]["difference"] / 2
    assert worst["high"] < 0 and document["seeds"] == list(range(11, 21))
    assert "its throughput share is" in worst["sentence"]
    network = load_scenario(tmp_path / "here/worst.yaml")
    link = network.bottleneck
    assert network.name == "worst-of-weak"
    assert link is not None and link.loss is None and link.rate_schedule == ()
    assert len(network.flows) == 1
    assert link.rate_mbps == float(f"{link.rate_mbps:.2g}")
    # The difference is what a controller of two packets leaves of the link.
    share = worst["means"]["weak"]["throughput_share"]
    assert share < 0.75 * worst["means"][worst["best"]]["throughput_share"]
    assert (tmp_path / "here/worst.png").stat().st_size > 1000
    assert load_scenario(tmp_path / "here/found.yaml").duration_s == 3


def test_every_network_is_outside_of_the_held_out_cells(
    quicgym: Command, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from quicgym.agents.attack import attack as module

    seen = []
    make_jobs = module.make_jobs

    def noting(policies: Any, networks: Any, *rest: Any, **more: Any) -> Any:
        seen.extend(networks)
        return make_jobs(policies, networks, *rest, **more)

    monkeypatch.setattr(module, "make_jobs", noting)
    attack(quicgym, small)
    distribution = load_distribution(small)
    paths = set()
    for network in seen:
        link = network.bottleneck
        paths.add((link.rate_mbps, 2 * link.delay_ms + 4 * network.access.delay_ms))
    assert len(paths) > 12
    assert all(distribution.may_have(*path) for path in paths)
    assert not any(HELD_OUT.contain(*path) for path in paths)


def test_the_same_seed_gives_the_same_bytes_on_any_number_of_processes(
    quicgym: Command, small: Path, tmp_path: Path
) -> None:
    results = []
    for folder, more in (("a", ("--jobs", "1")), ("b", ("--jobs", "2")), ("c", ("--seed", "1"))):
        attack(quicgym, small, "--out", folder, *more)
        results.append((tmp_path / folder / "found.yaml").read_bytes())
    assert results[0] == results[1] != results[2]
    assert (tmp_path / "a/worst.yaml").read_bytes() == (tmp_path / "b/worst.yaml").read_bytes()


def test_resume_goes_on_to_the_same_result(quicgym: Command, small: Path, tmp_path: Path) -> None:
    whole = attack(quicgym, small)
    runs = tmp_path / "here/runs.jsonl"
    lines = runs.read_text().splitlines(keepends=True)
    for kept in (0, 5, len(lines) // 2, len(lines)):
        runs.write_text("".join(lines[:kept]))
        (tmp_path / "here/attack.json").unlink()
        assert attack(quicgym, small, "--resume") | {"command": ""} == whole | {"command": ""}
        assert sorted(runs.read_text().splitlines()) == sorted(map(str.strip, lines))


def test_a_policy_that_is_never_behind_is_said_to_be_so(
    quicgym: Command, small: Path, tmp_path: Path
) -> None:
    done = quicgym(
        "attack", "cubic", "--against", WEAK, "--distribution", small, "--trials", "3",
        "--out", "here",
    )  # fmt: skip
    assert "cubic is not behind the best of weak for sure on the worst of 3" in done.stdout
    assert json.loads((tmp_path / "here/attack.json").read_text())["worst"] is None
    assert not (tmp_path / "here/worst.yaml").exists()


def test_a_policy_that_differs_by_chance_is_not_said_to_be_behind(
    quicgym: Command, small: Path
) -> None:
    small.write_text(yaml.safe_dump(SMALL | {"loss": SMALL["loss"] | {"chance": 1}}))
    done = quicgym(
        "attack", "like=bbr:startup_gain=2.886", "--against", "bbr", "--distribution", small,
        "--trials", "16", "--seed", "1",
    )  # fmt: skip
    assert "like is not behind the best of bbr for sure" in done.stdout


def test_a_time_of_nothing_is_enough_for_one_batch(quicgym: Command, small: Path) -> None:
    done = quicgym(
        "attack", "bbr", "--against", "cubic", "--distribution", small, "--budget-s", "0"
    )
    assert "the results of 16 trials" in done.stderr


def test_runs_that_fail_are_reported_and_left_out(
    quicgym: Command, small: Path, tmp_path: Path
) -> None:
    (tmp_path / "fails.py").write_text(FAILS)
    arguments = ("--against", "cubic", "--distribution", small, "--trials", "2")
    done = quicgym("attack", "fails.py:Fails", *arguments, "--out", "here", status=1)
    assert "trial-1" in done.stderr and "missing" in done.stderr
    assert "no network could be compared; the reasons are above" in done.stderr
    assert done.stdout == "" and not (tmp_path / "here/attack.json").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["qubic"], ["did you mean cubic?"]),
        (["bbr", "--against", "bbr"], ["--against: names only bbr itself", "another policy"]),
        (["bbr", "--distribution", "ebcc-single"], ["is a single scenario", "a distribution"]),
    ],
)
def test_a_mistake_is_named_with_its_remedy(
    arguments: list[str], words: list[str], quicgym: Command, tmp_path: Path
) -> None:
    says(quicgym("attack", *arguments, "--trials", "1", status=2), *words)
    assert not (tmp_path / "results").exists()


def test_the_draws_of_a_mixture_are_parameters_of_the_search() -> None:
    import optuna

    from quicgym.agents.attack.networks import SuggestedDraws

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=3))
    worlds = load_entry("worlds")
    parts = set()
    for _ in range(80):
        trial = study.ask()
        network = worlds.sample(SuggestedDraws(trial, 0))
        again = worlds.sample(
            SuggestedDraws(optuna.trial.FixedTrial(trial.params, trial.number), 0)
        )
        assert network == again
        parts.add(network.name)
    assert len(parts) == 9
