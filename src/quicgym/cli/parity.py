"""`quicgym parity`."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from quicgym import _core
from quicgym.cli import options

EXAMPLES = (
    "quicgym parity",
    "quicgym parity --scenario ebcc-delay-10 --controller ebcc",
    "quicgym parity --discipline codel --discipline fq-codel --networks 1000",
    "quicgym parity --feature jitter --feature policer --networks 1000",
    "quicgym parity --chain --discipline drop-tail --networks 50",
)


if TYPE_CHECKING:
    Discipline = str
else:  # those that both engines have
    Discipline = StrEnum(
        "Discipline", {one.name: one.name for one in _core.queue_disciplines() if one.in_ns3}
    )


class Feature(StrEnum):
    """Of a path, on both engines."""

    outage = "outage"
    trace = "trace"
    opening = "opening"
    ack_aggregation = "ack-aggregation"
    delay_schedule = "delay-schedule"
    jitter = "jitter"
    reordering = "reordering"
    policer = "policer"
    shaper = "shaper"
    loss_schedule = "loss-schedule"
    reroutes = "reroutes"
    ce_threshold = "ce-threshold"
    backward = "backward"
    short_flows = "short-flows"
    everything = "everything"


def parity(
    scenario: options.Scenario = None,
    controller: options.Controller = None,
    discipline: Annotated[
        list[Discipline] | None,
        typer.Option(help="Random networks with this queue discipline instead; one or more."),
    ] = None,
    feature: Annotated[
        list[Feature] | None,
        typer.Option(
            help="Random networks with this feature of their paths instead; one or more. With "
            "--discipline, each feature with each discipline."
        ),
    ] = None,
    networks: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="Random networks for each discipline or feature."),
    ] = 100,
    chain: Annotated[
        bool,
        typer.Option("--chain", help="Random chains of 2 to 4 bottlenecks; needs --discipline."),
    ] = False,
) -> None:
    """Compare the native engine with ns-3: every delivery must be equal to the nanosecond.

    Default: 1, 3 and 5 flows with NewReno, CUBIC, BBR and eBCC. Exit status 1 and the first
    difference where the engines differ.
    """
    from quicgym.benchmarks.parity import run_parity, run_random_parity

    if chain and (feature or not discipline):
        raise typer.BadParameter(
            "random chains are drawn by queue discipline alone; add --discipline drop-tail, and "
            "leave out --feature",
            param_hint="--chain",
        )
    if discipline or feature:
        if scenario or controller:
            raise typer.BadParameter(
                "the random networks have controllers of their own; leave out --scenario and "
                "--controller, or --discipline and --feature",
                param_hint="--discipline" if discipline else "--feature",
            )
        raise typer.Exit(
            run_random_parity(
                [str(one) for one in discipline or ()],
                [str(one) for one in feature or ()],
                networks,
                chains=chain,
            )
        )
    raise typer.Exit(run_parity(scenario or (), controller or ()))
