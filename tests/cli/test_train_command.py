"""`quicgym train`, as a user runs it."""

from __future__ import annotations

import json
import re
import shutil
import time
from pathlib import Path

import pytest
import yaml
from helpers.commands import (
    in_terminal,
    run_in_copy,
    says,
    start_forked,
)
from helpers.training import install_algorithm, write_config

from quicgym import __version__, load_policy, make_vec, plugins
from quicgym.envs.scenarios.suites import SELECTION_SEED

pytestmark = pytest.mark.train


def weights(run: Path) -> bytes:
    return (run / "policy/policy.safetensors").read_bytes()


def evaluations(run: Path) -> list[dict]:
    return [json.loads(line) for line in (run / "evaluations.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of PPO to its end."""
    folder = tmp_path_factory.mktemp("finished")
    config = write_config(folder)
    return folder, run_in_copy(folder, "train", config, "--out", "run")


def test_a_run_keeps_what_it_was(finished):
    folder, done = finished
    description = json.loads((folder / "run/run.json").read_text())
    assert description["command"].startswith("quicgym train")
    assert description["config"]["hyperparameters"]["n_steps"] == 10
    assert description["config"]["environment"]["history_length"] == 128  # the defaults too
    assert (description["seed"], description["version"]) == (0, __version__)
    assert "reward" in done.stdout and "run: " in done.stdout


def test_the_policy_is_evaluated_on_the_way(finished):
    folder, _ = finished
    records = evaluations(folder / "run")
    assert [record["step"] for record in records] == [0, 0, 160, 160, 320, 320, 480, 480]
    assert {record["scenario"] for record in records} == {"short", "pair-again"}
    assert all(record["reward"] is not None for record in records)
    assert len({record["reward"] for record in records}) > 2  # it has learned something, anything
    # Those by which the best policy is chosen are no seeds of `quicgym evaluate`.
    assert {record["seed"] for record in records} == {SELECTION_SEED}


def test_the_best_policy_is_published(finished):
    folder, _ = finished
    policy = load_policy(folder / "run")
    by_step = {}
    for record in evaluations(folder / "run"):
        by_step.setdefault(record["step"], []).append(record["reward"])
    best = max(by_step, key=lambda step: sum(by_step[step]))
    assert policy.description.training["step"] == best
    assert policy.description.training["seed"] == 0
    environment = make_vec("quicgym/Tuning-v1", num_envs=3)
    observations, _ = environment.reset(seed=0)
    assert environment.action_space.contains(policy(observations))


def test_curves_are_in_tensorboard_s_files(finished):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    folder, _ = finished
    events = EventAccumulator(str(folder / "run/tensorboard")).Reload()
    steps = [event.step for event in events.Scalars("evaluation/reward")]
    assert steps == [0, 160, 320, 480]
    assert {"train/loss", "rollout/reward"} <= set(events.Tags()["scalars"])


@pytest.mark.parametrize("algorithm", ["ppo", "aggrevate"])
def test_the_bar_is_full_when_the_last_evaluation_is_done(algorithm, tmp_path):
    config = write_config(tmp_path, algorithm)
    status, lines = in_terminal(["train", config, "--out", "run"], tmp_path)
    assert status == 0, lines
    steps = max(record["step"] for record in evaluations(tmp_path / "run"))
    bars = [number for number, line in enumerate(lines) if line.startswith("tiny ")]
    full = [number for number in bars if "480 of 480 steps" in lines[number]]
    last = next(n for n, line in enumerate(lines) if re.match(f"step +{steps:,}  IQM reward", line))
    assert full and full[0] > last
    assert any("evaluating on ./suite.yaml" in lines[number] for number in bars)
    assert "evaluating" not in lines[full[-1]]
    episodes = [line for line in lines if line.startswith("episodes")]
    done, all_of_them = re.search(r"(\d+)/(\d+)", episodes[-1]).groups()
    assert done == all_of_them


def test_a_training_that_is_shorter_than_a_rollout_says_what_shortens_the_rollout(
    finished, quicgym, tmp_path
):
    config = write_config(tmp_path)
    short = ("steps=20", "evaluation.interval_steps=160")
    (note,) = re.findall(r"note: .*", quicgym("train", config, *short, "--out", "run").stderr)
    assert "steps = 20 becomes 80: a rollout has 80 steps" in note and "interval_steps" not in note
    assert evaluations(tmp_path / "run")[-1]["step"] == 80
    shorter = ("environment.simulations=1", "hyperparameters.n_steps=5")
    assert all(change.partition("=")[0] in note for change in shorter)
    batch = "hyperparameters.batch_size=10"
    quicgym("train", config, *short, *shorter, batch, "--out", "shorter")
    assert evaluations(tmp_path / "shorter")[-1]["step"] == 20
    assert "rollout has" not in finished[1].stderr


def test_the_seed_alone_decides_the_weights(finished, quicgym, tmp_path):
    folder, _ = finished
    config = write_config(tmp_path)
    for out, changes in (("same", ()), ("other", ("seed=1",))):
        quicgym("train", config, *changes, "--out", out)
    assert weights(tmp_path / "same") == weights(folder / "run")
    assert weights(tmp_path / "other") != weights(folder / "run")


@pytest.mark.parametrize("algorithm", ["ppo", "sac", "td3", "dqn", "aggrevate", "grpo"])
def test_a_killed_run_goes_on_to_the_same_weights(algorithm, quicgym, tmp_path):
    config = write_config(tmp_path, algorithm)
    quicgym("train", config, "--out", "whole")
    killed = start_forked(tmp_path, "train", config, "--out", "killed")
    checkpoint = tmp_path / "killed/checkpoints/step-000000000160.pt"
    while not checkpoint.exists() and killed.is_alive():
        time.sleep(0.01)
    killed.kill()
    killed.join()
    resumed = quicgym("train", config, "--out", "killed", "--resume")
    assert "going on from the checkpoint of step" in resumed.stderr
    assert weights(tmp_path / "killed") == weights(tmp_path / "whole")
    assert evaluations(tmp_path / "killed") == evaluations(tmp_path / "whole")


def test_long_decisions_and_a_critic_that_sees_the_network(quicgym, tmp_path):
    config = write_config(tmp_path)
    changes = (
        "network.privileged_critic=true",
        "environment.decision_interval_ms=200",
        "environment.reward_interval_ms=100",
    )
    quicgym("train", config, *changes, "steps=160", "--out", "run")
    assert load_policy(tmp_path / "run").decisions.decision_interval_ms == 200
    resumed = quicgym("train", config, *changes, "--out", "run", "--resume")
    assert "going on from the checkpoint of step 160" in resumed.stderr
    refused = ("train", write_config(tmp_path, "sac"), changes[0], "--out", "sac")
    assert "network.privileged_critic is for ppo and grpo" in quicgym(*refused, status=2).stderr


def test_a_run_none_of_whose_checkpoints_can_be_read_names_them_and_stays_as_it_is(
    finished, quicgym, tmp_path
):
    shutil.copytree(finished[0], tmp_path, dirs_exist_ok=True)
    files = sorted((tmp_path / "run/checkpoints").glob("*.pt"))
    for path in files:
        path.write_bytes(path.read_bytes()[:1000])
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    refused = quicgym("train", "tiny.yaml", "--out", "run", "--resume", status=2)
    for path in files:
        assert path.name in "".join(refused.stderr.split())
    assert "--out" in refused.stderr
    assert before == {path: path.read_bytes() for path in before}


@pytest.mark.parametrize(
    ("file", "content", "text"),
    [
        ("run.json", '{"format": "quicgym-run-1", "config": []}', "describes no run of this"),
        ("evaluations.jsonl", '{"step": "x", "reward": 0.5}\n', "has no step or no reward"),
        ("evaluations.jsonl", "", "has no evaluation"),
    ],
)
def test_odd_files_of_a_run_are_named(file, content, text, finished, quicgym, tmp_path):
    shutil.copytree(finished[0], tmp_path, dirs_exist_ok=True)
    (tmp_path / "run" / file).write_text(content)
    refused = quicgym("train", "tiny.yaml", "--out", "run", "--resume", status=2)
    assert text in " ".join(refused.stderr.split())


def test_a_checkpoint_of_another_training_is_refused(finished, quicgym, tmp_path):
    import torch

    shutil.copytree(finished[0], tmp_path, dirs_exist_ok=True)
    newest = sorted((tmp_path / "run/checkpoints").glob("*.pt"))[-1]
    torch.save({**torch.load(newest, weights_only=True), "parameters": {}}, newest)
    refused = quicgym("train", "tiny.yaml", "--out", "run", "--resume", status=2)
    assert "its checkpoint of step 480 is none of this training" in " ".join(refused.stderr.split())


@pytest.mark.parametrize(
    ("algorithm", "rate", "text"),
    [
        ("ppo", "1e20", "step 80"),
        ("aggrevate", "1e29", "train/loss is"),
    ],
)
def test_a_loss_that_is_no_number_stops_and_keeps_the_checkpoint(
    algorithm, rate, text, quicgym, tmp_path
):
    config = write_config(tmp_path, algorithm, evaluation={"suite": "./suite.yaml"})
    change = f"hyperparameters.learning_rate={rate}"
    stopped = quicgym("train", config, change, "--out", "run", status=2)
    assert text in stopped.stderr and "step-000000000000.pt" in stopped.stderr
    assert "learning_rate" in stopped.stderr


def test_a_folder_with_another_run_is_refused(finished, quicgym, monkeypatch):
    folder, _ = finished
    monkeypatch.chdir(folder)
    before = weights(folder / "run")
    arguments = ("train", "tiny.yaml", "--out", "run")
    assert "--resume" in quicgym(*arguments, status=2).stderr
    changes = ("seed=5", "environment.scenario=./rival.yaml")
    other = quicgym(*arguments, *changes, "--resume", status=2).stderr
    assert "seed = 5, there 0" in other and "rival.yaml', there './pair.yaml'" in other
    assert "environment.scenario = " in other and "simulations" not in other
    assert weights(folder / "run") == before


def test_a_resumed_run_has_the_scenarios_and_suites_it_began_with(quicgym, tmp_path):
    config = write_config(tmp_path, steps=160)
    quicgym("train", config, "--out", "run")
    before = (tmp_path / "run/run.json").read_bytes()

    def resume(steps, status=0):
        arguments = (f"steps={steps}", "--out", "run", "--resume")
        return quicgym("train", config, *arguments, status=status).stderr

    for file in ("pair.yaml", "suite.yaml"):
        text = (tmp_path / file).read_text()
        (tmp_path / file).write_text(text.replace("rate_mbps: 3", "rate_mbps: 2"))
        assert f"./{file}' is not what it was" in resume(320, status=2)
        (tmp_path / file).write_text(text)
    assert "steps = 80, and the run has made 160" in resume(80, status=2)
    assert (tmp_path / "run/run.json").read_bytes() == before
    resume(320)
    description = json.loads((tmp_path / "run/run.json").read_text())
    assert description["config"]["steps"] == 320 and "steps=160" not in description["command"]
    (resumed,) = description["resumed"]
    assert "steps=320" in resumed and "--resume" in resumed
    # A run of another commit continues, with a note.
    path = tmp_path / "run/run.json"
    path.write_text(json.dumps({**description, "commit": "0123abcd"}))
    assert "begun with the commit 0123abcd, this is" in resume(320)


def test_a_run_that_was_killed_before_it_began_begins_with_resume(quicgym, tmp_path):
    config = write_config(tmp_path, steps=160)
    (tmp_path / "run").mkdir()
    for left in (".quicgym-lock", ".run.json.quicgym-new"):
        (tmp_path / "run" / left).touch()
    assert "begins at step 0" in quicgym("train", config, "--out", "run", "--resume").stderr
    assert json.loads((tmp_path / "run/run.json").read_text())["config"]["steps"] == 160


NEEDS_NO_GPU = pytest.mark.skipif(
    Path("/proc/driver/nvidia").exists(), reason="there may be a GPU here"
)
FOR_WINDOW = "is for quicgym/Window-v1"
MISTAKES = [
    ("aggrevate", "hyperparameters.windows=[1,0]", "in rising order"),
    ("ppo", "stepz=3", "stepz = 3: unknown field", "did you mean steps?"),
    ("ppo", "steps=1e30", "steps = 1000", "at most 1e+12"),
    ("ppo", "hyperparameters.learning_rat=1", "learning_rat", "did you mean learning_rate?"),
    ("ppo", "hyperparameters.learning_rate=1e39", "learning_rate = 9999", "from 0 to 1e+30"),
    ("ppo", "hyperparameters.n_epochs=0", "n_epochs = 0", "at least 1"),
    ("ppo", "hyperparameters.gamma=linear_0.99", "gamma = 'linear_0.99'", "at least 0, at most 1"),
    ("ppo", "hyperparameters.target_kl=x", "target_kl = 'x'", "give a number, at least 0"),
    ("ppo", "hyperparameters.batch_size=1", "ppo refuses"),
    (
        "ppo",
        "environment.scenario=ebc-single",
        "environment.scenario: unknown",
        "did you mean ebcc-single?",
    ),
    ("ppo", "environment.coordinates=[gama]", "environment.coordinates: 'gama'", "mean gamma?"),
    ("ppo", "evaluation.suite=world", "evaluation.suite: unknown", "did you mean worlds?"),
    ("ppo", "device=gpu", "device = 'gpu'", "give auto, cpu, cuda or cuda:N"),
    ("ppo", "algorithm=a2c", "algorithm = 'a2c'"),
    ("ppo", "algorithm=aggrevate", f"algorithm = 'aggrevate' {FOR_WINDOW}"),
    pytest.param(("ppo", "device=cuda", "PyTorch finds no GPU", "auto or cpu"), marks=NEEDS_NO_GPU),
    ("sac", "environment.scenario=self-play", "different numbers of agents", "grpo"),
    ("ppo", "environment={id: window, scenario: ./pair.yaml}", "start.std is for a Box"),
    ("ppo", "start={final_std: 0.1}", "start.final_std is for ppo and grpo with start.std"),
    (
        "ppo",
        "evaluation.controllers=[bbr,cubik]",
        "quicgym: tiny: evaluation.controllers = 'cubik': ",
        "did you mean cubic?",
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: " ".join(mistake[:2]))
def test_a_mistake_is_named_with_its_remedy(mistake, quicgym, tmp_path):
    algorithm, change, *words = mistake
    config = write_config(tmp_path, algorithm)
    says(quicgym("train", config, change, "--out", "run", status=2), *words)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("package", "algorithm", "changes"),
    [
        ("my_package", "grpo", {"hyperparameters": {"paths": 4}}),
        ("my_a2c", "ppo", {"hyperparameters": {"n_steps": 10}}),
    ],
)
def test_an_algorithm_is_added_trained_and_resumed_as_documented(
    package, algorithm, changes, quicgym, monkeypatch, request, tmp_path
):
    pages = Path(__file__).parents[2] / "docs/how-to/training.md"
    section = pages.read_text().split("\n## An algorithm of your own\n")[1].split("\n## ")[0]
    blocks = re.findall(r"```python\n# (\w+)\.py\n(.*?)```", section, re.DOTALL)
    code = dict(blocks)[package]
    ((name,),) = [re.findall(r'name="(\w+)"', code)]
    (project,) = re.findall(r"```toml\n(.*?)```", section, re.DOTALL)
    assert (
        '[project.entry-points."quicgym.algorithms"]\nreinforce = "my_package:ALGORITHM"' in project
    )
    install_algorithm(tmp_path, package, code, name)
    config = write_config(tmp_path, algorithm, steps=160, **changes)
    fields = yaml.safe_load(config.read_text())
    config.write_text(yaml.safe_dump({**fields, "algorithm": name}))
    monkeypatch.syspath_prepend(tmp_path)
    plugins.installed.cache_clear()
    request.addfinalizer(plugins.installed.cache_clear)
    for out, arguments in (
        ("whole", ("steps=320",)),
        ("parts", ()),
        ("parts", ("steps=320", "--resume")),
    ):
        quicgym("train", config, *arguments, "--out", out)
    assert weights(tmp_path / "parts") == weights(tmp_path / "whole")
