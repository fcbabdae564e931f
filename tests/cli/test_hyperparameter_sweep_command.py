"""`quicgym sweep` of hyperparameters. Ray's start takes seconds: one run serves many tests."""

from __future__ import annotations

import itertools
import json
import math
import shlex
from collections.abc import Sequence
from pathlib import Path
from subprocess import CompletedProcess
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import IN_CLUSTER, Command
from helpers.commands import run_process
from helpers.training import hparams_of, write_config

from quicgym.agents.algorithms.registry import BUILT_IN
from quicgym.agents.training.configuration import ConfigError, load_training
from quicgym.agents.tuning.sweeps import load_sweep
from quicgym.agents.tuning.training_config import TrainingSweep
from quicgym.envs import ScenarioError
from quicgym.errors import ClusterError, RunError

# The last learning rate makes losses that are no numbers.
ASHA = """
name: mine
training: ./tiny.yaml
scheduler: asha
hyperparameters:
  hyperparameters.learning_rate: {values: [linear_1e-3, 0.003, 1.0e+20]}
  hyperparameters.gamma: {minimum: 0.9, maximum: 0.99}
  network.hidden_sizes: {values: [[16], [8, 8]]}
samples: 5
seed: 9
grace_steps: 160
reduction_factor: 2
"""
PBT = """
name: mine
training: ./tiny.yaml
changes: {steps: 800}
scheduler: pbt
hyperparameters:
  hyperparameters.learning_rate: {minimum: 1.0e-4, maximum: 1.0e-2, scale: log}
  hyperparameters.n_epochs: {minimum: 1, maximum: 4, scale: whole}
  hyperparameters.clip_range: {values: [0.1, 0.2, 0.3]}
samples: 3
perturbation_steps: 160
"""


def load(file: str, changes: Sequence[str] = ()) -> TrainingSweep:
    sweep = load_sweep(file, changes)
    assert isinstance(sweep, TrainingSweep)
    return sweep


def write_sweep(folder: Path, sweep: str) -> Path:
    write_config(folder)
    path = folder / "mine.yaml"
    path.write_text(sweep)
    return path


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_sweep(tmp_path, ASHA)


# One start of Ray


@pytest.mark.train
def test_asha_ends_bad_trials_early_and_keeps_the_best(file: Path, tmp_path: Path) -> None:
    arguments = ("sweep", file, "--jobs", "1", "--out", "out")
    done = run_process(tmp_path, *arguments, status=1)  # a trial failed
    check_table(tmp_path, done)
    check_runs(tmp_path)
    check_failure(tmp_path, done)
    check_best(tmp_path, done)
    check_tensorboard(tmp_path)
    check_other_configuration(tmp_path)


def check_table(folder: Path, process: CompletedProcess[str]) -> None:
    """Every trial is there, with what became of it."""
    frame = pd.read_parquet(folder / "out/trials.parquet").set_index("trial")
    assert sorted(frame.index) == [f"{number:05}" for number in range(5)]
    assert set(frame["state"]) == {"finished", "stopped early", "failed"}
    ranked = frame[frame["state"] != "failed"]
    assert ranked["best_reward"].is_monotonic_decreasing
    assert (ranked.loc[ranked["state"] == "finished", "step"] == 480).all()
    assert ranked.loc[ranked["state"] == "stopped early", "step"].between(160, 479).all()
    assert (ranked["best_step"] <= ranked["step"]).all()
    for state in ("finished", "stopped early", "failed"):
        assert process.stdout.count(state) == (frame["state"] == state).sum()


def check_runs(folder: Path) -> None:
    """What was drawn is what was run, and nothing was tried again."""
    draws = load("./mine.yaml").config.draws()
    for number, setting in enumerate(draws):
        (start,) = (folder / f"out/trials/{number:05}").iterdir()  # none was tried again
        config = json.loads((start / "run.json").read_text())["config"]
        assert config["hyperparameters"]["gamma"] == setting["hyperparameters.gamma"]
        assert (
            config["hyperparameters"]["learning_rate"] == setting["hyperparameters.learning_rate"]
        )
        assert config["network"]["hidden_sizes"] == setting["network.hidden_sizes"]
        assert config["environment"]["threads"] == 1


def check_failure(folder: Path, process: CompletedProcess[str]) -> None:
    """Losses that are no numbers end their trial alone."""
    frame = pd.read_parquet(folder / "out/trials.parquet")
    failed = frame[frame["state"] == "failed"]
    assert set(failed["hyperparameters.learning_rate"]) == {"1e+20"}
    assert set(frame["hyperparameters.learning_rate"]) > {"1e+20"}
    lines = [line for line in process.stderr.splitlines() if line.startswith("failed: ")]
    assert len(lines) == len(failed)
    assert "learning_rate=1e+20" in lines[0] and "Training stops" in lines[0]


