"""The speed of a training: where its time goes, and what is refused."""

from __future__ import annotations

import pytest
import typer
from helpers.training import NEEDS_TRAIN, write_config

pytestmark = NEEDS_TRAIN


@pytest.fixture
def training_speed():
    import training_speed

    return training_speed


@pytest.fixture
def ppo(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return str(write_config(tmp_path))


def test_the_parts_are_the_whole_and_steps_are_counted(training_speed, ppo):
    config = training_speed.load_training(ppo)
    environments = training_speed.make_environments(config)
    timed = training_speed._Timed(environments)
    still = training_speed._Still(environments)
    for wrapped in (timed, still):
        training = training_speed.Trained(config, wrapped)
        training.go_on(1)
        rollout = config.hyperparameters["n_steps"] * environments.num_envs
        assert training.steps == rollout
        training.go_on(rollout + 1)
        assert training.steps == 3 * rollout
        assert set(training.spent_s) == set(training_speed.PARTS)
        assert training.spent_s["updates"] > 0 and training.spent_s["rest of rollouts"] > 0
    assert timed.spent_s > 0 and still.spent_s == 0
    environments.close()


def test_environments_that_cost_nothing_stand_still(training_speed, ppo):
    environments = training_speed.make_environments(training_speed.load_training(ppo))
    still = training_speed._Still(environments)
    first = still.reset()
    still.step_async(None)
    observations, rewards, done, infos = still.step_wait()
    assert (observations == first).all() and not rewards.any() and not done.any()
    assert len(infos) == environments.num_envs
    environments.close()


def test_the_command_prints_both_trainings(training_speed, ppo, capsys):
    training_speed.training_speed(ppo, [], steps=8)
    rows = [line for line in capsys.readouterr().out.splitlines() if "│" in line]
    assert len(rows) == 2 and "cost nothing" in rows[1]


def test_an_algorithm_that_plays_its_own_episodes_is_refused(training_speed):
    with pytest.raises(typer.BadParameter, match="window-grpo trains with grpo"):
        training_speed.training_speed("window-grpo", [])


def test_a_mistake_in_the_configuration_is_named(training_speed):
    with pytest.raises(typer.BadParameter, match="unknown training configuration 'pppo'"):
        training_speed.training_speed("pppo", [])
    with pytest.raises(typer.BadParameter, match="n_step = 3: unknown field"):
        training_speed.training_speed("ppo", ["hyperparameters.n_step=3"])
