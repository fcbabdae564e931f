"""A study of many trials: `quicgym sweep` and `quicgym search` as one command.

A sweep varies a controller's parameters, a search an agent's hyperparameters. Into the output
folder go ray/ (Ray Tune's own state, which --resume goes on from) and what the study writes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from quicgym import __version__, _core
from quicgym.agents.tuning.trials import running_ray
from quicgym.console import say
from quicgym.envs.scenarios.suites import SuiteEntry, content_of
from quicgym.jobs import report_failures
from quicgym.output_folders import Identity, digest, output_folder
from quicgym.ray_cluster import RayError, check_address

RAY_FOLDER = "ray"


class Trial(Protocol):
    """The outcome of a trial."""

    @property
    def error(self) -> str | None:
        """Why it failed."""


AnyTrial = TypeVar("AnyTrial", bound=Trial)


class Study(ABC, Generic[AnyTrial]):
    """Common base of sweeps and searches.

    Attributes:
        study_type: Kind of the study: "sweep" or "search".
        home: Folder of the study's output folder by default.
        files: Names of the files that the study writes into its folder, ray/ apart.
        summary: Text in the last line of the output that names the files.
        name: Name of the study and of its folder.
        trials: Results of the trials, in the order of the study.
    """

    study_type: ClassVar[str]
    home: ClassVar[Path]
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
    def write(self, directory: Path, command: str) -> None:
        """Writes all files, in place of those of an earlier run of the same study."""

    @abstractmethod
    def print(self) -> None:
        """Prints the results."""

    @property
    def failed(self) -> list[AnyTrial]:
        """The trials that failed."""
        return [trial for trial in self.trials if trial.error is not None]

    def identity(self, fields: Any, entries: Iterable[SuiteEntry]) -> Identity:
        """Returns what has to be equal for --resume to go on with a folder.

        `fields` are the whole configuration as JSON has it, `entries` what trials are measured on.
        """
        parts = [fields, digest(content_of(entries)), __version__, _core.commit]
        return Identity(self.study_type, self.name, digest(parts))


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

    The arguments are the options of `quicgym sweep` and `quicgym search`. `jobs` None: as many as
    there are cores, here or in the cluster.
    """
    directory = (out or study.home / study.name).absolute()
    identity = study.check(jobs, address)
    if address is not None:
        check_address(address)
    names = (RAY_FOLDER, *study.files)
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
        study.write(directory, command)
        study.print()
        say(f"{len(study.ranked)} trials {study.summary} are in {directory}")
        return 1 if study.failed else 0
