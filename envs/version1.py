"""What the environments of version 1 have in common."""

from __future__ import annotations

from typing import ClassVar

from quicgym.envs.environment import CongestionControlEnv
from quicgym.envs.interface import Observations


class Version1(CongestionControlEnv):
    """Observations over spans of a long history, a safe envelope, and actions that are clipped.

    The first of an environment's bases, before one of version 0.
    """

    observations: ClassVar[Observations] = "spans"
    default_scenario = "training-50"
    default_history_length = 128
    safe_envelope = True
    out_of_range = "clip"
