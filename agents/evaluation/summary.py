"""Policies over a suite of scenarios and seeds, and what can be said of them.

`evaluate` runs the episodes; into its folder go runs.jsonl (one line per episode), results.parquet
(one row per episode), intervals.parquet (mean and interval of every metric in every scenario),
evaluation.json (the summary) and series/ (time series of the first seed).
docs/reference/evaluation.md explains what the summary has.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from quicgym import __version__, _core
from quicgym.agents.evaluation.jobs import PolicyChoice, RunJob, make_jobs, with_packet_logs
from quicgym.agents.evaluation.run_folders import series_path
from quicgym.agents.evaluation.statistics import Bootstrap, Estimate, seed_intervals
from quicgym.agents.policies.by_name import policy_kind, split_alias
from quicgym.console import say
from quicgym.envs.rewards import AnyReward, Reward
from quicgym.envs.scenarios.mixtures import Mixture
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.scenarios.suites import SuiteEntry, load_suite, parts_of
from quicgym.envs.simulation.metrics import METRICS, evaluated_names
from quicgym.envs.simulation.packet_logs import PacketLogs
from quicgym.envs.simulation.run import Run
from quicgym.envs.simulation.simulation import ns3_version
from quicgym.envs.simulation.window import WHOLE, Window
from quicgym.jobs import RUNS_FILE, Outcome, Workers, as_workers, report_outcome, run_jobs
from quicgym.output_folders import output_folder, write_atomically
from quicgym.plot_style import PLOTS_FOLDER
from quicgym.studies import Findings

RESULTS = (
    RUNS_FILE, "results.parquet", "intervals.parquet", "evaluation.json", "report.html", "series",
    "figures", PLOTS_FOLDER,
)  # fmt: skip
FIGURES = ("iqm", "profiles", "scenarios")
"""The pictures of an evaluation."""
Ends = list[float | None]
"""The ends of an interval, as JSON has them."""
MARGIN_OF_BEST = 0.01
"""A reward below the best baseline's by at most this share of it counts as within 1% of best."""


@dataclass(frozen=True)
class Asked:
    """The question of an evaluation; `entries` are the suite's."""

    suite: str
    entries: Sequence[SuiteEntry]
    seeds: Sequence[int]
    engine: str
    reward: AnyReward
    command: str
    window: Window = WHOLE
    other_controllers: str | None = None

    def about(self) -> dict[str, Any]:
        """Returns what evaluation.json says of it."""
        drawn = [entry.name for entry in self.entries if not isinstance(entry, Scenario)]
        return {
            "suite": self.suite,
            "distributions": drawn,
            "engine": self.engine,
            "seeds": list(self.seeds),
            "reward": asdict(self.reward),
            **self.window._asdict(),
            "other_controllers": self.other_controllers,
            "version": __version__,
            "commit": _core.commit,
            "ns3_version": ns3_version(),
            "command": self.command,
        }


@dataclass(frozen=True)
class Evaluation:
    """Results of an evaluation; `runs` has a row per episode, with policy, seed and metrics.

    `findings` are None where the evaluation was interrupted.
    """

    jobs: Sequence[RunJob]
    outcome: Outcome
    runs: pd.DataFrame
    findings: Findings | None
    figures: Sequence[Path] = ()

    @cached_property
    def document(self) -> dict[str, Any] | None:
        """What evaluation.json holds; None where the evaluation was interrupted."""
        return None if self.findings is None else self.findings.document


