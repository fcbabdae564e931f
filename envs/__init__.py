"""Scenarios, simulations, their results, and the environments over them."""

from quicgym.envs.actions import action_parameters, preset_action
from quicgym.envs.easy import EasyEnv
from quicgym.envs.rate import RateEnv
from quicgym.envs.registration import environment_ids, environments, find_environment
from quicgym.envs.rewards import Reward
from quicgym.envs.scenarios.distributions import Distribution, load_distribution
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.scenarios.files import load_scenario, scenario_names
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.scenarios.suites import load_suite
from quicgym.envs.simulation.metrics import FlowResult
from quicgym.envs.simulation.run import Run
from quicgym.envs.simulation.simulation import Ns3MissingError, Simulation
from quicgym.envs.simulation.sources import run
from quicgym.envs.tuning import TuningEnv
from quicgym.envs.vector import make_vec
from quicgym.envs.window import WindowEnv

__all__ = [
    "ENVIRONMENTS",
    "Distribution",
    "EasyEnv",
    "FlowResult",
    "Ns3MissingError",
    "RateEnv",
    "Reward",
    "Run",
    "Scenario",
    "ScenarioError",
    "Simulation",
    "TuningEnv",
    "WindowEnv",
    "action_parameters",
    "environment_ids",
    "environments",
    "find_environment",
    "load_distribution",
    "load_scenario",
    "load_suite",
    "make_vec",
    "preset_action",
    "run",
    "scenario_names",
]

ENVIRONMENTS = environment_ids()
"""The ids of quicgym's own environments."""
