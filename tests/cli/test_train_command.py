"""`quicgym train`, as a user runs it."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import time
from pathlib import Path

import pytest
import yaml
from helpers.terminal import in_terminal
from helpers.training import NEEDS_TRAIN, command, install_algorithm, train, write_config

import quicgym

pytestmark = NEEDS_TRAIN


NEEDS_NO_GPU = pytest.mark.skipif(
    Path("/proc/driver/nvidia").exists(), reason="there may be a GPU here"
)


def weights(run: Path) -> bytes:
    return (run / "policy/policy.safetensors").read_bytes()


def evaluations(run: Path) -> list[dict]:
    return [json.loads(line) for line in (run / "evaluations.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of PPO to its end."""
    folder = tmp_path_factory.mktemp("finished")
    config = write_config(folder)
    done = train(folder, config, "--out", "run")
    assert done.returncode == 0, done.stderr
    return folder, done


def test_a_run_keeps_what_it_was(finished):
    folder, done = finished
    description = json.loads((folder / "run/run.json").read_text())
    assert description["command"].startswith("quicgym train")
    assert description["config"]["hyperparameters"]["n_steps"] == 10
    assert description["config"]["environment"]["history_length"] == 4  # the defaults too
    assert (description["seed"], description["version"]) == (0, quicgym.__version__)
    assert "reward" in done.stdout and "run: " in done.stdout


def test_the_policy_is_evaluated_on_the_way(finished):
    folder, _ = finished
    records = evaluations(folder / "run")
    assert [record["step"] for record in records] == [0, 0, 160, 160, 320, 320, 480, 480]
    assert {record["scenario"] for record in records} == {"short", "pair-again"}
    assert all(record["reward"] is not None for record in records)
    assert len({record["reward"] for record in records}) > 2  # it has learned something, anything


def test_the_best_policy_is_published(finished):
    folder, _ = finished
    policy = quicgym.load_policy(folder / "run")
    by_step = {}
    for record in evaluations(folder / "run"):
        by_step.setdefault(record["step"], []).append(record["reward"])
    best = max(by_step, key=lambda step: sum(by_step[step]))
    assert policy.description.training["step"] == best
    assert policy.description.training["seed"] == 0
    environment = quicgym.make_vec("quicgym/Tuning-v1", num_envs=3)
    observations, _ = environment.reset(seed=0)
    assert environment.action_space.contains(policy(observations))


def test_curves_are_in_tensorboard_s_files(finished):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    folder, _ = finished
    events = EventAccumulator(str(folder / "run/tensorboard")).Reload()
    steps = [event.step for event in events.Scalars("evaluation/reward")]
    assert steps == [0, 160, 320, 480]
    assert {"train/loss", "rollout/reward"} <= set(events.Tags()["scalars"])


@pytest.mark.parametrize("algorithm", ["ppo", "sac", "aggrevate"])
def test_the_bar_is_full_when_the_last_evaluation_is_done(algorithm, tmp_path):
    config = write_config(tmp_path, algorithm)
    status, lines = in_terminal(command(config, "--out", "run"), tmp_path)
    assert status == 0, lines
    steps = max(record["step"] for record in evaluations(tmp_path / "run"))
    bars = [number for number, line in enumerate(lines) if line.startswith("tiny ")]
    full = [number for number in bars if "480 of 480 steps" in lines[number]]
    last = next(n for n, line in enumerate(lines) if re.match(f"step +{steps:,}  reward", line))
    assert full and full[0] > last
    assert any("evaluating on ./suite.yaml" in lines[number] for number in bars)
    assert "evaluating" not in lines[full[-1]]
    episodes = [line for line in lines if line.startswith("episodes")]
    done, all_of_them = re.search(r"(\d+)/(\d+)", episodes[-1]).groups()
    assert done == all_of_them


def test_the_seed_alone_decides_the_weights(finished, tmp_path):
    folder, _ = finished
    config = write_config(tmp_path)
    for out, changes in (("same", ()), ("other", ("seed=1",))):
        done = train(tmp_path, config, *changes, "--out", out)
        assert done.returncode == 0, done.stderr
    assert weights(tmp_path / "same") == weights(folder / "run")
    assert weights(tmp_path / "other") != weights(folder / "run")


