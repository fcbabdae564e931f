"""Suites: fixed lists of scenarios and distributions that policies are measured by."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from importlib.resources.abc import Traversable
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from pydantic import Field, model_validator

from quicgym.envs.scenarios.distributions import (
    CELLS,
    DISTRIBUTIONS,
    HELD_OUT_STRESS,
    Distribution,
    distribution_names,
    load_distribution,
)
from quicgym.envs.scenarios.fields import (
    CheckedModel,
    Name,
    PositiveInteger,
    ScenarioError,
    errors_at,
)
from quicgym.envs.scenarios.files import described, load_scenario, scenario_from, scenario_names
from quicgym.envs.scenarios.mixtures import Mixture, ScenarioFolder, load_mixture
from quicgym.envs.scenarios.model import Scenario
from quicgym.validation import problem, validated
from quicgym.yaml_files import CONFIGS, closest, is_path, natural_order, read_yaml, yaml_names
from quicgym.yaml_loader import parse_yaml

SUITES = CONFIGS / "suites"
DRAWN_SUITES = CONFIGS / "drawn-suites.yaml"
WORLD_SUITES = tuple(
    f"heldout-{world}"
    for world in (
        "coexistence",
        "changing",
        "cellular",
        "satellite",
        "wireless",
        "lan",
        "long-fat",
    )  # fmt: skip
)
"""Paths of single worlds, in the cells that training leaves out."""
HELD_OUT_SUITES = ("papers", "heldout", "stress", "ibcca-wireless", *WORLD_SUITES)
"""The suites of the leaderboard: nothing is trained on them, chosen by them or tuned for them."""

_ONLY_DISTRIBUTIONS = frozenset(Distribution.model_fields) - frozenset(Scenario.model_fields)


def suite_names() -> list[str]:
    """Returns the names of the suites that quicgym brings."""
    return sorted([*yaml_names(SUITES), *_drawn_suites()], key=natural_order)


@cache
def _drawn_suites() -> dict[str, DrawnSuite]:
    """Returns quicgym's own drawn suites, by name."""
    suites = parse_yaml(DRAWN_SUITES.read_text(encoding="utf-8"))
    return {name: DrawnSuite.model_validate(suite) for name, suite in suites.items()}


class DrawnSuite(CheckedModel):
    """A suite whose scenarios are drawn; see configs/drawn-suites.yaml."""

    held_out_of: str | None = None
    """A distribution, by name or path; its held-out cells are drawn from."""
    drawn_from: str | None = None
    """A distribution, by name or path, in place of `held_out_of`; all of it is drawn from."""
    scenarios: int = Field(ge=1, le=10_000)
    """How many; number i is drawn with the seed i."""

    @model_validator(mode="after")
    def _one_distribution(self) -> DrawnSuite:
        if (self.held_out_of is None) == (self.drawn_from is None):
            raise problem(
                "drawn_from", self.drawn_from, "a drawn suite has one distribution",
                "give either held_out_of or drawn_from",
            )  # fmt: skip
        return self

    def draw(self, folder: Path) -> tuple[Scenario, ...]:
        """Draws the scenarios; a relative path begins at `folder`."""
        name = self.held_out_of or self.drawn_from or ""
        distribution = load_distribution(folder / name if is_path(name) else name)
        drawn = distribution
        if self.held_out_of is not None:
            drawn = distribution.model_copy(
                update={"cells": "held-out", "held_out": False, "held_out_stress": False}
            )
        return tuple(
            scenario_of(drawn, seed).model_copy(update={"name": f"{distribution.name}-{seed}"})
            for seed in range(self.scenarios)
        )


class HeldOutOfStress(CheckedModel):
    """A suite of the cells that `held_out_stress` leaves out; see configs/suites/stress.yaml.

    One generator draws all scenarios. What lies in other cells is thrown away, as is what comes
    when its cell is full.
    """

    name: Name
    drawn_from: str
    """A distribution, by name."""
    per_cell: PositiveInteger
    """How many scenarios of each cell."""
    seed: int
    """The generator's."""
    digits: PositiveInteger
    """Significant digits that numbers keep."""
    traces: tuple[str, ...]
    """Drawn traces in place of the distribution's own."""

    def draw(self) -> tuple[Scenario, ...]:
        """Draws the scenarios."""
        distribution = load_distribution(self.drawn_from)
        changes: dict[str, Any] = {"held_out": False, "held_out_stress": False}
        if distribution.traces is not None:
            traces = distribution.traces.model_copy(update={"paths": self.traces})
            changes["traces"] = traces
        distribution = distribution.model_copy(update=changes)
        rng = np.random.default_rng(self.seed)
        found: list[Scenario] = []
        drawn: Counter[tuple[int, int]] = Counter()
        while len(found) < self.per_cell * CELLS:
            scenario = distribution.sample(rng)
            link, reverse = scenario.bottleneck, scenario.reverse
            assert link is not None and reverse is not None and reverse.rate_mbps is not None
            # The way back has the rate of the path, where that has a trace its mean.
            path = reverse.rate_mbps, 2 * (link.delay_ms + 2 * scenario.access.delay_ms)
            cell = HELD_OUT_STRESS.cell(*path)
            if cell is None or not HELD_OUT_STRESS.contain(*path) or drawn[cell] == self.per_cell:
                continue
            drawn[cell] += 1
            name = f"{self.name}-{len(found) + 1:03}"
            fields = scenario.model_dump(mode="json", exclude={"description"})
            found.append(Scenario.model_validate(self._rounded(fields | {"name": name})))
        return tuple(found)

    def _rounded(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._rounded(entry) for key, entry in value.items()}
        if isinstance(value, list):
            return [self._rounded(entry) for entry in value]
        return float(f"{value:.{self.digits}g}") if isinstance(value, float) else value