def evaluate(
    policies: Sequence[str],
    suite: str | Path | Sequence[str],
    seeds: int,
    directory: Path,
    *,
    engine: str = "native",
    window: Window = WHOLE,
    reward: AnyReward | None = None,
    workers: int | Workers = 1,
    resume: bool = False,
    trust_zip: bool = False,
    other_controllers: str | None = None,
    first_seed: int = 0,
    keep_series: bool = True,
    figure_format: str | None = None,
    figures: Sequence[str] = FIGURES,
    qlog: PacketLogs | None = None,
    pcap: PacketLogs | None = None,
    print_table: Callable[[dict[str, Any]], None] = lambda document: None,
    command: str = "",
    again: str = "",
) -> Evaluation:
    """Runs every policy in every scenario with so many seeds, and sums it up.

    Says on standard error which runs failed, and after Ctrl-C how to continue.

    Args:
        policies: Policies, as `find_policy` takes them.
        suite: Name or path of the suite, as `load_suite` takes it. Several suites are one, which
            has the scenarios of all.
        seeds: Number of seeds.
        directory: Folder of the results; those of an earlier run are moved aside.
        engine: "native" or "ns3".
        window: The part of the run that the metrics are of.
        reward: Reward of the episodes; None: the default.
        workers: Workers that run the episodes, or a number of processes on this machine.
        resume: Whether to continue the evaluation that the directory holds.
        trust_zip: Whether to accept models that Stable-Baselines3 saved; loading one runs code in
            it.
        other_controllers: Controller of every flow that names none but the first, which alone has
            the policy; None: all of them have the policy.
        first_seed: The first of the seeds.
        keep_series: Whether to keep the time series of the first seed.
        figure_format: Format of the pictures, "png", "pdf" or "svg"; None: draw none.
        figures: The pictures that are drawn, of FIGURES.
        qlog: Where qlog files of the first seed go, on the native engine; None: there are none.
        pcap: Where pcap files of the first seed go, on ns-3; None: there are none.
        print_table: Function that prints the document as the table of the findings.
        command: The command line, to be kept with the results.
        again: The command line that continues an interrupted evaluation; empty: `command`.

    Raises:
        RunError: The directory cannot be written to, or another command writes there.
        ScenarioError, PolicyError, Ns3MissingError: `make_jobs` or `load_suite` raised the error.
        ClusterError: `Workers.connect` raised the error.
    """
    suites = [suite] if isinstance(suite, str | Path) else list(suite)
    asked = Asked(
        ", ".join(map(str, suites)),
        [entry for each in suites for entry in load_suite(each)],
        range(first_seed, first_seed + seeds),
        engine,
        reward or Reward(),
        command,
        window,
        other_controllers,
    )
    jobs = make_jobs(
        policies,
        asked.entries,
        seeds,
        engine=engine,
        window=window,
        reward=asked.reward,
        trust_zip=trust_zip,
        other_controllers=other_controllers,
        series_in=directory if keep_series else None,
        first_seed=first_seed,
    )
    jobs = with_packet_logs(jobs, qlog, pcap)
    as_workers(workers).connect()
    with output_folder(directory, RESULTS, resume=resume):
        outcome = run_jobs(jobs, directory, workers, resume=resume, title="episodes")
        finished = [
            {**outcome.finished[job.key], "scenario": job.entry, "part": job.scenario.name}
            for job in jobs
            if job.key in outcome.finished
        ]
        runs = _rows(finished, asked.entries)
        if report_outcome(outcome, jobs, directory, again or command, resumed=resume):
            return Evaluation(jobs, outcome, runs, None)
        policies_of_jobs = [job.steering for job in jobs if isinstance(job.steering, PolicyChoice)]
        fingerprints = {
            policy.shown: policy.fingerprint
            for policy in policies_of_jobs
            if policy.fingerprint is not None
        }
        kinds: dict[str, str] = {split_alias(choice)[0]: policy_kind(choice) for choice in policies}
        open_flows = [
            sum(flow.controller is None for _, flow in job.scenario.single_flows()) for job in jobs
        ]
        more = {
            "fingerprints": fingerprints,
            "policy_flows": [min(open_flows), max(open_flows)],
        }
        findings = _findings(asked, runs, kinds, more, print_table)
        document = findings.document
        findings.write(directory)
        _report_missing(document, resume)
        pictures: Sequence[Path] = ()
        if figure_format is not None:
            pictures = _draw(
                findings.document,
                runs,
                asked.entries,
                directory / "figures",
                figure_format,
                figures,
            )
        return Evaluation(jobs, outcome, runs, findings, pictures)


def _report_missing(document: dict[str, Any], resumed: bool) -> None:
    """Says on standard error which policies have no aggregate, and why."""
    for policy in dict.fromkeys(cell["policy"] for cell in document["missing"]):
        cells = [
            f"{cell['scenario']} seed {cell['seed']}"
            for cell in document["missing"]
            if cell["policy"] == policy
        ]
        say(f"{policy}: no aggregate, because runs are missing: {', '.join(cells)}")
    if document["missing"]:
        again = "the same command" if resumed else "the same command with --resume"
        say(f"{again} runs only what is missing")


