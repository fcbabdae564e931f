"""States of environments: what `clone_state` returns and `restore_state` takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from quicgym import _core
from quicgym.envs.episodes import EpisodeChoice


@dataclass(frozen=True)
class GeneratorState:
    """A generator of random numbers at one moment; much faster than copy.deepcopy of it."""

    bit_generator: type[np.random.BitGenerator]
    numbers: Mapping[str, Any]
    seeds: np.random.SeedSequence
    children: int

    @classmethod
    def of(cls, generator: np.random.Generator) -> GeneratorState:
        """Returns the state in which a generator is."""
        bits = generator.bit_generator
        seeds: Any = bits.seed_seq
        return cls(type(bits), bits.state, seeds, seeds.n_children_spawned)

    def generator(self) -> np.random.Generator:
        """Returns a new generator in this state, which spawns the same children, too."""
        seeds = np.random.SeedSequence(
            self.seeds.entropy,
            spawn_key=self.seeds.spawn_key,
            pool_size=self.seeds.pool_size,
            n_children_spawned=self.children,
        )
        bits = self.bit_generator(seeds)
        bits.state = self.numbers
        return np.random.Generator(bits)


@dataclass(frozen=True)
class EpisodeState:
    """An episode of a batch at one moment.

    Attributes:
        core: The simulation and what follows it, in C++.
        choice: Choice that was drawn for the episode.
        rows: Rows of the batch's arrays.
        arguments: The batch's, by name.
        baseline: State of the baseline's episode; None without a baseline.
    """

    core: _core.Episode
    choice: EpisodeChoice | None
    rows: tuple[np.ndarray, ...]
    arguments: Mapping[str, Any]
    baseline: EpisodeState | None = None


@dataclass(frozen=True, eq=False, repr=False)
class EnvironmentState:
    """The state of an environment, or of one simulation of a vector environment; opaque.

    Nothing changes it, so `restore_state` takes it any number of times. It is independent of the
    environment that it comes from. It cannot be pickled.
    """

    _episode: EpisodeState
    _generator: GeneratorState
    _seed: int | None
    _options: Mapping[str, Any] | None = None
    _drawn: Sequence[dict[str, Any]] = field(default=())


def episodes_of(states: Sequence[EnvironmentState]) -> list[EpisodeState]:
    """Returns the states of the episodes.

    Raises:
        TypeError: Something else is among them.
    """
    for state in states:
        if not isinstance(state, EnvironmentState):
            raise TypeError(f"restore_state: {state!r} is not what clone_state has returned")
    return [state._episode for state in states]


def check_arguments(given: Mapping[str, Any], state: EpisodeState) -> None:
    """Checks that an environment with these arguments can continue with a state.

    Raises:
        ValueError: An argument differs; the text names it with both values.
    """
    if state.arguments is given:
        return
    for name, value in given.items():
        of_state = state.arguments[name]
        if of_state is not value and of_state != value:
            shown, here = (getattr(it, "name", it) for it in (of_state, value))
            raise ValueError(
                f"restore_state: the state is of an environment with {name} = {shown!r}, this one "
                f"has {here!r}; make both with the same arguments"
            )
