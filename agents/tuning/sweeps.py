"""The sweeps that quicgym brings and those of YAML files: of parameters, or of hyperparameters."""

from __future__ import annotations

from collections.abc import Sequence

from quicgym.agents.training.configuration import ConfigError, changed, read_fields
from quicgym.agents.tuning.parameter_config import ParameterSweep
from quicgym.agents.tuning.training_config import TrainingSweep, training_sweep
from quicgym.validation import validated
from quicgym.yaml_files import CONFIGS, yaml_names

SWEEPS = CONFIGS / "sweeps"


def sweep_names() -> list[str]:
    """Returns the names of the sweeps that quicgym brings."""
    return yaml_names(SWEEPS)


def load_sweep(name_or_path: str, changes: Sequence[str] = ()) -> ParameterSweep | TrainingSweep:
    """Loads a sweep: one of `sweep_names()`, or a YAML's path.

    With the field `training` it is one of hyperparameters, otherwise one of a controller's
    parameters. `changes` are such as "seeds=20" or "parameters.gamma.values=[10, 20]"; the value is
    YAML. ConfigError names file, field and value.
    """
    data = read_fields(name_or_path, SWEEPS, "sweep")
    if "training" in data:
        return training_sweep(data, changes, name_or_path)
    return validated(ParameterSweep, changed(data, changes), name_or_path, ConfigError)
