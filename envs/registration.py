"""The environments by name, for gymnasium.make."""

from __future__ import annotations

import gymnasium

ENVIRONMENTS = ("quicgym/Tuning-v0", "quicgym/Rate-v0", "quicgym/Switch-v0", "quicgym/Window-v0")


def register_environments() -> None:
    """Tells Gymnasium of the environments; importing quicgym does so."""
    for name in ENVIRONMENTS:
        kind = name.removeprefix("quicgym/").removesuffix("-v0")
        gymnasium.register(
            id=name,
            entry_point=f"quicgym.envs.{kind.lower()}:{kind}Env",
            vector_entry_point=f"quicgym.envs.vector:{kind.lower()}_vector_env",
        )
