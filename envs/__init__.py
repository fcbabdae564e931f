"""Scenarios, simulations, their results, and the environments over them."""

from quicgym.envs.actions import action_parameters, preset_action
from quicgym.envs.registration import ENVIRONMENTS, register_environments
from quicgym.envs.rewards import Reward
from quicgym.envs.scenarios.distributions import Distribution, load_distribution
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.scenarios.files import load_scenario, scenario_names
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.scenarios.suites import load_suite
from quicgym.envs.simulation.result import FlowResult, Result, run
from quicgym.envs.simulation.simulation import Ns3MissingError, Simulation
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
