"""quicgym/Easy-v1."""

from __future__ import annotations

from quicgym.envs.window import WindowEnv


class EasyEnv(WindowEnv):
    r"""quicgym/Window-v1 on one easy network, to find out whether your code can learn at all.

    ## Description

    One flow has a link of 10 Mbps and 40 ms for itself, with a queue of 1 BDP, for 5 s. Nothing is
    random, so every episode is the same. An agent that does well here need not do well anywhere
    else: train in quicgym/Window-v1 for that.

    ## Action Space, Observation Space, Rewards and Episode End

    They are those of quicgym/Window-v1. An episode has 50 decisions at most.

    A policy that never changes the window after slow start has a return of about 47, BBR 45, and
    random actions 19. PPO with the defaults of Stable-Baselines3 is above 28 after 8,000 steps;
    the tutorial "Which environment for reinforcement learning" has its curve.

    ## Version History

    * v1: Initial version.
    """

    environment = "easy"
    default_scenario = "easy"
