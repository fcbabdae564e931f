"""Configurations of trainings, read without training anything."""

from __future__ import annotations

import subprocess
import sys

import pytest

from quicgym.agents.training.configuration import ConfigError, load_training


@pytest.mark.parametrize("name", ["ppo", "switch-wide", "window-v1-grpo"])
def test_configurations_are_read_without_pytorch(name):
    code = (
        "import sys; from quicgym.agents.training.configuration import load_training; "
        f"assert load_training({name!r}).entry.mutable; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_environment_goes_by_its_name_or_its_id():
    by_name = load_training("switch-wide", ["environment.id=switch"])
    assert by_name == load_training("switch-wide")
    with pytest.raises(ConfigError, match="'swich'; did you mean switch"):
        load_training("switch-wide", ["environment.id=swich"])
