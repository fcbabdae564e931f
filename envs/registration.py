"""The environments by name, for gymnasium.make and for whoever looks one up."""

from __future__ import annotations

import gymnasium

from quicgym.envs.environment import CongestionControlEnv
from quicgym.envs.rate import RateEnv
from quicgym.envs.switch import SwitchEnv
from quicgym.envs.tuning import TuningEnv
from quicgym.envs.window import WindowEnv

CLASSES: dict[str, type[CongestionControlEnv]] = {
    "quicgym/Tuning-v0": TuningEnv,
    "quicgym/Rate-v0": RateEnv,
    "quicgym/Switch-v0": SwitchEnv,
    "quicgym/Window-v0": WindowEnv,
}
ENVIRONMENTS = tuple(CLASSES)
BY_KIND = {environment.kind: environment for environment in CLASSES.values()}
"""The classes by the kind of their actions."""


def register_environments() -> None:
    """Tells Gymnasium of the environments; importing quicgym does so."""
    for name, environment in CLASSES.items():
        short = environment.__module__.rpartition(".")[2]
        gymnasium.register(
            id=name,
            entry_point=f"{environment.__module__}:{environment.__name__}",
            vector_entry_point=f"quicgym.envs.vector:{short}_vector_env",
        )
