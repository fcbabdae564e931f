"""The way of a study from its simulations to files, tables and an exit status.

A study is a command that runs many simulations. It says what they are, what their results mean and
what it prints. All else is the same for each and stands here: the folder and what is resumed in it,
what is said of failures and after Ctrl-C, JSON and Parquet, the formats on standard output.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quicgym import __version__, _core
from quicgym.console import say
from quicgym.jobs import AnyJob, Outcome, Workers, as_workers, report_outcome, run_jobs
from quicgym.output_folders import output_folder, write_atomically

if TYPE_CHECKING:
    import pandas as pd


class Ended(Exception):
    """Ends a study before it has findings; what there is to say has been said."""

    def __init__(self, status: int) -> None:
        """Takes the exit status of the command."""
        self.status = status


@dataclass(frozen=True)
class Study:
    """What a command line asks of every study.

    Attributes:
        directory: Folder of the results.
        names: Names of the files and folders that the study writes there. Those of an earlier run
            are moved aside, unless it is resumed.
        command: Command line, which is kept with the results.
        workers: What runs the simulations, or a number of processes of this machine.
        format: What is printed: "table", "json" or "csv"; any other prints nothing.
        resume: Whether to continue the study that the folder holds.
    """

    directory: Path
    names: Sequence[str]
    command: str
    workers: int | Workers = 1
    format: str = "table"
    resume: bool = False

    def about(self, seeds: int, first_seed: int = 0) -> dict[str, Any]:
        """Returns what every result says of where it comes from."""
        return {
            "version": __version__,
            "commit": _core.commit,
            "command": self.command,
            "seeds": list(range(first_seed, first_seed + seeds)),
        }

    def interrupted(self, outcome: Outcome, jobs: Sequence[AnyJob]) -> bool:
        """Says what failed and, after Ctrl-C, how to go on; returns whether it was pressed."""
        return report_outcome(outcome, jobs, self.directory, self.command, resumed=self.resume)


@dataclass(frozen=True)
class Findings:
    """What a study found.

    Attributes:
        file: Name of the JSON file.
        about: Where the results come from; the attributes of all Parquet files.
        content: Results, which the JSON file has after `about`.
        closing: Last sentence, up to "are in" and the folder.
        print_table: Function that prints `document` in the format "table".
        frame: Table of the format "csv".
        tables: Further tables by the names of their Parquet files.
        texts: Further texts by the names of their files.
    """

    file: str
    about: Mapping[str, Any]
    content: Mapping[str, Any]
    closing: str = ""
    print_table: Callable[[dict[str, Any]], None] = lambda document: None
    frame: pd.DataFrame | None = None
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)

    @property
    def document(self) -> dict[str, Any]:
        """What the JSON file holds."""
        return {**self.about, **self.content}

    @property
    def json(self) -> str:
        """The text of the JSON file."""
        return json.dumps(self.document, indent=1, allow_nan=False) + "\n"

    def write(self, directory: Path) -> None:
        """Writes all files at once."""
        contents: dict[Path, str | Callable[[Path], object]] = {directory / self.file: self.json}
        for name, table in self.tables.items():
            table.attrs.update(self.about)
            contents[directory / name] = table.to_parquet
        contents |= {directory / name: text for name, text in self.texts.items()}
        write_atomically(contents)

    def print(self, format: str) -> None:
        """Prints them in a format."""
        if format == "json":
            print(self.json, end="")
        elif format == "csv" and self.frame is not None:
            print(self.frame.to_csv(index=False), end="")
        elif format == "table":
            self.print_table(self.document)


def run_study(
    study: Study,
    jobs: Sequence[AnyJob],
    conclude: Callable[[Outcome], Findings],
    *,
    title: str = "simulations",
    incomplete: str | None = None,
) -> int:
    """Runs a study, writes and prints what it finds; returns the exit status.

    Args:
        study: What the command line asks for.
        jobs: Simulations of the study.
        conclude: Function that returns what the results mean, and draws; it may raise `Ended`.
        title: Words of the progress bar.
        incomplete: What is said where simulations failed and the study needs all of them; None: it
            concludes from the others.

    Raises:
        ClusterError: There are no workers.
        RunError: The folder cannot be written to.
    """
    workers = as_workers(study.workers)
    workers.connect()
    with output_folder(study.directory, study.names, resume=study.resume):
        outcome = run_jobs(jobs, study.directory, workers, resume=study.resume, title=title)
        if study.interrupted(outcome, jobs):
            return 130
        if outcome.failures and incomplete is not None:
            say(incomplete)
            return 1
        try:
            found = conclude(outcome)
        except Ended as end:
            return end.status
        found.write(study.directory)
    found.print(study.format)
    say(f"{found.closing} are in {study.directory}")
    return 1 if outcome.failures else 0
