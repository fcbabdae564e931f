"""Networks with hand-coded controllers: `quicgym baselines --scenario`.

Each run has the reward that agents earn. Into the output folder go runs.jsonl (one line per
finished run), results.json, results.parquet (one row per run), traces/ (the time series of the
first seed) and figures/.
"""

from __future__ import annotations

import platform
from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from quicgym.agents.evaluation.evaluate import report_blocked
from quicgym.agents.evaluation.jobs import with_packet_logs
from quicgym.agents.evaluation.statistics import seed_intervals
from quicgym.agents.evaluation.summary import RESULTS as RESULTS_OF_EVALUATION
from quicgym.agents.policies.by_name import pretrained_names
from quicgym.benchmarks.papers import drawings, paper_figures, paper_tables
from quicgym.benchmarks.simulations import TRACES_FOLDER, make_jobs
from quicgym.console import count_of, print_whole
from quicgym.envs import Scenario, ScenarioError, load_scenario
from quicgym.envs.simulation.metrics import METRICS, OF_RUNS
from quicgym.envs.simulation.packet_logs import PacketLogs
from quicgym.envs.simulation.simulation import check_engine, ns3_version
from quicgym.envs.simulation.window import WHOLE, Window
from quicgym.jobs import RUNS_FILE, Outcome, Workers
from quicgym.plot_style import PLOTS_FOLDER, display_name
from quicgym.studies import Ended, Findings, Study, run_study

Format = Literal["table", "json", "csv"]
CONTROLLERS = ("newreno", "cubic", "bbr", "ebcc")
RESULTS = tuple(
    dict.fromkeys(
        (
            RUNS_FILE,
            "results.json",
            "results.parquet",
            "intervals.parquet",
            TRACES_FOLDER,
            "figures",
            PLOTS_FOLDER,
            *RESULTS_OF_EVALUATION,
        )  # fmt: skip
    )
)
"""Also what the benchmark leaves in a folder, which `quicgym compare` would take for these runs."""


def run_networks(
    *,
    directory: Path,
    scenarios: Sequence[str],
    controllers: Sequence[str] = (),
    engine: str = "native",
    seeds: int = 5,
    window: Window = WHOLE,
    workers: int | Workers = 1,
    format: Format = "table",
    resume: bool = False,
    figure_format: str = "png",
    qlog: PacketLogs | None = None,
    pcap: PacketLogs | None = None,
    command: str = "",
) -> int:
    """Runs, writes and prints everything; returns the exit status.

    The arguments are the options of `quicgym baselines --scenario`. No controller means CONTROLLERS
    for flows that name none. ScenarioError, Ns3MissingError or RunError says what cannot be run.
    """
    known = check_engine(engine)
    loaded = [load_scenario(name) for name in dict.fromkeys(scenarios)]
    _check_names(loaded)
    if controllers:
        _check_controllers_are_used(loaded)
    for name in controllers:
        if name in pretrained_names():
            raise ScenarioError(
                f"--controller {name}: {display_name(name)} is a learned policy; run it with "
                f"`quicgym evaluate --policy {name} --suite {' '.join(scenarios)}`, or with "
                "--policy and without --scenario"
            )
    chosen = list(dict.fromkeys(controllers)) or list(CONTROLLERS)
    jobs = make_jobs(loaded, chosen, known, seeds, directory / TRACES_FOLDER, window=window)
    jobs = with_packet_logs(jobs, qlog, pcap)
    # Flows with entries of their own differ in more than their controller, as in RTT or start.
    mixed = {scenario.name for scenario in loaded if len(scenario.flows) > 1}
    study = Study(directory, RESULTS, command, workers, format, resume)

    def conclude(outcome: Outcome) -> Findings:
        runs = [outcome.finished[job.key] for job in jobs if job.key in outcome.finished]
        if not runs:
            raise Ended(1)
        frame = pd.DataFrame(runs)
        frame = frame.astype({name: float for name in METRICS if name in frame})
        report_blocked(frame.rename(columns={"controller": "policy"}))
        intervals = _intervals(runs)
        traced = drawings.with_traces(jobs, lambda _: known)
        drawn = [drawings.scenario_drawing(of_scenario) for of_scenario in traced.values()]
        files = paper_figures.draw_all(drawn, directory / "figures", figure_format)
        return Findings(
            "results.json",
            {
                **study.about(seeds),
                "ns3_version": ns3_version(),
                "python": platform.python_version(),
            },
            {"runs": runs, "intervals": intervals},
            f"{count_of(len(runs), 'run')} (results.json, results.parquet) and "
            f"{count_of(len(files), 'picture')} (figures)",
            print_table=lambda document: _print(document["runs"], mixed),
            frame=pd.DataFrame(_flow_rows(runs)),
            tables={
                "results.parquet": frame,
                "intervals.parquet": pd.DataFrame(intervals),
            },
        )

    return run_study(study, jobs, conclude)


def _print(runs: Sequence[dict[str, Any]], mixed: Container[str]) -> None:
    for table in paper_tables.measurement_tables(runs, mixed):
        print_whole(table)
        print()


def _flow_rows(runs: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yields a row for each flow and each entry of short flows, with the run's own metrics."""
    of_runs = [entry.name for entry in OF_RUNS]
    for run in runs:
        about = {name: run[name] for name in ("scenario", "engine", "seed")}
        about["controllers"] = run["controller"]
        shared = {name: run[name] for name in of_runs if name in run}
        for flow in (*run["flows"], *run.get("short_flows", ())):
            yield {**about, **flow, **shared}


def _check_names(scenarios: Sequence[Scenario]) -> None:
    names = [scenario.name for scenario in scenarios]
    for name in names:
        if names.count(name) > 1:
            raise ScenarioError(
                f"two of the scenarios have the name {name!r}; change `name` in one of the files"
            )


def _check_controllers_are_used(scenarios: Sequence[Scenario]) -> None:
    for scenario in scenarios:
        if not scenario.has_open_flow:
            raise ScenarioError(
                f"scenario {scenario.name}: each flow names its controller, so none is left for "
                "--controller; leave out the option, or `controller` of a flow"
            )


def _intervals(runs: Sequence[dict[str, Any]]) -> list[dict[Any, Any]]:
    """Returns the mean of every metric in every scenario with its interval over the seeds."""
    names = [name for name in METRICS if any(name in run for run in runs)]
    frame = pd.DataFrame(runs, columns=["scenario", "controller", *names])
    frame[names] = frame[names].astype(float)
    rows = seed_intervals(frame, ("scenario", "controller"))
    return rows.astype(object).where(rows.notna(), None).to_dict("records")
