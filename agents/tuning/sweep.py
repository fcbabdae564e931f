"""Parameter sweeps of any controller, over the cores or a Ray cluster.

Each trial is one setting of the swept parameters, over all scenarios and seeds. The published
setting is always one of them. Into the output folder go ray/ (Ray Tune's own state, which --resume
goes on from) and what `quicgym.agents.tuning.sweep_results` writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from quicgym.agents.tuning.identity import identity_of
from quicgym.agents.tuning.ray_tune import RETRIES, RayError, check_address, running_ray
from quicgym.agents.tuning.sweep_config import SweepConfig, policy_text
from quicgym.agents.tuning.sweep_ray import RaySearch
from quicgym.agents.tuning.sweep_results import RESULTS, Results, print_results, write_results
from quicgym.agents.tuning.sweep_trial import Trials
from quicgym.console import say
from quicgym.envs import Scenario
from quicgym.envs.simulation.simulation import check_engine
from quicgym.jobs import report_failures
from quicgym.output_folders import output_folder

RAY_FOLDER = "ray"


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    config: SweepConfig
    directory: Path | None
    """None: results/sweeps/<name>."""
    jobs: int | None
    """Trials at the same time; None: as many as there are cores, here or in the cluster."""
    resume: bool
    address: str | None
    """Of a Ray cluster; None: this machine alone."""
    command: str
    """The command line, to be kept with the results."""


def run_sweep(request: Request) -> int:
    """Runs, writes and prints everything; returns the exit status."""
    config = request.config
    check_engine(config.engine)
    scenarios = config.load_scenarios()
    directory = (request.directory or Path("results/sweeps") / config.name).absolute()
    identity = identity_of("sweep", config.name, config.model_dump(), scenarios)
    if request.address is not None:
        check_address(request.address)
    names = (RAY_FOLDER, *RESULTS)
    with output_folder(directory, names, resume=request.resume, identity=identity):
        return _run(request, scenarios, directory)


def _run(request: Request, scenarios: Sequence[Scenario], directory: Path) -> int:
    config = request.config
    trials = Trials.of(config, scenarios)
    again = request.command if request.resume else f"{request.command} --resume"
    try:
        with running_ray(request.address, request.jobs):
            search = RaySearch(config, trials, directory / RAY_FOLDER, request.jobs)
            outcome = search.run()
            if outcome.interrupted:
                say(
                    f"interrupted: {len(outcome.finished)} trials are kept in {directory}; "
                    f"continue with\n  {again}"
                )
                return 130
            report_failures(
                [
                    f"{policy_text(config.controller, failed.setting)}: {failed.reason} "
                    f"(tried {RETRIES + 1} times)"
                    for failed in outcome.failed
                ]
            )
            if not outcome.finished:
                say(f"quicgym: {config.name}: no trial succeeded; the reasons are above")
                return 1
            results = Results(config, tuple(outcome.finished), tuple(outcome.failed))
            results.confirm(search.confirm)
    except KeyboardInterrupt:
        say(f"interrupted: what was reached is kept in {directory}; continue with\n  {again}")
        return 130
    except RayError as error:
        say(
            f"quicgym: Ray failed: {str(error).strip().splitlines()[0]}\n"
            f"what is finished is kept in {directory}; continue with\n  {again}"
        )
        return 1
    write_results(results, directory, request.command)
    print_results(results)
    say(
        f"{len(outcome.finished)} trials (trials.parquet, sensitivity.parquet, sweep.json), "
        f"pictures (figures) and hparams (tensorboard) are in {directory}"
    )
    return 1 if outcome.failed else 0
