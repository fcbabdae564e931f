"""A study, from its jobs to files, what is printed and the exit status."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from quicgym.jobs import AnyJob, Finish, Outcome
from quicgym.studies import Ended, Findings, Study, run_study


@dataclass(frozen=True)
class Square:
    """A job whose result is known; that of a negative number fails."""

    number: int

    @property
    def key(self) -> str:
        return str(self.number)

    def run(self) -> dict[str, Any]:
        if self.number < 0:
            raise ValueError("negative")
        return {"square": self.number**2}


@dataclass
class Here:
    """Workers in this process; they are interrupted after `most` jobs."""

    count: int = 1
    most: int = 100
    done: int = 0

    def connect(self) -> None:
        pass

    def run(self, jobs: list[AnyJob], directory: Path, finish: Finish[AnyJob]) -> None:
        for job in jobs:
            if self.done == self.most:
                raise KeyboardInterrupt
            self.done += 1
            try:
                finish(job, job.run())
            except ValueError as error:
                finish(job, str(error))


def conclude(outcome: Outcome) -> Findings:
    rows = list(outcome.finished.values())
    table = pd.DataFrame(rows)
    return Findings(
        "squares.json", {"about": "squares"}, {"rows": rows}, "the squares",
        print_table=lambda document: print("a table of", document["about"]), frame=table,
        tables={"squares.parquet": table}, texts={"page.html": "a page"},
    )  # fmt: skip


def study(folder: Path, **more: Any) -> Study:
    names = ("runs.jsonl", "squares.json", "squares.parquet", "page.html")
    return Study(folder, names, "quicgym squares", **{"workers": Here(), **more})


@pytest.mark.parametrize(
    ("format", "printed"),
    [("table", "a table of squares\n"), ("csv", "square\n4\n9\n"), ("html", ""), ("json", None)],
)
def test_findings_are_written_and_printed_in_the_format(
    format: str, printed: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_study(study(tmp_path, format=format), [Square(2), Square(3)], conclude) == 0
    shown = capsys.readouterr()
    text = (tmp_path / "squares.json").read_text()
    assert json.loads(text) == {"about": "squares", "rows": [{"square": 4}, {"square": 9}]}
    assert shown.out == (text if printed is None else printed)
    assert shown.err.endswith(f"the squares are in {tmp_path}\n")
    assert pd.read_parquet(tmp_path / "squares.parquet").attrs == {"about": "squares"}
    assert (tmp_path / "page.html").read_text() == "a page"


def test_an_interrupted_study_says_how_to_go_on_and_runs_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = [Square(2), Square(3)]
    assert run_study(study(tmp_path, workers=Here(most=1)), jobs, conclude) == 130
    assert "1 of 2 runs are kept" in (said := capsys.readouterr().err)
    assert said.endswith("quicgym squares --resume\n") and not list(tmp_path.glob("*.json"))
    rest = Here()
    assert run_study(study(tmp_path, workers=rest, resume=True), jobs, conclude) == 0
    assert rest.done == 1


def test_a_failed_simulation_is_named_and_changes_the_exit_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = [Square(2), Square(-1)]
    assert run_study(study(tmp_path), jobs, conclude) == 1
    assert "negative" in capsys.readouterr().err and (tmp_path / "squares.json").exists()
    whole = study(tmp_path / "whole")
    assert run_study(whole, jobs, conclude, incomplete="all are needed") == 1
    assert capsys.readouterr().err.endswith("all are needed\n")
    assert not (tmp_path / "whole/squares.json").exists()


def test_a_study_may_end_without_findings(tmp_path: Path) -> None:
    def nothing(outcome: Outcome) -> Findings:
        raise Ended(3)

    assert run_study(study(tmp_path), [Square(2)], nothing) == 3
    assert not (tmp_path / "squares.json").exists()
