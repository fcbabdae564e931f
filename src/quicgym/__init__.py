"""quicgym: QUIC congestion control in simulation, over ns-3 and over a fast packet engine.

For reinforcement learning take `quicgym/Window-v1` with `scenario="training-50"`, and
`quicgym/Easy-v1` to try an agent's code. docs/tutorials/which-environment.md has the settings with
which PPO learns, and the curve to expect.

    environments = quicgym.make_vec("quicgym/Window-v1", num_envs=64, scenario="training-50")
    policy = quicgym.load_policy("window")
    results = quicgym.run("ebcc-single", controller="bbr")
"""

from importlib.metadata import version as _version
from pathlib import Path as _Path
from typing import TYPE_CHECKING as _TYPE_CHECKING

from quicgym import _core as _compiled
from quicgym import controllers
from quicgym.controllers import Controller, ControllerError
from quicgym.envs import (
    FlowResult,
    Ns3MissingError,
    Reward,
    Run,
    Scenario,
    ScenarioError,
    Simulation,
    load_scenario,
    make_vec,
    preset_action,
    run,
    scenario_names,
)
from quicgym.envs.decisions import Decisions
from quicgym.envs.simulation.packet_logs import PacketLogs
from quicgym.errors import PolicyError, UserError

if _TYPE_CHECKING:
    from quicgym.agents.evaluation.scores import score
    from quicgym.agents.policies.hand_coded import baseline
    from quicgym.agents.policies.learned import load_policy

__version__ = _version("quicgym")
_INSTALLED = _Path(_compiled.__file__).parent  # not beside this file after `make develop`


def __getattr__(name: str) -> object:
    # Agents build on what is imported above.
    if name == "baseline":
        from quicgym.agents.policies.hand_coded import baseline

        return baseline
    if name == "load_policy":
        from quicgym.agents.policies.learned import load_policy

        return load_policy
    if name == "score":
        from quicgym.agents.evaluation.scores import score

        return score
    raise AttributeError(f"module 'quicgym' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


def get_include() -> str:
    """Returns the folder of the headers: for controllers in other packages, and the C interface."""
    return str(_INSTALLED / "include")


def get_library_dir() -> str:
    """Returns the folder of libquicgym-controller, the library of the C interface."""
    return str(_INSTALLED / "lib")


__all__ = [
    "Controller",
    "ControllerError",
    "Decisions",
    "FlowResult",
    "Ns3MissingError",
    "PacketLogs",
    "PolicyError",
    "Reward",
    "Run",
    "Scenario",
    "ScenarioError",
    "Simulation",
    "UserError",
    "__version__",
    "baseline",
    "controllers",
    "get_include",
    "get_library_dir",
    "load_policy",
    "load_scenario",
    "make_vec",
    "preset_action",
    "run",
    "scenario_names",
    "score",
]
