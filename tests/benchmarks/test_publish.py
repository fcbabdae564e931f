"""Publishing: from a training run to a policy that others load, and a line of the list."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest
from helpers.commands import check_end, run_in_copy, says
from helpers.training import write_config

from quicgym import load_policy, load_scenario
from quicgym.agents.evaluation.rollouts import play
from quicgym.benchmarks.leaderboard import LEADERBOARD, load_entries
from quicgym.benchmarks.reports import main

pytestmark = pytest.mark.train


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run, and an evaluation of its policy and of a baseline."""
    folder = tmp_path_factory.mktemp("trained")
    config = write_config(
        folder,
        "coordinate-aggrevate",
        start={"preset": "bbr", "parameters": {"cwnd_gain": 8}},  # which is far too much
        hyperparameters={
            "paths": 4,
            "n_updates": 50,
            "learning_rate": 3e-3,
            "settings": [{"cwnd_gain": value} for value in (-1, -0.5, 0)],
        },
        steps=320,
        evaluation={"suite": "./suite.yaml", "interval_steps": 160, "comparison_paths": 1000},
    )
    done = run_in_copy(folder, "train", config, "--out", "run")
    assert "Learned: best − start is" in done.stdout
    arguments = ("--suite", "suite.yaml", "--seeds", "2", "--out", "evaluated")
    run_in_copy(folder, "evaluate", "--policy", "run", "bbr", *arguments)
    return folder