SuiteEntry = Scenario | Distribution | ScenarioFolder | Mixture
"""A scenario, or what each seed draws one from; see `scenario_of`."""


def scenario_of(entry: SuiteEntry, seed: int) -> Scenario:
    """Returns what is simulated with a seed."""
    if isinstance(entry, Scenario):
        return entry
    return entry.sample(np.random.default_rng(seed))


SELECTION_SEED = 3_000_000
"""First seed of the episodes by which trainings and sweeps choose.

An evaluation begins at seed 0, so that what it reports is of other episodes. Those in which a
training compares its policies begin at 1,000,000, and those of recordings at 2,000,000.
"""


def episodes_of(
    entries: Iterable[SuiteEntry], seeds: int, first_seed: int = 0
) -> list[tuple[Scenario, int]]:
    """Returns scenario and seed of every episode, with so many seeds of each entry."""
    chosen = range(first_seed, first_seed + seeds)
    return [(scenario_of(entry, seed), seed) for entry in entries for seed in chosen]


def content_of(entries: Iterable[SuiteEntry]) -> list[Any]:
    """Returns what differs where scenarios or distributions do, their traces included."""
    contents = [entry.content() for entry in entries]
    return [
        [fields for fields, _ in contents],
        [trace for _, traces in contents for trace in traces],
    ]


def load_entry(name_or_path: str | Path) -> SuiteEntry:
    """Loads a scenario, a distribution or a mixture, by its name or from a YAML file.

    Raises:
        ScenarioError: No such entry exists, or it is not valid; the text names file, field and
            value.
    """
    text = str(name_or_path)
    fields = _fields(DISTRIBUTIONS / f"{text}.yaml" if text in distribution_names() else Path(text))
    if difflib.get_close_matches("mixture", fields, n=1, cutoff=0.8):  # mistyped, it says so
        return load_mixture(name_or_path)
    if not fields.isdisjoint(_ONLY_DISTRIBUTIONS):
        return load_distribution(name_or_path)
    known = [*distribution_names(), *scenario_names()]
    if is_path(name_or_path) or text in known:
        return load_scenario(name_or_path)
    if text in suite_names():
        raise ScenarioError(
            f"{text!r} is a suite, a list of scenarios for `quicgym evaluate --suite {text}`; give "
            "one of its scenarios, or a distribution, such as 'training'"
        )
    raise ScenarioError(
        f"unknown scenario {text!r}; {closest(text, known)}; `quicgym show scenarios` has all; "
        "or give a YAML's path"
    )