def keep_runs(
    runs: Sequence[Run],
    policy: str,
    suite: str,
    seeds: int,
    directory: Path,
    *,
    reward: AnyReward,
    command: str,
    first_seed: int = 0,
) -> None:
    """Writes what one policy did on a suite into a folder as `evaluate` leaves it.

    `runs` are an episode for each of the suite's scenarios, the parts of mixtures included, and
    each of so many seeds. What is in the folder is replaced.
    """
    chosen = range(first_seed, first_seed + seeds)
    finished = []
    for run in runs:
        about = {"policy": policy, "scenario": run.scenario.name, "engine": run.engine}
        finished.append({**about, "seed": run.seed, **run.metrics})
        if run.seed == first_seed:
            path = series_path(directory, policy, run.scenario.name)
            write_atomically({path: run.series_table().to_parquet})
    asked = Asked(suite, parts_of(load_suite(suite)), chosen, "native", reward, command)
    write_evaluation(directory, asked, finished, {policy: "learned"})


def write_evaluation(
    directory: Path, asked: Asked, finished: Sequence[dict[str, Any]], kinds: Mapping[str, str]
) -> None:
    """Writes evaluation.json and the tables in Parquet, in place of those that are there.

    `finished` has a row for each episode: policy, scenario, engine, seed and its metrics. `kinds`
    has the kind of each policy, as `policy_kind` returns it.
    """
    chosen = {row["policy"]: kinds[row["policy"]] for row in finished}
    _findings(asked, _rows(finished, asked.entries), chosen).write(directory)


def _rows(finished: Sequence[dict[str, Any]], entries: Sequence[SuiteEntry]) -> pd.DataFrame:
    """Returns a row per episode; with a mixture it also has the `part` that was drawn from."""
    metrics = _every_metric({name for row in finished for name in row})
    part = ["part"] if any(isinstance(entry, Mixture) for entry in entries) else []
    columns = ["policy", "scenario", *part, "engine", "seed", *metrics]
    return pd.DataFrame(finished, columns=columns).astype(dict.fromkeys(metrics, float))


def _every_metric(names: Collection[str]) -> list[str]:
    """Returns the metrics among some names, those that tables show first."""
    first = evaluated_names(names)
    return [*first, *(name for name in METRICS if name in names and name not in first)]


def _findings(
    asked: Asked,
    runs: pd.DataFrame,
    kinds: Mapping[str, str],
    more: Mapping[str, Any] = MappingProxyType({}),
    print_table: Callable[[dict[str, Any]], None] = lambda document: None,
) -> Findings:
    """Returns evaluation.json, with `more`, and the tables."""
    intervals = seed_intervals(runs, ("policy", "scenario"))
    return Findings(
        "evaluation.json",
        {**asked.about(), **more},
        summarize(runs, kinds, asked.entries, asked.seeds),
        print_table=print_table,
        frame=runs,
        tables={"results.parquet": runs, "intervals.parquet": intervals},
    )


def _draw(
    document: dict[str, Any],
    runs: pd.DataFrame,
    entries: Sequence[SuiteEntry],
    folder: Path,
    format: str,
    names: Sequence[str],
) -> list[Path]:
    from quicgym.agents.evaluation.figures import draw_evaluation  # matplotlib, for those who draw

    ranked = [entry["policy"] for entry in document["policies"]]
    scenarios = [cell["scenario"] for cell in document["policies"][0]["scenarios"]]
    scores = scores_of(runs, ranked, scenarios, document["seeds"])
    return draw_evaluation(document, scores, entries, folder, format, names)


def scores_of(
    runs: pd.DataFrame, policies: Sequence[str], scenarios: Sequence[str], seeds: Sequence[int]
) -> np.ndarray:
    """Returns the rewards: policies x scenarios x seeds, nan where a run is missing."""
    table = _table(runs, policies, scenarios, seeds)
    shape = (len(policies), len(scenarios), len(seeds))
    return table["reward"].to_numpy(dtype=float).reshape(shape)


