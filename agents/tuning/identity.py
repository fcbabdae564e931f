"""Which sweep or search an output folder holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from quicgym import __version__, _core
from quicgym.envs.scenarios.suites import SuiteEntry, content_of
from quicgym.output_folders import Identity, digest


def identity_of(study: str, name: str, fields: Any, entries: Iterable[SuiteEntry]) -> Identity:
    """Returns what has to be equal for --resume to go on with a folder.

    Args:
        study: What it is: "sweep" or "search".
        name: Of the study.
        fields: Its whole configuration, as JSON has it.
        entries: What it measures by.
    """
    parts = [fields, digest(content_of(entries)), __version__, _core.commit]
    return Identity(study, name, digest(parts))