@pytest.mark.parametrize("algorithm", ["ppo", "sac", "td3", "aggrevate", "grpo"])
def test_a_killed_run_goes_on_to_the_same_weights(algorithm, tmp_path):
    config = write_config(tmp_path, algorithm)
    whole = train(tmp_path, config, "--out", "whole")
    assert whole.returncode == 0, whole.stderr
    killed = subprocess.Popen(
        command(config, "--out", "killed"),
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    checkpoint = tmp_path / "killed/checkpoints/step-000000000160.pt"
    while not checkpoint.exists() and killed.poll() is None:
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    resumed = train(tmp_path, config, "--out", "killed", "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert "going on from step" in resumed.stderr
    assert weights(tmp_path / "killed") == weights(tmp_path / "whole")
    assert evaluations(tmp_path / "killed") == evaluations(tmp_path / "whole")


def test_long_decisions_and_a_critic_that_sees_the_network(tmp_path):
    config = write_config(tmp_path)
    changes = (
        "network.privileged_critic=true",
        "environment.decision_interval_ms=200",
        "environment.reward_interval_ms=100",
    )
    done = train(tmp_path, config, *changes, "steps=160", "--out", "run")
    assert done.returncode == 0, done.stderr
    policy = quicgym.load_policy(tmp_path / "run")
    assert policy.decisions.decision_interval_ms == 200
    resumed = train(tmp_path, config, *changes, "--out", "run", "--resume")
    assert "going on from step 160" in resumed.stderr
    refused = train(tmp_path, write_config(tmp_path, "sac"), changes[0], "--out", "sac")
    assert refused.returncode == 2 and "network.privileged_critic is for ppo" in refused.stderr


def assert_named(folder, config, change, words):
    """A change of the configuration is refused with these words, and leaves nothing."""
    done = train(folder, config, change, "--out", "run")
    assert done.returncode == 2, done.stderr
    for word in words:
        assert word in done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "run").exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("start.preset=bbr", ("start.preset = 'bbr' is none of those compared",)),
        ("hyperparameters.controllers=[ibcca]", ("give two or more",)),
        ("hyperparameters.margins=1", ("did you mean margin?",)),
    ],
)
def test_a_mistake_in_choices_is_named(change, words, tmp_path):
    assert_named(tmp_path, write_config(tmp_path, "choice-aggrevate"), change, words)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("hyperparameters.windows=[1,0]", ("in rising order",)),
        ("hyperparameters.keep_fractio=1", ("did you mean keep_fraction?",)),
        (
            "environment.id=quicgym/Switch-v1",
            ("algorithm = 'aggrevate' is for quicgym/Window-v1 and quicgym/Window-v0",),
        ),
    ],
)
def test_a_mistake_in_aggrevate_is_named(change, words, tmp_path):
    assert_named(tmp_path, write_config(tmp_path, "aggrevate"), change, words)


@pytest.mark.parametrize("damage", [lambda data: data[:1000], lambda data: bytes(500)])
def test_a_torn_checkpoint_gives_way_to_the_one_before(damage, tmp_path):
    config = write_config(tmp_path)
    assert train(tmp_path, config, "--out", "run").returncode == 0
    before = weights(tmp_path / "run")
    newest = sorted((tmp_path / "run/checkpoints").glob("*.pt"))[-1]
    newest.write_bytes(damage(newest.read_bytes()))
    resumed = train(tmp_path, config, "--out", "run", "--resume")
    assert "going on from step 320" in resumed.stderr
    assert weights(tmp_path / "run") == before


