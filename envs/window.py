"""quicgym/Window-v1 and quicgym/Window-v0."""

from __future__ import annotations

from quicgym.envs.environment import CongestionControlEnv


class WindowEnv(CongestionControlEnv):
    r"""The agent is the controller: after slow start it scales the window of its flow.

    ## Description

    At every decision the agent chooses a factor for its flow's window, as mvfst-rl does (Sivakumar
    et al., 2019). Once slow start is over nothing else changes the window but the safe envelope:
    not a loss, not a timeout. The network is simulated packet by packet, on the native engine or on
    ns-3; both give the same episode.

    ## Action Space

    `Discrete(13)`: the place of an exponent x in `quicgym.envs.actions.WINDOW_EXPONENTS`. The
    window in force is multiplied by 2^x, within two datagrams and 100 MB. The window in force is
    never larger than the safe envelope.

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
    losses do not end that. RTTs above 1.5 times the minimum do, eight in a row or all of a round,
    and more than a tenth of the window lost in a round, or the third round without a delivery rate
    a quarter higher (those that the application limits do not count); then the window becomes 1.25
    times the highest delivery rate times the minimum RTT. ECN-CE and persistent congestion end it
    too.

    ## Episode End

    1. Termination: the agent's flow has ended, by its `stop_s` or because its transfer is complete.
    2. Truncation: the scenario's `duration_s`, or `episode_s` after the start.

    ## Arguments

    The arguments are those of quicgym/Tuning-v1, without `controller`.

    ## Version History

    * v0: `WindowV0Env`.
    * v1: Observations in logarithms over spans; the safe envelope.
    """

    environment = "window"
    acts_in_slow_start = False


class WindowV0Env(WindowEnv):
    r"""The agent scales the window of its flow, without the safe envelope, and sees frames.

    ## Description

    The decision process of quicgym/Window-v1, with other observations and without the safe
    envelope.

    ## Action Space

    `Discrete(13)`, as in quicgym/Window-v1.

    ## Observation Space

    `Box` of float32 with the shape `(8 history_length + 22,)`. First come `history_length` frames,
    the oldest first. A frame sums up one decision interval, and frames before the episode are 0.
    Then comes the state, and a 1 in the place of the last action (0 at first).

    | Feature          | Meaning                                                      | Min | Max |
    |------------------|--------------------------------------------------------------|-----|-----|
    | delivery_rate    | bytes acknowledged per second / highest rate                 | 0   | 1   |
    | send_rate        | bytes sent per second / highest rate                         | 0   | 4   |
    | pacing_rate      | pacing rate / highest rate                                   | 0   | 4   |
    | rtt              | mean RTT / minimum RTT                                       | 0   | 10  |
    | loss             | bytes declared lost / (bytes declared lost + acknowledged)   | 0   | 1   |
    | in_flight        | bytes in flight / BDP                                        | 0   | 10  |
    | window           | window / BDP                                                 | 0   | 10  |
    | queue_over_gamma | eBCC's diff / γ; 0 where the controller has no γ             | 0   | 10  |
    | bdp              | log10(1 + BDP in datagrams) / 6                              | 0   | 1   |
    | min_rtt          | log10(1 + minimum RTT in ms) / 5                             | 0   | 1   |
    | the seven modes  | 1 in this one, else 0                                        | 0   | 1   |
    | action_…         | the factors: 1 for the last one chosen, else 0               | 0   | 1   |

    The highest rate is that of all delivery rates of an interval so far, BDP is this times the
    minimum RTT. What is not known yet is 0; what is larger than its maximum is the maximum.

    ## Rewards, Starting State and Episode End

    Rewards, starting state and end are those of quicgym/Window-v1.

    ## Arguments

    The arguments are those of quicgym/Window-v1. `history_length` is 4 and `scenario` is
    `ebcc-single` by default.

    ## Version History

    * v0: Initial version.
    """

    environment = "window_v0"
    default_scenario = "ebcc-single"
