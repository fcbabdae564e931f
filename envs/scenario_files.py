"""Scenarios from YAML: quicgym's own by name, a user's by path."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from quicgym.configs import SCENARIOS
from quicgym.configs.names import yaml_names
from quicgym.envs.scenario import Scenario, ScenarioError, closest


def scenario_names() -> list[str]:
    """Returns the names of the scenarios that quicgym brings, numbers in them sorted as numbers."""
    return sorted(yaml_names(SCENARIOS), key=_natural_order)


def _natural_order(name: str) -> list[str | float]:
    parts = re.split(r"(\d+(?:\.\d+)?)", name)
    return [float(part) if index % 2 else part for index, part in enumerate(parts)]


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
    if isinstance(name_or_path, Path) or text.endswith((".yaml", ".yml")) or "/" in text:
        return _read(Path(name_or_path))
    if text not in scenario_names():
        raise ScenarioError(
            f"unknown scenario {text!r}; {closest(text, scenario_names())}; or give a YAML's path"
        )
    file = SCENARIOS / f"{text}.yaml"
    return _parse(file.read_text(encoding="utf-8"), file.name, Path(str(SCENARIOS)))


def _read(path: Path) -> Scenario:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror}; give the path of a YAML file") from None
    except UnicodeDecodeError:
        raise ScenarioError(f"{path}: is not a text file; give the path of a YAML file") from None
    return _parse(text, str(path), path.parent)


def _parse(text: str, file: str, folder: Path) -> Scenario:
    try:
        data = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{file}:{mark.line + 1}" if mark else file
        raise ScenarioError(
            f"{where}: not valid YAML: {error.problem}; correct this line"
        ) from None
    except yaml.YAMLError as error:
        raise ScenarioError(f"{file}: not valid YAML: {error}") from None
    if not isinstance(data, dict):
        raise ScenarioError(
            f"{file}: holds {_show(data)} where the fields of a scenario are expected; "
            "start from one of quicgym's own files (`quicgym scenarios` says where they are)"
        )
    try:
        return Scenario.model_validate(data, context={"folder": folder})
    except ValidationError as error:
        raise ScenarioError(
            "\n".join(f"{file}: {problem}" for problem in _explain(error.errors()))
        ) from None


def _explain(errors: list[ErrorDetails]) -> list[str]:
    """One line per wrong field."""
    explained: dict[str, str] = {}
    for error in errors:
        location = error["loc"]
        if any(other["loc"][: len(location)] == location != other["loc"] for other in errors):
            continue  # a list that is too short because its items are wrong
        # Each member of "a number or a list" that did not fit is an error; the first is enough.
        field, text = _explain_one(error)
        explained.setdefault(field, text)
    return list(explained.values())


def _explain_one(error: ErrorDetails) -> tuple[str, str]:
    """The field as a dotted path, and one line: field, value, problem, remedy."""
    model, path = _locate(error["loc"])
    if error["type"] == "scenario":  # our own checks say it all, relative to where they were made
        context = error["ctx"]
        field = ".".join(filter(None, (path, context["field"])))
        return field, f"{field} = {context['value']}: {context['problem']}; {context['remedy']}"
    names = [step for step in path.split(".") if step in model.model_fields]
    description = _description(model.model_fields[names[-1]]) if names else None
    remedy = f"; give {description}" if description else ""
    if error["type"] == "extra_forbidden":
        unknown = path.split(".")[-1]
        text = f"{path} = {_show(error['input'])}: unknown field; "
        return path, text + closest(unknown, model.model_fields)
    if error["type"] == "missing":
        return path, f"{path}: is missing{remedy or '; add it'}"
    problem = error["msg"].replace("Input should", "should")
    return path, f"{path} = {_show(error['input'])}: {problem}{remedy}"


def _description(field: FieldInfo) -> str | None:
    """What a field takes, in words; of `X | None`, what X takes."""
    inner = [
        extra.description
        for argument in get_args(field.annotation)
        for extra in getattr(argument, "__metadata__", ())
        if isinstance(extra, FieldInfo)
    ]
    return next(filter(None, [field.description, *inner]), None)


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _locate(location: tuple[int | str, ...]) -> tuple[type[BaseModel], str]:
    """The model that has the wrong field, and the field as a dotted path as a user writes it.

    pydantic's location also names the member of a union that it tried; a user has no such field.
    """
    model: type[BaseModel] = Scenario
    inner: list[type[BaseModel]] = []  # the models that the field walked over last may hold
    path: list[str] = []
    for step in location:
        tagged = [entry for entry in inner if _kind(entry) == step]
        if tagged:
            model, inner = tagged[0], []
            continue
        if isinstance(step, str) and len(inner) == 1:
            model, inner = inner[0], []
        if isinstance(step, str) and step in model.model_fields:
            inner = list(_models_in(model.model_fields[step].annotation))
        elif _is_parameter(path):
            continue  # a member of the union "a number or a list"
        path.append(str(step))
    return model, ".".join(path)


def _is_parameter(path: list[str]) -> bool:
    if path[:1] == ["controller_parameters"]:
        return len(path) == 3
    return path[:1] == ["flows"] and "parameters" in path[:-1]


def _kind(model: type[BaseModel]) -> str | None:
    return model.model_fields["kind"].default if "kind" in model.model_fields else None


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)