def test_a_full_disk_leaves_the_last_checkpoint(tmp_path):
    config = write_config(tmp_path)
    # The second checkpoint has the optimizer's moments as well, and is about three times as large.
    limit = 36_000

    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    stopped = train(tmp_path, config, "--out", "run", preexec_fn=small_files)
    assert stopped.returncode == 2, stopped.stderr
    assert "cannot be written" in stopped.stderr and "--resume" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    kept = [path.name for path in (tmp_path / "run/checkpoints").iterdir()]
    assert kept == ["step-000000000000.pt"]
    assert train(tmp_path, config, "--out", "run", "--resume").returncode == 0


def test_a_loss_that_is_no_number_stops_and_keeps_the_checkpoint(tmp_path):
    config = write_config(tmp_path)
    stopped = train(tmp_path, config, "hyperparameters.learning_rate=1e20", "--out", "run")
    assert stopped.returncode == 2, stopped.stderr
    assert "step 80" in stopped.stderr and "learning_rate" in stopped.stderr
    assert "step-000000000000.pt" in stopped.stderr
    assert "Traceback" not in stopped.stderr


@pytest.mark.parametrize("algorithm", ["choice-aggrevate", "aggrevate"])
def test_a_regression_that_is_no_number_stops_after_the_update(algorithm, tmp_path):
    config = write_config(tmp_path, algorithm, evaluation={"suite": "./suite.yaml"})
    stopped = train(tmp_path, config, "hyperparameters.learning_rate=1e35", "--out", "run")
    assert stopped.returncode == 2, stopped.stderr
    assert "train/loss is" in stopped.stderr and "step-000000000000.pt" in stopped.stderr


def test_a_folder_with_another_run_is_refused(finished):
    folder, _ = finished
    before = weights(folder / "run")
    again = train(folder, "tiny.yaml", "--out", "run")
    assert again.returncode == 2 and "--resume" in again.stderr
    other = train(folder, "tiny.yaml", "seed=5", "--out", "run", "--resume")
    assert other.returncode == 2 and "seed = 5, there 0" in other.stderr
    assert weights(folder / "run") == before


def test_a_resumed_run_has_the_scenarios_and_suites_it_began_with(tmp_path):
    config = write_config(tmp_path, steps=160)
    assert train(tmp_path, config, "--out", "run").returncode == 0
    before = (tmp_path / "run/run.json").read_bytes()
    for file in ("pair.yaml", "suite.yaml"):
        text = (tmp_path / file).read_text()
        (tmp_path / file).write_text(text.replace("rate_mbps: 3", "rate_mbps: 2"))
        again = train(tmp_path, config, "steps=320", "--out", "run", "--resume")
        assert again.returncode == 2 and f"./{file}' is not what it was" in again.stderr
        (tmp_path / file).write_text(text)
    shorter = train(tmp_path, config, "steps=80", "--out", "run", "--resume")
    assert shorter.returncode == 2 and "steps = 80, there 160" in shorter.stderr
    assert (tmp_path / "run/run.json").read_bytes() == before
    longer = train(tmp_path, config, "steps=320", "--out", "run", "--resume")
    assert longer.returncode == 0, longer.stderr
    description = json.loads((tmp_path / "run/run.json").read_text())
    assert description["config"]["steps"] == 320 and "steps=160" not in description["command"]
    (resumed,) = description["resumed"]
    assert "steps=320" in resumed and "--resume" in resumed


def test_a_run_of_another_commit_goes_on_with_a_note(tmp_path):
    config = write_config(tmp_path, steps=160)
    assert train(tmp_path, config, "--out", "run").returncode == 0
    path = tmp_path / "run/run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "commit": "0123abcd"}))
    done = train(tmp_path, config, "--out", "run", "--resume")
    assert done.returncode == 0, done.stderr
    assert "begun with the commit 0123abcd, this is" in done.stderr


def test_a_file_in_the_folder_s_place_is_named(tmp_path):
    (tmp_path / "run").write_text("mine")
    done = train(tmp_path, write_config(tmp_path), "--out", "run")
    assert done.returncode == 2 and "run: is a file" in done.stderr
    assert "Traceback" not in done.stderr


