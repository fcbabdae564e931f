"""`quicgym parity`."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from quicgym import _core
from quicgym.benchmarks import options

EXAMPLES = (
    "quicgym parity",
    "quicgym parity --networks 1000",
    "quicgym parity --scenario ebcc-delay-10 --controller ebcc",
    "quicgym parity --discipline codel --discipline fq-codel --networks 1000",
    "quicgym parity --feature jitter --feature policer --networks 1000",
    "quicgym parity --chain --discipline drop-tail --networks 50",
)


if TYPE_CHECKING:
    Discipline = str
else:  # only those that both engines have
    Discipline = StrEnum(
        "Discipline", {one.name: one.name for one in _core.queue_disciplines() if one.in_ns3}
    )


class Feature(StrEnum):
    """A feature of networks that both engines have."""

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
        typer.Option(
            help="Compare random networks with this queue discipline instead. You may repeat it."
        ),
    ] = None,
    feature: Annotated[
        list[Feature] | None,
        typer.Option(
            help="Compare random networks with this feature instead. You may repeat it. With "
            "--discipline, every feature is combined with every discipline."
        ),
    ] = None,
    networks: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Compare N random networks for each discipline or feature, 100 by default; alone "
            "it compares networks with the feature everything.",
        ),
    ] = None,
    chain: Annotated[
        bool,
        typer.Option(
            "--chain", help="Compare random chains of 2 to 4 bottlenecks. Needs --discipline."
        ),
    ] = False,
) -> None:
    """Check that the native engine and ns-3 deliver every packet at the same nanosecond.

    By default 1, 3 and 5 flows run with NewReno, CUBIC, BBR and eBCC. If the engines differ, the
    command prints the first difference and ends with exit status 1.
    """
    from quicgym.benchmarks.parity import run_parity, run_random_parity

    if chain and (feature or not discipline):
        raise typer.BadParameter(
            "random chains are drawn by queue discipline alone; add --discipline drop-tail, and "
            "leave out --feature",
            param_hint="--chain",
        )
    if networks is not None and not (discipline or feature):
        feature = [Feature.everything]
    if discipline or feature:
        if scenario or controller:
            raise typer.BadParameter(
                "random networks choose their own controllers; leave out --scenario and "
                "--controller, or --discipline, --feature and --networks",
                param_hint="--scenario" if scenario else "--controller",
            )
        raise typer.Exit(
            run_random_parity(
                [str(one) for one in discipline or ()],
                [str(one) for one in feature or ()],
                networks or 100,
                chains=chain,
            )
        )
    raise typer.Exit(run_parity(scenario or (), controller or ()))
