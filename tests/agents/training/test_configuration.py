"""Configurations of trainings, read without training anything."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from quicgym.agents.policies.learned import load_policy
from quicgym.agents.training.configuration import ConfigError, load_training
from quicgym.errors import PolicyError


def test_configurations_are_read_without_pytorch():
    code = (
        "import sys; from quicgym.agents.training.configuration import load_training; "
        "assert all(load_training(name).entry.mutable for name in ('tuning-ppo', 'window')); "
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_environment_goes_by_its_name_or_its_id():
    by_name = load_training("rate-ppo", ["environment.id=rate"])
    assert by_name == load_training("rate-ppo")
    with pytest.raises(ConfigError, match="'rat'; did you mean rate"):
        load_training("rate-ppo", ["environment.id=rat"])


@pytest.mark.parametrize(
    ("policy", "environment", "temperature"),
    [
        ("window", "quicgym/Window-v1", 1.0),
        ("tuning", "quicgym/Tuning-v1", 1.0),
    ],
)
def test_a_training_from_a_policy_has_its_network_and_its_environment(
    policy, environment, temperature
):
    description = load_policy(policy).description
    config = load_training("tuning-ppo", ["steps=7"], begin_with=policy)
    assert config.environment.id == environment
    decisions = config.environment.decisions
    assert replace(decisions, reward_interval_ms=None) == description.decisions
    assert config.network.extractor_sizes == description.architecture.extractor_sizes
    assert config.network.hidden_sizes == description.architecture.hidden_sizes
    assert config.network.activation == description.architecture.activation
    assert (config.start.policy, config.start.preset) == (policy, None)
    assert config.start.temperature == temperature
    plain = load_training("tuning-ppo", ["steps=7"])
    assert config.hyperparameters == plain.hyperparameters and config.steps == plain.steps


def test_changes_come_after_the_policy():
    config = load_training(
        "tuning-ppo", ["environment.decision_interval_ms=50"], begin_with="window"
    )
    assert config.environment.decision_interval_ms == 50  # training says that it does not fit


def test_a_policy_that_does_not_exist_is_named():
    with pytest.raises(PolicyError, match="did you mean window"):
        load_training("tuning-ppo", begin_with="windw")
    with pytest.raises(ConfigError, match="start.policy is for ppo, coordinate-aggrevate and grpo"):
        load_training("tuning-sac", begin_with="tuning")


def test_two_policies_to_begin_with_are_refused():
    with pytest.raises(ConfigError, match="--from window: start.policy = 'low-delay' is given"):
        load_training("window-ppo", ["start.policy=low-delay"], begin_with="window")


def test_a_preset_of_an_environment_without_presets_says_which_has_them():
    with pytest.raises(ConfigError, match="quicgym/Window-v1 has no presets; .*Tuning-v1"):
        load_training("window-ppo", ["start.preset=ebcc"])


def test_a_policy_to_begin_with_in_place_of_a_preset_is_said_with_what_to_leave_out():
    changes = ["start.policy=low-delay", "start.parameters={gamma: 3}"]
    with pytest.raises(ConfigError, match="start.preset = 'bbr' is set as well; .*--from low-dela"):
        load_training("tuning-ppo", changes)
    remedy = ["start.preset=null", "start.parameters={}"]
    with pytest.raises(ConfigError, match=" ".join(remedy)):
        load_training("tuning-ppo", changes)
    assert load_training("tuning-ppo", [*changes, *remedy]).start.policy == "low-delay"


@pytest.mark.parametrize("name", ["controller", "gama"])
def test_a_parameter_that_the_preset_does_not_have_is_named(name):
    changes = [
        "environment.id=quicgym/Tuning-v1",
        f"start={{preset: bbr, parameters: {{{name}: 1}}}}",
    ]
    with pytest.raises(ConfigError, match=f"controller 'bbr' has no parameter '{name}'; "):
        load_training("tuning-td3", changes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("extractor_sizes=[1000000000]", "extractor_sizes.0 = 1000000000: .*from 1 to 4096"),
        ("hidden_sizes=[0]", "hidden_sizes.0 = 0: .*from 1 to 4096"),
        (f"hidden_sizes={[2] * 17}", "network.hidden_sizes = .*: has 17 entries; .*at most 16"),
        ("hidden_sizes=[4096, 4096, 4096]", "take 132 MiB; a policy has at most 128"),
    ],
)
def test_a_network_that_no_policy_can_hold_is_refused(change, message):
    with pytest.raises(ConfigError, match=message):
        load_training("tuning-ppo", [f"network.{change}"])


def test_a_controller_that_is_given_twice_is_measured_once():
    config = load_training("tuning-start", ["evaluation.controllers=[bbr, bbr3, bbr]"])
    assert config.evaluation.controllers == ("bbr", "bbr3")
