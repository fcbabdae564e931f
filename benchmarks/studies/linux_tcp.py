"""Linux's Reno, CUBIC and BBR under iperf3 behind a network, beside quicgym's in the simulator.

    sudo python benchmarks/studies/linux_tcp.py --out results/linux-tcp

Needs Linux with tcp_bbr, and iperf3. A run whose audit is invalid is repeated, up to five times.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import quicgym
from quicgym import __version__, _core
from quicgym.envs import Scenario
from quicgym.envs.scenarios.suites import load_suite
from quicgym.real import run_link

SCENARIOS = ("reality-15mbps", "reality-25mbps-20ms", "reality-loss-1")
PAIRS = {"reno": "newreno", "cubic": "cubic", "bbr": "bbr"}
"""Linux's name -> quicgym's."""
SERVER = ["sh", "-c", "iperf3 -s -1 -J > /dev/null"]
"""Only with -J does it hand its report, which has the RTT, to the client."""
ATTEMPTS = 5


def linux_run(scenario: Scenario, controller: str, seed: int, path: Path) -> dict[str, float]:
    """Returns what iperf3, whose report goes to `path`, and the relay measured of a valid run."""
    seconds = round(scenario.duration_s)
    client = f"iperf3 -c $QUICGYM_PEER -R -t {seconds} -C {controller} -J --get-server-output"
    command = ["sh", "-c", f"{client} > {shlex.quote(str(path))}"]
    for _ in range(ATTEMPTS):
        result = run_link(scenario, command, peer=SERVER, limit_s=seconds + 30, seed=seed)
        if result.report.audit.valid and result.exit_status == 0:
            break
        print(f"repeated: exit status {result.exit_status}, {result.report.audit.problems}")
    else:
        raise SystemExit(f"{scenario.name}, {controller}: no valid run in {ATTEMPTS}")
    document = json.loads(path.read_text(encoding="utf-8"))
    sender = document["server_output_json"]["end"]["streams"][0]["sender"]
    forward = result.report.forward
    return {
        "goodput_mbps": document["end"]["sum_received"]["bits_per_second"] * 1e-6,
        "mean_rtt_ms": sender["mean_rtt"] * 1e-3,
        "loss_percent": 100 * (forward.dropped_packets + forward.lost_packets)
        / max(1, forward.dropped_packets + forward.lost_packets + forward.delivered_packets),
        "queue_delay_ms": forward.mean_queue_delay_ms,
        "retransmits": float(sender["retransmits"]),
        "lateness_p99_ms": result.report.audit.lateness_p99_ms,
    }  # fmt: skip


def simulated_run(scenario: Scenario, controller: str, seed: int) -> dict[str, Any]:
    """Returns the same of the native engine."""
    metrics = quicgym.run(scenario, controller, seed=seed, trace_interval_ms=None).metrics
    return {
        "goodput_mbps": metrics["goodput_mbps"],
        "mean_rtt_ms": metrics["mean_rtt_ms"],
        "loss_percent": metrics["loss_percent"],
        "queue_delay_ms": metrics["mean_queue_delay_ms"],
    }


def shown(rows: Sequence[dict[str, Any]], metric: str, digits: int) -> str:
    """Returns the mean of the runs, and the smallest and the largest value."""
    values = [row[metric] for row in rows]
    text = f"{np.mean(values):.{digits}f}"
    return f"{text} ({min(values):.{digits}f}–{max(values):.{digits}f})" if len(rows) > 1 else text


def main(
    runs: Annotated[int, typer.Option(min=1, help="Of each cell; the simulator's have seeds.")] = 3,
    out: Annotated[Path, typer.Option(help="Gets runs.jsonl and iperf3's reports.")] = Path(
        "results/linux-tcp"
    ),
) -> None:
    """Prints a Markdown table."""
    out.mkdir(parents=True, exist_ok=True)
    suite = load_suite("reality")
    scenarios = {entry.name: entry for entry in suite if isinstance(entry, Scenario)}
    version = subprocess.run(["iperf3", "--version"], capture_output=True, text=True, check=True)
    software = f"Linux {platform.release()}, {version.stdout.split(' (')[0]}"
    print(f"{software}, quicgym {__version__} at {_core.commit}, load {os.getloadavg()[0]:.1f}")
    heads = ("goodput, Mbps", "mean RTT, ms", "queueing delay, ms", "loss, %")
    print(f"| network | controller | | {' | '.join(heads)} |")
    print("|---|---|---|---|---|---|---|")
    with (out / "runs.jsonl").open("a", encoding="utf-8") as file:
        for name in SCENARIOS:
            for linux, ours in PAIRS.items():
                rows: dict[str, list[dict[str, Any]]] = {"Linux": [], "simulator": []}
                for run in range(runs):
                    path = out / f"{name}-{linux}-{run}.json"
                    rows["Linux"].append(linux_run(scenarios[name], linux, run, path))
                    rows["simulator"].append(simulated_run(scenarios[name], ours, run))
                for where, found in rows.items():
                    controller = linux if where == "Linux" else ours
                    about = {"scenario": name, "controller": controller, "where": where}
                    for row in found:
                        file.write(json.dumps({**about, **row}) + "\n")
                    cells = [
                        shown(found, metric, digits)
                        for metric, digits in (("goodput_mbps", 2), ("mean_rtt_ms", 1),
                                               ("queue_delay_ms", 1), ("loss_percent", 2))
                    ]  # fmt: skip
                    place = f"{name.removeprefix('reality-')} | {controller}"
                    print(f"| {place} | {where} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    typer.run(main)
