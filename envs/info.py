"""Names the columns of `info`: what only the network knows, and the terms of the reward.

A number is NaN if nothing was measured: numbers of the decision interval when an episode begins,
RTTs before the first sample, and all numbers of a row without an agent, except `active` and
`step_s`, which are 0 there. `step_s` is also 0 when an episode begins, so that each step's reward
times its length can be summed up.
"""

from __future__ import annotations

import math

import numpy as np

from quicgym import _core

INFO_COLUMNS: tuple[str, ...] = tuple(name for name, _ in _core.INFO_COLUMNS)
"""The keys of `info`; docs/reference/environments.md says what they mean."""


class _NotMeasured(np.float64):
    """NaN that equals itself, because Gymnasium's check_env compares infos with `==`.

    It is one of numpy's numbers, because Gymnasium's vector environments make an array of objects
    of any other type.
    """

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _NotMeasured)

    def __hash__(self) -> int:
        return hash(_NotMeasured)


_NAN = _NotMeasured("nan")


def row_info(row: np.ndarray) -> dict[str, float]:
    """Returns a row of a batch's info by column."""
    return {
        name: _NAN if math.isnan(value) else value
        for name, value in zip(INFO_COLUMNS, row.tolist(), strict=True)
    }
