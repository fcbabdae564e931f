"""Scenarios from and to YAML: quicgym's own by name, a user's by path.

A file writes what scenarios have in common once: `base` names the scenario that another one starts
from, and `grid` lists the variants of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from quicgym.envs.scenarios.fields import CheckedModel, ScenarioError
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.scenarios.traces import is_drawn
from quicgym.validation import validated
from quicgym.yaml_files import (
    CONFIGS,
    closest,
    is_path,
    natural_order,
    read_yaml,
    read_yaml_file,
    yaml_names,
)

SCENARIOS = CONFIGS / "scenarios"

Fields = dict[str, Any]
"""The fields of a scenario as YAML has them, not checked yet."""


def scenario_names() -> list[str]:
    """Returns the names of the scenarios that quicgym brings."""
    return sorted(
        (name for family in yaml_names(SCENARIOS) for name in _family(family)), key=natural_order
    )


def load_scenario(name_or_path: str | Path) -> Scenario:
    """Loads a scenario by its name or from a YAML file.

    Args:
        name_or_path: One of `scenario_names()`, or a path (a Path, or a text that ends in .yaml
            or .yml or has a folder in it).

    Raises:
        ScenarioError: No such scenario, or a file that is not a valid scenario. The text names
            file, field, value and remedy.
    """
    text = str(name_or_path)
    if is_path(name_or_path):
        return _load_file(Path(name_or_path))
    if (fields := _own(text)) is None:
        known = closest(text, scenario_names())
        raise ScenarioError(
            f"unknown scenario {text!r}; {known}; `quicgym show scenarios` has all; or give a "
            "YAML's path"
        )
    return scenario_from(fields, text, Path(str(SCENARIOS)))


def scenario_from(fields: Any, place: str, folder: Path) -> Scenario:
    """Returns the scenario of these fields.

    Args:
        fields: What a file has at `place`, with `base` and `grid` resolved.
        place: File and position, for messages.
        folder: Where relative paths of traces start.
    """
    return validated(Scenario, fields, place, ScenarioError, context={"folder": folder})


def _load_file(path: Path) -> Scenario:
    return scenario_from(_fields_of_file(path, ()), str(path), path.parent)


def _fields_of_file(path: Path, above: tuple[Path, ...]) -> Any:
    """Returns the fields of the only scenario of a file; `above` are the files based on it."""
    data, file, folder = read_yaml_file(path, ScenarioError)
    ((_, fields),) = _variants(data, file, folder, {}, (*above, path.resolve()))
    return fields


def _own(name: str) -> Fields | None:
    """Returns the fields of a scenario that quicgym brings; a family's file begins its names."""
    for family in yaml_names(SCENARIOS):
        if name.startswith(family) and name in _family(family):
            return _family(family)[name]
    return None


@cache
def _family(name: str) -> dict[str, Fields]:
    """Returns the scenarios of one of quicgym's own files, by name."""
    data, file, folder = read_yaml(name, SCENARIOS, "scenario", ScenarioError)
    return {fields["name"]: fields for _, fields in described(data, file, folder)}


def described(entries: list[Any], file: str, folder: Path) -> Iterator[tuple[str, Any]]:
    """Yields the scenarios that a file lists: the place of each, for messages, and its fields.

    An entry may start from an earlier one, and a text, the name or the path of a scenario, is
    yielded as it is.
    """
    earlier: dict[str, Fields] = {}
    for number, entry in enumerate(entries):
        for place, fields in _variants(entry, f"{file}: {number}", folder, earlier):
            if isinstance(fields, dict):
                earlier[str(fields.get("name"))] = fields
            yield place, fields


