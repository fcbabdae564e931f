"""A model of Stable-Baselines3 comes back in the environment in which it was trained."""

import warnings

import numpy as np
import pytest
from helpers import environments as helper

import quicgym
from quicgym.agents.evaluation.rollouts import play

pytestmark = [pytest.mark.train, pytest.mark.filterwarnings("ignore:.*runs code")]


def train(environments):
    from stable_baselines3 import PPO

    model = PPO("MlpPolicy", environments, n_steps=8, batch_size=16, device="cpu", seed=1)
    return model.learn(16)


def make(name="rate", **arguments):
    from quicgym.envs.sb3 import make_sb3

    return make_sb3(name, 2, scenario="ebcc-single", episode_s=2.0, **arguments)


def load(path):
    return quicgym.load_policy(path, trust_zip=True)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("rate", {}),
        ("tuning", {"controller": "cubic"}),
        ("window", {"decision_interval_ms": 500.0, "history_length": 4}),
    ],
)
def test_a_zip_keeps_its_environment_and_every_argument_of_its_decisions(name, arguments, tmp_path):
    train(make(name, **arguments)).save(tmp_path / "mine.zip")
    assert load(tmp_path / "mine.zip").decisions == quicgym.Decisions(name, **arguments)


def test_a_zip_without_its_environment_is_refused_with_those_that_fit(tmp_path):
    from quicgym.envs.sb3 import RECORD

    model = train(make("rate"))
    delattr(model.action_space, RECORD)
    model.save(tmp_path / "mine.zip")
    with pytest.raises(quicgym.PolicyError) as refusal:
        load(tmp_path / "mine.zip")
    assert "quicgym.envs.sb3.make_sb3('quicgym/Rate-v1')" in str(refusal.value)


def test_a_model_of_a_single_environment_becomes_a_policy_by_what_the_refusal_says(tmp_path):
    import gymnasium
    import stable_baselines3

    path = tmp_path / "mine.zip"
    train(gymnasium.make("quicgym/Window-v1")).save(path)
    with pytest.raises(quicgym.PolicyError) as refusal:
        load(path)
    _, _, call = str(refusal.value).partition("write it again by ")
    code, _, _ = call.partition("; give make_sb3")
    exec(code, {"quicgym": quicgym, "PPO": stable_baselines3.PPO})
    assert load(path).decisions == quicgym.Decisions("window")


def test_the_remedy_for_a_zip_without_its_environment(tmp_path):
    from stable_baselines3 import PPO

    from quicgym.envs.sb3 import RECORD, save

    path, environments = tmp_path / "mine.zip", make("rate", decision_interval_ms=50.0)
    model = train(environments)
    delattr(model.action_space, RECORD)
    model.save(path)
    save(PPO.load(path, env=environments), path)
    assert load(path).decisions == quicgym.Decisions("rate", decision_interval_ms=50.0)
    with pytest.raises(ValueError, match=r"env=make_sb3\('quicgym/Window-v1'\)"):
        save(PPO.load(path), path)


def test_a_zip_keeps_the_statistics_of_vec_normalize(tmp_path):
    from stable_baselines3.common.vec_env import VecNormalize

    from quicgym.envs.sb3 import save

    environments = VecNormalize(make("window"))
    model = train(environments)
    save(model, tmp_path / "mine.zip")
    observations = np.random.default_rng(0).random(
        (64, *environments.observation_space.shape), np.float32
    )
    expected, _ = model.predict(environments.normalize_obs(observations), deterministic=True)
    raw, _ = model.predict(observations, deterministic=True)
    assert not np.array_equal(expected, raw)
    policy = load(tmp_path / "mine.zip")
    assert np.array_equal(policy(observations), expected)
    assert np.array_equal(policy(observations[0]), expected[0])


def test_a_zip_without_the_statistics_of_its_vec_normalize_is_refused(tmp_path):
    from stable_baselines3.common.vec_env import VecNormalize

    train(VecNormalize(make("window"))).save(tmp_path / "mine.zip")
    with pytest.raises(quicgym.PolicyError, match=r"VecNormalize.* quicgym\.envs\.sb3\.save"):
        load(tmp_path / "mine.zip")


def test_a_zip_of_other_observations_is_refused(tmp_path):
    train(make("window", privileged=True)).save(tmp_path / "mine.zip")
    with pytest.raises(quicgym.PolicyError, match="without privileged=True"):
        load(tmp_path / "mine.zip")


def test_a_zip_in_an_environment_without_its_arguments_says_how_to_make_the_right_one(tmp_path):
    train(make("window", history_length=4)).save(tmp_path / "mine.zip")
    observations = make("window").reset()
    with pytest.raises(quicgym.PolicyError, match=r"Window-v1', \*\*policy\.decisions\.arguments"):
        load(tmp_path / "mine.zip")(observations)


def test_a_wrapper_whose_effect_a_zip_cannot_keep_is_refused(tmp_path):
    from stable_baselines3.common.vec_env import VecCheckNan, VecEnvWrapper, VecNormalize

    from quicgym.envs.sb3 import save

    class Halved(VecEnvWrapper):
        def reset(self):
            return self.venv.reset() / 2

        def step_wait(self):
            observations, *rest = self.venv.step_wait()
            return observations / 2, *rest

    for environments, name in (
        (Halved(make("window")), "Halved"),
        (VecNormalize(Halved(make("window"))), "Halved"),
        (VecNormalize(VecNormalize(make("window"))), "VecNormalize twice"),
    ):
        with pytest.raises(ValueError, match=f"the wrapper {name}, .*file.py:object"):
            save(train(environments), tmp_path / "mine.zip")
    save(train(VecNormalize(VecCheckNan(make("window")))), tmp_path / "mine.zip")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", ".*runs code")
        load(tmp_path / "mine.zip")
    train(Halved(make("window"))).save(tmp_path / "theirs.zip")
    with pytest.warns(UserWarning, match=r"does not keep wrappers.*quicgym\.envs\.sb3\.save"):
        load(tmp_path / "theirs.zip")


