"""quicgym/Window-v0 and quicgym/Window-v1."""

from __future__ import annotations

from quicgym.envs.environment import CongestionControlEnv
from quicgym.envs.version1 import Version1


class WindowEnv(CongestionControlEnv):
    r"""The agent is the controller: after slow start it scales the window of its flow.

    ## Description

    At every decision the agent chooses a factor for its flow's window, as mvfst-rl does (Sivakumar
    et al., 2019). Once slow start is over nothing else changes the window: not a loss, not a
    timeout. The network is simulated packet by packet, on the native engine or on ns-3; both give
    the same episode.

    ## Action Space

    `Discrete(13)`: the place of an exponent x in `quicgym.envs.actions.WINDOW_EXPONENTS`. The
    window is multiplied by 2^x, within two datagrams and 100 MB.

    | Action | x    | Action | x     | Action | x    | Action | x    | Action | x   |
    |--------|------|--------|-------|--------|------|--------|------|--------|-----|
    | 0      | -1   | 3      | -1/8  | 6      | 0    | 9      | 1/8  | 12     | 1   |
    | 1      | -1/2 | 4      | -1/16 | 7      | 1/32 | 10     | 1/4  |        |     |
    | 2      | -1/4 | 5      | -1/32 | 8      | 1/16 | 11     | 1/2  |        |     |

    The pacing rate is 1.25 · window / smoothed RTT (RFC 9002 7.7). During slow start actions have
    no effect.

    ## Observation Space

    `Box` of float32 with the shape `(8 history_length + 22,)`: the frames and the state of
    Tuning-v0, then a 1 in the place of the last action (0 at first). `queue_over_gamma` is 0, and
    the mode is slow_start or congestion_avoidance.

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
    | action_…         | the factors: 1 for the last one chosen, else 0               | 0   | 1   |

    ## Rewards

    As in Tuning-v0: throughput share - 5 · loss rate - 1 · (1 - Jain) over all flows of the
    network, since the last decision.

    ## Starting State

    The agent's flow is about to open its connection, in slow start (RFC 9002 7.3.1). A few random
    losses do not end that. RTTs above 1.5 times the minimum do, eight in a row or all of a round,
    and more than a tenth of the window lost in a round, or the third round without a delivery rate
    a quarter higher (those that the application limits do not count); then the window becomes 1.25
    times the highest delivery rate times the minimum RTT. ECN-CE and persistent congestion end it
    too.

    ## Episode End

    1. Termination: the agent's flow has ended, by its `stop_s` or because its transfer is complete.
    2. Truncation: the scenario's `duration_s`, or `episode_s` after the start.

    ## Arguments

    Those of Tuning-v0, reset options included.

    ## Version History

    * v0: Initial version. `WindowV1Env` has other observations and a safe envelope.
    """

    environment = "window"
    controller = "guided"
    acts_in_slow_start = False


class WindowV1Env(Version1, WindowEnv):
    r"""The agent is the controller: after slow start it scales the window of its flow.

    ## Description

    Window-v0 with the observations and the safe envelope of Tuning-v1. A factor multiplies the
    window in force, which is never larger than the envelope.

    ## Action Space

    `Discrete(13)`, as in Window-v0.

    ## Observation Space

    `Box` of float32 with the shape `(98,)` for a history of 128 decisions: spans and state of
    Tuning-v1, then a 1 in the place of the last action (0 at first).

    ## Rewards, Starting State and Episode End

    Those of Window-v0.

    ## Arguments

    Those of Tuning-v1.

    ## Version History

    * v1: Observations in logarithms over spans; the safe envelope.
    """

    environment = "window_v1"
    action_space_name = "window"