def _variants(
    entry: Any,
    place: str,
    folder: Path,
    earlier: Mapping[str, Fields],
    above: tuple[Path, ...] = (),
) -> list[tuple[str, Any]]:
    """Returns the scenarios of an entry of a file, with the place of each; see `described`.

    Where the entry is all of a file, the file is the last one of `above`.
    """
    if not isinstance(entry, dict):
        return [(place, entry)]
    fields = {field: value for field, value in entry.items() if field not in ("base", "grid")}
    if "base" in entry:
        fields = changed(_base(entry["base"], place, folder, earlier, above), fields)
    if "grid" not in entry:
        return [(place, fields)]
    if above:
        raise ScenarioError(
            f"{place}: grid: makes several scenarios; give the file as a suite, or leave grid out"
        )
    axes = validated(list[dict[Any, Fields | None]], entry["grid"], f"{place}: grid", ScenarioError)
    found = []
    for parts in product(*(axis.items() for axis in axes)):
        variant = fields
        for _, changes in parts:
            variant = changed(variant, changes or {})
        name = "-".join(filter(None, [str(fields.get("name", "")), *(str(n) for n, _ in parts)]))
        found.append((f"{place}: {name}", variant | {"name": name}))
    return found


def _base(
    name: Any, place: str, folder: Path, earlier: Mapping[str, Fields], above: tuple[Path, ...]
) -> Fields:
    """Returns the fields that an entry inherits from its base, without the base's own."""
    wrong = f"{place}: base = {name!r}"
    if not isinstance(name, str):
        raise ScenarioError(f"{wrong}: is no text; give the name or the path of a scenario")
    fields = earlier.get(name)
    if is_path(name):
        path = folder / name
        if path.resolve() in above:
            raise ScenarioError(f"{wrong}: this file is based on itself; give another one")
        fields = _with_traces_from(_fields_of_file(path, above), path.parent)
        if not isinstance(fields, dict):
            raise ScenarioError(f"{wrong}: this file has no single scenario; give another one")
    elif fields is None and (fields := _own(name)) is None:
        known = closest(name, [*earlier, *scenario_names()])
        raise ScenarioError(f"{wrong}: there is no such scenario; {known}; or give a YAML's path")
    return {field: value for field, value in fields.items() if field not in NOT_OF_BASE}


NOT_OF_BASE = ("name", "description")
"""Fields that are not taken from a base."""


def changed(base: Any, changes: Any) -> Any:
    """Returns `base` with changes: mappings field by field, all else as a whole.

    A mapping of another kind, such as another model of loss, also takes the base's place. None
    takes a field away.
    """
    if not isinstance(base, dict) or not isinstance(changes, dict):
        return changes
    if "kind" in changes and changes["kind"] != base.get("kind"):
        return changes
    others = {field: changed(base.get(field), value) for field, value in changes.items()}
    return {field: value for field, value in {**base, **others}.items() if value is not None}


def _with_traces_from(part: Any, folder: Path) -> Any:
    """Returns the fields of a file, in which traces in the same folder have their whole paths."""
    if isinstance(part, list):
        return [_with_traces_from(entry, folder) for entry in part]
    if not isinstance(part, dict):
        return part
    part = {field: _with_traces_from(value, folder) for field, value in part.items()}
    if isinstance(trace := part.get("trace"), str) and (folder / trace).exists():
        part["trace"] = str((folder / trace).absolute())
    return part


def as_yaml(scenario: Scenario, place: Callable[[Path], str]) -> str:
    """Returns a scenario as a YAML file has it, without the fields that have their default.

    Args:
        scenario: The scenario.
        place: Function from a file that the scenario names to its path in the YAML.
    """
    return yaml.safe_dump(
        _fields(scenario, place), sort_keys=False, default_flow_style=None, width=120
    )


def _fields(part: Any, place: Callable[[Path], str]) -> Any:
    if isinstance(part, CheckedModel):
        values = {name: getattr(part, name) for name in type(part).model_fields}
        return {
            name: _fields(value, place)
            for name, value in values.items()
            # A part of several kinds is read by its kind.
            if name == "kind" or value != type(part).model_fields[name].get_default()
        }
    if isinstance(part, dict):
        return {name: _fields(value, place) for name, value in part.items()}
    if isinstance(part, tuple):
        return [_fields(value, place) for value in part]
    if isinstance(part, Path):
        return str(part) if is_drawn(part) else place(part)
    return part
