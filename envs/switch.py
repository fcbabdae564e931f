"""quicgym/Switch-v0 and quicgym/Switch-v1."""

from __future__ import annotations

from typing import Any

import numpy as np

from quicgym.envs.actions import choices
from quicgym.envs.environment import CongestionControlEnv
from quicgym.envs.version1 import Version1
from quicgym.yaml_files import closest


class SwitchEnv(CongestionControlEnv):
    r"""The agent chooses, at every decision, which congestion controller its flow runs.

    ## Description

    Loss-based and rate-based controllers each do well on some paths. The IBCCA paper recommends, in
    its section V, to switch between two of them as traffic changes. Here the agent switches among
    eleven: all of them follow the connection, and the one in force takes over the window of the
    one before it; docs/explanation/controllers-switching.md says how. The network is simulated
    packet by packet, on the native engine or on ns-3; both give the same episode.

    ## Action Space

    `Discrete(11)`: the place of a controller in `SwitchEnv.presets`.

    | Action | Controller | Action | Controller   | Action | Controller   |
    |--------|------------|--------|--------------|--------|--------------|
    | 0      | newreno    | 4      | bbr-smooth   | 8      | ibcca        |
    | 1      | cubic      | 5      | bbr-extended | 9      | newreno+     |
    | 2      | vegas      | 6      | bbr-combined | 10     | cubic+       |
    | 3      | bbr        | 7      | ebcc         |        |              |

    Choosing the controller that is in force changes nothing. One that is chosen from the first step
    on and never changed gives, packet by packet, its own trace.

    ## Observation Space

    `Box` of float32 with the shape `(8 history_length + 20,)`: the frames and the state of
    Tuning-v0, then a 1 in the place of the controller in force. `queue_over_gamma` is 0.

    | Feature          | Meaning                                                      | Min | Max |
    |------------------|--------------------------------------------------------------|-----|-----|
    | delivery_rate    | bytes acknowledged per second / highest rate                 | 0   | 1   |
    | send_rate        | bytes sent per second / highest rate                         | 0   | 4   |
    | pacing_rate      | pacing rate / highest rate                                   | 0   | 4   |
    | rtt              | mean RTT / minimum RTT                                       | 0   | 10  |
    | loss             | bytes declared lost / (bytes declared lost + acknowledged)   | 0   | 1   |
    | in_flight        | bytes in flight / BDP                                        | 0   | 10  |
    | window           | window / BDP                                                 | 0   | 10  |
    | queue_over_gamma | 0: there is no γ                                             | 0   | 10  |
    | bdp              | log10(1 + BDP in datagrams) / 6                              | 0   | 1   |
    | min_rtt          | log10(1 + minimum RTT in ms) / 5                             | 0   | 1   |
    | the seven modes  | 1 in this one, else 0                                        | 0   | 1   |
    | action_…         | the controllers: 1 for the one in force, else 0              | 0   | 1   |

    ## Rewards

    As in Tuning-v0: throughput share - 5 · loss rate - 1 · (1 - Jain) over all flows of the
    network, since the last decision.

    ## Starting State

    The agent's flow is about to open its connection, with NewReno in force.

    ## Episode End

    1. Termination: the agent's flow has ended, by its `stop_s` or because its transfer is complete.
    2. Truncation: the scenario's `duration_s`, or `episode_s` after the start.

    ## Arguments

    Those of Tuning-v0, reset options included.

    ## Version History

    * v0: Initial version. `SwitchV1Env` has more controllers.
    """

    environment = "switch"
    controller = "switching"
    presets = choices("switch")

    @classmethod
    def preset_action(cls, controller: str, **parameters: Any) -> np.ndarray:
        """Returns the place of a controller."""
        if controller not in cls.presets:
            raise ValueError(f"no choice {controller!r}; {closest(controller, cls.presets)}")
        if parameters:
            raise ValueError(f"{cls.id} has its controllers with their own parameters only")
        return np.array(cls.presets.index(controller))


class SwitchV1Env(Version1, SwitchEnv):
    r"""The agent chooses, at every decision, which of fifteen controllers its flow runs.

    ## Description

    Switch-v0 with four more controllers: BBR version 3, Copa, PCC Vivace and Prague, and with the
    observations of Tuning-v1. While Prague is in force the flow's packets carry ECT(1), whether or
    not the flow has `ecn`. There is no safe envelope: all choices are whole controllers.

    ## Action Space

    `Discrete(15)`: the place of a controller in `SwitchV1Env.presets`. Actions 0 to 10 are those of
    Switch-v0.

    | Action | Controller | Action | Controller | Action | Controller | Action | Controller |
    |--------|------------|--------|------------|--------|------------|--------|------------|
    | 11     | bbr3       | 12     | copa       | 13     | vivace     | 14     | prague     |

    ## Observation Space

    `Box` of float32 with the shape `(100,)` for a history of 128 decisions: spans and state of
    Tuning-v1, then a 1 in the place of the controller in force.

    ## Rewards, Starting State and Episode End

    Those of Switch-v0.

    ## Arguments

    Those of Tuning-v1; `safe_envelope` is off.

    ## Version History

    * v1: Four controllers more; observations in logarithms over spans.
    """

    environment = "switch_v1"
    action_space_name = "switch_v1"
    presets = choices("switch_v1")
    safe_envelope = False
