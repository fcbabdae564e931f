"""Any YAML file, as each kind that quicgym reads: the first byte says which."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import mkdtemp
from unittest.mock import patch

from quicgym.agents.training.configuration import ConfigError, load_training
from quicgym.agents.tuning.search_config import load_search
from quicgym.agents.tuning.sweep_config import load_sweep
from quicgym.benchmarks.papers.model import PaperError, load_paper
from quicgym.envs.scenarios import mixtures, suites
from quicgym.envs.scenarios.distributions import (
    Distribution,
    distribution_names,
    load_distribution,
)
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.scenarios.files import load_scenario, scenario_names
from quicgym.envs.scenarios.mixtures import load_mixture
from quicgym.envs.scenarios.model import Scenario

READERS = (
    (load_scenario, ("scenarios",)),
    (suites.load_suite, ("suites", "scenarios")),
    (load_distribution, ("distributions",)),
    (load_mixture, ("distributions",)),
    (load_training, ("training",)),
    (load_sweep, ("sweeps",)),
    (load_search, ("searches", "training")),
    (load_paper, ("papers",)),
)
"""Each with the folders of configs/ whose files have its fields."""
FILE = Path(mkdtemp(prefix="quicgym-fuzz-")) / "any.yaml"
OWN_SCENARIOS = {name: load_scenario(name) for name in scenario_names()}
OWN_DISTRIBUTIONS = {
    name: entry
    for name in distribution_names()
    if isinstance(entry := suites.load_entry(name), Distribution)
}
DRAW = suites.DrawnSuite.draw


def check(data: bytes) -> None:
    """Reads it: it is valid, or refused by an error that names the file."""
    FILE.write_bytes(data[1:])
    reader, _ = READERS[data[0] % len(READERS) if data else 0]
    try:
        # quicgym's own files, which others name, and drawn suites would take most of the time.
        with ExitStack() as patches:
            for place, name, quick in QUICK:
                patches.enter_context(patch.object(place, name, quick))
            reader(str(FILE))
    except (ScenarioError, ConfigError, PaperError) as error:
        assert FILE.name in str(error), error


def _load_scenario(name_or_path: str | Path) -> Scenario:
    return OWN_SCENARIOS.get(str(name_or_path)) or load_scenario(name_or_path)


def _load_distribution(name_or_path: str | Path) -> Distribution:
    return OWN_DISTRIBUTIONS.get(str(name_or_path)) or load_distribution(name_or_path)


def _draw_two(suite: suites.DrawnSuite, folder: Path) -> tuple[Scenario, ...]:
    return DRAW(suite.model_copy(update={"scenarios": min(suite.scenarios, 2)}), folder)


QUICK = (
    (suites, "load_scenario", _load_scenario),
    (suites, "load_distribution", _load_distribution),
    (mixtures, "load_distribution", _load_distribution),
    (suites.DrawnSuite, "draw", _draw_two),
)
