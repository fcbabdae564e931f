"""What every study writes and prints: trials.parquet, a JSON file, TensorBoard's hparams."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from rich.table import Table

from quicgym import __version__, _core
from quicgym.agents.evaluation.tensorboard import EvaluationWriter, run_folder
from quicgym.agents.tuning.sweep_config import label
from quicgym.output_folders import write_atomically

TRIALS_FILE = "trials.parquet"
TENSORBOARD_FOLDER = "tensorboard"
LONGEST_RUN_NAME = 100
"""Characters; a file system takes 255 bytes, and TensorBoard's list of runs shows fewer."""


def write_tables(
    directory: Path, trials: pd.DataFrame, file: str, document: Mapping[str, Any], command: str
) -> None:
    """Writes trials.parquet and the study's JSON file, both with what made them."""
    about = {"version": __version__, "commit": _core.commit, "command": command}
    trials.attrs.update(about)
    text = json.dumps(as_json({**about, **document}), indent=1, allow_nan=False) + "\n"
    write_atomically({directory / TRIALS_FILE: trials.to_parquet, directory / file: text})


def as_json(value: Any) -> Any:
    """Returns a value as JSON takes it: infinity, which JSON has not, as `--policy` takes it."""
    if isinstance(value, dict):
        return {key: as_json(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(entry) for entry in value]
    return label(value) if isinstance(value, float) and not math.isfinite(value) else value


@dataclass(frozen=True)
class Curve:
    """A trial in TensorBoard.

    The run's `name` stands between its rank and its setting. `evaluations` have records by step;
    other scalars are written at step 0.
    """

    name: str
    setting: Mapping[str, bool | float | str]
    evaluations: Mapping[int, Sequence[Mapping[str, Any]]]
    scalars: Mapping[str, float]


def write_hparams(directory: Path, curves: Sequence[Curve]) -> None:
    """Writes a run per trial, the best first, named by its rank and by its setting."""
    folder = directory / TENSORBOARD_FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    settings = [curve.setting for curve in curves]
    width = len(str(len(curves)))
    for rank, curve in enumerate(curves, 1):
        setting = ",".join(f"{_short(name)}={_text(of)}" for name, of in curve.setting.items())
        run = ",".join(filter(None, (f"{rank:0{width}}", curve.name, setting)))
        writer = EvaluationWriter(folder / run_folder(run)[:LONGEST_RUN_NAME])
        writer.hparams(curve.setting, settings)
        for step, records in curve.evaluations.items():
            writer.evaluation(step, records)
        writer.scalars(0, curve.scalars)
        writer.close()


def _short(name: str) -> str:
    return name.removeprefix("hyperparameters.")


def _text(value: bool | float | str) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def text_table(
    headings: Iterable[str], rows: Iterable[Iterable[str]], *, left: Sequence[str] = ()
) -> Table:
    """Returns a table of texts; columns of the headings in `left` begin at the left."""
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, justify="left" if heading in left else "right")
    for row in rows:
        table.add_row(*row)
    return table
