"""Names that earlier versions documented, and where they are now.

They work for this version and give a DeprecationWarning that says what to write instead.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Any

_SCENARIOS = "quicgym.envs.scenarios"
MOVED = {
    "quicgym.agents.learned": ("quicgym.agents.policies.learned",),
    "quicgym.benchmarks.verdicts": ("quicgym.benchmarks.papers.verdicts",),
    "quicgym.configs": ("quicgym.benchmarks.papers.model",),
    "quicgym.envs.cellular_trace": (f"{_SCENARIOS}.cellular_trace",),
    "quicgym.envs.distributions": (f"{_SCENARIOS}.distributions", f"{_SCENARIOS}.suites"),
    "quicgym.envs.result": ("quicgym.envs.simulation.result", "quicgym.envs.simulation.metrics"),
    "quicgym.envs.scenario": tuple(
        f"{_SCENARIOS}.{name}"
        for name in (
            "model",
            "engines",
            "flows",
            "applications",
            "links",
            "wifi",
            "fields",
            "traces",
        )
    ),
}
"""A module of before -> those that have its names now."""
SCRIPTS = {
    f"quicgym.benchmarks.{old}": f"benchmarks/studies/{new}.py"
    for old, new in {
        "choices": "oracle_per_path",
        "knowledge": "oracle_known_path",
        "reproduction": "reproduction",
        "training_speed": "training_speed",
        "validation": "validation",
    }.items()
}
"""Commands of before (`python -m`) -> scripts of a checkout."""


def moved_names(package: str) -> Callable[[str], Any]:
    """Returns the `__getattr__` of a module: finds what it had before.

    Args:
        package: A key of MOVED.
    """

    def __getattr__(name: str) -> Any:
        if not name.startswith("__"):
            for module in map(import_module, MOVED[package]):
                if hasattr(module, name):
                    return _warned(f"{package}.{name}", getattr(module, name), name, module)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return __getattr__


def _warned(old: str, found: Any, name: str, module: ModuleType) -> Any:
    home = getattr(found, "__module__", None)
    place = home if home in MOVED[old.rpartition(".")[0]] else module.__name__
    warnings.warn(f"{old} is now {place}.{name}", DeprecationWarning, stacklevel=3)
    return found


class _Finder(MetaPathFinder, Loader):
    """Makes modules of before that are no more; asked after all other finders."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in SCRIPTS:
            raise ModuleNotFoundError(
                f"{fullname} is a script of the checkout now: python {SCRIPTS[fullname]}",
                name=fullname,
            )
        return spec_from_loader(fullname, self) if fullname in MOVED else None

    def exec_module(self, module: ModuleType) -> None:
        module.__doc__ = f"Moved to {', '.join(MOVED[module.__name__])}."
        module.__getattr__ = moved_names(module.__name__)  # type: ignore[method-assign]


def find_moved_modules() -> None:
    """Makes `import` find the modules of before."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
