"""examples/torchrl_ppo.py: PPO of TorchRL."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from helpers.training_examples import check_example


@pytest.mark.train
@pytest.mark.skipif(
    importlib.util.find_spec("torchrl") is None,
    reason="TorchRL is missing; `make setup EXTRAS=dev,ns3,examples` installs it",
)
def test_it_trains_and_is_evaluated_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_example("torchrl_ppo", tmp_path, monkeypatch)
