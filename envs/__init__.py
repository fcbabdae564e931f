"""Scenarios, simulations, their results, and the environments over them."""

from quicgym.envs.actions import action_parameters, preset_action
from quicgym.envs.distributions import Distribution, load_distribution, load_suite
from quicgym.envs.registration import ENVIRONMENTS, register_environments
from quicgym.envs.result import FlowResult, Result, run
from quicgym.envs.rewards import Reward
from quicgym.envs.scenario import Scenario, ScenarioError
from quicgym.envs.scenario_files import load_scenario, scenario_names
from quicgym.envs.simulation import Ns3MissingError, Simulation
from quicgym.envs.vector import make_vec

__all__ = [
    "ENVIRONMENTS",
    "Distribution",
    "FlowResult",
    "Ns3MissingError",
    "Result",
    "Reward",
    "Scenario",
    "ScenarioError",
    "Simulation",
    "action_parameters",
    "load_distribution",
    "load_scenario",
    "load_suite",
    "make_vec",
    "preset_action",
    "run",
    "scenario_names",
]

register_environments()
