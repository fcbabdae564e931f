"""`quicgym league`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quicgym.benchmarks import options

EXAMPLES = (
    "quicgym league ccbench",
    "quicgym league ccbench --policies cubic vegas copa bbr bbr3",
    "quicgym league ccbench --policies mine=runs/ppo --field cubic vegas copa bbr3 --jobs 4",
    "quicgym league ccbench --policies window orca.json --field baselines --resume",
)


def league(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="The competition: ccbench, or the path of a YAML file."
        ),
    ],
    policies: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            autocompletion=options.complete_policies,
            help="The participants: a controller, also with parameters (ebcc:gamma=60), a "
            "published policy, a policy's JSON, a training run's folder, an agent that `quicgym "
            "import-agent` wrote, an object of a Python file (agent.py:policy, which runs the "
            "file), or `baselines` for all controllers. You may give each a name (mine=runs/ppo). "
            "Default: baselines.",
        ),
    ] = None,
    field: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            autocompletion=options.complete_policies,
            help="More participants, named in the same way. Win rates are counted among the "
            "policies and these. Default: the policies alone.",
        ),
    ] = None,
    jobs: options.Jobs = None,
    format: options.Format = options.ResultFormat.table,
    out: options.Out = Path("results/league"),
    resume: options.Resume = False,
    address: options.Address = None,
    trust_zip: options.TrustZip = False,
) -> None:
    """Let controllers and policies play the leagues of other benchmarks, such as ccBench.

    A game is a network in a window of time, and several participants may win it. A win rate is the
    share of games that a participant wins. It depends on who else plays, so the field is always
    named with it.

    The tables (league.json) and every game (league.parquet) are written to DIR. Results of an
    earlier run are moved to DIR/previous-<time>. docs/how-to/hard-tests.md has the rules.
    """
    from quicgym.benchmarks.league.run_league import run_league
    from quicgym.jobs import workers_of

    status = run_league(
        competition=name,
        policies=policies or (),
        field=field or (),
        directory=out,
        workers=workers_of(jobs, address),
        format=format.value,
        resume=resume,
        trust_zip=trust_zip,
        command=options.command_line(),
    )
    raise typer.Exit(status)
