"""quicgym/Scale-v1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from quicgym.envs.environment import CongestionControlEnv
from quicgym.envs.simulation.controller_choice import find_controller


class ScaleEnv(CongestionControlEnv):
    r"""The agent scales window and pacing rate of a controller that goes on deciding.

    ## Description

    As Orca does with CUBIC (Abbasloo et al., SIGCOMM 2020): a hand-coded controller reacts to every
    acknowledgement and every loss, and at each decision the agent sets a factor for its window and
    one for its pacing rate. An agent that does nothing is that controller, so learning begins with
    what is known to work. The network is simulated packet by packet, on the native engine or on
    ns-3; both give the same episode.

    ## Action Space

    `Box(-1, 1, (2,), float32)`; what lies outside [-1, 1] is clipped. With a the coordinate:

    | Num | Coordinate  | Meaning                                         | at -1 | at 0 | at 1 |
    |-----|-------------|-------------------------------------------------|-------|------|------|
    | 0   | window      | the controller's window is multiplied by 4^a    | 1/4   | 1    | 4    |
    | 1   | pacing_rate | its pacing rate is multiplied by 4^a            | 1/4   | 1    | 4    |

    Factors hold until the next decision and do not add up: 0 is always the controller as it is,
    packet by packet. The window is two datagrams at least. The controller does not know of the
    factors; it hears of the acknowledgements and losses that they lead to.

    ## Observation Space

    `Box` of float32 with the shape `(87,)` for a history of 128 decisions: the spans and the state
    of quicgym/Tuning-v1, then the two coordinates in force. `window` and `pacing_rate` are the
    scaled ones.

    ## Rewards

    Over all flows of the network, since the last decision:

    throughput share - 5 · loss rate - 1 · (1 - Jain)

    `reward` takes other names, weights and functions; quicgym/Tuning-v1 explains the terms.

    ## Starting State

    The agent's flow is about to open its connection; its controller begins as it always does.

    ## Episode End

    1. Termination: the agent's flow has ended, by its `stop_s` or because its transfer is complete.
    2. Truncation: the scenario's `duration_s`, or `episode_s` after the start.

    ## Arguments

    The arguments are those of quicgym/Tuning-v1, the safe envelope included. `controller` is
    `"cubic"` by default, and takes any of `quicgym controllers`.

    ```python
    >>> import gymnasium, quicgym
    >>> env = gymnasium.make("quicgym/Scale-v1", controller="ibcca")
    >>> observation, info = env.reset(seed=1)
    >>> observation, reward, terminated, truncated, info = env.step([0.0, 0.0])

    ```

    ## Version History

    * v1: Initial version.
    """

    environment = "scale"
    presets = ("cubic",)
    unscaled = np.zeros(2, np.float32)
    """The action that leaves the controller alone."""

    @classmethod
    def variant(
        cls, controller: str | None, coordinates: Sequence[str] | None = None
    ) -> type[CongestionControlEnv]:
        """Returns this environment with another controller.

        Raises:
            ValueError: There is none of this name, or `coordinates` are given.
        """
        if controller is None or coordinates is not None:
            return super().variant(None, coordinates)
        find_controller(controller)
        attributes = {"__doc__": cls.__doc__, "controller": controller, "presets": (controller,)}
        return type(cls.__name__, (cls,), attributes)

    @classmethod
    def preset_action(cls, controller: str, **parameters: Any) -> np.ndarray:
        """Returns the action that leaves the controller alone."""
        if controller not in cls.presets or parameters:
            raise ValueError(
                f"{controller!r} with {parameters}: the actions of {cls.id} scale "
                f"{cls.controller!r}; give that, without parameters"
            )
        return cls.unscaled.copy()
