"""quicgym/Window-v1."""

from __future__ import annotations

from quicgym.envs.environment import CongestionControlEnv


class WindowEnv(CongestionControlEnv):
    r"""The agent is the controller: after slow start it scales the window of its flow.

    ## Description

    At every decision the agent chooses a factor for its flow's window, as mvfst-rl does (Sivakumar
    et al., 2019). Once slow start is over, only the agent and the safe envelope change the window;
    losses and timeouts do not. The network is simulated packet by packet, on the native engine or
    on ns-3, and both give the same episode.

    ## Action Space

    `Discrete(13)`: an action is the place of an exponent x in
    `quicgym.envs.actions.WINDOW_EXPONENTS`. It multiplies the window in force by 2^x, between two
    datagrams and 100 MB. The window in force is never larger than the safe envelope.

    | Action | x    | Action | x     | Action | x    | Action | x    | Action | x   |
    |--------|------|--------|-------|--------|------|--------|------|--------|-----|
    | 0      | -1   | 3      | -1/8  | 6      | 0    | 9      | 1/8  | 12     | 1   |
    | 1      | -1/2 | 4      | -1/16 | 7      | 1/32 | 10     | 1/4  |        |     |
    | 2      | -1/4 | 5      | -1/32 | 8      | 1/16 | 11     | 1/2  |        |     |

    The pacing rate is 1.25 · window / smoothed RTT (RFC 9002 7.7). During slow start actions have
    no effect.

    ## Observation Space

    `Box` of float32 with the shape `(98,)` for a history of 128 decisions: the spans and the state
    of quicgym/Tuning-v1, then a 1 in the place of the last action (0 at first). The mode is
    slow_start or congestion_avoidance.

    ## Rewards

    Over all flows of the network, since the last decision:

    throughput share - 5 · loss rate - 1 · (1 - Jain)

    `reward` takes other names, weights and functions; quicgym/Tuning-v1 explains the terms.

    ## Starting State

    The agent's flow is about to open its connection, in slow start (RFC 9002 7.3.1). A few random
    losses do not end slow start, so that the agent does not begin with a tiny window. It ends with

    - RTTs above 1.5 times the minimum, eight in a row or all of a round;
    - more than a tenth of the window lost in a round;
    - the third round whose delivery rate is not a quarter higher, not counting rounds that the
      application limits;
    - ECN-CE or persistent congestion.

    After the first three the window becomes 1.25 times the highest delivery rate times the minimum
    RTT.

    ## Episode End

    1. Termination: the agent's flow has ended, by its `stop_s` or because its transfer is complete.
    2. Truncation: the scenario's `duration_s`, or `episode_s` after the start.

    ## Arguments

    The arguments are those of quicgym/Tuning-v1, without `controller`.

    ## Version History

    * v1: Initial version.
    """

    environment = "window"
    acts_in_slow_start = False
