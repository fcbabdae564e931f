"""The loop of a training: what happens between the parts of a run, with a trainer that counts."""

from __future__ import annotations

import math
import random
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.training import NEEDS_TRAIN, Unwatched, made, write_config

import quicgym
from quicgym.agents.training.configuration import load_training
from quicgym.agents.training.folder import RunFolder
from quicgym.envs.simulation.metrics import EVALUATED

pytestmark = NEEDS_TRAIN


class Counting:
    """A trainer whose rollouts have 80 steps."""

    def __init__(self):
        import torch

        self.step, self.losses, self.network = 0, {}, torch.nn.Linear(1, 1)
        self.seeds, self.log_stds = [], []

    def reseed(self, seeds):
        self.seeds.append(seeds.entropy)

    def set_exploration(self, log_std):
        self.log_stds.append(log_std)

    def learn(self, until, total, watch):
        while self.step < until:
            watch.rollout_begins()
            self.step += 80
            watch.rollout_ended()

    def state(self):
        return {"step": self.step}

    def restore(self, state):
        self.step = state["step"]


class Measured:
    """Evaluations that only remember when they were asked for."""

    def __init__(self, trainer):
        self.trainer, self.steps, self.last_reward = trainer, [], 0.5

    def measure(self):
        self.steps.append(self.trainer.step)

    def state(self):
        return {"best": {}}

    def restore(self, state):
        self.restored = state


class Bar:
    def at(self, step):
        pass

    def steps_per_second(self, step):
        return 1.0


@pytest.fixture
def begun(here):
    """Makes a loop over a counting trainer, with changes to a configuration of 480 steps."""
    from quicgym.agents.training.loop import Loop

    def make(*changes):
        config, trainer = load_training(str(write_config(here)), changes), Counting()
        folder, reported = RunFolder(here / "run"), []
        evaluations = Measured(trainer)
        loop = Loop(config, trainer, folder, evaluations, Unwatched(), Bar(),
                    lambda *report: reported.append(report))  # fmt: skip
        return loop, trainer, evaluations, folder, reported

    return make


def test_it_measures_keeps_a_checkpoint_and_begins_anew_at_every_interval(begun):
    loop, trainer, evaluations, folder, reported = begun()
    loop.run(None)
    assert evaluations.steps == [0, 160, 320, 480]
    assert trainer.seeds == [[0, 0], [0, 160], [0, 320]]  # the run's seed and the step
    assert [(step, reward) for step, reward, _ in reported] == [
        (step, 0.5) for step in (0, 160, 320, 480)
    ]
    assert folder.checkpoints() == [path for _, _, path in reported[-2:]]


def test_a_run_that_is_resumed_begins_anew_where_its_checkpoint_was_written(begun):
    loop, trainer, evaluations, _, _ = begun("steps=700")
    state = {"step": 480, "best": {}}
    loop.run(state)
    assert evaluations.restored is state and evaluations.steps == [640, 720]
    assert trainer.seeds == [[0, 480], [0, 640]]


def test_exploration_falls_exponentially_to_its_last_value(begun):
    loop, trainer, *_ = begun("steps=320", "start={std: 0.5, final_std: 0.02}")
    for step in (0, 160, 320, 384):
        trainer.step = step
        loop.rollout_begins()
    assert np.exp(trainer.log_stds) == pytest.approx([0.5, 0.1, 0.02, 0.02])


@pytest.mark.parametrize(("loss", "weight"), [(math.nan, 0.0), (0.0, math.inf)])
def test_a_loss_or_a_weight_that_is_no_number_ends_the_run(loss, weight, begun):
    from quicgym.agents.training.loop import TrainingError

    loop, trainer, evaluations, *_ = begun()
    trainer.losses = {"train/loss": loss}
    trainer.network.weight.data.fill_(weight)
    with pytest.raises(TrainingError, match="step 0: .* Lower hyperparameters.learning_rate"):
        loop.run(None)
    assert not evaluations.steps  # what is no number is not measured


@pytest.mark.parametrize(
    ("weight", "text"),
    [(1e30, "tensor .* may not be finite"), (math.inf, "the network's weights are not finite")],
)
def test_weights_that_the_core_refuses_end_the_run(weight, text, begun, monkeypatch):
    from quicgym import _core
    from quicgym.agents.training.loop import TrainingError

    loop, trainer, evaluations, *_ = begun()

    def measure():
        trainer.network.weight.data.fill_(weight)
        tensors = {
            "features.layers.0.weight": np.full((1, 1), weight, np.float32),
            "features.layers.0.bias": np.zeros(1, np.float32),
            "action.weight": np.zeros((1, 1), np.float32),
            "action.bias": np.zeros(1, np.float32),
        }
        _core.PolicyNetwork([1], [], "relu", "clip", 1, 1, tensors)

    monkeypatch.setattr(evaluations, "measure", measure)
    with pytest.raises(TrainingError, match=f"step 0: {text}. Training stops"):
        loop.run(None)


