"""The commands `quicgym submit` and `quicgym verify`."""

from __future__ import annotations

import json
import math
import platform
import random
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from quicgym import __version__, _core
from quicgym.agents.evaluation.jobs import RunJob, make_jobs
from quicgym.agents.policies.by_name import policy_kind, split_alias
from quicgym.benchmarks.leaderboard import SUITES
from quicgym.benchmarks.league.games import Participants
from quicgym.benchmarks.league.model import league_names, load_competition
from quicgym.benchmarks.submission.archive import (
    FORMAT,
    NAME,
    About,
    Line,
    SubmissionError,
    Versions,
    files_of,
    pack,
    read_archive,
)
from quicgym.console import say
from quicgym.envs.scenarios.suites import load_suite
from quicgym.jobs import (
    RUNS_FILE,
    Workers,
    as_workers,
    report_failures,
    report_outcome,
    run_jobs,
)
from quicgym.output_folders import output_folder
from quicgym.yaml_files import closest, is_path

SHARE = 0.1
"""Of the runs, which `quicgym verify` runs again."""


def default_suites() -> dict[str, int]:
    """Returns the leaderboard's suites on the native engine, with their seeds."""
    return {
        name: suite.seeds["native"] for name, suite in SUITES.items() if "native" in suite.seeds
    }


def submission_jobs(
    choice: str, suites: Mapping[str, int], leagues: Sequence[str], *, trust_zip: bool
) -> list[tuple[str, RunJob]]:
    """Returns all runs of a submission, each with the part that it belongs to.

    Args:
        choice: The policy under its name, as `find_policy` takes it.
        suites: Number of seeds by suite.
        leagues: Names of competitions.
        trust_zip: Whether to load a model that Stable-Baselines3 saved, which runs code in it.

    Raises:
        ScenarioError, PolicyError, LeagueError: A suite, policy or league cannot be used.
    """
    jobs: list[tuple[str, RunJob]] = []
    for name, seeds in suites.items():
        of_suite = make_jobs([choice], load_suite(name), seeds, trust_zip=trust_zip)
        jobs += [(f"suite {name}", job) for job in of_suite]
    for name in leagues:
        participants = Participants.of(load_competition(name), [choice], trust_zip=trust_zip)
        jobs += [(f"league {name}", job) for job in participants.every_job]
    return jobs


def versions() -> Versions:
    """Returns the programs that results here are made with."""
    return Versions(
        quicgym=__version__,
        commit=_core.commit,
        python=platform.python_version(),
        numpy=np.__version__,
        machine=platform.machine(),
    )


def run_submit(
    policy: str,
    *,
    name: str,
    directory: Path,
    note: str = "",
    suites: Sequence[str] = (),
    leagues: Sequence[str] = (),
    seeds: int | None = None,
    include: Sequence[Path] = (),
    workers: int | Workers = 1,
    resume: bool = False,
    trust_zip: bool = False,
    command: str = "",
) -> int:
    """Runs everything and writes the archive; returns the exit status.

    The arguments are the options of `quicgym submit`. Without suites and leagues all of them are
    run.

    Raises:
        SubmissionError: The name or a file cannot be used.
        ScenarioError, PolicyError, LeagueError: A policy, suite or league cannot be used.
        RunError: The directory cannot be written to.
        ClusterError: There are no workers.
    """
    if not re.fullmatch(NAME, name):
        raise SubmissionError(
            f"--name {name!r}: begin with a letter; up to 60 letters, digits and . _ + -"
        )
    for suite in (*suites, *leagues):
        if is_path(suite):
            raise SubmissionError(f"{suite}: others have no such file; give a name of quicgym's")
    chosen = {
        suite: seeds or default_suites().get(suite, 1)
        for suite in (suites or ([] if leagues else default_suites()))
    }
    known = league_names()
    for league in leagues:
        if league not in known:
            raise SubmissionError(f"--league {league!r}: {closest(league, known)}")
    played = tuple(leagues) if leagues or suites else tuple(known)
    inside, files = files_of(policy, include, trust_zip=trust_zip)
    _, named = split_alias(policy)
    kind = policy_kind(named)
    if kind == "random":
        raise SubmissionError("random is no policy to submit; give another")
    jobs = submission_jobs(f"{name}={named}", chosen, played, trust_zip=trust_zip)
    workers = as_workers(workers)
    workers.connect()
    path = directory / f"{name}.zip"
    every = [job for _, job in jobs]
    with output_folder(directory, (RUNS_FILE, path.name), resume=resume):
        outcome = run_jobs(every, directory, workers, resume=resume)
        if report_outcome(outcome, every, directory, command, resumed=resume):
            return 130
        if outcome.failures:
            say("no archive is written, because runs are missing; --resume runs only these again")
            return 1
        lines = [
            Line(part, job.scenario.name, job.seed, outcome.finished[job.key]) for part, job in jobs
        ]
        about = About.model_construct(
            format=FORMAT, name=name, policy=inside, kind=kind, note=note, suites=chosen,
            leagues=played, versions=versions(), command=command, files={}, digest="",
        )  # fmt: skip
        digest = pack(about, lines, files, path).digest
    say(f"{path} has {len(lines)} runs; its digest is {digest}")
    say(f"to check it: quicgym verify {path}")
    return 0


