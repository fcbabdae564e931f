"""ONNX files as policies: their environment, their state, and files that are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.onnx_files import write_onnx

from quicgym.agents.policies.by_name import find_policy, policy_kind
from quicgym.agents.policies.policy import StatefulPolicy
from quicgym.errors import PolicyError


def test_the_file_names_its_environment_and_choices_are_the_largest(tmp_path: Path) -> None:
    path = str(write_onnx(tmp_path / "mine.onnx"))
    policy = find_policy(path)
    assert policy_kind(path) == "learned"
    assert policy.decisions.environment == "window"
    assert policy.decisions.history_length == 8
    features = policy.decisions.observation_space.shape[0]
    draws = np.random.default_rng(1)
    observations = draws.normal(size=(5, features)).astype(np.float32)
    weights = np.random.default_rng(0).normal(size=(features, 7)).astype(np.float32)
    expected = (observations @ weights).argmax(1)
    assert policy(observations).tolist() == expected.tolist()
    assert policy(observations[0]) == expected[0]


def test_a_state_lasts_until_reset(tmp_path: Path) -> None:
    policy = find_policy(str(write_onnx(tmp_path / "mine.onnx", recurrent=True)))
    assert isinstance(policy, StatefulPolicy)
    features = policy.decisions.observation_space.shape[0]
    draws = np.random.default_rng(2).normal(size=(20, 3, features)).astype(np.float32)

    def actions() -> list[list[int]]:
        policy.reset()
        return [policy(observations).tolist() for observations in draws]

    first = actions()
    weights = np.random.default_rng(0).normal(size=(features, 7)).astype(np.float32)
    assert first == (draws @ weights).cumsum(axis=0).argmax(2).tolist()
    assert first == actions()


def test_other_weights_have_another_fingerprint(tmp_path: Path) -> None:
    files = [write_onnx(tmp_path / f"{seed}.onnx", seed=seed) for seed in (0, 1)]
    first, second = (find_policy(str(file)) for file in files)
    assert first.fingerprint != second.fingerprint  # type: ignore[attr-defined]


def test_files_that_are_no_policy_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="needs the extra `onnx`")
    with pytest.raises(PolicyError, match="gone.onnx: No such file"):
        find_policy(str(tmp_path / "gone.onnx"))
    (tmp_path / "damaged.onnx").write_bytes(b"no network")
    with pytest.raises(PolicyError, match="damaged.onnx: .*export the network again"):
        find_policy(str(tmp_path / "damaged.onnx"))
    with pytest.raises(PolicyError, match="wrong.onnx: metadata quicgym.decisions"):
        path = write_onnx(tmp_path / "wrong.onnx")
        content = path.read_bytes().replace(b'"environment": "window"', b'"environment": "widow!"')
        path.write_bytes(content)
        find_policy(str(path))
    with pytest.raises(PolicyError, match="other.onnx: .*given observations of the shape"):
        path = write_onnx(tmp_path / "other.onnx")
        content = path.read_bytes().replace(b'"history_length": 8', b'"history_length": 9')
        path.write_bytes(content)
        find_policy(str(path))


def test_an_endless_loop_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime", reason="needs the extra `onnx`")
    monkeypatch.setattr("quicgym.agents.policies.onnx.MOST_SECONDS", 0.2)
    path = write_onnx(tmp_path / "endless.onnx", endless=True)
    with pytest.raises(PolicyError, match=r"endless.onnx: a decision took longer than 0.2 s"):
        find_policy(str(path))
