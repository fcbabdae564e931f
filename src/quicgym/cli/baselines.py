"""`quicgym baselines`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from quicgym.benchmarks import options
from quicgym.errors import UserError
from quicgym.plot_style import FigureFormat

EXAMPLES = (
    "quicgym baselines",
    "quicgym baselines --suite heldout --seeds 5 --policy runs/mine window",
    "quicgym baselines --suite leo 5g mine.yaml --columns goodput_mbps p95_queue_delay_ms",
    "quicgym baselines --scenario ebcc-single --controller bbr ebcc:gamma=3 mine.py:Aimd",
    "quicgym baselines --scenario my-network.yaml --seeds 20 --out results/mine",
    "quicgym baselines --scenario ebcc-single --qlog results/qlog --log-every 10",
)
OF_THE_BENCHMARK = ("suite", "policy", "columns")
OF_NETWORKS = ("from_s", "until_s", "qlog", "pcap", "log_every", "log_limit_mb")


def baselines(
    context: typer.Context,
    suite: options.Suite = None,
    scenario: options.Scenario = None,
    controller: options.Controller = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            autocompletion=options.complete_policies,
            help="Compare these agents, named as for `quicgym evaluate --policy`. Default: the "
            "published ones.",
        ),
    ] = None,
    engine: options.Engine = "native",
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Run every network with the seeds 0 to N-1. Default: 2, or 5 with --scenario.",
        ),
    ] = None,
    from_s: options.From = None,
    until_s: options.Until = None,
    jobs: options.Jobs = None,
    format: options.Format = options.ResultFormat.table,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write results and figures to this folder. Default: results/baselines, or "
            "results/networks with --scenario.",
        ),
    ] = None,
    figures: options.Figures = FigureFormat.png,
    qlog: options.Qlog = None,
    pcap: options.Pcap = None,
    log_every: options.LogEvery = 1,
    log_limit_mb: options.LogLimit = 100,
    resume: options.Resume = False,
    columns: options.Columns = None,
) -> None:
    """Compare the papers' controllers and the learned agents on one reward.

    All run on the same networks with the same seeds: the suite papers and every 8th network of
    heldout, unless --suite says otherwise. You get one table with the best policy first, a report
    (report.html) that you can send to somebody, and logs for TensorBoard. Without --suite it also
    says for each paper how many of its claims hold in our runs; those that need ns-3 are left to
    `quicgym papers`.
    --controller replaces the hand-coded controllers, and --policy the agents.

    With --scenario the command runs the given networks instead and prints every metric of every
    controller. --format csv has a row for each flow; --qlog, --pcap, --from-s and --until-s belong
    to this form.

    Results of an earlier run are moved to DIR/previous-<time>.
    """
    from quicgym.jobs import workers_of

    if scenario:
        _refuse(
            context,
            OF_THE_BENCHMARK,
            "does not go with --scenario; leave out one of them, or give the file to --suite",
        )
        from quicgym.benchmarks.networks import run_networks
        from quicgym.envs.simulation.packet_logs import PacketLogs
        from quicgym.envs.simulation.window import Window

        status = run_networks(
            scenarios=scenario,
            controllers=controller or (),
            engine=engine,
            seeds=seeds or 5,
            window=Window(from_s, until_s),
            workers=workers_of(jobs),
            format=format.value,
            directory=out or Path("results/networks"),
            resume=resume,
            figure_format=figures.value,
            qlog=None if qlog is None else PacketLogs(qlog, log_every, log_limit_mb),
            pcap=None if pcap is None else PacketLogs(pcap, log_every, log_limit_mb),
            command=options.command_line(),
        )
        raise typer.Exit(status)
    _refuse(context, OF_NETWORKS, "needs the networks to run; name them with --scenario")
    from quicgym.benchmarks.baselines import CONTROLLERS, SUITES, run_baselines

    status = run_baselines(
        suite=suite or SUITES,
        controllers=controller or CONTROLLERS,
        policies=policy,
        seeds=seeds or 2,
        engine=engine,
        workers=workers_of(jobs),
        format=format.value,
        directory=out or Path("results/baselines"),
        resume=resume,
        figure_format=figures.value,
        columns=columns or (),
        command=options.command_line(),
    )
    raise typer.Exit(status)


def _refuse(context: typer.Context, names: Sequence[str], remedy: str) -> None:
    """Raises UserError where one of the options was given."""
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise UserError(f"--{name.replace('_', '-')}: {remedy}")
