"""The command `quicgym plot`: the runs of a result folder as pictures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd
from matplotlib.figure import Figure

from quicgym.agents.evaluation.run_folders import read_series, series_path
from quicgym.benchmarks.simulations import TRACES_FOLDER
from quicgym.console import say
from quicgym.envs import load_scenario, scenario_names
from quicgym.envs.scenarios.words import network_in_words
from quicgym.envs.simulation.metrics import mean_of
from quicgym.envs.simulation.plots import RunTraces, draw_episodes, draw_plane, draw_run
from quicgym.envs.simulation.run import flow_traces
from quicgym.errors import RunError
from quicgym.jobs import RUNS_FILE, read_finished
from quicgym.output_folders import file_name, read_parquet
from quicgym.plot_style import PLOTS_FOLDER, save, write_captions
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
    captions: dict[str, str] = {}

    def keep(figure: Figure, name: str, caption: str) -> None:
        captions[save(figure, target / name, format).name] = caption

    for scenario in scenarios or known:
        here = [run for run in runs if run["scenario"] == scenario]
        path = _in_words(scenario)
        for engine in dict.fromkeys(run["engine"] for run in here):
            name = f"plane--{file_name(scenario)}" + ("--ns3" if engine == "ns3" else "")
            of_engine = [run for run in here if run["engine"] == engine]
            try:
                figure = draw_plane(point for run in of_engine for point in _points(run))
            except ValueError:
                say(f"{scenario}: no run has a goodput and a queueing delay, so there is no plane")
                continue
            keep(figure, name, _plane_caption(path, engine, {run["seed"] for run in of_engine}))
        series = _series(result, here)
        if series:
            caption = f"Throughput over the capacity, and RTT, of each policy on {path}, seed 0."
            keep(draw_episodes(series), f"episodes--{file_name(scenario)}", caption)
    for about, traces in _traces(result, scenarios):
        caption = (
            "Receiving rate of each flow over the capacity (grey), and the queueing delay with the "
            f"drops (crosses), on {_in_words(about['scenario'])}, engine {about['engine']}, seed "
            f"{about['seed']}."
        )
        keep(draw_run(traces), about["run"], caption)
    write_captions(target, captions)
    say(f"{len(captions)} pictures are in {target}")
    return 0


def _in_words(scenario: str) -> str:
    """Returns the scenario's name, and the network where it is one of quicgym's."""
    if scenario not in scenario_names():
        return scenario
    return f"{scenario} ({network_in_words(load_scenario(scenario))})"


def _plane_caption(path: str, engine: str, seeds: set[int]) -> str:
    caption = f"Goodput over queueing delay on {path}, engine {engine}. A mark is the mean of "
    if len(seeds) == 1:
        return f"{caption}a controller's flows with seed {min(seeds)}."
    return (
        f"{caption}a controller's flows over {len(seeds)} seeds ({min(seeds)} to {max(seeds)}), "
        "and an ellipse is 1 standard deviation of the seeds."
    )


def _points(run: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields a point for each controller of a run: the means of its flows.

    Where several share the network, each is shown with those beside it.
    """
    controllers = list(dict.fromkeys(flow["controller"] for flow in run.get("flows", ())))
    if len(controllers) < 2:
        yield run
        return
    for controller in controllers:
        beside = ", ".join(other for other in controllers if other != controller)
        flows = [flow for flow in run["flows"] if flow["controller"] == controller]
        means = {
            name: mean_of(flow[name] for flow in flows)
            for name in ("goodput_mbps", "mean_queue_delay_ms")
        }
        yield {"controller": f"{controller} beside {beside}", **means}


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


def _traces(result: Path, scenarios: Iterable[str]) -> Iterator[tuple[dict[str, Any], RunTraces]]:
    """Yields the runs whose time series are in the folder, with what their files say of them."""
    for path in sorted((result / TRACES_FOLDER).glob("*.queue.parquet")):
        queues = read_parquet(path)
        about = {str(name): value for name, value in queues.attrs.items()}
        if "run" not in about or (scenarios and about["scenario"] not in scenarios):
            continue
        traces = read_parquet(path.with_name(f"{about['run']}.parquet"))
        flows = flow_traces(traces)
        controllers = dict(zip(flows, traces.attrs["controllers"], strict=True))
        hops = [rows for _, rows in queues.groupby("hop")]
        yield about, RunTraces(flows, controllers, hops, about["duration_s"])
