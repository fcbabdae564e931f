"""The tests need the compiled package; those with the marker `kernel` need root, too."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

IS_BUILT = importlib.util.find_spec("quicgym_linux") is not None


def what_is_missing() -> str | None:
    """Says why no program can be loaded here; None where one can."""
    from quicgym_linux.checks import check_system

    from quicgym.errors import UserError

    try:
        check_system()
    except UserError as error:
        return str(error)
    return None


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "kernel: loads programs into the kernel, which needs root")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = [item for item in items if Path(__file__).parent in item.path.parents]
    if not here:
        return
    missing = what_is_missing() if IS_BUILT else None
    for item in here:
        if not IS_BUILT:
            item.add_marker(pytest.mark.skip(reason="needs quicgym-linux: make linux"))
        elif missing is not None and item.get_closest_marker("kernel"):
            item.add_marker(pytest.mark.skip(reason=missing))
