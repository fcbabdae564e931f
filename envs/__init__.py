"""Scenarios, simulations and their results."""

from quicgym.envs.result import FlowResult, Result, run
from quicgym.envs.scenario import Scenario, ScenarioError
from quicgym.envs.scenario_files import load_scenario, scenario_names
from quicgym.envs.simulation import Ns3MissingError, Simulation

__all__ = [
    "FlowResult",
    "Ns3MissingError",
    "Result",
    "Scenario",
    "ScenarioError",
    "Simulation",
    "load_scenario",
    "run",
    "scenario_names",
]
