"""Recording: the dataset is read by Minari's own functions, and is what was played."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import quicgym
from quicgym.agents.evaluation.recording import FIRST_SEED, record
from quicgym.agents.evaluation.rollouts import play_all
from quicgym.agents.policies import find_policy
from quicgym.errors import UserError

minari = pytest.importorskip("minari")

PATH = """
name: pair
duration_s: 1
bottleneck: {rate_mbps: 3, delay_ms: 5, queue: {limit: 20}}
access: {rate_mbps: 50, delay_ms: 1}
flows: [{name: first}, {name: second, stop_s: 0.6}]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pair.yaml").write_text(PATH)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def recorded(*policies: str, suite: str = "pair.yaml", seeds: int = 2) -> Any:
    name, episodes, steps = record(policies, suite, seeds, Path("data"))
    dataset = minari.load_dataset(name)
    assert (dataset.total_episodes, dataset.total_steps) == (episodes, steps)
    return dataset


def test_a_dataset_has_the_steps_of_the_environment(folder: Path) -> None:
    dataset = recorded("window", "random")
    assert dataset.total_episodes == 2 * 2 * 2  # policies, seeds, flows
    episodes = list(dataset.iterate_episodes())
    where = list(dataset.storage.get_episode_metadata(range(8)))
    assert [(it["policy"], it["seed"], it["flow"]) for it in where[:5]] == [
        ("window", FIRST_SEED, "first"),
        ("window", FIRST_SEED, "second"),
        ("window", FIRST_SEED + 1, "first"),
        ("window", FIRST_SEED + 1, "second"),
        ("random", FIRST_SEED, "first"),
    ]
    policy = find_policy("window")
    for episode, about in zip(episodes, where, strict=True):
        steps = len(episode.actions)
        assert episode.observations.shape == (steps + 1, *dataset.observation_space.shape)
        assert episode.observations.dtype == np.float32
        assert episode.infos["flow_window_bytes"].shape == (steps + 1,)
        ends = episode.terminations | episode.truncations
        assert ends[-1] and not ends[:-1].any()
        assert all(map(dataset.action_space.contains, episode.actions))
        if about["policy"] != "random":
            assert np.array_equal(policy(episode.observations[:-1]), episode.actions)
    cells = [(quicgym_scenario(), FIRST_SEED + number) for number in range(2)]
    (run, _) = play_all(policy, cells, threads=1)
    assert np.array_equal(episodes[0].rewards, run.series["reward"])


def quicgym_scenario() -> Any:
    return quicgym.load_scenario("pair.yaml")


def test_every_recorded_episode_is_played_again_by_its_seed(folder: Path) -> None:
    dataset = recorded("window", suite="training-50", seeds=4)
    environment = dataset.recover_environment()
    about = dataset.storage.get_episode_metadata(range(4))
    for episode, where in zip(dataset.iterate_episodes(), about, strict=True):
        observation, _ = environment.reset(options={"episode_seed": where["seed"]})
        assert np.array_equal(observation, episode.observations[0])
        for action, reward in zip(episode.actions, episode.rewards, strict=True):
            assert environment.step(action)[1] == reward


def test_the_environment_comes_back_with_what_the_policy_decides_on(folder: Path) -> None:
    dataset = recorded("window", suite="ebcc-single", seeds=1)
    environment = dataset.recover_environment().unwrapped
    assert environment.observation_space == dataset.observation_space
    assert environment.spec.kwargs["observations"] == "recent"
    assert environment.spec.kwargs["scenario"] == "ebcc-single"


def test_controllers_are_the_actions_that_do_the_same(folder: Path) -> None:
    dataset = recorded("bbr", "ebcc", seeds=1)
    assert dataset.env_spec.id == "quicgym/Tuning-v1"
    environment: Any = gymnasium.make("quicgym/Tuning-v1").unwrapped
    for episode, about in zip(
        dataset.iterate_episodes(), dataset.storage.get_episode_metadata(range(4)), strict=True
    ):
        expected = environment.preset_action(about["policy"])
        assert all(np.array_equal(action, expected) for action in episode.actions)


@pytest.mark.parametrize(
    ("policies", "changes", "words"),
    [
        (["cubic", "window"], {}, "cubic: has no actions in quicgym/Window-v1"),
        (["window", "tuning"], {}, "a dataset has one environment"),
        (["window"], {"environment": "tuning"}, "window is a policy of window"),
        (["window"], {"suite": "heldout"}, "for evaluation alone"),
        (["window"], {"dataset": "a b"}, "dataset='a b'"),
    ],
)
def test_what_cannot_be_recorded_is_refused(
    policies: list[str], changes: dict[str, Any], words: str, folder: Path
) -> None:
    arguments = {"suite": "pair.yaml", "seeds": 1, "directory": Path("data"), **changes}
    with pytest.raises(UserError, match=words):
        record(policies, **arguments)


def test_random_actions_are_of_the_coordinates_that_the_policy_next_to_it_has(folder: Path) -> None:
    dataset = recorded("low-delay", "random", seeds=1)
    assert all(
        dataset.action_space.contains(action)
        for episode in dataset.iterate_episodes()
        for action in episode.actions
    )


def test_a_dataset_is_not_overwritten(folder: Path) -> None:
    recorded("bbr", seeds=1)
    with pytest.raises(UserError, match="has a dataset"):
        recorded("bbr", seeds=1)
