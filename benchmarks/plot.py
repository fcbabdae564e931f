"""The command `quicgym plot`: the runs of a result folder as pictures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd
from matplotlib.figure import Figure

from quicgym.agents.evaluation.run_folders import EVALUATION_FILE, read_series, series_path
from quicgym.benchmarks.simulations import TRACES_FOLDER
from quicgym.console import count_of, say
from quicgym.envs import Scenario, ScenarioError, load_scenario, scenario_names
from quicgym.envs.scenarios.suites import load_suite
from quicgym.envs.scenarios.words import network_in_words
from quicgym.envs.simulation.animation import Take, write_film
from quicgym.envs.simulation.metrics import mean_of
from quicgym.envs.simulation.plots import (
    RunTraces,
    draw_episodes,
    draw_overview,
    draw_plane,
    draw_run,
)
from quicgym.envs.simulation.run import flow_traces
from quicgym.errors import RunError
from quicgym.jobs import RUNS_FILE, read_finished
from quicgym.output_folders import file_name, read_json, read_parquet
from quicgym.plot_style import PLOTS_FOLDER, save, write_captions
from quicgym.yaml_files import closest

_RESULTS = (EVALUATION_FILE, "results.json", "papers.json")


def run_plot(
    result: Path,
    *,
    scenarios: Sequence[str] = (),
    directory: Path | None = None,
    format: str = "png",
    animate: tuple[str, str] | None = None,
) -> int:
    """Draws what a folder of `quicgym baselines`, `papers` or `evaluate` holds; returns the status.

    One overview of all scenarios. For each scenario the plane of goodput and queueing delay over
    all seeds, and of an evaluation the episodes of all policies with the first seed. For each run
    that kept its time series the receiving rates over the capacity. With `animate`, two controllers
    or policies, only a film of both on the first of the scenarios. RunError where the folder holds
    no runs, or none of a scenario.
    """
    runs = list(_runs(result))
    known = list(dict.fromkeys(run["scenario"] for run in runs))
    for name in scenarios:
        if name not in known:
            raise RunError(f"{result}: has no run of scenario {name!r}; {closest(name, known)}")
    matplotlib.use("Agg")
    target = directory or result / PLOTS_FOLDER
    target.mkdir(parents=True, exist_ok=True)
    if animate is not None:
        say(f"the animation is {_animate(result, runs, animate, (scenarios or known)[0], target)}")
        return 0
    networks = _networks(result, known)
    captions: dict[str, str] = {}

    def in_words(scenario: str) -> str:
        network = networks.get(scenario)
        return scenario if network is None else f"{scenario} ({network_in_words(network)})"

    def keep(figure: Figure, name: str, caption: str) -> None:
        captions[save(figure, target / name, format).name] = caption

    shown = [run for run in runs if run["scenario"] in (scenarios or known)]
    if len(scenarios or known) > 1:
        caption = (
            "All runs: a dot is the mean of a controller's or policy's flows on one network over "
            "its seeds, and the bar is the median of the networks. Where a network adds a "
            "controller of its own, both names share a row, so rows may have different networks."
        )
        keep(draw_overview(shown), "overview", caption)
    for scenario in scenarios or known:
        here = [run for run in shown if run["scenario"] == scenario]
        path = in_words(scenario)
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
            seed = min(run["seed"] for run in here)  # an evaluation keeps the series of the first
            caption = (
                f"Throughput over the capacity, and RTT, of each policy on {path}, seed {seed}."
            )
            base_rtt_ms = networks[scenario].base_rtt_ms if scenario in networks else None
            figure = draw_episodes(series, base_rtt_ms=base_rtt_ms)
            keep(figure, f"episodes--{file_name(scenario)}", caption)
    for about, traces in _traces(result, scenarios):
        path = in_words(about["scenario"])
        caption = (
            "Receiving rate of each flow over the capacity (grey), and the queueing delay with the "
            f"drops (crosses), on {path}, engine {about['engine']}, seed "
            f"{about['seed']}."
        )
        keep(draw_run(traces), about["run"], caption)
    write_captions(target, captions)
    first = f"; begin with {next(iter(captions))}" if len(captions) > 1 else ""
    are = f"{count_of(len(captions), 'picture')} {'is' if len(captions) == 1 else 'are'}"
    say(f"{are} in {target}{first}")
    return 0


def _animate(
    result: Path,
    runs: Sequence[dict[str, Any]],
    names: tuple[str, str],
    scenario: str,
    target: Path,
) -> Path:
    """Writes the film of two controllers or policies on one scenario; returns its file."""
    here = list(dict.fromkeys(run["controller"] for run in runs if run["scenario"] == scenario))
    takes = []
    for name in names:
        if name not in here:
            raise RunError(f"{result}: has no run of {name!r} on {scenario}; {closest(name, here)}")
        takes.append(_take(result, name, scenario))
    path = target / f"{file_name(scenario)}--{'--'.join(map(file_name, names))}.gif"
    write_film(takes, path)
    return path


def _take(result: Path, name: str, scenario: str) -> Take:
    """Returns what the film shows of one controller or policy."""
    series = series_path(result, name, scenario)
    if series.is_file():
        return Take.of_episode(name, read_series(series))
    for about, traces in _traces(result, [scenario]):
        if about["run"].startswith(f"{scenario}--{file_name(name)}--"):
            return Take.of_run(name, traces)
    raise RunError(f"{result}: has no time series of {name!r} on {scenario}; run it again")


def _networks(result: Path, scenarios: Iterable[str]) -> dict[str, Scenario]:
    """Returns the scenarios that can still be read: those of the suites, and quicgym's own."""
    found = {}
    if (result / EVALUATION_FILE).is_file():
        suites = read_json(result / EVALUATION_FILE, ("suite",))["suite"].split(", ")
        with suppress(ScenarioError):
            entries = [entry for suite in suites for entry in load_suite(suite)]
            found = {entry.name: entry for entry in entries if isinstance(entry, Scenario)}
    own = set(scenario_names())
    return found | {name: load_scenario(name) for name in scenarios if name in own - set(found)}


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

    Where several share the network, each is shown with those next to it.
    """
    controllers = list(dict.fromkeys(flow["controller"] for flow in run.get("flows", ())))
    if len(controllers) < 2:
        yield run
        return
    for controller in controllers:
        others = [other for other in controllers if other != controller]
        flows = [flow for flow in run["flows"] if flow["controller"] == controller]
        means = {
            name: mean_of(flow[name] for flow in flows)
            for name in ("goodput_mbps", "mean_queue_delay_ms")
        }
        yield {"controller": controller, "next_to": others, **means}


def _runs(result: Path) -> Iterator[dict[str, Any]]:
    """Yields the runs of a folder; a policy counts as the controller that it is in place of."""
    finished = read_finished(result)
    what = "" if finished else f"has no {RUNS_FILE} with runs"
    if finished and not any((result / name).is_file() for name in _RESULTS):
        what = f"has none of {', '.join(_RESULTS)}: it is of another command, or not finished"
    if what:
        raise RunError(
            f"{result}: {what}; give a folder that quicgym baselines, papers or evaluate has "
            "written (--out)"
        )
    met = set()
    for run in finished.values():
        controller = run.get("controller", run.get("policy"))
        identity = controller, run["scenario"], run["engine"], run["seed"]
        if identity in met:
            raise RunError(
                f"{result}: {RUNS_FILE} has two runs of {controller} on {run['scenario']} with "
                f"seed {run['seed']}, one of an earlier call with other options; run the command "
                "again without --resume"
            )
        met.add(identity)
        yield {**run, "controller": controller}


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
        passed = dict(zip(flows, traces.attrs.get("hops", ()), strict=False))
        hops = [rows for _, rows in queues.groupby("hop")]
        yield about, RunTraces(flows, controllers, hops, about["duration_s"], passed)
