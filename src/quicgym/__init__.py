"""quicgym: QUIC congestion control in simulation, over ns-3 and over a fast packet engine."""

from importlib.metadata import version as _version
from pathlib import Path as _Path

from quicgym import controllers
from quicgym.controllers import Controller, ControllerError
from quicgym.envs import (
    FlowResult,
    Ns3MissingError,
    Result,
    Reward,
    Scenario,
    ScenarioError,
    Simulation,
    load_scenario,
    make_vec,
    preset_action,
    run,
    scenario_names,
)

__version__ = _version("quicgym")


def get_include() -> str:
    """Returns the folder of the C++ headers for controllers in other packages."""
    return str(_Path(__file__).parent / "include")


__all__ = [
    "Controller",
    "ControllerError",
    "FlowResult",
    "Ns3MissingError",
    "Result",
    "Reward",
    "Scenario",
    "ScenarioError",
    "Simulation",
    "__version__",
    "controllers",
    "get_include",
    "load_scenario",
    "make_vec",
    "preset_action",
    "run",
    "scenario_names",
]
