"""Any YAML file, as each kind that quicgym reads: the first byte says which."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp

from quicgym.agents.training.configuration import ConfigError, load_training
from quicgym.agents.tuning.search_config import load_search
from quicgym.agents.tuning.sweep_config import load_sweep
from quicgym.benchmarks.papers.model import PaperError, load_paper
from quicgym.envs.scenarios.distributions import load_distribution
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.scenarios.files import load_scenario
from quicgym.envs.scenarios.mixtures import load_mixture
from quicgym.envs.scenarios.suites import load_suite

READERS = (
    load_scenario, load_suite, load_distribution, load_mixture, load_training, load_sweep,
    load_search, load_paper,
)  # fmt: skip
FILE = Path(mkdtemp(prefix="quicgym-fuzz-")) / "any.yaml"


def check(data: bytes) -> None:
    """Reads it: it is valid, or refused by an error that names the file."""
    FILE.write_bytes(data[1:])
    reader = READERS[data[0] % len(READERS)] if data else load_scenario
    try:
        reader(str(FILE))
    except (ScenarioError, ConfigError, PaperError) as error:
        assert FILE.name in str(error), error