def summarize(
    runs: pd.DataFrame,
    kinds: Mapping[str, str],
    scenarios: Sequence[SuiteEntry],
    seeds: Sequence[int],
) -> dict[str, Any]:
    """Returns the part of evaluation.json that is computed.

    `runs` has a row per episode, and `kinds` the kind of each policy that was asked for, as
    `policy_kind` returns it. Returned are "policies", best first; "differences" of each to all
    below it; and "missing", the runs that failed. A policy with a missing run has no aggregate and
    no difference, only what its other runs say of each scenario.
    """
    policies = list(kinds)
    names = [scenario.name for scenario in scenarios]
    scores = scores_of(runs, policies, names, seeds)
    complete = [index for index in range(len(policies)) if np.isfinite(scores[index]).all()]
    places = {policies[index]: place for place, index in enumerate(complete)}
    bootstrap = Bootstrap(scores[complete]) if complete else None
    drawn = [not isinstance(scenario, Scenario) for scenario in scenarios]
    shares = _shares_within_1_percent(scores, kinds, drawn)
    table = _table(runs, policies, names, seeds)[_every_metric(runs.columns)]
    grouped = table.groupby(level=[0, 1], sort=False)
    rows = grouped.mean()
    rows["seeds"] = grouped["reward"].count()
    rows["reward_std"] = grouped["reward"].agg(_deviation)
    in_scenarios = _ends(seed_intervals(table.reset_index(), ("policy", "scenario")), 2)
    of_seeds = table.groupby(["policy", "seed"], sort=False).mean()
    # Where some runs lack a metric, the mean over the seeds need not be that over the scenarios.
    mean, shown = (each.groupby(level=0).mean() for each in (of_seeds, grouped.mean()))
    same = pd.DataFrame(np.isclose(mean, shown), mean.index, mean.columns)
    of_seeds = of_seeds.where(same.reindex(of_seeds.index, level=0))
    over_all = _ends(seed_intervals(of_seeds.reset_index(), ("policy",)), 1)
    entries = []
    for policy in policies:
        estimate = (
            bootstrap.interquartile_mean(places[policy]) if bootstrap and policy in places else None
        )
        own = pd.DataFrame(rows.loc[policy])
        entries.append(
            _entry(policy, kinds[policy], estimate, shares.get(policy), own, in_scenarios, over_all)
        )
    # Best first, in the order given where two are equal, those without an aggregate last.
    entries.sort(key=lambda entry: (entry["iqm_reward"] is None, -(entry["iqm_reward"] or 0.0)))
    ranked = [entry["policy"] for entry in entries if entry["policy"] in places]
    differences = [
        {"a": first, "b": second, **_difference(bootstrap, places[first], places[second])}
        for first, second in combinations(ranked, 2)
        if bootstrap
    ]
    missing = [
        {"policy": policies[p], "scenario": names[s], "seed": seeds[place]}
        for p, s, place in np.argwhere(~np.isfinite(scores))
    ]
    if "part" in runs:
        parts = _parts(runs, [policies[index] for index in complete])
        for entry in entries:
            entry["parts"] = parts.get(entry["policy"], [])
    return {"policies": entries, "differences": differences, "missing": missing}


