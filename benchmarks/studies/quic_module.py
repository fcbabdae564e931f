"""What each behaviour of the QUIC module for ns-3 does to the eBCC paper's numbers.

    python benchmarks/studies/quic_module.py [--seeds N]

prints two tables of docs/reports/reproduction.md: losses with each part of the variation "as the
QUIC module for ns-3 behaves" taken out, and NewReno's range over datagrams of 1473 to 1495 bytes.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from quicgym.benchmarks.papers.measurements import Measurements, mean_and_deviation
from quicgym.benchmarks.papers.model import Paper, Variation, load_paper
from quicgym.benchmarks.papers.variations import varied
from quicgym.benchmarks.simulations import make_jobs
from quicgym.envs import load_scenario
from quicgym.jobs import report_failures, run_jobs

SCENARIOS = ("ebcc-single", "ebcc-flows-3", "ebcc-flows-5")
ROWS = (
    "ebcc-bandwidth-5",
    "ebcc-bandwidth-10",
    "ebcc-bandwidth-15",
    "ebcc-bandwidth-17.5",
    "ebcc-delay-15",
    "ebcc-delay-10",
    "ebcc-flows-3",
    "ebcc-flows-5",
)
RFC_9000 = {
    "ack_eliciting_threshold": 1,
    "max_ack_delay_ms": 25.0,
    "reordering_threshold": 1,
}
WITHOUT: dict[str, tuple[dict[str, object], dict[str, dict[str, float]]]] = {
    "all parts": ({}, {}),
    "an ACK for every second packet": ({"flows.0.ack_frequency": RFC_9000}, {}),
    "paced retransmissions": ({"flows.0.burst_retransmission": False}, {}),
    "no fragments": ({"max_datagram_bytes": 1472}, {}),
    "fresh rate samples": ({"flows.0.stale_rate_samples": False}, {}),
    "a conservation round": (
        {},
        {"bbr": {"conservation_round": 1}, "ebcc": {"conservation_round": 1}},
    ),
    "growth by bytes": ({}, {"newreno": {"growth_per_ack": 0}}),
    "a recovery period": ({}, {"newreno": {"reduction_per_ack": 0}}),
}


def changed(
    base: Variation,
    name: str,
    fields: dict[str, object],
    parameters: dict[str, dict[str, float]],
) -> Variation:
    """Returns the variation with other values in some fields and parameters."""
    merged = {
        controller: {**values, **parameters.get(controller, {})}
        for controller, values in base.controller_parameters.items()
    }
    return base.model_copy(
        update={
            "name": name,
            "fields": {**base.fields, **fields},
            "controller_parameters": merged,
        }
    )


def measure(
    variation: Variation, names: tuple[str, ...], controllers: list[str], seeds: int
) -> Measurements:
    """Runs scenarios under a variation."""
    jobs = make_jobs(
        [varied(load_scenario(name), variation) for name in names], controllers, "native", seeds
    )
    with tempfile.TemporaryDirectory() as folder:
        outcome = run_jobs(jobs, Path(folder), os.cpu_count() or 1, title=variation.name)
    report_failures(outcome.failures)
    return Measurements(jobs, outcome.finished)


def _cell(measured: Measurements, name: str, controller: str, metric: str) -> str:
    mean, deviation = mean_and_deviation(measured.values(name, controller, "native", metric))
    return f"{mean:.2f}±{deviation:.2f}" if deviation else f"{mean:.2f}"


def _parts(paper: Paper, base: Variation, seeds: int) -> None:
    columns = [(name, controller) for name in SCENARIOS for controller in ("bbr", "ebcc")]
    header = ["", "NewReno (Mbps)", "NewReno"]
    header += [f"{controller}, {name.removeprefix('ebcc-')}" for name, controller in columns]
    print(f"Loss in percent, {seeds} seeds\n\n| {' | '.join(header)} |\n|{'---|' * len(header)}")
    printed = [paper.printed("ebcc-bandwidth-15", "newreno", "send_rate_mbps")]
    for name, controller in [("ebcc-single", "newreno"), *columns]:
        row = "ebcc-bandwidth-15" if name == "ebcc-single" else name
        printed.append(paper.printed(row, controller, "loss_percent"))
    print(f"| printed | {' | '.join(f'{number:g}' for number in printed if number)} |")
    for name, (fields, parameters) in WITHOUT.items():
        measured = measure(
            changed(base, name, fields, parameters), SCENARIOS, ["newreno", "bbr", "ebcc"], seeds
        )
        cells = [
            _cell(measured, "ebcc-single", "newreno", "send_rate_mbps"),
            _cell(measured, "ebcc-single", "newreno", "loss_percent"),
        ]
        cells += [_cell(measured, *column, "loss_percent") for column in columns]
        print(f"| {name} | {' | '.join(cells)} |")


def _alignment(paper: Paper, base: Variation) -> None:
    sizes = range(1473, 1497, 2)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ROWS}
    for size in sizes:
        variation = changed(base, f"datagrams of {size} bytes", {"max_datagram_bytes": size}, {})
        measured = measure(variation, ROWS, ["newreno"], 1)
        for name in ROWS:
            (rate,) = measured.values(name, "newreno", "native", "send_rate_mbps")
            (loss,) = measured.values(name, "newreno", "native", "loss_percent")
            found[name].append((rate, loss))
    print("\nNewReno, seed 0\n\n| scenario | sent (Mbps) | printed | loss (%) | printed |")
    print("|---|---|---|---|---|")
    for name, pairs in found.items():
        rates, losses = zip(*pairs, strict=True)
        print(
            f"| {name} | {min(rates):.2f} to {max(rates):.2f} "
            f"| {paper.printed(name, 'newreno', 'send_rate_mbps')} "
            f"| {min(losses):.2f} to {max(losses):.2f} "
            f"| {paper.printed(name, 'newreno', 'loss_percent')} |"
        )


def main(
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="Seeds 0 to N-1.")] = 5,
) -> None:
    """Take the behaviours of the module out one by one."""
    paper = load_paper("ebcc")
    (base,) = paper.compared
    _parts(paper, base, seeds)
    _alignment(paper, base)


if __name__ == "__main__":
    typer.run(main)
