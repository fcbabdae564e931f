"""The choice of a policy by its worst world."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

import quicgym
from quicgym.agents.training import worlds
from quicgym.envs.rewards import Reward
from quicgym.envs.scenarios.suites import SELECTION_SEED, load_suite, parts_of


def measured(rewards):
    return worlds.Worlds(["calm", "rough"], {name: np.array(of) for name, of in rewards.items()})


def test_each_world_has_its_own_best_controller():
    rewards = {"cubic": [[0.5, 0.7], [0.1, 0.1]], "bbr": [[0.4, 0.4], [0.3, 0.5]]}
    calm, rough = measured(rewards).compare(np.array([0.7, 0.9, 0.2, 0.4]))
    assert (calm.name, calm.best, rough.name, rough.best) == ("calm", "cubic", "rough", "bbr")
    assert calm.reward == pytest.approx(0.8) and calm.difference.value == pytest.approx(0.2)
    assert rough.difference.value == pytest.approx(-0.1)
    # Paired: the differences are the same on both paths.
    assert rough.difference.low == pytest.approx(-0.1) == rough.difference.high


def test_a_mixture_is_its_parts():
    parts = parts_of(load_suite("worlds"))
    assert [part.name for part in parts][:2] == ["ordinary", "stress-training"]
    assert parts_of(load_suite("validation")) == list(load_suite("validation"))


def test_controllers_are_measured_once_and_again_when_the_paths_differ(tmp_path, monkeypatch):
    played = []

    def play_all(policy, cells, **options):
        played.append(policy.name)
        return [SimpleNamespace(evaluation={"reward": float(seed)}) for _, seed in cells]

    monkeypatch.setattr(worlds, "play_all", play_all)
    entries = [quicgym.load_scenario("ebcc-single"), quicgym.load_scenario("high-latency")]
    arguments = {"threads": 1, "reward": Reward()}
    path = tmp_path / "controllers.json"
    first = worlds.measure_controllers(("cubic", "bbr"), entries, 2, path, **arguments)
    assert first.names == ["ebcc-single", "high-latency"]
    assert first.rewards["bbr"].tolist() == [[SELECTION_SEED, SELECTION_SEED + 1]] * 2
    again = worlds.measure_controllers(("cubic", "bbr"), entries, 2, path, **arguments)
    assert again.rewards["cubic"].tolist() == first.rewards["cubic"].tolist()
    assert played == ["cubic", "cubic", "bbr", "bbr"]
    runs = json.loads(path.read_text())["runs"]
    assert [(run["controller"], run["scenario"], run["seed"]) for run in runs[:3]] == [
        ("cubic", "ebcc-single", SELECTION_SEED),
        ("cubic", "ebcc-single", SELECTION_SEED + 1),
        ("cubic", "high-latency", SELECTION_SEED),
    ]
    worlds.measure_controllers(("cubic", "bbr"), entries, 3, path, **arguments)
    assert len(played) == 8