def _parts(runs: pd.DataFrame, policies: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Returns what evaluation.json says of each policy on the paths of each part of mixtures."""
    found: dict[str, list[dict[str, Any]]] = {policy: [] for policy in policies}
    complete = runs[runs["policy"].isin(policies)]
    for (scenario, part), rows in complete.groupby(["scenario", "part"], sort=True):
        table = rows.pivot(index="policy", columns="seed", values="reward").loc[list(policies)]
        bootstrap = Bootstrap(table.to_numpy()[:, None])
        for place, policy in enumerate(policies):
            estimate = bootstrap.interquartile_mean(place)
            metrics = rows.loc[rows["policy"] == policy, evaluated_names(rows)]
            found[policy].append(
                {
                    "scenario": scenario,
                    "part": part,
                    "seeds": table.shape[1],
                    "iqm_reward": estimate.value,
                    "iqm_low": estimate.low,
                    "iqm_high": estimate.high,
                    **_numbers(metrics.mean()),
                }
            )
    return found


def _entry(
    policy: str,
    kind: str,
    estimate: Estimate | None,
    share_near_best: float | None,
    rows: pd.DataFrame,
    in_scenarios: Mapping[tuple[str, ...], Mapping[str, Ends]],
    over_all: Mapping[tuple[str, ...], Mapping[str, Ends]],
) -> dict[str, Any]:
    """Returns a policy's part of evaluation.json; `rows` are its means in each scenario.

    The ends of intervals are by policy and scenario, and by policy.
    """
    metrics = evaluated_names(rows)
    every = _every_metric(rows.columns)
    return {
        "policy": policy,
        "kind": kind,
        "iqm_reward": estimate.value if estimate else None,
        "iqm_low": estimate.low if estimate else None,
        "iqm_high": estimate.high if estimate else None,
        "level_share": share_near_best,
        "mean": _numbers(rows[every].mean()) if estimate else None,
        "intervals": over_all[(policy,)] if estimate else None,
        "scenarios": [
            {
                "scenario": name,
                "seeds": int(row["seeds"]),
                **_numbers(row[[*metrics, "reward_std"]]),
                "intervals": {
                    metric: in_scenarios[policy, str(name)][metric] for metric in metrics
                },
            }
            for name, row in rows.iterrows()
        ],
    }


def _ends(intervals: pd.DataFrame, keys: int) -> dict[tuple[str, ...], dict[str, Ends]]:
    """Returns [low, high] by the first columns, and then by metric; None where there is no end."""
    found: dict[tuple[str, ...], dict[str, Ends]] = {}
    for row in intervals.to_dict("records"):
        ends = [float(row[end]) if np.isfinite(row[end]) else None for end in ("low", "high")]
        place = tuple(map(str, list(row.values())[:keys]))
        found.setdefault(place, {})[str(row["metric"])] = ends
    return found


def _difference(bootstrap: Bootstrap, first: int, second: int) -> dict[str, float | None]:
    difference = bootstrap.difference(first, second)
    probability = bootstrap.probability_of_improvement(first, second)
    return {
        "iqm_difference": difference.value,
        "low": difference.low,
        "high": difference.high,
        "probability_of_improvement": probability.value,
        "probability_low": probability.low,
        "probability_high": probability.high,
    }


def within_1_percent(reward: np.ndarray | float, best: np.ndarray | float) -> np.ndarray:
    """Returns where a reward is at most MARGIN_OF_BEST below the best baseline's, or above it."""
    return np.asarray(reward >= best - MARGIN_OF_BEST * np.abs(best))


def _shares_within_1_percent(
    scores: np.ndarray, kinds: Mapping[str, str], drawn: Sequence[bool]
) -> dict[str, float]:
    """The share of paths on which a policy is within 1% of the best baseline, or above it.

    A path is a scenario, on which the mean over the seeds counts, or what a seed has `drawn`.
    Empty without baselines, or where a baseline lacks runs: the best one is not known then.
    """
    baselines = [index for index, kind in enumerate(kinds.values()) if kind == "baseline"]
    means = np.concatenate(
        [
            scores[:, place] if of_seed else scores[:, place].mean(axis=1, keepdims=True)
            for place, of_seed in enumerate(drawn)
        ],
        axis=1,
    )
    if not baselines or not np.isfinite(means[baselines]).all():
        return {}
    best = means[baselines].max(axis=0)
    near = within_1_percent(means, best)
    return {
        policy: float(near[index].mean())
        for index, policy in enumerate(kinds)
        if np.isfinite(means[index]).all()
    }


def _table(
    runs: pd.DataFrame, policies: Sequence[str], scenarios: Sequence[str], seeds: Sequence[int]
) -> pd.DataFrame:
    columns = {"policy": policies, "scenario": scenarios, "seed": seeds}
    index = pd.MultiIndex.from_product(list(columns.values()), names=list(columns))
    return runs.set_index(list(columns)).reindex(index)


def _deviation(values: pd.Series) -> float:
    """The sample standard deviation; exactly 0 where all are equal, nan of fewer than two."""
    there = values.dropna()
    if len(there) > 1 and there.min() == there.max():
        return 0.0
    return float(there.std())


def _numbers(values: pd.Series) -> dict[str, float | None]:
    """JSON has no nan."""
    return {
        str(name): float(value) if np.isfinite(value) else None for name, value in values.items()
    }
