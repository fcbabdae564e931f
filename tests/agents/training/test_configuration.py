"""Configurations of trainings, read without training anything."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from quicgym.agents.training.configuration import ConfigError, load_training


def test_names_of_older_versions_are_taken():
    changes = ("hyperparameters.visits=2", "hyperparameters.repeats=4", "hyperparameters.kept=0.3")
    config = load_training("window-aggrevate", [*changes, "network.extractor=pyramid"])
    new = ("hyperparameters.rollouts=2", "hyperparameters.hold=4")
    new = (*new, "hyperparameters.keep_fraction=0.3")
    assert config == load_training("window-aggrevate", new)
    assert config.network.extractor == "multi-scale"


def test_each_name_of_an_older_version_is_noted_once():
    script = textwrap.dedent("""
        from quicgym.agents.training.configuration import load_training

        for _ in range(2):
            load_training("window-aggrevate", ["hyperparameters.visits=2",
                "hyperparameters.repeats=4", "hyperparameters.kept=0.3",
                "network.extractor=pyramid"])
    """)
    # In a process of its own: other tests have had the notes of this one.
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for text in (
        "hyperparameters.visits is called hyperparameters.rollouts now",
        "hyperparameters.repeats is called hyperparameters.hold now",
        "hyperparameters.kept is called hyperparameters.keep_fraction now",
        "network.extractor = 'pyramid' is called multi-scale now",
    ):
        assert done.stderr.count(text) == 1


def test_a_change_by_a_new_name_holds_over_an_old_name_in_the_file(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "{name: mine, algorithm: aggrevate, steps: 1, environment: {id: quicgym/Window-v0}, "
        "hyperparameters: {visits: 2}}"
    )
    assert load_training(str(path)).hyperparameters == {"rollouts": 2}
    changed = load_training(str(path), ["hyperparameters.rollouts=5"])
    assert changed.hyperparameters == {"rollouts": 5}


@pytest.mark.parametrize("name", ["ppo", "switch-dpi", "window-grpo"])
def test_configurations_are_read_without_pytorch(name):
    code = (
        "import sys; from quicgym.agents.training.configuration import load_training; "
        f"assert load_training({name!r}).entry.mutable; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_environment_goes_by_its_name_or_its_id():
    by_name = load_training("switch-dpi", ["environment.id=switch"])
    assert by_name == load_training("switch-dpi")
    with pytest.raises(ConfigError, match="'swich'; did you mean switch"):
        load_training("switch-dpi", ["environment.id=swich"])
