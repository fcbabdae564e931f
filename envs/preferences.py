"""What counts how much in an episode: weights of throughput, loss, fairness and delay.

An environment with a preference shows it at the end of every observation, and the reward
`preference` weighs its terms by it. So one policy can learn what to do for any weights, as MOCC
does for Aurora (Ma et al., "Multi-Objective Congestion Control", EuroSys 2022; there without
fairness), and its user chooses them afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from quicgym import _core
from quicgym.envs.info import INFO_COLUMNS
from quicgym.envs.rewards import Reward
from quicgym.yaml_files import closest

PREFERENCE_TERMS: tuple[str, ...] = tuple(_core.PREFERENCE_TERMS)
"""What has a weight, in the order of observations."""
_COLUMNS = [
    INFO_COLUMNS.index(name) for name in ("throughput_share", "loss_rate", "jain", "rtt_ratio")
]


@dataclass(frozen=True)
class Preference:
    """Weights that sum to 1; what is given is divided by its sum.

    Raises:
        ValueError: A weight is no finite number from 0 on, or none is above 0.
    """

    throughput: float = 0.0
    loss: float = 0.0
    fairness: float = 0.0
    delay: float = 0.0

    def __post_init__(self) -> None:
        """Checks the weights, and divides them by their sum."""
        for term in PREFERENCE_TERMS:
            weight = getattr(self, term)
            is_number = isinstance(weight, int | float | np.number) and not isinstance(weight, bool)
            if not is_number or not 0 <= weight < math.inf:
                raise ValueError(f"preference: {term} = {weight!r}: give a finite number from 0 on")
        largest = max(getattr(self, term) for term in PREFERENCE_TERMS)
        if largest == 0:
            raise ValueError(
                f"preference: no weight is above 0; give one to {', '.join(PREFERENCE_TERMS)}"
            )
        # By the largest first, so that no sum is infinite.
        scaled = [float(getattr(self, term)) / largest for term in PREFERENCE_TERMS]
        total = math.fsum(scaled)
        is_one = math.isclose(total * largest, 1.0, rel_tol=1e-12)  # and stays as it is, to the bit
        for term, weight in zip(PREFERENCE_TERMS, scaled, strict=True):
            exact = float(getattr(self, term)) if is_one else weight / total
            object.__setattr__(self, term, exact)

    @classmethod
    def of(cls, weights: Any) -> Preference:
        """Returns a preference for weights by name, those that are missing 0.

        Raises:
            ValueError: The value is no mapping, has another name, or a weight is not valid.
        """
        if isinstance(weights, Preference):
            return weights
        if not isinstance(weights, Mapping):
            raise ValueError(
                f"preference = {weights!r}: give weights by name, such as "
                "{'throughput': 1, 'delay': 1}"
            )
        for name in weights:
            if name not in PREFERENCE_TERMS:
                raise ValueError(
                    f"preference: no weight {name!r}; {closest(name, PREFERENCE_TERMS)}"
                )
        return cls(**weights)

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Preference:
        """Returns one that is drawn uniformly from all, by Dirichlet's distribution."""
        return cls(*rng.dirichlet(np.ones(len(PREFERENCE_TERMS))).tolist())

    @property
    def weights(self) -> tuple[float, ...]:
        """The weights in the order of PREFERENCE_TERMS."""
        return tuple(getattr(self, term) for term in PREFERENCE_TERMS)


def preference_terms(info: np.ndarray) -> np.ndarray:
    """Returns the terms that the reward `preference` weighs, with their signs; times 4.

    Args:
        info: Rows of it, shape (rows, len(INFO_COLUMNS)).

    Returns:
        Shape (rows, 4), in the order of PREFERENCE_TERMS; their sum, weighted by a preference, is
        the reward with the default weights.
    """
    outcomes = info[:, _COLUMNS]
    np.nan_to_num(outcomes[:, -1], copy=False, nan=1.0)  # before the first RTT sample
    terms: np.ndarray = _core.preference_terms(Reward("preference").to_core(), outcomes)
    return terms


EQUAL = Preference(1, 1, 1, 1)
"""Each term counts as in the rewards `fair-throughput` and `delay`."""


def preference_choice(given: Any) -> Preference | Literal["random"] | None:
    """Returns what an environment's argument `preference` means.

    Raises:
        ValueError: The preference is not valid.
    """
    if given is None:
        return None
    if isinstance(given, str):
        if given != "random":
            raise ValueError(f"preference = {given!r}: give 'random', weights by name, or None")
        return "random"
    return Preference.of(given)
