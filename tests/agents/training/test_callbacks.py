"""The callbacks of a training, each alone, between the rollouts of a small one."""

from __future__ import annotations

import random
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.training import NEEDS_TRAIN, made

import quicgym
from quicgym.envs.simulation.metrics import EVALUATED

pytestmark = NEEDS_TRAIN


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def begun(callback, model, step=0):
    """Puts a callback where `learn` has begun."""
    model.num_timesteps = step
    callback.init_callback(model)
    callback.on_training_start({}, {})
    return callback


class Writer:
    """What is written to an event file."""

    def __init__(self):
        self.values = {}

    def scalars(self, step, values):
        self.values |= {(step, name): value for name, value in values.items()}

    def evaluation(self, step, records):
        self.values[step, "records"] = len(records)


def test_exploration_falls_exponentially_to_its_last_value(here):
    from quicgym.agents.training.callbacks.schedules import ExplorationSchedule

    _, _, model = made(here, "start.std=0.5")
    stds = []
    for step in (0, 500, 1000, 1200):
        begun(ExplorationSchedule(0.5, 0.02, 1000), model, step).on_rollout_start()
        stds.append(model.policy.log_std.exp().mean().item())
    assert stds == pytest.approx([0.5, 0.1, 0.02, 0.02])


def test_the_reward_of_an_evaluation_is_the_interquartile_mean(here, monkeypatch, capsys):
    from quicgym.agents.training.callbacks import evaluation
    from quicgym.agents.training.callbacks.progress import ProgressCallback
    from quicgym.agents.training.folder import RunFolder

    suite = [(quicgym.load_scenario("ebcc-single"), seed) for seed in range(4)]
    rewards = (0.1, 0.2, -5.0, 0.4)

    def play_all(*arguments, **options):
        metrics = dict.fromkeys(EVALUATED, 0.0)
        return [SimpleNamespace(evaluation={**metrics, "reward": reward}) for reward in rewards]

    monkeypatch.setattr(evaluation, "play_all", play_all)
    config, _, model = made(here)
    writer, progress = Writer(), ProgressCallback("test", 480, 0)
    folder = RunFolder(here / "run")
    callback = evaluation.EvaluationCallback(config, folder, suite, "test", writer, progress)
    begun(callback, model).on_rollout_start()
    assert callback.last_reward == callback.best_reward == pytest.approx(0.15)
    assert writer.values == {(0, "records"): 4} and len(folder.evaluations()) == 4
    assert "reward 0.1500 on ./suite.yaml (best 0.1500)" in capsys.readouterr().err


def test_the_reward_of_a_rollout_is_of_that_rollout_alone(here):
    from quicgym.agents.training.callbacks.logging import LoggingCallback

    _, _, model = made(here)
    writer = Writer()
    callback = begun(LoggingCallback(writer, 0), model)
    for step, reward in ((80, 1.0), (160, 3.0)):
        model.num_timesteps = step
        callback.update_locals({"rewards": np.full(4, reward)})
        callback.on_step()
        callback.on_rollout_end()
        model.logger.dump(step)
    assert [writer.values[step, "rollout/reward"] for step in (80, 160)] == [1.0, 3.0]
    assert writer.values[160, "time/steps_per_second"] > 0


def test_randomness_begins_anew_from_the_seed_and_the_step(here):
    from quicgym.agents.training.callbacks.reseeding import ReseedingCallback

    def drawn(seed, step):
        _, environments, model = made(here)
        begun(ReseedingCallback(seed, environments, 160), model, step).on_rollout_start()
        rewards = [environments.step(model.env.action_space.sample()[None].repeat(8, 0))[1]]
        return [random.random(), np.random.random(), *np.concatenate(rewards).tolist()]

    assert drawn(1, 160) == drawn(1, 160)
    assert drawn(1, 160)[:2] != drawn(1, 320)[:2] != drawn(2, 320)[:2]


def test_it_begins_anew_between_the_rollouts_of_an_interval_and_where_it_is_resumed(here):
    from quicgym.agents.training.callbacks.reseeding import ReseedingCallback

    _, environments, model = made(here)
    callback = begun(ReseedingCallback(1, environments, 160), model)
    callback.resume({"step": 320})
    seeds = []
    environments.seed = seeds.append
    for step in (320, 400, 480):
        model.num_timesteps = step
        callback.on_step()
        callback.on_rollout_start()
    assert len(seeds) == 2
