"""quicgym/Rate-v1."""

from __future__ import annotations

from quicgym.envs.environment import CongestionControlEnv


class RateEnv(CongestionControlEnv):
    r"""The agent is the controller: it scales window and pacing rate of its flow.

    ## Description

    At every decision the agent multiplies the window and the pacing rate of its flow. Only the
    agent and the safe envelope change them; losses and timeouts do not. The network is simulated
    packet by packet, on the native engine or on ns-3, and both give the same episode.

    ## Action Space

    `Box(-1, 1, (2,), float32)`; actions outside [-1, 1] are clipped. With a the coordinate:

    | Num | Coordinate  | Meaning                                | Range of the result       |
    |-----|-------------|----------------------------------------|---------------------------|
    | 0   | window      | the window is multiplied by 2^a        | two datagrams to 100 MB   |
    | 1   | pacing_rate | the pacing rate is multiplied by 2^a   | 1 kB/s to 10 GB/s         |

    Factors multiply the window and the pacing rate in force, which are never larger than the safe
    envelope. Until the first RTT sample the factor of the pacing rate has no effect, and the pacing
    rate is 1.25 · window / smoothed RTT (RFC 9002 7.7, 6.2.2).

    ## Observation Space

    `Box` of float32 with the shape `(87,)` for a history of 128 decisions: the spans and the state
    of quicgym/Tuning-v1, then the two coordinates of the last action (0 at first). The mode is
    congestion_avoidance.

    ## Rewards

    Over all flows of the network, since the last decision:

    throughput share - 5 · loss rate - 1 · (1 - Jain)

    `reward` takes other names, weights and functions; quicgym/Tuning-v1 explains the terms.

    ## Starting State

    The agent's flow is about to open its connection, with the initial window of RFC 9002 7.2: ten
    datagrams, at most 14,720 bytes.

    ## Episode End

    1. Termination: the agent's flow has ended, by its `stop_s` or because its transfer is complete.
    2. Truncation: the scenario's `duration_s`, or `episode_s` after the start.

    ## Arguments

    The arguments are those of quicgym/Tuning-v1, without `controller`.

    ## Version History

    * v1: Initial version.
    """

    environment = "rate"