def _fields(path: Traversable, above: tuple[Traversable, ...] = ()) -> frozenset[str]:
    """Returns the fields at the top of a file, which say what it is; none if it is no mapping.

    Those of its base count, too. `above` are the files that are based on this one.
    """
    try:
        data = parse_yaml(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return frozenset()  # load_scenario says what is wrong
    if not isinstance(data, dict):
        return frozenset()
    fields, base = frozenset(map(str, data)), data.get("base")
    if isinstance(path, Path) and isinstance(base, str) and is_path(base) and path not in above:
        return fields | _fields(path.parent / base, (*above, path))
    return fields | _ONLY_DISTRIBUTIONS if base in distribution_names() else fields


def load_suite(name_or_path: str | Path) -> tuple[SuiteEntry, ...]:
    """Loads a suite, a fixed list of scenarios.

    Args:
        name_or_path: One of `suite_names()`, or the path of a YAML file with a list of scenarios.
            Each is written out, with `base` and `grid` for what they have in common, or given as
            `load_scenario` takes it; paths start at the file's folder. In place of the list a file
            may have a single scenario with a grid, or the fields of `DrawnSuite` or
            `HeldOutOfStress`. The name or path of a scenario or of a distribution makes a suite of
            one, unless a suite has the name. "heldout/8" is a sample: every 8th scenario of the
            suite, from the first one on.

    Raises:
        ScenarioError: The suite does not exist, or is not valid; the text names file, field and
            value.
    """
    text = str(name_or_path)
    name, step = _split_sample(text)
    if step is not None:
        return _sample(text, load_suite(name), step)
    if text in _drawn_suites():
        return _drawn_suites()[text].draw(Path())
    if not is_path(name_or_path) and text not in suite_names():
        entries = [*distribution_names(), *scenario_names()]
        if text in entries:
            return (load_entry(text),)
        known = closest(text, [*suite_names(), *entries])
        raise ScenarioError(
            f"unknown suite, scenario or distribution {text!r}; {known}; `quicgym show suites` has "
            "all suites; or give a YAML's path"
        )
    data, file, folder = read_yaml(name_or_path, SUITES, "suite", ScenarioError)
    if isinstance(data, dict) and "per_cell" in data:
        return validated(HeldOutOfStress, data, file, ScenarioError).draw()
    if isinstance(data, dict) and not data.keys().isdisjoint(("held_out_of", "drawn_from")):
        suite: DrawnSuite = validated(DrawnSuite, data, file, ScenarioError)
        field = "drawn_from" if suite.held_out_of is None else "held_out_of"
        with errors_at(f"{file}: {field}"):
            return suite.draw(folder)
    if isinstance(data, dict) and "grid" in data:
        data = [data]
    if isinstance(data, dict):
        return (load_entry(Path(file)),)
    if not isinstance(data, list) or not data:
        raise ScenarioError(f"{file}: is no list of scenarios; give at least one")
    return tuple(
        _suite_entry(entry, place, folder) for place, entry in described(data, file, folder)
    )


def about_suite(name: str) -> str:
    """Returns a sentence about one of `suite_names()`: the first one of its file's comment."""
    drawn = _drawn_suites().get(name)
    if drawn is not None:
        where = ", in cells of rate and RTT that training leaves out" if drawn.held_out_of else ""
        of = drawn.held_out_of or drawn.drawn_from
        return f"{drawn.scenarios} networks of the distribution `{of}`{where}."
    lines = (SUITES / f"{name}.yaml").read_text(encoding="utf-8").splitlines()
    comment = takewhile(lambda line: line.startswith("#"), lines)
    text = " ".join(line.removeprefix("#").strip() for line in comment)
    return re.split(r"(?<=\.) +(?=[A-Z0-9])", text, maxsplit=1)[0]


def _split_sample(text: str) -> tuple[str, str | None]:
    """Returns a suite and what stands after its slash, ("heldout", "8"); None: all is a name."""
    name, slash, step = text.rpartition("/")
    is_sample = name in suite_names() or (step.isdecimal() and not Path(text).exists())
    return (name, step) if slash and is_sample else (text, None)


def _sample(text: str, entries: tuple[SuiteEntry, ...], step: str) -> tuple[SuiteEntry, ...]:
    if not step.isdecimal() or not 1 <= int(step) <= len(entries):
        raise ScenarioError(
            f"{text!r}: after the slash stands how many scenarios each one taken stands for, such "
            f"as /2 for every second one; give a number from 1 to {len(entries)}, or leave it out"
        )
    return entries[:: int(step)]


def parts_of(entries: Iterable[SuiteEntry]) -> list[SuiteEntry]:
    """Returns the entries, with the parts of mixtures in their places."""
    parts: list[SuiteEntry] = []
    for entry in entries:
        parts += entry.parts if isinstance(entry, Mixture) else [entry]
    return parts


def refuse_held_out(
    field: str, suite: str, error: type[Exception], entries: Iterable[SuiteEntry] = ()
) -> None:
    """Raises an error where a suite that is to choose a policy or a setting is held out.

    Args:
        field: The field of the configuration that names the suite.
        suite: The name or the path of the suite.
        error: The class of the error.
        entries: Entries of the suite. A file is refused where it holds what a held-out suite does.
    """
    content = content_of(entries)
    named, step = _split_sample(suite)
    for name in HELD_OUT_SUITES:
        is_copy = is_path(named) and content[0] and content == _held_out_content(name, step)
        if named == name or is_copy:
            same = f" is the suite {name}" if is_copy else ""
            raise error(
                f"{field} = {suite!r}{same}: it is for evaluation alone, and what it has chosen is "
                "no longer held out; use validation, and `quicgym evaluate` in the end"
            )


@cache
def _held_out_content(name: str, step: str | None) -> list[Any]:
    """Reads a held-out suite, or a sample, once: to draw `stress` takes seconds."""
    return content_of(load_suite(name)[:: int(step or 1)])


def _suite_entry(entry: Any, place: str, folder: Path) -> Scenario:
    if not isinstance(entry, str):
        return scenario_from(entry, place, folder)
    with errors_at(place):
        return load_scenario(folder / entry if is_path(entry) else entry)
