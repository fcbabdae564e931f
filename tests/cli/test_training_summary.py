"""The end of `quicgym train`: start, best and last policy compared, and what follows from that."""

from __future__ import annotations

import json
import signal
import time

import pytest
from helpers.commands import run_in_copy, start_process
from helpers.scenarios import suite_text
from helpers.training import write_config

from quicgym import load_policy
from quicgym.envs.scenarios.suites import HELD_OUT_SUITES

pytestmark = pytest.mark.train
UNCHANGED = ("train", "tiny.yaml", "hyperparameters.learning_rate=1e-20", "--out", "run")


@pytest.fixture(scope="module")
def nothing_learned(tmp_path_factory):
    """A run whose weights hardly change."""
    folder = tmp_path_factory.mktemp("nothing")
    write_config(folder, steps=160)
    return folder, run_in_copy(folder, *UNCHANGED)


def summary_of(run):
    return json.loads((run / "summary.json").read_text())


def test_a_run_in_which_nothing_was_learned_says_so(nothing_learned):
    folder, done = nothing_learned
    assert "Nothing was learned: the best policy is the one at step 0" in done.stdout
    assert "only 16 paths" in done.stdout
    summary = summary_of(folder / "run")
    assert summary["learned"] is False and summary["paths"] == 16
    assert summary["verdict"][0] in done.stdout
    assert [entry["policy"] for entry in summary["policies"]] == ["start", "best", "last"]
    assert [entry["step"] for entry in summary["policies"]] == [0, 0, 160]
    for entry in summary["policies"]:
        assert f"{entry['reward']:.4f}" in done.stdout
    (best,) = (line.split() for line in done.stdout.splitlines() if line.startswith("best "))
    assert best[3:] == ["+0.0000"]  # without an interval, because it is the start


def test_the_compared_policies_are_in_the_run_s_folder(nothing_learned):
    folder, _ = nothing_learned
    files = {"start": "start", "best": "policy", "last": "last"}
    for entry in summary_of(folder / "run")["policies"]:
        policy = load_policy(folder / f"run/policy/{files[entry['policy']]}.json")
        assert policy.description.sha256 == entry["sha256"]
        assert policy.description.training["step"] == entry["step"]


def test_a_finished_run_repeats_the_comparison_only_with_other_paths(
    nothing_learned, quicgym, monkeypatch
):
    folder, done = nothing_learned
    monkeypatch.chdir(folder)
    before = summary_of(folder / "run")
    again = quicgym(*UNCHANGED, "--resume")
    assert "comparing" not in again.stderr
    assert again.stdout == done.stdout and summary_of(folder / "run") == before
    more = quicgym(*UNCHANGED, "--resume", "evaluation.comparison_paths=24")
    assert "comparing start, best and last policy on 24 paths" in more.stderr
    assert summary_of(folder / "run")["paths"] == 24


@pytest.mark.parametrize(
    ("interval_steps", "step", "last"), [(5_000_000, 0, "is of step 0;"), (160, 160, "is of step ")]
)
def test_an_interrupted_run_says_what_it_has_reached(interval_steps, step, last, tmp_path):
    evaluation = {"suite": "./suite.yaml", "interval_steps": interval_steps}
    config = write_config(tmp_path, steps=10_000_000, evaluation=evaluation)
    running = start_process(tmp_path, "train", config, "--out", "run")
    checkpoint = tmp_path / f"run/checkpoints/step-{step:012d}.pt"
    while not checkpoint.exists() and running.poll() is None:
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=300)
    assert running.returncode == 130 and "Traceback" not in errors
    assert "interrupted: reward on ./suite.yaml" in errors and "at the start (step 0)" in errors
    assert "at best" in errors and "last (step" in errors and "--resume" in errors
    assert f"the last checkpoint in run {last}" in errors
    assert not (tmp_path / "run/summary.json").exists()


def test_an_interrupted_run_says_that_it_has_no_checkpoint(quicgym, monkeypatch, tmp_path):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("quicgym.agents.training.run.train", interrupted)
    done = quicgym("train", write_config(tmp_path), "--out", "run", status=130)
    assert "no checkpoint yet, so --resume begins at step 0; continue with" in done.stderr
    assert done.stderr.rstrip().endswith("--out run --resume")


def test_suites_that_results_are_reported_on_may_not_choose(quicgym, tmp_path):
    config = write_config(tmp_path)
    copy = tmp_path / "copy.yaml"
    copy.write_text(suite_text("heldout"))
    for chosen in (*HELD_OUT_SUITES, copy):
        arguments = (config, f"evaluation.suite={chosen}", "--out", "run")
        assert "no longer held out" in quicgym("train", *arguments, status=2).stderr
        assert not (tmp_path / "run").exists()