def test_the_reward_of_an_evaluation_is_the_interquartile_mean(here, monkeypatch, capsys):
    from quicgym.agents.training import evaluation
    from quicgym.agents.training.progress import TrainingProgress

    class Writer:
        def evaluation(self, step, records):
            self.written = (step, len(records))

    suite = [(quicgym.load_scenario("ebcc-single"), seed) for seed in range(4)]
    rewards = (0.1, 0.2, -5.0, 0.4)

    def play_all(*arguments, **options):
        metrics = dict.fromkeys(EVALUATED, 0.0)
        return [SimpleNamespace(evaluation={**metrics, "reward": reward}) for reward in rewards]

    monkeypatch.setattr(evaluation, "play_all", play_all)
    config, trainer = made(here)
    writer, progress = Writer(), TrainingProgress("test", 480, 0)
    folder = RunFolder(here / "run")
    measured = evaluation.Evaluations(
        config, trainer, folder, suite, None, "test", writer, progress
    )
    measured.measure()
    assert measured.last_reward == measured.best_reward == pytest.approx(0.15)
    assert writer.written == (0, 4) and len(folder.evaluations()) == 4
    assert "reward 0.1500 on ./suite.yaml (best 0.1500)" in capsys.readouterr().err


def test_with_controllers_the_best_policy_is_the_one_whose_worst_world_is_best(here, monkeypatch):
    from quicgym.agents.training import evaluation
    from quicgym.agents.training.worlds import Worlds

    rewards = iter([(0.5, 0.5, 0.3, 0.3), (0.9, 0.9, 0.2, 0.2), (0.4, 0.4, 0.4, 0.4)])

    def play_all(*arguments, **options):
        metrics = dict.fromkeys(EVALUATED, 0.0)
        return [SimpleNamespace(evaluation={**metrics, "reward": of}) for of in next(rewards)]

    monkeypatch.setattr(evaluation, "play_all", play_all)
    config, trainer = made(here)
    said = []
    tell = SimpleNamespace(evaluation=lambda *_: None, evaluating=lambda *_: None)
    tell.evaluated = lambda step, text: said.append(text)
    suite = [(quicgym.load_scenario(name), seed) for name in CALM_AND_ROUGH for seed in range(2)]
    worlds = Worlds(CALM_AND_ROUGH, {"cubic": np.array([[0.4, 0.4], [0.5, 0.5]])})
    measured = evaluation.Evaluations(
        config, trainer, RunFolder(here / "run"), suite, worlds, "test", tell, tell
    )
    for step in (0, 100, 200):
        trainer.model.num_timesteps = step
        measured.measure()
    assert measured.best_step == 200 and measured.best_reward == pytest.approx(0.4)
    assert [world.difference.value for world in measured.best_worlds] == pytest.approx([0, -0.1])
    assert "worst world high-latency: -0.3000 to cubic (best -0.2000)" in said[1]


CALM_AND_ROUGH = ("ebcc-single", "high-latency")


def test_the_reward_of_a_rollout_is_of_that_rollout_alone(here, monkeypatch):
    from quicgym.envs.sb3 import Sb3VecEnv

    rewards, step = iter([1.0] * 10 + [3.0] * 10), Sb3VecEnv.step_wait

    def step_wait(self):
        observations, _, done, infos = step(self)
        return observations, np.full(8, next(rewards), np.float32), done, infos

    monkeypatch.setattr(Sb3VecEnv, "step_wait", step_wait)
    watch, (_, trainer) = Unwatched(), made(here)
    trainer.reseed(np.random.SeedSequence(1))
    trainer.learn(160, 160, watch)
    assert [watch.values[step, "rollout/reward"] for step in (80, 160)] == [1.0, 3.0]
    assert watch.events == ["begins", "ended"] * 2
    assert {"train/loss", "train/value_loss"} <= {name for _, name in watch.values}
    assert trainer.losses["train/value_loss"] > 0


@pytest.mark.parametrize("algorithm", ["ppo", "grpo"])
def test_randomness_begins_anew_from_the_seed_and_the_step(algorithm, here):
    def drawn(*entropy):
        _, trainer = made(here, algorithm=algorithm)
        trainer.reseed(np.random.SeedSequence(list(entropy)))
        numbers = [random.random(), np.random.random()]
        trainer.learn(1, 1, watch := Unwatched())
        return [*numbers, next(iter(watch.values.values()))]

    assert drawn(1, 160) == drawn(1, 160)
    assert drawn(1, 160)[:2] != drawn(1, 320)[:2] != drawn(2, 320)[:2]
