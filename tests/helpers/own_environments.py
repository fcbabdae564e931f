"""The environment of docs/how-to/own-environment.md's recipe; importing registers it."""

from __future__ import annotations

from quicgym.envs.environment import CongestionControlEnv


class PlainWindowEnv(CongestionControlEnv):
    """The factors of Window, on a controller without slow start."""

    environment = "plain_window"
    action_space_name = "window"
    controller = "external"
