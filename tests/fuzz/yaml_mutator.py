"""Changes YAML files as users do: a value, a field or an item becomes another.

Bytes that change at random seldom leave a file that a reader gets beyond its first field.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from yaml_files import READERS

CONFIGS = Path(__file__).parents[2] / "configs"
VALUES: tuple[Any, ...] = (
    0, 1, -1, 2, 3, 10, 100, 1000, 10**6, 2**31, 2**63, 10**30, 0.5, 1.5, 0.1, 1e-9, 1e300, -0.5,
    float("inf"), float("nan"), None, True, False, "", "x", "0.1", [], {}, [1, 2], [3, 1],
    {"x": 1}, [[0, 1]],
)  # fmt: skip
FACTORS = (-1, 0, 0.1, 0.5, 2, 10, 1000)


def mutate(data: bytes, max_size: int, seed: int, mutate_bytes: Callable[..., bytes]) -> bytes:
    """Returns another file for the same reader, which the first byte says.

    What is no YAML, and some of the others, are left to `mutate_bytes`.
    """
    rng = random.Random(seed)
    if data and rng.random() < 0.7:
        try:
            document = yaml.load(data[1:], yaml.CSafeLoader)
            _, folders = READERS[data[0] % len(READERS)]
            own = _own(folders)
            for _ in range(rng.choice((1, 1, 1, 2, 4))):
                document = _changed(document, own, rng)
            text = yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)
            return (data[:1] + text.encode())[:max_size]
        except (yaml.YAMLError, ValueError, TypeError, ArithmeticError, RecursionError):
            pass
    return mutate_bytes(data, max_size)


def _changed(document: Any, own: _Own, rng: random.Random) -> Any:
    places = list(_places(document))
    if not places or rng.random() < 0.05:
        return deepcopy(rng.choice(own.documents))
    rng.choice(CHANGES)(*rng.choice(places), own, rng)
    return document


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """All (parent, key or index) in a document."""
    items = node.items() if isinstance(node, dict) else ()
    for key, value in enumerate(node) if isinstance(node, list) else items:
        yield node, key
        yield from _places(value)


# ---- what may happen at a place ----


def _remove(parent: Any, key: Any, own: _Own, rng: random.Random) -> None:
    del parent[key]


def _repeat_or_rename(parent: Any, key: Any, own: _Own, rng: random.Random) -> None:
    if isinstance(parent, list):
        parent.insert(rng.randrange(len(parent) + 1), deepcopy(parent[key]))
    else:
        parent[rng.choice(own.fields)] = parent.pop(key)


def _scale(parent: Any, key: Any, own: _Own, rng: random.Random) -> None:
    if isinstance(parent[key], int | float):
        parent[key] *= rng.choice(FACTORS)


def _add_field(parent: Any, key: Any, own: _Own, rng: random.Random) -> None:
    if isinstance(parent, dict):
        field = rng.choice(own.fields)
        parent[field] = own.value_of(field, rng)


def _put_value_of_field(parent: Any, key: Any, own: _Own, rng: random.Random) -> None:
    if key in own.values:
        parent[key] = own.value_of(key, rng)


def _put_value_of_any_field(parent: Any, key: Any, own: _Own, rng: random.Random) -> None:
    parent[key] = own.value_of(rng.choice(own.fields), rng)


def _put_value(parent: Any, key: Any, own: _Own, rng: random.Random) -> None:
    parent[key] = deepcopy(rng.choice(VALUES))


CHANGES = (
    _remove, _repeat_or_rename, _scale, _add_field, _put_value_of_field, _put_value_of_any_field,
    _put_value,
)  # fmt: skip


# ---- what quicgym's own files have ----


class _Own:
    """quicgym's own files in some folders, and the values that they give to each field."""

    def __init__(self, folders: tuple[str, ...]) -> None:
        files = sorted(file for folder in folders for file in (CONFIGS / folder).rglob("*.yaml"))
        self.documents = [yaml.load(file.read_bytes(), yaml.CSafeLoader) for file in files]
        self.values: dict[Any, list[Any]] = {}
        for parent, key in _places(self.documents):
            if isinstance(parent, dict) and parent[key] not in self.values.setdefault(key, []):
                self.values[key].append(parent[key])
        self.fields = list(self.values)

    def value_of(self, field: Any, rng: random.Random) -> Any:
        return deepcopy(rng.choice(self.values[field]))


_own = cache(_Own)
