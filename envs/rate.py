"""quicgym/Rate-v0 and quicgym/Rate-v1."""

from __future__ import annotations

from quicgym.envs.environment import CongestionControlEnv
from quicgym.envs.version1 import Version1


class RateEnv(CongestionControlEnv):
    r"""The agent is the controller: it scales window and pacing rate of its flow.

    ## Description

    At every decision the agent multiplies the window and the pacing rate of its flow, as Aurora
    (Jay et al., ICML 2019) does with the rate and Orca (Abbasloo et al., SIGCOMM 2020) with the
    window. Nothing else changes them: not a loss, not a timeout. The network is simulated packet by
    packet, on the native engine or on ns-3; both give the same episode.

    ## Action Space

    `Box(-1, 1, (2,), float32)`. With a the coordinate:

    | Num | Coordinate  | Meaning                                | Range of the result       |
    |-----|-------------|----------------------------------------|---------------------------|
    | 0   | window      | the window is multiplied by 2^a        | two datagrams to 100 MB   |
    | 1   | pacing_rate | the pacing rate is multiplied by 2^a   | 1 kB/s to 10 GB/s         |

    Until the first RTT sample the second has no effect, and the pacing rate is 1.25 · window /
    smoothed RTT (RFC 9002 7.7, 6.2.2).

    ## Observation Space

    `Box` of float32 with the shape `(8 history_length + 11,)`: the frames and the state of
    Tuning-v0, then the two coordinates of the last action (0 at first). `queue_over_gamma` is 0,
    and the mode is congestion_avoidance.

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
    | action_…         | the two coordinates                                          | -1  | 1   |

    ## Rewards

    As in Tuning-v0: throughput share - 5 · loss rate - 1 · (1 - Jain) over all flows of the
    network, since the last decision. `reward="aurora"` and `reward="orca"` are those of the papers.

    ## Starting State

    The agent's flow is about to open its connection, with the initial window of RFC 9002 7.2: ten
    datagrams, at most 14,720 bytes.

    ## Episode End

    1. Termination: the agent's flow has ended, by its `stop_s` or because its transfer is complete.
    2. Truncation: the scenario's `duration_s`, or `episode_s` after the start.

    ## Arguments

    Those of Tuning-v0, reset options included.

    ## Version History

    * v0: Initial version. `RateV1Env` has other observations and a safe envelope.
    """

    environment = "rate"
    controller = "external"


class RateV1Env(Version1, RateEnv):
    r"""The agent is the controller: it scales window and pacing rate of its flow.

    ## Description

    Rate-v0 with the observations and the safe envelope of Tuning-v1. Factors multiply the window
    and the pacing rate in force, which are never larger than the envelope.

    ## Action Space

    `Box(-1, 1, (2,), float32)`, as in Rate-v0; what lies outside [-1, 1] is clipped.

    ## Observation Space

    `Box` of float32 with the shape `(87,)` for a history of 128 decisions: spans and state of
    Tuning-v1, then the two coordinates of the last action.

    ## Rewards, Starting State and Episode End

    Those of Rate-v0.

    ## Arguments

    Those of Tuning-v1.

    ## Version History

    * v1: Observations in logarithms over spans; the safe envelope; actions are clipped.
    """

    environment = "rate_v1"
    action_space_name = "rate"
