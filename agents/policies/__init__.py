"""Policies: the protocol, hand-coded ones, learned ones and their networks."""

from quicgym.agents.policies.by_name import find_policy, pretrained_names
from quicgym.agents.policies.hand_coded import controller_policy, preset_policy
from quicgym.agents.policies.policy import ConstantPolicy, Policy, RandomPolicy

__all__ = [
    "ConstantPolicy",
    "Policy",
    "RandomPolicy",
    "controller_policy",
    "find_policy",
    "preset_policy",
    "pretrained_names",
]
