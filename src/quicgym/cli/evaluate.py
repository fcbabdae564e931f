"""`quicgym evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quicgym.benchmarks import options
from quicgym.plot_style import FigureFormat

EXAMPLES = (
    "quicgym evaluate",
    "quicgym evaluate --policy baselines ebcc:gamma=60,beta=0.7 --suite papers",
    "quicgym evaluate --policy runs/ppo bbr --seeds 10 --engine ns3 --out results/mine",
    "quicgym evaluate --policy mine=runs/ppo baselines --versus mine cubic --seeds 20",
    "quicgym evaluate --policy cubic ebcc --suite ebcc-flows-3 --format json",
    "quicgym evaluate --policy ibcca agent.py:policy --suite training-50 --seeds 1000",
    "quicgym evaluate --policy cubic window --suite leo 5g cellular",
    "quicgym evaluate --policy cubic bbr --columns goodput_mbps p95_queue_delay_ms p99_rtt_ms",
    "quicgym evaluate --policy agent.py:policy --suite ebcc-flows-3 --other-controllers cubic",
    "quicgym evaluate --policy bbr ibcca --suite papers --reward mine.py:reward",
    "quicgym evaluate --suite papers --seeds 40 --address 10.0.0.1:6379",
)


def evaluate(
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            autocompletion=options.complete_policies,
            help="Compare these: a controller, also with parameters (ebcc:gamma=60), a published "
            "policy, a policy's JSON, a training run's folder, an ONNX file, an object of a Python "
            "file (agent.py:policy, which runs the file), `random`, or `baselines` for all "
            "controllers. You may give each a name (mine=runs/ppo). Default: baselines.",
        ),
    ] = None,
    suite: options.Suite = None,
    seeds: Annotated[
        int,
        typer.Option(
            min=1,
            max=10_000_000,
            metavar="N",
            help="Run every scenario with N seeds, from --first-seed on.",
        ),
    ] = 5,
    first_seed: Annotated[
        int,
        typer.Option(
            min=0,
            max=2**62,
            metavar="S",
            help="The first seed. Trainings and sweeps choose by the seeds from 3000000 on, so "
            "leave these out of a comparison.",
        ),
    ] = 0,
    from_s: options.From = None,
    until_s: options.Until = None,
    engine: options.Engine = "native",
    reward: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Judge by this reward: fair-throughput, delay, power, or a function of a Python "
            "file (mine.py:reward, which runs the file).",
        ),
    ] = "fair-throughput",
    jobs: options.Jobs = None,
    format: options.Format = options.ResultFormat.table,
    out: options.Out = Path("results/evaluation"),
    figures: options.Figures = FigureFormat.png,
    qlog: options.Qlog = None,
    pcap: options.Pcap = None,
    log_every: options.LogEvery = 1,
    log_limit_mb: options.LogLimit = 100,
    resume: options.Resume = False,
    address: options.Address = None,
    versus: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            autocompletion=options.complete_policies,
            help="Also print the difference of every policy to each of these.",
        ),
    ] = None,
    columns: options.Columns = None,
    other_controllers: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            autocompletion=options.complete_policies,
            help="Give the policy one flow only, and this controller (cubic, ebcc:gamma=3, "
            "file.py:Class) the others, except flows whose controller the scenario names. "
            "Default: the policy has all of them.",
        ),
    ] = None,
    trust_zip: options.TrustZip = False,
) -> None:
    """Compare policies, learned or hand-coded, over a suite of scenarios.

    You get the interquartile mean of each policy's reward with its 95% interval, and the
    throughput, loss, fairness and delay that a network engineer would ask for.
    docs/reference/evaluation.md has the formulas. By default all controllers play the suite
    heldout.

    The report (report.html, a file that you can send to somebody), the results (evaluation.json,
    results.parquet), the time series of the first seed and the figures are written to DIR. Results
    of an earlier run are moved to DIR/previous-<time>.
    """
    from quicgym.agents.evaluation.evaluate import run_evaluate
    from quicgym.envs.simulation.packet_logs import PacketLogs
    from quicgym.envs.simulation.window import Window
    from quicgym.jobs import workers_of

    status = run_evaluate(
        policies=policy or (),
        suite=suite or "heldout",
        seeds=seeds,
        first_seed=first_seed,
        window=Window(from_s, until_s),
        engine=engine,
        reward=reward,
        workers=workers_of(jobs, address),
        format=format.value,
        directory=out,
        resume=resume,
        trust_zip=trust_zip,
        other_controllers=other_controllers,
        figure_format=figures.value,
        qlog=None if qlog is None else PacketLogs(qlog, log_every, log_limit_mb),
        pcap=None if pcap is None else PacketLogs(pcap, log_every, log_limit_mb),
        versus=versus or (),
        columns=columns or (),
        command=options.command_line(),
    )
    raise typer.Exit(status)