def check_best(folder: Path, process: CompletedProcess[str]) -> None:
    """The best policy is kept, and the printed command trains it again."""
    from quicgym.agents.policies.learned import load_policy
    from quicgym.agents.training.run import train

    document = json.loads((folder / "out/sweep.json").read_text())
    assert {"version", "commit", "command", "config"} <= set(document)
    best = document["best"]
    frame = pd.read_parquet(folder / "out/trials.parquet")
    assert best["reward"] == frame["best_reward"][0] and best["trial"] == frame["trial"][0]
    assert best["train"] in process.stdout
    policy = load_policy(folder / "out/policy/policy.json")
    assert policy.description.training["reward"] == best["reward"]
    words = shlex.split(best["train"])
    assert words[:2] == ["quicgym", "train"]
    again = load_training(words[2], [*words[3:], "environment.threads=1"])
    outcome = train(again, folder / "again", "test", trial=True)
    if frame["state"][0] == "finished":
        assert load_policy(folder / "again").description.sha256 == policy.description.sha256
    assert outcome.reward >= best["reward"] and best["step"] > 0


def check_tensorboard(folder: Path) -> None:
    """Each trial has a row of the table and a curve."""
    frame = pd.read_parquet(folder / "out/trials.parquet")
    runs = sorted((folder / "out/tensorboard").iterdir())
    assert len(runs) == (frame["state"] != "failed").sum()
    for place, row in zip(runs, frame.itertuples(), strict=False):
        events, values = hparams_of(place)
        gamma = frame.loc[row.Index, "hyperparameters.gamma"]
        assert values["hyperparameters.gamma"] == gamma
        curve = events.Scalars("evaluation/reward")
        assert [event.step for event in curve] == list(range(0, row.step + 1, 160))
        best = max(event.value for event in curve if event.step > 0)
        assert best == pytest.approx(row.best_reward, rel=1e-6)


def check_other_configuration(folder: Path) -> None:
    """--resume is refused with another configuration."""
    from quicgym.agents.tuning.study import run_study
    from quicgym.agents.tuning.training_sweep import TrainingStudy

    study = TrainingStudy(load("./mine.yaml", ["samples=6"]))
    with pytest.raises(RunError, match="holds the sweep 'mine' with another configuration"):
        run_study(study, folder / "out", jobs=1, resume=True, address=None, command="test")
    assert (folder / "out/trials.parquet").exists()


# In the cluster of all tests


@pytest.mark.train
@IN_CLUSTER
def test_a_population_exploits_and_keeps_its_schedule(
    quicgym: Command, ray_cluster: str, tmp_path: Path
) -> None:
    file = write_sweep(tmp_path, PBT)
    done = quicgym("sweep", file, "--out", "out", "--address", ray_cluster)
    check_population(tmp_path)
    check_schedule(tmp_path, done)


def check_population(folder: Path) -> None:
    """All trials are finished, and some went on from others, with other hyperparameters."""
    frame = pd.read_parquet(folder / "out/trials.parquet")
    assert len(frame) == 3 and set(frame["state"]) == {"finished"}
    assert (frame["step"] == 800).all()
    assert frame["hyperparameters.n_epochs"].between(1, 4).all()

    lineages = {}
    for path in (folder / "out/trials").glob("*/*/reached-*/progress.json"):
        progress = json.loads(path.read_text())
        if progress["step"] == 800:
            lineages[path.parts[-4]] = progress["lineage"]
    assert len(lineages) == 3
    exploited = [lineage for lineage in lineages.values() if len(lineage) > 1]
    assert exploited, "no trial has gone on from another"
    for lineage in lineages.values():
        steps = [entry["step"] for entry in lineage]
        assert steps[0] == 0 and steps == sorted(steps)
        assert all(step % 160 == 0 for step in steps)
        for entry in lineage:
            setting = entry["setting"]
            assert 1e-4 <= setting["hyperparameters.learning_rate"] <= 1e-2
            assert setting["hyperparameters.n_epochs"] in (1, 2, 3, 4)
            assert setting["hyperparameters.clip_range"] in (0.1, 0.2, 0.3)
    # A run whose first evaluation is a later one has begun with a checkpoint.
    changes = [pair for lineage in exploited for pair in itertools.pairwise(lineage)]
    assert any(old["trial"] != new["trial"] for old, new in changes)
    for _old, new in changes:
        starts = sorted((folder / f"out/trials/{new['trial']}").iterdir())
        begins = [json.loads((start / "evaluations.jsonl").open().readline()) for start in starts]
        assert new["step"] + 160 in [record["step"] for record in begins]


