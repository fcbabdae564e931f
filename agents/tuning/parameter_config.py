"""The configuration of a parameter sweep: a YAML of configs/sweeps, or a user's.

name: my-sweep
controller: ebcc
parameters:
  gamma: {minimum: 5, maximum: 160, scale: log, count: 6}
  gain_cycle: {values: [[1.25, 0.75, 1, 1, 1, 1, 1, 1], [1.25, 1, 1, 0.75, 1, 1]]}
search: grid
scenarios: [ebcc-flows-3, ebcc-flows-5]
seeds: 5
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, field_validator, model_validator

from quicgym.agents.tuning.space import Setting, ValueRange, draws, rounded
from quicgym.controllers import ControllerInfo, absolute, is_place
from quicgym.envs import Scenario, ScenarioError, load_scenario, load_suite
from quicgym.envs.rewards import REWARDS
from quicgym.envs.scenarios.engines import EngineName
from quicgym.envs.scenarios.fields import Name
from quicgym.envs.scenarios.flows import ParameterNumber, Parameters
from quicgym.envs.scenarios.suites import SELECTION_SEED, SuiteEntry, refuse_held_out
from quicgym.envs.simulation.controller_choice import find_controller
from quicgym.envs.simulation.metrics import EVALUATED, METRICS, TRAFFIC_METRICS
from quicgym.validation import StrictModel
from quicgym.yaml_files import CONFIGS, closest

SWEEPS = CONFIGS / "sweeps"
_MOST_TRIALS = 100_000

Value = float | tuple[float, ...]
"""Value of a parameter of a controller."""


class SweptParameter(ValueRange):
    """The values of one parameter: a range, or a list of values.

    Attributes:
        count: Number of values that a grid takes from the range; others draw from all of
            it.
        values: List of values, in place of a range. For a parameter that is a list of numbers, each
            value is a list.
    """

    count: int | None = Field(default=None, ge=2, le=10_000)
    values: tuple[ParameterNumber | tuple[ParameterNumber, ...], ...] | None = Field(
        default=None, min_length=1
    )

    @model_validator(mode="after")
    def _no_count_of_values(self) -> SweptParameter:
        if self.values is not None and self.count is not None:
            raise ValueError("has values and a range; give one of them")
        return self

    @staticmethod
    def text(value: Value) -> str:
        """Returns a value as messages show it."""
        return label(value)

    def grid(self) -> tuple[Value, ...]:
        """Returns the values of a grid."""
        if self.values is not None:
            return self.values
        assert self.count is not None
        space = np.geomspace if self.scale == "log" else np.linspace
        numbers = space(*self.ends, self.count)
        if self.scale == "whole":
            numbers = np.unique(np.round(numbers))
        return tuple(map(rounded, numbers))


class ParameterSweep(StrictModel):
    """A parameter sweep.

    Attributes:
        name: Name of the sweep; results go to results/sweeps/<name>.
        description: The question.
        controller: Name of a controller of the catalogue, or the place of one of yours, such as
            mine.py:Ledbat, whose code is run.
        parameters: Parameters that are swept, with their values.
        fixed: Other parameters of the controller, the same in every trial.
        search: Way to choose settings: all combinations, independent draws, or Optuna's
            tree-structured Parzen estimator.
        samples: Trials of random and optuna, beside the published setting.
        seed: Seed of the draws of random and optuna.
        scenarios: Names or paths of scenarios; the objective is the mean over them.
        suite: Name or path of a suite, in place of scenarios; the objective is the interquartile
            mean.
        seeds: Number of seeds, from 3,000,000 on, with which every trial runs each scenario.
        reward: Name of the reward.
        objective: Metric that is optimized: one of `quicgym.envs.simulation.metrics.EVALUATED`, or
            of the metrics of its scenarios' traffic. The highest value is best; of a loss, RTT or
            delay the lowest.
        engine: Engine of the runs: native or ns3.
        published: The setting to compare with; what it does not name has the controller's default.
    """

    name: Name
    description: str = ""
    controller: str
    parameters: dict[str, SweptParameter] = Field(min_length=1)
    fixed: Parameters = {}
    search: Literal["grid", "random", "optuna"] = "grid"
    samples: int | None = Field(default=None, ge=1, le=_MOST_TRIALS)
    seed: int = Field(default=0, ge=0, le=2**32 - 1)
    scenarios: tuple[str, ...] = ()
    suite: str | None = None
    seeds: Annotated[int, Field(ge=1, le=10_000)] = 5
    reward: Literal[REWARDS] = "fair-throughput"  # type: ignore[valid-type]
    objective: Literal[(*EVALUATED, *TRAFFIC_METRICS)] = "reward"  # type: ignore[valid-type]
    engine: EngineName = "native"
    published: Parameters = {}

    @field_validator("controller")
    @classmethod
    def _exists(cls, value: str) -> str:
        if is_place(value):  # trials run in folders of their own
            value = absolute(value, Path.cwd())
        find_controller(value)
        return value

    @model_validator(mode="after")
    def _complete(self) -> ParameterSweep:
        if bool(self.scenarios) == (self.suite is not None):
            raise ValueError("give either scenarios or suite")
        if self.suite is not None:
            refuse_held_out("suite", self.suite, ValueError)
        if self.search != "grid" and self.samples is None:
            raise ValueError(f"samples: is missing; say how many trials search: {self.search} has")
        for name, swept in self.parameters.items():
            if self.search == "grid" and swept.values is None and swept.count is None:
                raise ValueError(
                    f"parameters.{name}.count: is missing; say how many values of the range the "
                    "grid has, or list them as values"
                )
        if self.search == "grid" and self.trials > _MOST_TRIALS:
            raise ValueError(
                f"parameters: the grid has {self.trials:,} trials; {_MOST_TRIALS:,} are the most; "
                "give fewer values, or search: random"
            )
        self._check_parameters()
        return self

    def _check_parameters(self) -> None:
        info = find_controller(self.controller)
        known = [parameter.name for parameter in info.parameters]
        for field in ("parameters", "fixed", "published"):
            for name in getattr(self, field):
                if name not in known:
                    raise ValueError(
                        f"{field}.{name}: controller {self.controller!r} has no such parameter; "
                        f"{closest(name, known)}"
                    )
        for name in self.fixed:
            if name in self.parameters:
                raise ValueError(f"fixed.{name}: it is in parameters too; take one away")
        for name in self.published:
            if name not in self.parameters:
                raise ValueError(
                    f"published.{name}: is not swept; {closest(name, self.parameters)}; what is "
                    "the same in every trial belongs to fixed"
                )
        for name, swept in self.parameters.items():
            for value in swept.limits:
                _check_value(info, f"parameters.{name}", name, value)
        for field in ("fixed", "published"):
            for name, value in getattr(self, field).items():
                _check_value(info, f"{field}.{name}", name, value)

    @property
    def mode(self) -> Literal["max", "min"]:
        """Whether the objective is to be high or low."""
        return "min" if METRICS[self.objective].less_is_better else "max"

    @property
    def trials(self) -> int:
        """How many settings are tried; the published one may come on top."""
        if self.search == "grid":
            return math.prod(len(swept.grid()) for swept in self.parameters.values())
        assert self.samples is not None
        return self.samples

    def published_setting(self) -> Setting:
        """Returns the published value of every swept parameter."""
        info = find_controller(self.controller)
        setting: Setting = {}
        for name in self.parameters:
            parameter = info.parameter(name)
            default = parameter.default if parameter.is_list else parameter.default[0]
            setting[name] = self.published.get(name, default)
        return setting

    def listed_settings(self) -> list[Setting]:
        """Returns the settings of a grid or of independent draws, in the order of their trials."""
        if self.search == "grid":
            product = itertools.product(*(swept.grid() for swept in self.parameters.values()))
            return [dict(zip(self.parameters, values, strict=True)) for values in product]
        return draws(self.parameters, self.trials, self.seed)

    @property
    def seed_range(self) -> range:
        """The seeds of every trial."""
        return range(SELECTION_SEED, SELECTION_SEED + self.seeds)

    @property
    def new_seeds(self) -> range:
        """As many seeds that no trial uses, to compare the best with the published setting."""
        return range(self.seed_range.stop, self.seed_range.stop + self.seeds)

    def load_scenarios(self) -> tuple[SuiteEntry, ...]:
        """Returns what every trial runs: from a distribution, a scenario for each seed."""
        found: tuple[SuiteEntry, ...] = (
            load_suite(self.suite)
            if self.suite is not None
            else tuple(load_scenario(name) for name in dict.fromkeys(self.scenarios))
        )
        if self.suite is not None:
            refuse_held_out("suite", self.suite, ScenarioError, found)
        names = [scenario.name for scenario in found]
        for scenario in found:
            if not isinstance(scenario, Scenario):
                continue  # what it draws has a flow for the policy
            scenario.check_engine(self.engine)
            if names.count(scenario.name) > 1:
                raise ScenarioError(
                    f"two of the scenarios have the name {scenario.name!r}; change `name` in one"
                )
            if all(flow.controller is not None for flow in scenario.flows):
                raise ScenarioError(
                    f"{scenario.name}: each of its flows names a controller, so that none is left "
                    "to sweep; take the controller of one away"
                )
        return found


def label(value: Value) -> str:
    """Returns a value as `--policy` takes it and tables show it: the numbers, parted by slashes."""
    numbers = value if isinstance(value, Sequence) else (value,)
    return "/".join(f"{number:.12g}" for number in numbers)


def policy_text(controller: str, setting: Mapping[str, Value]) -> str:
    """Returns the text by which `policies.by_name.find_policy` finds the setting."""
    return controller + ":" + ",".join(f"{name}={label(value)}" for name, value in setting.items())


def _check_value(info: ControllerInfo, field: str, name: str, value: Value) -> None:
    try:
        info.complete({name: list(value) if isinstance(value, tuple) else value})
    except ValueError as error:
        raise ValueError(f"{field} = {label(value)}: {error}") from None
