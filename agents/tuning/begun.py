"""What an output folder of a sweep or a search says of the one that was begun in it.

--resume goes on with it only where it is the same.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from quicgym import __version__, _core
from quicgym.envs import Scenario, ScenarioError
from quicgym.envs.scenarios.suites import SuiteEntry
from quicgym.envs.scenarios.traces import read_mahimahi

BEGUN_FILE = "begun.json"


def identity_of(config: Any, entries: Sequence[SuiteEntry]) -> str:
    """Returns what has to be equal for a resumed one to be the one that was begun.

    Args:
        config: Its whole configuration, as JSON has it.
        entries: What it measures by.
    """
    return _digest([config, fingerprint(entries), __version__, _core.commit])


def fingerprint(entries: Sequence[SuiteEntry]) -> str:
    """Returns what differs where scenarios or distributions do, their traces included."""
    return _digest(
        [
            [entry.model_dump(exclude={"description", "source"}) for entry in entries],
            [read_mahimahi(path) for entry in entries for path in _traces(entry)],
        ]
    )


def _traces(entry: SuiteEntry) -> Sequence[Path]:
    if isinstance(entry, Scenario):
        return [link.trace for link in entry.links.values() if link.trace is not None]
    return entry.traces.paths if entry.traces else ()


def _digest(parts: Any) -> str:
    return sha256(json.dumps(parts, default=str, sort_keys=True).encode()).hexdigest()[:32]


def write_begun(directory: Path, kind: str, name: str, identity: str) -> None:
    """Writes down what is begun: its kind ("sweep", "search"), its name, its fingerprint."""
    begun = json.dumps({kind: name, "fingerprint": identity})
    (directory / BEGUN_FILE).write_text(begun + "\n", encoding="utf-8")


def check_same(directory: Path, kind: str, identity: str) -> None:
    """Raises ScenarioError where the folder holds another one; nothing is fine."""
    file = directory / BEGUN_FILE
    if not file.exists():
        return
    try:
        begun = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ScenarioError(
            f"{file}: {error}; leave --resume away to begin anew, what is there is moved aside"
        ) from None
    if begun.get("fingerprint") != identity:
        raise ScenarioError(
            f"{directory}: holds the {kind} {begun.get(kind)!r} with another configuration, "
            "another scenario or of another quicgym; give another folder with --out, or leave "
            "--resume away: what is there is moved aside"
        )