def check_schedule(folder: Path, process: CompletedProcess[str]) -> None:
    """sweep.json says which hyperparameters the best policy was trained with."""
    document = json.loads((folder / "out/sweep.json").read_text())
    best = document["best"]
    assert best["schedule"][0]["step"] == 0
    assert best["schedule"][-1]["hyperparameters"] == best["hyperparameters"]
    assert all(entry["step"] < best["step"] for entry in best["schedule"])
    assert best["train"] in process.stdout and "steps=800" in best["train"]


# Without Ray


class Stopped(Exception):
    """What a kill is in a test."""


@pytest.mark.train
def test_a_trial_that_begins_again_goes_on_from_its_checkpoint(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray.tune

    from quicgym.agents.tuning import training_trial

    sweep = load(str(file))
    setting = sweep.config.draws()[0] | {"hyperparameters.learning_rate": 0.003}
    config = {"trial": {"number": 0, "setting": setting}}
    reports: list[tuple[dict[str, Any], Path | None]] = []

    def start(trials: Path, kill_at: int | None = None, begin: Path | None = None) -> None:
        def report(metrics: dict[str, Any], checkpoint: Any = None) -> None:
            kept = None
            if checkpoint is not None:
                kept = Path(checkpoint.to_directory(str(tmp_path / f"kept-{len(reports)}")))
            reports.append((metrics, kept))
            if metrics["step"] == kill_at:
                raise Stopped

        fake = SimpleNamespace(
            get_context=lambda: SimpleNamespace(get_trial_name=lambda: "00000"),
            get_checkpoint=lambda: begin and ray.tune.Checkpoint.from_directory(str(begin)),
            report=report,
            Checkpoint=ray.tune.Checkpoint,
        )
        monkeypatch.setattr(training_trial, "tune", fake)
        training_trial.run_trial(config, sweep, trials, tmp_path, "test")

    start(tmp_path / "whole")
    uninterrupted, policy = reports[-1]
    assert [metrics["step"] for metrics, _ in reports] == [0, 160, 320, 480]
    reports.clear()
    with pytest.raises(Stopped):
        start(tmp_path / "parts", kill_at=320)
    start(tmp_path / "parts", begin=reports[-1][1])
    assert [metrics["step"] for metrics, _ in reports] == [0, 160, 320, 480]
    resumed, kept = reports[-1]
    assert resumed == uninterrupted
    assert policy is not None and kept is not None
    for name in ("policy/policy.safetensors", "progress.json"):
        assert (kept / name).read_bytes() == (policy / name).read_bytes()
    assert len(json.loads((kept / "progress.json").read_text())["lineage"]) == 1
    for last in (320, 480):  # Ray Tune hands over nothing: asha has to know all again
        reports.clear()
        if last == 320:
            with pytest.raises(Stopped):
                start(tmp_path / "anew", kill_at=320)
        else:
            start(tmp_path / "anew")
        start(tmp_path / "anew")
        steps = [metrics["step"] for metrics, _ in reports]
        assert steps == [0, 160, 320, 0, 160, 320, 480] if last == 320 else [0, 160, 320, 480] * 2
        assert reports[-1][0] == uninterrupted

    reports.clear()
    setting["hyperparameters.learning_rate"] = 1e20
    start(tmp_path / "broken")
    assert reports[-1][0]["step"] == 0 and "Training stops" in reports[-1][0]["error"]

    # No evaluation is better than the start, which does not count all the same.
    reports.clear()
    rates = "hyperparameters.hyperparameters.learning_rate.values=[1.0e-20, 0.003]"
    sweep = load(str(file), [rates])
    setting["hyperparameters.learning_rate"] = 1e-20
    start(tmp_path / "unchanged")
    assert len({metrics["reward"] for metrics, _ in reports}) == 1
    assert math.isnan(reports[0][0]["best_reward"])
    assert [metrics["best_step"] for metrics, _ in reports] == [0, 160, 160, 160]
    last, kept = reports[-1]
    assert kept is not None and last["best_reward"] == last["reward"]
    description = json.loads((kept / "policy/policy.json").read_text())
    assert description["training"]["step"] == 160 and not (kept / "policy/start.json").exists()


@pytest.mark.train
def test_explored_settings_are_near_and_in_the_ranges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from quicgym.agents.tuning.training_sweep import Explore

    monkeypatch.chdir(tmp_path)
    config = load(str(write_sweep(tmp_path, PBT))).config
    explore = Explore(config)
    before = {
        "hyperparameters.learning_rate": 9e-3,
        "hyperparameters.n_epochs": 2,
        "hyperparameters.clip_range": 0.1,
    }
    copied = {"trial": {"number": 1, "setting": before}}
    after = [explore(copied)["trial"]["setting"] for _ in range(400)]
    rates = np.array([setting["hyperparameters.learning_rate"] for setting in after])
    assert ((rates >= 1e-4) & (rates <= 1e-2)).all()
    assert 0.2 < (rates == 1e-2).mean() < 0.55  # 1.2 times, at the end of the range
    assert 0.2 < (rates == 7.2e-3).mean() < 0.55
    epochs = [setting["hyperparameters.n_epochs"] for setting in after]
    assert set(epochs) == {1, 2, 3, 4} and all(type(number) is int for number in epochs)
    assert epochs.count(1) + epochs.count(3) > 0.7 * 400
    assert {setting["hyperparameters.clip_range"] for setting in after} == {0.1, 0.2, 0.3}
    assert explore(copied) != Explore(config)(copied)


@pytest.mark.train
def test_ray_draws_whole_numbers_from_end_to_end() -> None:
    from quicgym.agents.tuning.training_config import SweptField
    from quicgym.agents.tuning.trials import domains

    domain = domains({"any": SweptField(minimum=1, maximum=3, scale="whole")})["any"]
    np.random.seed(1)
    assert {domain.sample() for _ in range(60)} == {1, 2, 3}


@pytest.mark.train
def test_equal_values_of_a_list_are_told_apart() -> None:
    from quicgym.agents.tuning.space import decode, encode
    from quicgym.agents.tuning.training_config import SweptField

    values = [True, 1, 1.0, [16]]
    space = {"network.any": SweptField(values=values)}
    for value in values:
        found = decode(space, encode(space, {"network.any": value}))["network.any"]
        assert found == value and type(found) is type(value)


@pytest.mark.train
def test_a_population_keeps_the_checkpoints_since_its_last_perturbation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from quicgym.agents.tuning.training_sweep import TrainingStudy

    monkeypatch.chdir(tmp_path)
    file = str(write_sweep(tmp_path, PBT))
    studies = [TrainingStudy(load(file, [f"perturbation_steps={steps}"])) for steps in (160, 480)]
    assert [study.kept_checkpoints for study in studies] == [1 + 3, 3 + 3]


@pytest.mark.train
def test_of_trials_that_share_their_best_policy_the_one_that_found_it_is_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from quicgym.agents.tuning.training_sweep import TrainingStudy, TrainingTrial
    from quicgym.agents.tuning.training_trial import Progress

    monkeypatch.chdir(tmp_path)
    found = [{"step": 0, "trial": "00001", "setting": {}}]
    gone_on = [*found, {"step": 320, "trial": "00000", "setting": {}}]
    trials = [
        TrainingTrial(name, {}, Progress(480, 0.1, 0.5, 160, lineage), None, True, None)
        for name, lineage in (("00000", gone_on), ("00001", found))
    ]
    study = TrainingStudy(load(str(write_sweep(tmp_path, PBT))))
    study.trials = trials
    assert [trial.name for trial in study.ranked] == ["00001", "00000"]

    study = TrainingStudy(study.sweep)  # with the same reward, they are in the order of their names
    study.trials = [
        TrainingTrial(
            name, {}, Progress(480, 0.1, 0.5, 160, [{**found[0], "trial": name}]), None, True, None
        )
        for name in ("00002", "00000", "00001")
    ]
    assert [trial.name for trial in study.ranked] == ["00000", "00001", "00002"]


@pytest.mark.train
def test_a_trial_s_curve_is_that_of_its_latest_starts(tmp_path: Path) -> None:
    from quicgym.agents.tuning.training_sweep import evaluations

    for start, steps in ((1, (0, 160, 320)), (2, (160, 320)), (10, (320, 480))):
        (tmp_path / str(start)).mkdir()
        records = [{"step": step, "start": start, "reward": 0.5} for step in steps]
        (tmp_path / str(start) / "evaluations.jsonl").write_text(
            "".join(json.dumps(record) + "\n" for record in records)
        )
    found = evaluations(tmp_path)
    starts = {step: [record["start"] for record in records] for step, records in found.items()}
    assert starts == {0: [1], 160: [2], 320: [10], 480: [10]}


@pytest.mark.parametrize(
    "algorithm", [pytest.param(name, marks=pytest.mark.train) for name in sorted(BUILT_IN)]
)
def test_what_may_change_while_a_run_goes_on_exists(algorithm: str, tmp_path: Path) -> None:
    from quicgym.agents.training.model import check_hyperparameters

    config = load_training(str(write_config(tmp_path, algorithm)))
    names = {name: 2 if name == "replays" else 1 for name in BUILT_IN[algorithm].mutable}
    check_hyperparameters(config.model_copy(update={"hyperparameters": names}))


def test_draws_come_from_the_seed_and_stay_in_range(file: Path) -> None:
    changes = ["samples=200", "hyperparameters.start.std={minimum: 0.01, maximum: 1, scale: log}"]
    changes.append("hyperparameters.hyperparameters.n_epochs.scale=whole")
    changes.append("hyperparameters.hyperparameters.n_epochs.minimum=1")
    changes.append("hyperparameters.hyperparameters.n_epochs.maximum=3")
    draws = load(str(file), changes).config.draws()
    assert draws == load(str(file), changes).config.draws()
    assert draws != load(str(file), [*changes, "seed=1"]).config.draws()
    stds = [setting["start.std"] for setting in draws]
    assert all(0.01 <= std <= 1 for std in stds)
    assert math.isclose(np.mean(np.log10(stds)), -1, abs_tol=0.15)  # the middle of a log scale
    epochs = [setting["hyperparameters.n_epochs"] for setting in draws]
    assert set(epochs) == {1, 2, 3} and all(type(number) is int for number in epochs)
    rates = [setting["hyperparameters.learning_rate"] for setting in draws]
    assert set(rates) == {"linear_1e-3", 0.003, 1e20}


SIZES = "hyperparameters.network.hidden_sizes"
MISTAKES = [
    (ASHA, "sampels=2", "sampels = 2: unknown field", "did you mean samples?"),
    (ASHA, "grace_steps=null", "grace_steps: is missing"),
    (ASHA, "grace_steps=480", "grace_steps = 480", "below the training's steps, 480"),
    (ASHA, "perturbation_steps=160", "perturbation_steps = 160", "scheduler pbt", "leave it out"),
    (ASHA, "scheduler=pbt", "grace_steps = 160", "scheduler asha", "leave it out"),
    (ASHA, "hyperparameters.steps={values: [1]}", "hyperparameters.steps", "cannot be swept"),
    (
        ASHA,
        "hyperparameters.network.hidden_size={values: [[16]]}",
        *("hyperparameters.network.hidden_size", "did you mean hidden_sizes?"),
    ),
    (ASHA, "changes.evaluation.suite=heldout", "'heldout'", "use validation"),
    (PBT, "perturbation_steps=100", "perturbation_steps = 100", "interval_steps, 160"),
    (
        PBT,
        f"{SIZES}={{values: [[16]]}}",
        *("network.hidden_sizes", "cannot change during a run", "or use asha"),
    ),
    (PBT, "search=optuna", "search = 'optuna'", "scheduler asha"),
]


def test_mistakes_name_file_field_value_and_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for sweep, change, *expected in MISTAKES:
        with pytest.raises(ConfigError) as caught:
            load(str(write_sweep(tmp_path, sweep)), [change])
        for text in ("mine.yaml", *expected):
            assert text in str(caught.value), change


@pytest.mark.parametrize(
    ("name", "change", "jobs", "address", "expected"),
    [
        (
            "ppo-asha",
            "hyperparameters.hyperparameters.gama={values: [1]}",
            None,
            None,
            "hyperparameters.gama = 1: unknown field; did you mean gamma\\?",
        ),
        (
            "ppo-asha",
            "hyperparameters.hyperparameters.gamma={minimum: 0.9, maximum: 1.5}",
            None,
            None,
            "gamma = 1.5",
        ),
        ("ppo-asha", "changes.environment.scenario=no-such", None, None, "no-such"),
        ("ppo-asha", "seed=1", None, "nowhere", "--address nowhere: write HOST:PORT"),
        ("ppo-pbt", "seed=1", 2, "127.0.0.1:1", "--jobs 2: .*leave --jobs away"),
    ],
)
@pytest.mark.train
def test_what_every_trial_would_fail_of_is_said_before_ray_starts(
    tmp_path: Path, name: str, change: str, jobs: int | None, address: str | None, expected: str
) -> None:
    from quicgym.agents.tuning.study import run_study
    from quicgym.agents.tuning.training_sweep import TrainingStudy

    folder, study = tmp_path / "out", TrainingStudy(load(name, [change]))
    with pytest.raises((ClusterError, ConfigError, ScenarioError), match=expected):
        run_study(study, folder, jobs=jobs, resume=False, address=address, command="test")
    assert not folder.exists()