@pytest.fixture
def work(trained: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return Path(shutil.copytree(trained, tmp_path / "work"))


Publish = Callable[..., CompletedProcess[str]]


@pytest.fixture
def publish(
    work: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Publish:
    """Publishes the run of the copy, as a user does in a folder."""

    def call(*arguments: str, run: str = "run", status: int = 0) -> CompletedProcess[str]:
        command = ["reports", "publish", run, *arguments]
        monkeypatch.setattr(sys, "argv", command)
        capfd.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        return check_end(
            CompletedProcess(command, int(end.value.code or 0), *capfd.readouterr()), status
        )

    monkeypatch.chdir(work)
    return call


BACKED = ("--evaluation", "evaluated", "--out", "mine")


def test_a_published_policy_is_loaded_and_decides_as_the_run_s(
    work: Path, publish: Publish
) -> None:
    publish(*BACKED)
    assert sorted(path.name for path in (work / "mine").iterdir()) == [
        "leaderboard.yaml", "tiny-seed0.json", "tiny-seed0.safetensors",
    ]  # fmt: skip
    policy = load_policy(work / "mine/tiny-seed0.json")
    own = load_policy(work / "run")
    shape = own.decisions.observation_space.shape
    frames = np.random.default_rng(0).normal(size=(8, *shape))
    assert (policy(frames) == own(frames)).all()
    scenario = load_scenario("ebcc-single").model_copy(update={"duration_s": 2.0})
    assert play(policy, scenario).metrics == play(own, scenario).metrics


def test_the_description_has_the_evaluation_that_backs_the_policy(
    work: Path, publish: Publish
) -> None:
    publish(*BACKED)
    description = load_policy(work / "mine/tiny-seed0.json").description
    document = json.loads((work / "evaluated/evaluation.json").read_text())
    entry = next(entry for entry in document["policies"] if entry["policy"] == "run")
    backing = description.evaluation
    for key in ("suite", "engine", "seeds", "reward", "version", "commit", "command"):
        assert backing[key] == document[key]
    for key in ("iqm_reward", "iqm_low", "iqm_high", "mean"):
        assert backing[key] == entry[key]
    assert backing["scenarios"] == 2
    rewards = {cell["scenario"]: cell["reward"] for cell in entry["scenarios"]}
    assert {cell["scenario"]: cell["reward"] for cell in backing["lowest"]} == rewards
    assert backing["lowest"][0]["reward"] == min(rewards.values())
    assert description.training["seed"] == 0


def test_the_list_names_the_policy_and_how_it_was_trained(work: Path, publish: Publish) -> None:
    publish(*BACKED)
    (entry,) = load_entries(work / "mine/leaderboard.yaml")
    assert (entry.name, entry.kind, entry.group) == ("tiny-seed0", "learned", "tiny")
    assert entry.policy == "mine/tiny-seed0.json" and entry.engines == ("native",)
    assert entry.note.startswith("`quicgym train ") and "--out" not in entry.note


def test_in_a_checkout_the_list_gets_a_line_and_keeps_its_comments(
    work: Path, publish: Publish, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = work / "checkout"
    (checkout / "agents/policies/pretrained").mkdir(parents=True)
    (checkout / "configs").mkdir()
    shutil.copy(LEADERBOARD, checkout / "configs/leaderboard.yaml")
    before = LEADERBOARD.read_text()
    monkeypatch.chdir(checkout / "configs")
    publish("--evaluation", "../../evaluated", "--name", "mine", run="../../run")
    after = (checkout / "configs/leaderboard.yaml").read_text()
    assert after.startswith(before) and len(after.splitlines()) == len(before.splitlines()) + 1
    assert load_entries(checkout / "configs/leaderboard.yaml")[-1].policy == "mine"
    assert load_policy(checkout / "agents/policies/pretrained/mine.json").description


def test_without_an_evaluation_the_policy_is_evaluated(work: Path, publish: Publish) -> None:
    measured = ("--suite", "suite.yaml", "--seeds", "2", "--jobs", "1", "--out", "mine")
    publish(*measured)
    backing = load_policy(work / "mine/tiny-seed0.json").description.evaluation
    assert (backing["suite"], backing["seeds"]) == ("suite.yaml", [0, 1])
    assert backing["command"].endswith("--suite suite.yaml --seeds 2")
    document = json.loads((work / "evaluated/evaluation.json").read_text())
    entry = next(entry for entry in document["policies"] if entry["policy"] == "run")
    assert backing["iqm_reward"] == entry["iqm_reward"]
    runs = (work / "run/heldout/runs.jsonl").read_text()
    publish(*measured, "--name", "other")
    assert (work / "run/heldout/runs.jsonl").read_text() == runs


def test_nothing_is_replaced_unless_asked(work: Path, publish: Publish) -> None:
    publish(*BACKED)
    before = {path: path.read_bytes() for path in (work / "mine").iterdir()}
    says(publish(*BACKED, status=2), "mine/tiny-seed0.json: is there already", "--force")
    assert {path: path.read_bytes() for path in (work / "mine").iterdir()} == before
    (work / "mine/tiny-seed0.json").write_text("{}")
    publish(*BACKED, "--force")
    assert {path: path.read_bytes() for path in (work / "mine").iterdir()} == before


def finish_nothing(work: Path) -> None:
    shutil.rmtree(work / "run/evaluation")


def train_on(work: Path) -> None:
    """Other weights than those that were evaluated, with the checksum that belongs to them."""
    path = work / "run/policy/policy.json"
    description = json.loads(path.read_text())
    path.write_text(json.dumps({**description, "training": {"step": 1}}))


def damage_weights(work: Path) -> None:
    path = work / "run/policy/policy.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")


def learn_nothing(work: Path) -> None:
    change_summary(work, lambda best: best.update(gain=0.0012, low=-0.004, high=0.0065))


def compare_another_policy(work: Path) -> None:
    change_summary(work, lambda best: best.update(sha256="0" * 64))


def change_summary(work: Path, change: Callable[[dict], None]) -> None:
    path = work / "run/summary.json"
    summary = json.loads(path.read_text())
    change(next(entry for entry in summary["policies"] if entry["policy"] == "best"))
    path.write_text(json.dumps(summary))


def compare_nothing(work: Path) -> None:
    (work / "run/summary.json").unlink()


def compare_on_few_paths(work: Path) -> None:
    path = work / "run/summary.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "paths": 998}))


def do_nothing(work: Path) -> None:
    pass


@pytest.mark.parametrize(
    ("prepare", "arguments", "expected"),
    [
        (finish_nothing, BACKED, ["run: its training is not finished", "--resume"]),
        (learn_nothing, BACKED, ["no gain is shown", "+0.0012 [-0.0040, +0.0065]", "seed"]),
        (compare_nothing, BACKED, ["run/summary.json: there is no comparison", "--resume"]),
        (compare_another_policy, BACKED, ["there is no comparison of this policy", "--resume"]),
        (compare_on_few_paths, BACKED, ["on 998 paths", "evaluation.comparison_paths=1024"]),
        (train_on, BACKED, ["evaluated/evaluation.json: evaluates", "as it is now", "--out DIR"]),
        (damage_weights, BACKED, ["policy.safetensors: its SHA-256 is"]),
        (do_nothing, ("--evaluation", "evaluated"), ["no checkout of quicgym", "--out"]),
        (do_nothing, (*BACKED, "--name", "cubic"), ["--name cubic", "another name"]),
    ],
)
def test_what_cannot_be_published_is_refused_and_nothing_is_written(
    work: Path, publish: Publish, prepare, arguments: tuple[str, ...], expected: list[str]
) -> None:
    prepare(work)
    before = sorted(work.rglob("*"))
    says(publish(*arguments, status=2), *expected)
    assert sorted(work.rglob("*")) == before
