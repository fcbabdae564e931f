"""quicgym/Switch-v1."""

from __future__ import annotations

from typing import Any

import numpy as np

from quicgym.envs.actions import choices
from quicgym.envs.environment import CongestionControlEnv
from quicgym.yaml_files import closest


class SwitchEnv(CongestionControlEnv):
    r"""The agent chooses, at every decision, which of fifteen controllers its flow runs.

    ## Description

    Loss-based and rate-based controllers each do well on some paths. The IBCCA paper recommends, in
    its section V, to switch between two of them as traffic changes. Here the agent switches among
    fifteen: all of them follow the connection, and the one in force takes over the window of the
    one before it; docs/explanation/controllers-switching.md says how. The network is simulated
    packet by packet, on the native engine or on ns-3; both give the same episode.

    ## Action Space

    `Discrete(15)`: the place of a controller in `SwitchEnv.presets`.

    | Action | Controller | Action | Controller   | Action | Controller | Action | Controller |
    |--------|------------|--------|--------------|--------|------------|--------|------------|
    | 0      | newreno    | 4      | bbr-smooth   | 8      | ibcca      | 12     | copa       |
    | 1      | cubic      | 5      | bbr-extended | 9      | newreno+   | 13     | vivace     |
    | 2      | vegas      | 6      | bbr-combined | 10     | cubic+     | 14     | prague     |
    | 3      | bbr        | 7      | ebcc         | 11     | bbr3       |        |            |

    Choosing the controller that is in force changes nothing. One that is chosen from the first step
    on and never changed gives, packet by packet, its own trace. While Prague is in force the flow's
    packets carry ECT(1), whether or not the flow has `ecn`.

    ## Observation Space

    `Box` of float32 with the shape `(100,)` for a history of 128 decisions: the spans and the state
    of quicgym/Tuning-v1, then a 1 in the place of the controller in force.

    ## Rewards

    Over all flows of the network, since the last decision:

    throughput share - 5 · loss rate - 1 · (1 - Jain)

    `reward` takes other names, weights and functions; quicgym/Tuning-v1 explains the terms.

    ## Starting State

    The agent's flow is about to open its connection, with NewReno in force.

    ## Episode End

    1. Termination: the agent's flow has ended, by its `stop_s` or because its transfer is complete.
    2. Truncation: the scenario's `duration_s`, or `episode_s` after the start.

    ## Arguments

    The arguments are those of quicgym/Tuning-v1, without `controller`. `safe_envelope` is off by
    default: all choices are whole controllers.

    ## Version History

    * v1: Initial version.
    """

    environment = "switch"
    presets = choices("switch")

    @classmethod
    def preset_action(cls, controller: str, **parameters: Any) -> np.ndarray:
        """Returns the place of a controller."""
        if controller not in cls.presets:
            raise ValueError(f"no choice {controller!r}; {closest(controller, cls.presets)}")
        if parameters:
            raise ValueError(f"{cls.id} has its controllers with their own parameters only")
        return np.array(cls.presets.index(controller))
