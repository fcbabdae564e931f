"""quicgym/Aurora-v1."""

from __future__ import annotations

from quicgym.envs.environment import CongestionControlEnv


class AuroraEnv(CongestionControlEnv):
    r"""The agent changes the pacing rate of its flow, and sees what Aurora sees.

    ## Description

    A comparator: the decision process of Jay et al., "A Deep Reinforcement Learning Perspective on
    Internet Congestion Control" (ICML 2019), over quicgym's networks. A monitor interval is a
    decision interval: give `decision_interval_ms=1`, `decision_interval_rtts=1` and
    `reward="aurora"`.

    ## Action Space

    `Box(-1, 1, (1,), float32)`; what lies outside [-1, 1] is clipped. With x = 0.25 a the pacing
    rate is multiplied by 1 + x, or divided by 1 - x where x is below 0. In the paper x = 0.025 a,
    and a has no bound; that it ends at ten times as much is ours. Until the first RTT sample the
    rate is 1.25 · window / smoothed RTT. Nothing but the safe envelope bounds the window: Aurora
    has none.

    ## Observation Space

    `Box` of float32 with the shape `(3 history_length + 1,)`, history_length 10 as in the paper:
    for each interval, the oldest first, three numbers, and the last action. Intervals before the
    episode are 0.

    | Feature          | Meaning                                                     | Min | Max |
    |------------------|-------------------------------------------------------------|-----|-----|
    | latency_gradient | change of the mean RTT since the interval before / length   | -10 | 10  |
    | latency_ratio    | mean RTT / lowest mean RTT of an interval so far            | 0   | 100 |
    | send_ratio       | datagrams sent / datagrams acknowledged                     | 0   | 100 |

    ## Rewards

    The default is quicgym/Tuning-v1's; `reward="aurora"` is the paper's.

    ## Starting State

    The agent's flow is about to open its connection, with the initial window of RFC 9002 7.2: ten
    datagrams, at most 14,720 bytes.

    ## Episode End

    1. Termination: the agent's flow has ended, by its `stop_s` or because its transfer is complete.
    2. Truncation: the scenario's `duration_s`, or `episode_s` after the start.

    ## Arguments

    The arguments are those of quicgym/Tuning-v1, without `controller`. `history_length` is 10 and
    `scenario` the distribution `aurora` by default.

    ## Version History

    * v1: Initial version.
    """

    environment = "aurora"
    default_scenario = "aurora"