def test_there_is_nothing_to_resume(tmp_path):
    done = train(tmp_path, write_config(tmp_path), "--out", "nowhere", "--resume")
    assert done.returncode == 2 and "nowhere/run.json" in done.stderr


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("stepz=3", ("stepz = 3: unknown field", "did you mean steps?")),
        ("evaluation.sweet=heldout", ("evaluation.sweet = 'heldout': unknown field", "suite")),
        ("steps=none", ("steps", "'none'")),
        ("hyperparameters.learning_rat=1", ("learning_rat", "did you mean learning_rate?")),
        ("hyperparameters.batch_size=many", ("batch_size = 'many'", "a whole number")),
        ("hyperparameters.n_epochs=0", ("n_epochs = 0", "1 or more")),
        ("hyperparameters.n_epochs=1.5", ("n_epochs = 1.5", "a whole number")),
        ("hyperparameters.gamma=abc", ("gamma = 'abc'", "a number")),
        ("hyperparameters.gamma=2", ("gamma = 2", "from 0 to 1")),
        ("hyperparameters.normalize_advantage=3", ("true or false",)),
        ("hyperparameters.batch_size=1", ("ppo refuses",)),
        ("environment.scenario=ebc-single", ("did you mean ebcc-single?",)),
        ("evaluation.suite=held", ("did you mean heldout?",)),
        ("algorithm=a2c", ("algorithm = 'a2c'",)),
        ("seed", ("field=value",)),
        ("start.preset=cubic", ("start.preset",)),
        (
            "algorithm=choice-aggrevate",
            ("algorithm = 'choice-aggrevate' is for quicgym/Switch-v1",),
        ),
        (
            "algorithm=aggrevate",
            ("algorithm = 'aggrevate' is for quicgym/Window-v1 and quicgym/Window-v0",),
        ),
        ("device=tpu", ("device = 'tpu'",)),
        pytest.param("device=cuda", ("PyTorch finds no GPU", "auto or cpu"), marks=NEEDS_NO_GPU),
        ("evaluation.suite=heldout", ("'heldout'", "no longer held out", "use validation")),
        ("environment.scenario=self-play", ("different numbers of agents", "grpo")),
        ("environment.id=quicgym/Switch-v1", ("start.std is for a Box",)),
        ("hyperparameters.use_sde=true", ("use_sde", "no such parameter")),
        ("network={extractor: gru, extractor_sizes: [8, 8]}", ("gru has one size",)),
        ("start={final_std: 0.1}", ("start.final_std is for ppo and grpo with start.std",)),
    ],
)
def test_a_mistake_is_named_with_its_remedy(change, words, tmp_path):
    assert_named(tmp_path, write_config(tmp_path), change, words)


def test_an_unknown_configuration_is_named(tmp_path):
    done = train(tmp_path, "pppo")
    assert done.returncode == 2 and "did you mean ppo?" in done.stderr
    (tmp_path / "list.yaml").write_text(yaml.safe_dump([1, 2]))
    assert "no mapping" in train(tmp_path, tmp_path / "list.yaml").stderr


def test_an_algorithm_is_added_trained_and_resumed_as_documented(tmp_path):
    pages = Path(__file__).parents[2] / "docs/how-to/training.md"
    section = pages.read_text().split("\n## An algorithm of your own\n")[1].split("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    (project,) = re.findall(r"```toml\n(.*?)```", section, re.DOTALL)
    assert '[project.entry-points."quicgym.algorithms"]' in project
    ((name, package),) = re.findall(r'(\w+) = "(\w+):ALGORITHM"', project)
    install_algorithm(tmp_path, package, code, name)
    config = write_config(tmp_path, "ppo", steps=160)
    fields = yaml.safe_load(config.read_text())
    config.write_text(
        yaml.safe_dump({**fields, "algorithm": name, "hyperparameters": {"n_steps": 10}})
    )
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    for out, arguments in (
        ("whole", ("steps=320",)),
        ("parts", ()),
        ("parts", ("steps=320", "--resume")),
    ):
        done = train(tmp_path, config, *arguments, "--out", out, env=environment)
        assert done.returncode == 0, done.stderr
    assert weights(tmp_path / "parts") == weights(tmp_path / "whole")
