"""The command `quicgym plot`: the runs of a result folder as pictures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd

from quicgym.agents.evaluation.run_folders import read_series, series_path
from quicgym.benchmarks.simulations import TRACES_FOLDER
from quicgym.console import say
from quicgym.envs.simulation.plots import RunTraces, draw_episodes, draw_plane, draw_run
from quicgym.envs.simulation.run import flow_traces
from quicgym.errors import RunError
from quicgym.jobs import RUNS_FILE, read_finished
from quicgym.output_folders import file_name, read_parquet
from quicgym.plot_style import PLOTS_FOLDER, save
from quicgym.yaml_files import closest


def run_plot(
    result: Path,
    *,
    scenarios: Sequence[str] = (),
    directory: Path | None = None,
    format: str = "png",
) -> int:
    """Draws what a folder of `quicgym baselines`, `papers` or `evaluate` holds; returns the status.

    For each scenario the plane of goodput and queueing delay over all seeds, and of an evaluation
    the episodes of all policies with seed 0. For each run that kept its time series the receiving
    rates over the capacity. RunError where the folder holds no runs, or none of a scenario.
    """
    runs = list(_runs(result))
    known = list(dict.fromkeys(run["scenario"] for run in runs))
    for name in scenarios:
        if name not in known:
            raise RunError(f"{result}: has no run of scenario {name!r}; {closest(name, known)}")
    matplotlib.use("Agg")
    target = directory or result / PLOTS_FOLDER
    target.mkdir(parents=True, exist_ok=True)
    files = []
    for scenario in scenarios or known:
        here = [run for run in runs if run["scenario"] == scenario]
        for engine in dict.fromkeys(run["engine"] for run in here):
            name = f"plane--{file_name(scenario)}" + ("--ns3" if engine == "ns3" else "")
            try:
                figure = draw_plane(run for run in here if run["engine"] == engine)
            except ValueError:
                say(f"{scenario}: no run has a goodput and a queueing delay, so there is no plane")
                continue
            files.append(save(figure, target / name, format))
        series = _series(result, here)
        if series:
            files.append(
                save(draw_episodes(series), target / f"episodes--{file_name(scenario)}", format)
            )
    for name, traces in _traces(result, scenarios):
        files.append(save(draw_run(traces), target / name, format))
    say(f"{len(files)} pictures are in {target}")
    return 0


def _runs(result: Path) -> Iterator[dict[str, Any]]:
    """Yields the runs of a folder; a policy counts as the controller that it is in place of."""
    finished = read_finished(result)
    if not finished:
        raise RunError(
            f"{result}: has no {RUNS_FILE} with runs; give a folder that quicgym baselines, papers "
            "or evaluate has written (--out)"
        )
    for run in finished.values():
        yield {**run, "controller": run.get("controller", run.get("policy"))}


def _series(result: Path, runs: Iterable[dict[str, Any]]) -> dict[str, pd.DataFrame]:
    """Returns by policy the episodes of one scenario that an evaluation has kept."""
    paths = {
        run["policy"]: series_path(result, run["policy"], run["scenario"])
        for run in runs
        if "policy" in run
    }
    return {policy: read_series(path) for policy, path in paths.items() if path.is_file()}


def _traces(result: Path, scenarios: Iterable[str]) -> Iterator[tuple[str, RunTraces]]:
    """Yields, by the name of their picture, the runs whose time series are in the folder."""
    for path in sorted((result / TRACES_FOLDER).glob("*.queue.parquet")):
        queues = read_parquet(path)
        about = queues.attrs
        if "run" not in about or (scenarios and about["scenario"] not in scenarios):
            continue
        traces = read_parquet(path.with_name(f"{about['run']}.parquet"))
        flows = flow_traces(traces)
        controllers = dict(zip(flows, traces.attrs["controllers"], strict=True))
        hops = [rows for _, rows in queues.groupby("hop")]
        yield about["run"], RunTraces(flows, controllers, hops, about["duration_s"])
