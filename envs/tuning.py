"""quicgym/Tuning-v1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from quicgym.envs.actions import (
    PRESETS,
    controller_action,
    part_of_space,
    preset_action,
    presets_of,
    tuned_space,
)
from quicgym.envs.environment import CongestionControlEnv


class TuningEnv(CongestionControlEnv):
    r"""The agent tunes γ, β, the gain cycle and the RTT smoothing α of its flow while it runs.

    ## Description

    A flow controlled by `bbr` shares a network with any number of others. eBCC and the variants of
    BBR for high-latency paths differ from BBR in four things: γ, the number of its own packets in
    the queue above which a flow gives way; β, the share of the window that a loss costs; the gain cycle, by which a flow
    probes for bandwidth and drains what it has queued; and α, the weight of history in the RTT
    average that replaces the lowest RTT. At every decision the agent sets these four. With all
    coordinates at 0 the flow is BBR, and each variant is one constant action. The network is
    simulated packet by packet, on the native engine or on ns-3; both give the same episode.

    The decision process is partially observed: an agent sees what a QUIC sender can measure.

    ## Action Space

    `Box(-1, 1, (13,), float32)`. With a the coordinate:

    | Num  | Coordinate         | Parameter of `bbr`                             | at -1 | at 0 | at 1 |
    |------|--------------------|------------------------------------------------|-------|------|------|
    | 0    | gamma              | 30 (1 - a) / a packets; infinity from 0 down   | ∞     | ∞    | 0    |
    | 1    | beta               | a; 0 from 0 down                               | 0     | 0    | 1    |
    | 2    | cycle_length       | 8 · 8^a phases, rounded                        | 1     | 8    | 64   |
    | 3    | entry_gain_minimum | 1 + a                                          | 0     | 1    | 2    |
    | 4–11 | gain_1 … gain_8    | 2^a times BBR's 1.25, 0.75, 1, 1, 1, 1, 1, 1; phases after them have 1 | half | BBR's | twice |
    | 12   | alpha              | 1 - 10^(3 - 6 abs a), to 3 decimals; 0 up to abs a = 1/2; below 0 RTprop keeps its first sample | 0.999 | 0 | 0.999 |

    A γ of infinity never acts, and an α of 0 leaves BBR its lowest RTT. `quicgym show controllers bbr`
    explains all parameters. Parameters that do not change are not set again. The mapping can be
    inverted: `preset_action("bbr")`, `"bbr-smooth"`, `"bbr-extended"`, `"bbr-combined"` and `"ebcc"`
    are points of the space and give, packet by packet, the trace of the controller of that name, as
    long as the safe envelope does not act. Actions outside [-1, 1] are clipped.

    `coordinates` chooses other coordinates. An action then has these, in this order, and every other
    parameter stays at BBR's value, or at yours: `"startup_gain=2"` in the list keeps that parameter at 2.
    `gain_cycle` stands for `cycle_length`, `entry_gain_minimum` and the eight
    gains, so the default is `("gamma", "beta", "gain_cycle", "alpha")`. `("all",)` adds five more,
    which only experts need (the action then has the order of `quicgym.envs.actions`):

    | Coordinate         | Parameter of `bbr`                             | at -1 | at 0 | at 1 |
    |--------------------|------------------------------------------------|-------|------|------|
    | cwnd_gain          | 2 · 4^a                                        | 0.5   | 2    | 8    |
    | startup_gain       | 2.885 · 2^a                                    | 1.443 | 2.885 | 5.77 |
    | rtprop_window      | 10 · 8^a s                                     | 1.25  | 10   | 80   |
    | probe_rtt_duration | 200 · 10^a ms                                  | 20    | 200  | 2000 |
    | bandwidth_window   | (cycle length + 2) · 4^a rounds                | 1/4   | 1    | 4 times |

    The environment's own `preset_action` has the presets in its coordinates.

    With `controller="ibcca"`, `"cubic+"` or another of `quicgym show controllers` the agent's flow runs
    that controller, and an action sets all of its parameters: one coordinate for each number, in
    the catalogue's order and over its ranges. `controller_action` of `quicgym.envs.actions` has the
    action for given parameters.

    **The safe envelope.** Whatever the agent does, its window is at most the largest of these three:

    - the initial window (twice that in the first two rounds);
    - the headroom times the highest recent delivery rate times the lowest RTT;
    - the headroom, but at most 1.25, times the most that was recently delivered between the sending
      of a packet and its acknowledgement.

    The headroom is 4. It falls to 1 after two periods with more than 10% of loss, and every period
    with less multiplies it by 1.25. The initial window shrinks with it, to a quarter. The pacing rate
    is at most four times the highest recent delivery rate. A period, and "recent", is a second, or
    ten of the lowest RTTs if these are longer. `safe_envelope=False` switches the envelope off.

    ## Observation Space

    `Box` of float32 with the shape `(105,)` for a history of 128 decisions. It is summed up in
    spans: the last decision interval, the one before, then the two, four, eight, … before that. For
    each span, with 10-base logarithms:

    | Feature       | Meaning                                                                       |
    |---------------|-------------------------------------------------------------------------------|
    | known         | share of the span's intervals that there have been; all else is 0 with it     |
    | delivery_rate | log of (acknowledged + a datagram) / (reference rate · length + a datagram)   |
    | send_rate     | log of (bytes sent + a datagram) / (bytes acknowledged + a datagram)          |
    | rtt           | log of mean RTT / base RTT                                                    |
    | loss          | log of 1 + 1000 · declared lost / (declared lost + acknowledged)              |
    | marks         | log of 1 + 1000 · packets marked ECN-CE / datagrams acknowledged              |
    | window        | mean log of window / BDP                                                      |
    | pacing_rate   | mean log of pacing rate / reference rate                                      |
    | in_flight     | mean log of (bytes in flight + a datagram) / BDP                              |

    The reference rate is the highest delivery rate of an interval of the last 10 s (10 intervals at
    least), the base RTT the lowest mean RTT of one of them, BDP their product; a datagram is the
    least that rate and BDP are. Then the state, in which ages are in base RTTs:

    | Feature          | Meaning                                                                    |
    |------------------|----------------------------------------------------------------------------|
    | bdp              | log of BDP in datagrams                                                    |
    | base_rtt         | log of the base RTT in ms                                                  |
    | base_rtt_age     | log of 1 + age of the interval with the base RTT                           |
    | min_rtt          | log of base RTT / the connection's minimum RTT                             |
    | min_rtt_age      | log of 1 + age of the last interval near the lowest RTT so far             |
    | highest_rate     | log of the connection's highest delivery rate / reference rate             |
    | highest_rate_age | log of 1 + age of the last interval near that                              |
    | interval         | log of the time since the last decision / smoothed RTT                     |
    | age              | log of 1 + age of the flow                                                 |
    | queue            | log of 1 + the flow's packets in the queue (eBCC's diff)                   |
    | cycle_gain       | 2-base log of the pacing gain of the cycle's phase; 0 outside ProbeBW      |
    | cycle_passed     | share of the gain cycle's phases that are over                             |
    | phase_left       | least time that is left of the phase / base RTT                            |
    | the seven modes  | 1 in this one, else 0                                                      |
    | action_…         | the 13 coordinates in force                                                |

    The modes are slow_start, congestion_avoidance, recovery, startup, drain, probe_bw and
    probe_rtt. Bounds are wide: nothing reaches them on the networks of `stress`.
    `quicgym.envs.observations.observation_names` names every element. What only the network knows,
    its capacity and its queue, is in `info` with the terms of the reward;
    docs/reference/environments.md lists the keys.

    ## Rewards

    Over all flows of the network, since the last decision:

    throughput share - 5 · loss rate - 1 · (1 - Jain)

    Throughput share is what reached the receivers over what the bottleneck could have sent, the
    loss rate what the network dropped over what it dropped or delivered, Jain's index that of the
    throughputs of the flows that were running. `reward` takes other names, other weights and
    functions; see `quicgym.envs.rewards`.

    ## Starting State

    The agent's flow is about to open its connection: BBR in Startup with its own parameters,
    nothing measured. The scenario, where it is drawn, and the seed of the simulation come from the
    environment's generator.

    ## Episode End

    1. Termination: the agent's flow has ended, by its `stop_s` or because its transfer is complete.
    2. Truncation: the scenario's `duration_s`, or `episode_s` after the start.

    ## Arguments

    | Parameter                | Default             | Description                                  |
    |--------------------------|---------------------|----------------------------------------------|
    | `scenario`               | `"default"`         | a Scenario, a name, a path, or a distribution; default: `training-50` |
    | `engine`                 | `"native"`          | `"native"` or `"ns3"`                        |
    | `flow`                   | None                | the name or the index of the agent's flow; None: the first flow that names no controller |
    | `other_controllers`      | `"cubic"`           | the controller of the other flows that name none |
    | `reward`                 | `"fair-throughput"` | a name, a `Reward`, or a function of the columns of `info` |
    | `baseline`               | `None`              | a controller that is simulated on the same network with the same seed; the reward is the agent's minus the controller's |
    | `episode_s`              | None                | None: to the end of the scenario             |
    | `record_deliveries`      | False               | keep what `deliveries()` returns             |
    | `render_mode`            | None                | `"rgb_array"` or `"human"`                   |

    The fields of `quicgym.Decisions` are arguments, too: the times between decisions and rewards,
    `history_length` (128), `safe_envelope` (on), `guard` (off), `out_of_range`
    (`"clip"`), `coordinates`, and `controller`, which the agent tunes in place of `bbr`.

    `reset(options={"controller": "cubic"})` runs any controller of `quicgym show controllers`, or a
    subclass of `quicgym.Controller`, in the agent's place: actions are checked and ignored, and it
    earns the same reward. `options={"scenario": …}` runs another scenario for one episode.

    ```python
    >>> import gymnasium, quicgym
    >>> env = gymnasium.make("quicgym/Tuning-v1", scenario="ebcc-flows-3", flow="flow-1")
    >>> observation, info = env.reset(seed=1)
    >>> observation, reward, terminated, truncated, info = env.step(quicgym.preset_action("ebcc"))

    ```

    ## Vectorized environment

    `gymnasium.make_vec("quicgym/Tuning-v1", num_envs=1024)`, or `quicgym.make_vec`, runs all
    simulations in this process over a pool of threads; see `quicgym.envs.vector`.

    ## Version History

    * v1: Initial version.
    """  # noqa: E501

    environment = "tuning"
    presets = PRESETS

    @classmethod
    def variant(
        cls, controller: str | None, coordinates: Sequence[str] | None = None
    ) -> type[CongestionControlEnv]:
        """Returns this environment, one for `controller`, or one with other coordinates.

        Raises:
            ValueError: The controller cannot be tuned, a coordinate is unknown, or both are given.
        """
        if coordinates is None:
            return cls if controller is None else _tuned_environment(cls, controller)
        if controller is not None:
            raise ValueError(
                f"coordinates = {tuple(coordinates)}: are those of 'bbr', not of {controller!r}; "
                "leave one of the two out"
            )
        return _environment_in_part(cls, coordinates)

    @classmethod
    def preset_action(cls, controller: str, **parameters: Any) -> np.ndarray:
        """Returns `quicgym.preset_action`."""
        return preset_action(controller, **parameters)


def _environment_in_part(base: type[TuningEnv], coordinates: Sequence[str]) -> type[TuningEnv]:
    """Returns the subclass whose actions have these coordinates; unregistered."""

    class PartEnv(base):  # type: ignore[valid-type, misc]
        __doc__ = base.__doc__
        action_space_name = part_of_space(base.action_space_name, coordinates)
        presets = presets_of(action_space_name)

        @classmethod
        def preset_action(cls, controller: str, **parameters: Any) -> np.ndarray:
            """Returns the action in these coordinates that is the controller."""
            return preset_action(controller, space=cls.action_space_name, **parameters)

    return PartEnv


def _tuned_environment(base: type[TuningEnv], controller_name: str) -> type[TuningEnv]:
    """Returns the subclass for a controller, which has no name and so is not registered."""

    class TunedEnv(base):  # type: ignore[valid-type, misc]
        __doc__ = base.__doc__
        action_space_name = tuned_space(controller_name)
        controller = controller_name
        presets = (controller_name,)

        @classmethod
        def preset_action(cls, controller: str, **parameters: Any) -> np.ndarray:
            """Returns the action that sets the controller's parameters."""
            if controller != controller_name:
                raise ValueError(
                    f"{controller!r} is not a point of the action space: give {controller_name!r}"
                )
            return controller_action(controller, **parameters)

    return TunedEnv
