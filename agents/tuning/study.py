"""What every sweep has: how it runs and resumes, its files, and TensorBoard's hparams.

Written into the output folder:

trials/         what each trial has reached, which --resume continues from
trials.parquet  a row per trial
sweep.json      configuration, command, version, commit, the best setting
tensorboard/    a run per trial, with its row of the page HParams
"""

from __future__ import annotations

import math
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import pandas as pd
from rich.table import Table

from quicgym import __version__, _core
from quicgym.agents.evaluation.tensorboard import EvaluationWriter, run_folder
from quicgym.agents.tuning.parameter_config import label
from quicgym.agents.tuning.trials import running_ray
from quicgym.console import say
from quicgym.envs.scenarios.suites import SuiteEntry, content_of
from quicgym.jobs import report_failures
from quicgym.output_folders import Identity, digest, output_folder
from quicgym.ray_cluster import RayError, check_address
from quicgym.studies import Findings

RAY_FOLDER, TRIALS_FOLDER, TENSORBOARD_FOLDER = "ray", "trials", "tensorboard"
TRIALS_FILE, SWEEP_FILE = "trials.parquet", "sweep.json"
LONGEST_RUN_NAME = 100
"""Characters; a file system takes 255 bytes, and TensorBoard's list of runs shows fewer."""


class Trial(Protocol):
    """The outcome of a trial."""

    @property
    def error(self) -> str | None:
        """Why it failed."""


AnyTrial = TypeVar("AnyTrial", bound=Trial)


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


class Study(ABC, Generic[AnyTrial]):
    """Common base of the sweeps of parameters and of hyperparameters.

    Attributes:
        files: Names of files and folders that only this kind of study writes.
        summary: Text in the last line of the output that names the files.
        name: Name of the study and of its folder.
        trials: Results of the trials, in the order of the study.
    """

    files: ClassVar[tuple[str, ...]]
    summary: ClassVar[str]

    def __init__(self, name: str) -> None:
        """Begins without trials."""
        self.name = name
        self.trials: Sequence[AnyTrial] = ()

    @abstractmethod
    def check(self, jobs: int | None, address: str | None) -> Identity:
        """Finds what every trial would fail of; returns what only the same study has.

        `jobs` trials run at the same time; None: as many as Ray has room for. ConfigError or
        ScenarioError where the study cannot be run.
        """

    @abstractmethod
    def run(self, directory: Path, jobs: int | None, command: str) -> None:
        """Runs all trials, or continues them, and keeps them in `trials`.

        KeyboardInterrupt where some are not complete, ray.exceptions.RayError where Ray itself
        failed.
        """

    @abstractmethod
    def failure(self, trial: AnyTrial) -> str:
        """Returns which trial failed, and why."""

    @property
    @abstractmethod
    def ranked(self) -> Sequence[AnyTrial]:
        """The best trial first; those that failed are left out."""

    @abstractmethod
    def frame(self) -> pd.DataFrame:
        """Returns a row per trial, the best first, those that failed last."""

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """Returns what the JSON file says of this kind of study."""

    @abstractmethod
    def curves(self, directory: Path) -> list[Curve]:
        """Returns the trials as TensorBoard shows them, the best first."""

    @abstractmethod
    def write(self, directory: Path) -> None:
        """Writes the files that only this kind of study has."""

    @abstractmethod
    def print(self) -> None:
        """Prints the results."""

    @property
    def failed(self) -> list[AnyTrial]:
        """The trials that failed."""
        return [trial for trial in self.trials if trial.error is not None]

    def identity(self, fields: Any, entries: Iterable[SuiteEntry]) -> Identity:
        """Returns what has to be equal for --resume to continue a folder.

        `fields` are the whole configuration as JSON has it, `entries` what trials are measured on.
        """
        parts = [fields, digest(content_of(entries)), __version__, _core.commit]
        return Identity("sweep", self.name, digest(parts))

    def write_all(self, directory: Path, command: str) -> None:
        """Writes all files, in place of those of an earlier run of the same study."""
        about = {"version": __version__, "commit": _core.commit, "command": command}
        content = as_json({"trials": len(self.ranked), **self.document()})
        Findings(SWEEP_FILE, about, content, tables={TRIALS_FILE: self.frame()}).write(directory)
        write_hparams(directory, self.curves(directory))
        self.write(directory)


def run_study(
    study: Study[Any],
    out: Path | None,
    *,
    jobs: int | None,
    resume: bool,
    address: str | None,
    command: str,
) -> int:
    """Runs a study, writes and prints its results; returns the exit status.

    The arguments are the options of `quicgym sweep`. `jobs` None: as many as there are cores, here
    or in the cluster.
    """
    directory = (out or Path("results/sweeps") / study.name).absolute()
    identity = study.check(jobs, address)
    if address is not None:
        check_address(address)
    names = (
        *(RAY_FOLDER, TRIALS_FOLDER, TRIALS_FILE, SWEEP_FILE, TENSORBOARD_FOLDER),
        *study.files,
    )
    with output_folder(directory, names, resume=resume, identity=identity):
        goes_on = f"continue with\n  {command if resume else f'{command} --resume'}"
        try:
            with running_ray(address, jobs):
                study.run(directory, jobs, command)
        except KeyboardInterrupt:
            say(f"interrupted: what was reached is kept in {directory}; {goes_on}")
            return 130
        except RayError as error:
            say(
                f"quicgym: Ray failed: {str(error).strip().splitlines()[0]}\n"
                f"what is finished is kept in {directory}; {goes_on}"
            )
            return 1
        report_failures([study.failure(trial) for trial in study.failed])
        if not study.ranked:
            say(f"quicgym: {study.name}: no trial succeeded; the reasons are above")
            return 1
        study.write_all(directory, command)
        study.print()
        say(f"{len(study.ranked)} trials {study.summary} are in {directory}")
        return 1 if study.failed else 0


def as_json(value: Any) -> Any:
    """Returns a value as JSON takes it: infinity, which JSON has not, as `--policy` takes it."""
    if isinstance(value, dict):
        return {key: as_json(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(entry) for entry in value]
    return label(value) if isinstance(value, float) and not math.isfinite(value) else value


def write_hparams(directory: Path, curves: Sequence[Curve]) -> None:
    """Writes a run per trial, the best first, named by its rank and by its setting."""
    folder = directory / TENSORBOARD_FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    settings = [curve.setting for curve in curves]
    width = len(str(len(curves)))
    for rank, curve in enumerate(curves, 1):
        setting = ",".join(f"{short(name)}={_text(of)}" for name, of in curve.setting.items())
        run = ",".join(filter(None, (f"{rank:0{width}}", curve.name, setting)))
        writer = EvaluationWriter(folder / run_folder(run)[:LONGEST_RUN_NAME])
        writer.hparams(curve.setting, settings)
        for step, records in curve.evaluations.items():
            writer.evaluation(step, records)
        writer.scalars(0, curve.scalars)
        writer.close()


def short(name: str) -> str:
    """Returns the name of a field as tables and TensorBoard have it."""
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
