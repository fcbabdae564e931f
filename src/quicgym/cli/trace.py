"""`quicgym trace`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = (
    "quicgym trace lte.trace",
    "quicgym trace slow.trace --model 3g --mean-mbps 0.5 --duration-s 300 --seed 7",
)


def trace(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Write the trace to this file.")],
    model: Annotated[
        str,
        typer.Option(
            metavar="lte|3g", help="Kind of link: its mean rate, and how often it is gone."
        ),
    ] = "lte",
    mean_mbps: Annotated[
        float | None,
        typer.Option(min=0.001, metavar="MBPS", help="Mean rate. Default: the model's."),
    ] = None,
    duration_s: Annotated[
        float,
        typer.Option(
            min=0.1, max=3600, metavar="S", help="Length in seconds, after which the trace repeats."
        ),
    ] = 60.0,
    seed: Annotated[
        int, typer.Option(min=0, metavar="N", help="Random seed: the same seed, the same trace.")
    ] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace OUT if it exists.")] = False,
) -> None:
    """Write a random rate like a cellular link's as a mahimahi trace, for a scenario's `trace`.

    The rate is a reflected Brownian motion with outages, after Sprout (NSDI 2013). Packets leave in
    a Poisson process of that rate.
    """
    from quicgym.envs.scenarios.cellular_trace import MODELS, cellular_trace, summarize
    from quicgym.output_folders import write_atomically

    if model not in MODELS:
        raise typer.BadParameter(f"{model!r} is no model; there are: {', '.join(MODELS)}")
    if out.exists() and not force:
        raise typer.BadParameter(f"{out} exists; give another name, or --force")
    if not out.parent.is_dir():
        raise typer.BadParameter(
            f"{out}: there is no folder {out.parent}; give a file in an existing folder"
        )
    chosen = MODELS[model] if mean_mbps is None else replace(MODELS[model], mean_mbps=mean_mbps)
    try:
        times = cellular_trace(chosen, round(duration_s * 1e3), seed)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    try:
        write_atomically({out: "\n".join(map(str, times.tolist())) + "\n"})
    except OSError as error:
        raise typer.BadParameter(
            f"{out} cannot be written ({error.strerror}); give another file"
        ) from None
    summary = summarize(times)
    print(f"{out}: {summary.packets} packets of 1500 bytes in {summary.duration_s:g} s")
    print(f"mean {summary.mean_mbps:.2f} Mbps")
    percentiles = ", ".join(
        f"p{share} {rate:.2f}" for share, rate in summary.percentiles_mbps.items()
    )
    print(f"over 100 ms: {percentiles} Mbps; nothing in {summary.silent_percent:.1f}% of them")
