"""What actions do is measured, so that a policy's description can record it."""

import pytest

from quicgym.envs import action_effect as module
from quicgym.envs import environments, find_environment
from quicgym.envs.action_effect import action_effect, differs
from quicgym.envs.decisions import Decisions


@pytest.mark.parametrize("environment", sorted(environments()))
def test_an_effect_is_repeated_and_notices_whether_there_is_a_safe_envelope(
    environment, monkeypatch
):
    before = action_effect(environment)
    action_effect.cache_clear()
    assert action_effect(environment) == before
    enveloped = find_environment(environment).safe_envelope
    monkeypatch.setattr(
        module,
        "Decisions",
        lambda name, **fields: Decisions(name, **fields, safe_envelope=not enveloped),
    )
    action_effect.cache_clear()
    changed = action_effect(environment)
    action_effect.cache_clear()
    assert differs(before, changed)


def test_an_effect_is_of_the_controller_that_actions_tune():
    assert differs(action_effect("tuning"), action_effect("tuning", "cubic"))
