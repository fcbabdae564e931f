"""quicgym/Aurora-v1."""

from __future__ import annotations

from quicgym.envs.version1 import Version1


class AuroraEnv(Version1):
    r"""The agent changes the pacing rate of its flow, and sees what Aurora sees.

    ## Description

    A comparator: the decision process of Jay et al., "A Deep Reinforcement Learning Perspective on
    Internet Congestion Control" (ICML 2019), over quicgym's networks. A monitor interval is a
    decision interval: give `decision_interval_rtts=1` and `reward="aurora"`.

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

    ## Rewards, Starting State, Episode End and Arguments

    Those of Rate-v1.

    ## Version History

    * v1: Initial version.
    """

    environment = "aurora_v1"
    action_space_name = "aurora"
    controller = "external"
    observations = "aurora"
    default_scenario = "aurora"
    default_history_length = 10