def test_a_zip_of_a_recurrent_model_keeps_the_state_of_each_row_until_reset(tmp_path):
    from helpers.recurrent import Counts, CountsDecisions
    from stable_baselines3 import PPO

    environments = make("window")
    PPO(CountsDecisions, environments, n_steps=8, batch_size=16).save(tmp_path / "mine.zip")
    policy = load(tmp_path / "mine.zip")
    observations = environments.reset()
    for _ in range(2):
        policy.reset()
        assert [policy(observations).tolist() for _ in range(3)] == [[1, 1], [2, 2], [3, 3]]
    for _ in range(2):
        played, expected = (play(it, helper.scenario()) for it in (policy, Counts()))
        assert played.metrics["reward"] == expected.metrics["reward"]


def test_the_logs_of_stable_baselines3_have_the_mean_return():
    model = train(make("window"))
    model.learn(64)
    assert model.ep_info_buffer
    assert all(episode["l"] == 20 for episode in model.ep_info_buffer)


@pytest.mark.parametrize(
    ("package", "name", "environment"),
    [
        ("stable_baselines3", "DQN", "window"),
        ("stable_baselines3", "SAC", "rate"),
        ("stable_baselines3", "TD3", "rate"),
        ("stable_baselines3", "A2C", "rate"),
        ("sb3_contrib", "QRDQN", "window"),
        ("sb3_contrib", "TRPO", "rate"),
        ("sb3_contrib", "MaskablePPO", "window"),
        ("sb3_contrib", "RecurrentPPO", "window"),
    ],
)
def test_every_algorithm_comes_back_as_itself(package, name, environment, tmp_path):
    from quicgym.envs.sb3 import save

    algorithm = getattr(pytest.importorskip(package), name)
    policy = "MlpLstmPolicy" if name == "RecurrentPPO" else "MlpPolicy"
    environments = make(environment)
    replay = {"learning_starts": 20} if name in ("DQN", "QRDQN", "SAC", "TD3") else {}
    model = algorithm(policy, environments, device="cpu", seed=1, **replay)
    unmasked = {"use_masking": False} if name == "MaskablePPO" else {}
    model.learn(30 if replay else 1, **unmasked)
    save(model, tmp_path / "mine.zip")
    loaded = load(tmp_path / "mine.zip")
    assert type(loaded.model) is algorithm
    observations = environments.reset()
    expected, _ = model.predict(observations, deterministic=True)
    assert np.array_equal(loaded(observations), expected)
    model = algorithm(policy, environments, device="cpu", seed=1)
    model.save(tmp_path / "plain.zip")
    if package == "stable_baselines3":
        assert type(load(tmp_path / "plain.zip").model) is algorithm
    elif name in ("QRDQN", "MaskablePPO"):  # the policies of the others decide alone
        with pytest.raises(quicgym.PolicyError, match=r"save it by quicgym\.envs\.sb3\.save"):
            load(tmp_path / "plain.zip")


def test_a_trained_dqn_of_model_save_may_lack_statistics_and_is_refused_with_the_remedy(tmp_path):
    from stable_baselines3 import DQN

    from quicgym.envs.sb3 import save

    path, environments = tmp_path / "mine.zip", make("window")
    DQN("MlpPolicy", environments, learning_starts=20, device="cpu").learn(30).save(path)
    with pytest.raises(quicgym.PolicyError, match=r"no statistics of VecNormalize.*DQN\.load"):
        load(path)
    save(DQN.load(path, env=environments), path)
    assert load(path).normalization is None


def test_save_refuses_what_load_policy_would_refuse(tmp_path):
    from stable_baselines3.common.vec_env import VecFrameStack

    from quicgym.envs.sb3 import save

    with pytest.raises(ValueError, match="VecFrameStack.*longer history_length"):
        save(train(VecFrameStack(make("window"), 2)), tmp_path / "mine.zip")
    with pytest.raises(ValueError, match="without privileged=True"):
        save(train(make("window", privileged=True)), tmp_path / "mine.zip")


def test_the_remedy_for_other_environments_has_their_own_arguments(tmp_path):
    import gymnasium
    from stable_baselines3.common.vec_env import DummyVecEnv

    from quicgym.envs.sb3 import save

    def environment():
        return gymnasium.make("quicgym/Rate-v1", scenario="ebcc-single", decision_interval_ms=200)

    model = train(DummyVecEnv([environment] * 2))
    remedy = r"env=make_sb3\('quicgym/Rate-v1', decision_interval_ms=200\)"
    with pytest.raises(ValueError, match=remedy):
        save(model, tmp_path / "mine.zip")


def test_environments_with_a_render_mode_draw_their_simulations():
    environments = make("window", render_mode="rgb_array")
    environments.reset()
    environments.step(np.array([6, 6]))
    assert len(environments.get_images()) == 2
    assert environments.render("rgb_array").ndim == 3
    with pytest.raises(ValueError, match="render_mode = 'human'"):
        make("window", render_mode="human")
