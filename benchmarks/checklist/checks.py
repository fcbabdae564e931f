"""A checklist as data: scenarios, and items with a number and a threshold each, in one YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field, ValidationInfo, field_validator, model_validator

from quicgym import controllers
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.simulation.metrics import METRICS
from quicgym.envs.simulation.window import Window
from quicgym.errors import UserError
from quicgym.validation import StrictModel, problem, validated
from quicgym.yaml_files import CONFIGS, closest, is_path, read_yaml

CHECKLISTS = CONFIGS / "checklists"
RFC_9743 = "rfc9743"


class ChecklistError(UserError, ValueError):
    """A checklist cannot be used; the text names file, field, value and remedy."""


class Check(StrictModel):
    """One number with its threshold, in each of some scenarios."""

    question: str
    """What a reader wants to know; answered by yes where the threshold is met."""
    scenarios: tuple[str, ...] = Field(min_length=1)
    number: str
    """A metric by its name, see quicgym.envs.simulation.metrics."""
    relative_to: str | None = None
    """A controller: the number is divided by the one with this controller in the policy's place."""
    from_s: float = Field(default=0.0, ge=0)
    """Where the window of the number begins."""
    until_s: float | None = Field(default=None, gt=0)
    """Where it ends; None: with the run."""
    at_least: float | None = None
    at_most: float | None = None
    source: str
    """Source of the threshold: an RFC's section, a paper, or "ours" with the reason."""

    @field_validator("number")
    @classmethod
    def _is_known(cls, number: str) -> str:
        known = [name for name, metric in METRICS.items() if not metric.needs_traces]
        if number not in known:
            raise problem("", number, "is no metric of a run", closest(number, known))
        return number

    @field_validator("relative_to")
    @classmethod
    def _exists(cls, name: str | None) -> str | None:
        if name is not None and name not in controllers.names():
            raise problem("", name, "is no controller", closest(name, controllers.names()))
        return name

    @model_validator(mode="after")
    def _one_threshold(self) -> Check:
        if (self.at_least is None) == (self.at_most is None):
            raise problem(
                "at_least", self.at_least, "is the threshold, or at_most is", "give one of the two"
            )
        return self

    @property
    def window(self) -> Window:
        """The part of the run that the number is of."""
        return Window(self.from_s or None, self.until_s)

    @property
    def claimed(self) -> str:
        """The threshold in words."""
        if self.at_least is not None:
            return f"at least {self.at_least:g}"
        return f"at most {self.at_most:g}"


class Item(StrictModel):
    """A section of the RFC and the checks of what it asks for."""

    section: str
    title: str
    checks: tuple[Check, ...] = ()
    not_measured: str | None = None
    """Why nothing is measured."""

    @model_validator(mode="after")
    def _measured_or_not(self) -> Item:
        if bool(self.checks) == bool(self.not_measured):
            raise problem(
                "not_measured", self.not_measured, "says why an item has no checks",
                "give checks, or the reason why there are none",
            )  # fmt: skip
        return self


class AttackCheck(StrictModel):
    """A check of what `quicgym attack` finds, with a threshold."""

    title: str
    question: str
    """What a reader wants to know; answered by yes where the threshold is met."""
    against: tuple[str, ...] = Field(min_length=1)
    """The policies that the policy is compared with."""
    distribution: str = "worlds"
    """The distribution or mixture that networks are drawn from."""
    trials: int = Field(ge=1)
    """How many networks are searched."""
    at_least: float
    """The threshold of reward − the highest reward of the others on the worst network."""
    source: str
    """Source of the threshold."""

    @field_validator("distribution")
    @classmethod
    def _from_folder(cls, name: str, info: ValidationInfo) -> str:
        folder = (info.context or {}).get("folder", Path())
        return str(folder / name) if is_path(name) else name


class Checklist(StrictModel):
    """Items in the order of their document."""

    name: str
    title: str
    scenarios: dict[str, Scenario]
    items: tuple[Item, ...] = Field(min_length=1)
    attack: AttackCheck | None = None
    """The last item, which is measured on request alone: it takes longer than all others."""

    @field_validator("scenarios", mode="before")
    @classmethod
    def _named(cls, scenarios: Any) -> Any:
        if not isinstance(scenarios, dict):
            return scenarios
        return {
            name: {"name": name, **fields} if isinstance(fields, dict) else fields
            for name, fields in scenarios.items()
        }

    @model_validator(mode="after")
    def _complete(self) -> Checklist:
        used = set()
        for number, item in enumerate(self.items):
            for index, check in enumerate(item.checks):
                self._check(f"items.{number}.checks.{index}", check)
                used |= set(check.scenarios)
        for name in self.scenarios.keys() - used:
            raise problem(f"scenarios.{name}", name, "no check uses it", "leave it out")
        return self

    def _check(self, field: str, check: Check) -> None:
        for name in check.scenarios:
            if name not in self.scenarios:
                raise problem(
                    f"{field}.scenarios", name, "is no scenario", closest(name, self.scenarios)
                )
            scenario = self.scenarios[name]
            if all(flow.controller is not None for flow in scenario.flows):
                raise problem(
                    f"scenarios.{name}.flows", None, "leave no flow for the policy",
                    "leave out `controller` of one",
                )  # fmt: skip
            try:
                check.window.check(scenario)
            except ScenarioError as error:
                raise problem(
                    f"{field}.scenarios", name, f"does not have the window: {error}",
                    "give another from_s or until_s",
                ) from None  # fmt: skip


def load_checklist(name_or_path: str | Path = RFC_9743) -> Checklist:
    """Loads a checklist, by its name or a YAML file; ChecklistError names file and field."""
    data, file, folder = read_yaml(name_or_path, CHECKLISTS, "checklist", ChecklistError)
    return validated(Checklist, data, file, ChecklistError, context={"folder": folder})
