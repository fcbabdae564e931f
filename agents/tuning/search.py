"""Searches for hyperparameters of agents, over the cores or a Ray cluster.

Into the output folder go trials/ (a run folder of `quicgym train` for every start of a trial), ray/
(Ray Tune's own state and checkpoints, which --resume goes on from) and what
`quicgym.agents.tuning.search_results` writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from quicgym.agents.training.configuration import ConfigError
from quicgym.agents.training.model import check_hyperparameters
from quicgym.agents.tuning.identity import identity_of
from quicgym.agents.tuning.ray_tune import RayError, check_address, running_ray
from quicgym.agents.tuning.search_config import Search
from quicgym.agents.tuning.search_ray import RaySearch
from quicgym.agents.tuning.search_results import RESULTS, Results, print_results, write_results
from quicgym.console import say
from quicgym.envs.scenarios.suites import SuiteEntry, load_entry, load_suite
from quicgym.jobs import report_failures
from quicgym.output_folders import output_folder

RAY_FOLDER, TRIALS_FOLDER = "ray", "trials"


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    search: Search
    directory: Path | None
    """None: results/searches/<name>."""
    jobs: int | None
    """Trials at the same time; None: as many as there are cores, here or in the cluster."""
    resume: bool
    address: str | None
    """Of a Ray cluster; None: this machine alone."""
    command: str
    """The command line, to be kept with the results."""


def run_search(request: Request) -> int:
    """Runs, writes and prints everything; returns the exit status."""
    search, config = request.search, request.search.config
    if request.address is not None and request.jobs is not None and config.scheduler == "pbt":
        raise ConfigError(
            f"--jobs {request.jobs}: a population of pbt in a cluster is limited by its cores "
            "alone; leave --jobs away"
        )
    suite = _check(search)
    directory = (request.directory or Path("results/searches") / config.name).absolute()
    fields = [config.model_dump(), search.training.model_dump()]
    identity = identity_of("search", config.name, fields, suite)
    if request.address is not None:
        check_address(request.address)
    names = (RAY_FOLDER, TRIALS_FOLDER, *RESULTS)
    with output_folder(directory, names, resume=request.resume, identity=identity):
        return _run(request, directory)


def _run(request: Request, directory: Path) -> int:
    search = request.search
    trials = directory / TRIALS_FOLDER
    again = request.command if request.resume else f"{request.command} --resume"
    try:
        with running_ray(request.address, request.jobs):
            outcome = RaySearch(
                search, trials, directory / RAY_FOLDER, request.jobs, request.command
            ).run()
        if outcome.interrupted:
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        say(f"interrupted: what was reached is kept in {directory}; continue with\n  {again}")
        return 130
    except RayError as error:
        say(
            f"quicgym: Ray failed: {str(error).strip().splitlines()[0]}\n"
            f"what is finished is kept in {directory}; continue with\n  {again}"
        )
        return 1
    return _finish(Results(search, outcome.trials), directory, trials, request.command)


def _check(search: Search) -> tuple[SuiteEntry, ...]:
    """Finds what every trial would fail of; returns the suite that trials are measured by."""
    for name, field in search.config.hyperparameters.items():
        check_hyperparameters(search.trial({name: field.limits[0]}))
    load_entry(search.training.environment.scenario)
    return load_suite(search.training.evaluation.suite)


def _finish(results: Results, directory: Path, trials: Path, command: str) -> int:
    report_failures(
        [
            f"{results.search.train_command(trial.setting)}: {trial.error}"
            for trial in results.failed
        ]
    )
    if not results.ranked:
        say(f"quicgym: {results.search.config.name}: no trial succeeded; the reasons are above")
        return 1
    write_results(results, directory, trials, command)
    print_results(results)
    say(
        f"{len(results.ranked)} trials (trials.parquet, search.json), the best policy (policy), "
        f"runs (trials) and hparams (tensorboard) are in {directory}"
    )
    return 1 if results.failed else 0