def run_verify(
    path: Path,
    *,
    everything: bool = False,
    seed: int | None = None,
    workers: int | Workers = 1,
    trust_code: bool = False,
    format: Literal["table", "json"] = "table",
) -> int:
    """Runs a random part of a submission again and compares bytes; returns the exit status.

    The arguments are the options of `quicgym verify`; 0: all bytes are the same, 1: they are not.

    Raises:
        SubmissionError: The archive is damaged, or runs code and is not trusted.
        ScenarioError, PolicyError, LeagueError: The policy, a suite or a league cannot be used.
        ClusterError: There are no workers.
    """
    archive = read_archive(path)
    about = archive.about
    if archive.runs_code and not trust_code:
        raise SubmissionError(
            f"{path}: {about.policy} is code, and verifying runs it; read it first, then give "
            "--trust-code"
        )
    here = versions()
    if (about.versions.quicgym, about.versions.commit) != (here.quicgym, here.commit):
        say(
            f"note: made with quicgym {about.versions.quicgym}, commit {about.versions.commit}; "
            f"this is {here.quicgym}, commit {here.commit}: bytes may differ for that reason"
        )
    if seed is None:
        seed = random.SystemRandom().randrange(2**32)
    workers = as_workers(workers)
    workers.connect()
    with tempfile.TemporaryDirectory(prefix="quicgym-verify-") as temporary:
        folder = Path(temporary)
        archive.unpack(folder)
        jobs = submission_jobs(
            archive.choice(folder), about.suites, about.leagues, trust_zip=trust_code
        )
        # In any order: the archive names its suites by the alphabet.
        by_run = {(part, job.scenario.name, job.seed): job for part, job in jobs}
        runs = [(line.part, line.scenario, line.seed) for line in archive.lines]
        if sorted(runs) != sorted(by_run):
            raise SubmissionError(
                f"{path}: its runs are not those of its suites and leagues here; submit again with "
                "this version"
            )
        count = len(jobs) if everything else math.ceil(SHARE * len(jobs))
        places = sorted(random.Random(seed).sample(range(len(jobs)), count))
        outcome = run_jobs([by_run[runs[place]] for place in places], folder / "runs", workers)
        report_failures(outcome.failures)
        if outcome.interrupted:
            say("interrupted: nothing is verified")
            return 130
        differing: list[tuple[Line, Line | None]] = []
        for place in places:
            given, job = archive.lines[place], by_run[runs[place]]
            if job.key not in outcome.finished:
                differing.append((given, None))
                continue
            again = Line(given.part, given.scenario, given.seed, outcome.finished[job.key])
            if again.text() != given.text():
                differing.append((given, again))
    if format == "json":
        document = {
            "name": about.name,
            "digest": about.digest,
            "runs": len(jobs),
            "verified": count,
            "seed": seed,
            "differing": [str(given) for given, _ in differing],
        }
        print(json.dumps(document, indent=1))
    else:
        _print(about, len(jobs), count, seed, differing)
    return 1 if differing else 0


def _print(
    about: About,
    runs: int,
    count: int,
    seed: int,
    differing: Sequence[tuple[Line, Line | None]],
) -> None:
    which = "all" if count == runs else f"{count} of {runs}, drawn with --seed {seed},"
    print(f"{about.name}: {which} runs were run again")
    for given, again in differing[:10]:
        if again is None:
            print(f"{given}: failed")
            continue
        names = [name for name in given.run if given.run[name] != again.run.get(name)]
        values = ", ".join(
            f"{name} {given.run[name]} / {again.run.get(name)}" for name in names[:3]
        )
        print(f"{given}: archive / here: {values}")
    if differing:
        print(f"NOT VERIFIED: {len(differing)} runs differ")
    else:
        print("verified: every byte is the same")
