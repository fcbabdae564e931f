"""YAML files: quicgym's own by name, a user's by path."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from quicgym.yaml_loader import parse_yaml

CONFIGS = files("quicgym.configs")
"""The folder of quicgym's own files."""


MOST_NAMES = 25
"""The most names that a message lists; if there are more, it lists the most similar ones."""
SIMILAR_NAMES = 5


class YamlFile(NamedTuple):
    """A file's data, its name in messages, and the folder from which its relative paths start."""

    data: Any
    name: str
    folder: Path


def yaml_names(folder: Traversable) -> list[str]:
    """Returns the names of a folder's files without their ending, numbers sorted as numbers."""
    names = (entry.name for entry in folder.iterdir())
    found = (name.removesuffix(".yaml") for name in names if name.endswith(".yaml"))
    return sorted(found, key=natural_order)


def natural_order(name: str) -> list[str | float]:
    """Returns what sorts a name with the numbers in it as numbers."""
    parts = re.split(r"(\d+(?:\.\d+)?)", name)
    return [float(part) if index % 2 else part for index, part in enumerate(parts)]


def closest(name: object, known: Iterable[str]) -> str:
    """Returns "did you mean …? there are: …" for a name that is not among `known`.

    A known name that continues it, such as rate_mbps for rate, is more likely than a similar one.
    Where more than MOST_NAMES are known, only the most similar ones are listed.
    """
    known, name = list(known), str(name)
    similar = [entry for entry in known if entry.startswith(f"{name}_")]
    similar = similar or difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {similar[0]}? " if similar else ""
    if len(known) <= MOST_NAMES:
        return f"{hint}there are: {', '.join(known)}"
    likely = difflib.get_close_matches(name, known, n=SIMILAR_NAMES, cutoff=0.0)
    return f"{hint}there are {len(known)}, such as {', '.join(likely)}"


def is_path(name_or_path: str | Path) -> bool:
    """Whether it is a Path, or a text that ends in .yaml or .yml or has a folder in it."""
    text = str(name_or_path)
    return isinstance(name_or_path, Path) or text.endswith((".yaml", ".yml")) or "/" in text


def read_yaml(
    name_or_path: str | Path,
    folder: Traversable,
    what: str,
    error: type[Exception],
) -> YamlFile:
    """Reads one of `yaml_names(folder)`, or a path; see `is_path`.

    `what` is the kind of the file, such as "scenario". `error` is raised, with file, line and
    remedy, where there is no such file or no YAML in it.
    """
    text = str(name_or_path)
    if is_path(name_or_path):
        return read_yaml_file(Path(name_or_path), error)
    if text not in yaml_names(folder):
        known = closest(text, yaml_names(folder))
        raise error(f"unknown {what} {text!r}; {known}; or give a YAML's path")
    file = folder / f"{text}.yaml"
    content = file.read_text(encoding="utf-8")
    return YamlFile(_parsed(content, file.name, error), file.name, Path(str(folder)))


def read_yaml_file(path: Path, error: type[Exception]) -> YamlFile:
    """Reads a file by its path; raises `error` as `read_yaml` does."""
    try:
        content = path.read_text(encoding="utf-8")
    except OSError as problem:
        raise error(f"{path}: {problem.strerror}; give the path of a YAML file") from None
    except UnicodeDecodeError:
        raise error(f"{path}: is not a text file; give the path of a YAML file") from None
    return YamlFile(_parsed(content, str(path), error), str(path), path.parent)


def _parsed(content: str, name: str, error: type[Exception]) -> Any:
    try:
        return parse_yaml(content)
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark
        where = f"{name}:{mark.line + 1}" if mark else name
        raise error(f"{where}: not valid YAML: {problem.problem}; correct this line") from None
    except yaml.YAMLError as problem:
        raise error(f"{name}: not valid YAML: {problem}") from None
