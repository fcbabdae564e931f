"""The papers' kernel controllers in a real kernel: `make reports ARGS=linux-kernel`.

Cubic+'s tables 2 and 3 and the table of the report on BBR in high-latency networks are measured
with quicgym-linux: kernel TCP under iperf3, behind `quicgym link`. Beside each number are the
printed one and the simulator's. The papers' claims are judged on the kernel's runs as on
simulations. Learned policies run on networks of the suite `reality`: in kernel TCP, over a QUIC
stack, and in the simulator.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from quicgym_noq.reality import SUITE

import quicgym
from quicgym import __version__, _core
from quicgym.agents.evaluation.rollouts import play
from quicgym.agents.policies.by_name import find_policy
from quicgym.benchmarks.papers.measurements import Measurements, Run, in_words, mean_and_deviation
from quicgym.benchmarks.papers.measurements import value_of as quantity_of
from quicgym.benchmarks.papers.paper import Paper, load_paper
from quicgym.benchmarks.papers.verdicts import VERDICTS, MissingMeasurement, judge
from quicgym.console import say
from quicgym.envs.scenarios.fields import LINK_HEADER_BYTES
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.scenarios.suites import load_suite
from quicgym.errors import UserError
from quicgym.output_folders import check_resumable, write_atomically
from quicgym.real.concurrency import BUDGET_MBPS, by_workers
from quicgym.real.kernels import find_kernel
from quicgym.real.link import run_link
from quicgym.real.network import as_scenario
from quicgym.real.relay import RelayReport
from quicgym.real.runs import InvalidRunError, run_stack
from quicgym.real.stacks import find_stack

ENGINE = "linux"
ATTEMPTS = 5
ROOM = (
    "cd /proc/sys/net/ipv4 && for name in tcp_rmem tcp_wmem; "
    "do echo 4096 131072 67108864 > $name; done"
)
"""So that buffers bound no window. It holds in a program's own namespace, which ends with it."""
SERVER = ["sh", "-c", f"{ROOM}; iperf3 -s -1 -J > /dev/null"]
TCP_HEADER_BYTES = 52
"""IPv4 and TCP with timestamps."""


@dataclass(frozen=True)
class Study:
    """Tables of a paper that are measured in the kernel.

    Attributes:
        paper: Name of the paper.
        tables: Numbers of its tables.
        algorithms: Controllers that the kernel has.
        more: Further metrics by their names in the table; the paper does not print them.
    """

    paper: str
    tables: tuple[str, ...]
    algorithms: tuple[str, ...]
    more: Mapping[str, str] = field(default_factory=dict)


STUDIES = (
    Study("cubic-plus", ("2", "3"), ("cubic", "cubic+")),
    Study(
        "high-latency",
        ("1",),
        ("bbr", "bbr-smooth", "bbr-extended", "bbr-combined"),
        {"queueing delay (ms)": "mean_queue_delay_ms"},
    ),
)
LEARNED: Mapping[str, tuple[str, ...]] = {
    "window": ("kernel:window", "window"),
    "tuning": ("tuning",),
}
"""Policy -> its names in the kernel's TCP: wholly in the kernel, and by the agent."""
LEARNED_ON = ("reality-1mbps", "reality-cellular", "reality-15mbps", "reality-25mbps-20ms",
              "reality-loss-1", "reality-600ms-satellite", "reality-changing-rate",
              "reality-flows-2")  # fmt: skip
"""Those of the suite whose rate is at most 40 Mbps."""
STACK = "noq"
COMPARED = {
    "delivered by a flow (Mbps)": "receive_rate_mbps",
    "queueing delay (ms)": "mean_queue_delay_ms",
    "loss (%)": "loss_percent",
}
SIMULATED = {name: f"{name}:slow_start=hystart-linux" for name in ("cubic", "cubic+")}
"""The kernel's CUBIC has HyStart, and so has the simulator's here."""


@dataclass(frozen=True)
class Cell:
    """A run: a controller on a scenario, and its number among the repetitions.

    Attributes:
        scenario: Name of the scenario.
        controller: Name of the controller, as the kernel or the stack takes it.
        run: Number of the run and seed of the network.
        stack: QUIC stack that runs in real time; None: kernel TCP.
    """

    scenario: str
    controller: str
    run: int
    stack: str | None = None

    @property
    def key(self) -> str:
        """Its name in the file of runs."""
        where = "" if self.stack is None else f"{self.stack}:"
        return f"{self.scenario}/{where}{self.controller}/{self.run}"

    def load_scenario(self) -> Scenario:
        """Returns the scenario: one of the suite `reality`, or a scenario of its own."""
        return _reality().get(self.scenario) or as_scenario(self.scenario)


@cache
def _reality() -> dict[str, Scenario]:
    return {one.name: one for one in load_suite(SUITE) if isinstance(one, Scenario)}


def cells(runs: int, scenarios: Sequence[str]) -> list[Cell]:
    """Returns all runs, repetitions last, so that every cell has a run soon.

    Args:
        runs: Runs of each cell.
        scenarios: Names of the scenarios; empty: all.
    """
    places: dict[tuple[str, str], None] = {}
    for study in STUDIES:
        for table in load_paper(study.paper).tables:
            if table.number not in study.tables:
                continue
            for row, controller in product(table.rows, study.algorithms):
                if not scenarios or row.scenario in scenarios:
                    places[row.scenario, controller] = None
    learned: list[tuple[str, str, str | None]] = []
    for network, (policy, controllers) in product(LEARNED_ON, LEARNED.items()):
        if not scenarios or network in scenarios:
            learned += [(network, name, None) for name in controllers]
            learned.append((network, policy, STACK))
    return [
        *(Cell(*place, run) for run in range(runs) for place in places),
        *(
            Cell(network, name, run, stack)
            for run in range(runs)
            for network, name, stack in learned
        ),
    ]


def parameters_of(scenario: Scenario, controller: str) -> dict[str, Any]:
    """Returns the parameters that a scenario has for a controller, but for the slow start.

    Args:
        scenario: The scenario.
        controller: Name of the controller; the kernel's CUBIC has its own slow start.
    """
    parameters = dict((scenario.controller_parameters or {}).get(controller, {}))
    parameters.pop("slow_start", None)
    return parameters


def real_run(cell: Cell) -> dict[str, Any]:
    """Returns the metrics of a valid run in real time, with the audit and the attempts.

    Args:
        cell: The run; its number is the seed of the network.
    """
    return _kernel_run(cell) if cell.stack is None else _stack_run(cell, cell.stack)


def _stack_run(cell: Cell, stack: str) -> dict[str, Any]:
    try:
        run = run_stack(
            cell.load_scenario(), cell.controller, stack, "real", cell.run, keep_traces=False
        )
    except InvalidRunError as error:
        return {"key": cell.key, "failed": [str(error)], "attempts": ATTEMPTS}
    metrics = {name: run.metrics[name] for name in COMPARED.values()}
    return {"key": cell.key, "metrics": metrics, **run.facts, "commit": _core.commit}


def _kernel_run(cell: Cell) -> dict[str, Any]:
    problems: list[str] = []
    for attempt in range(1, ATTEMPTS + 1):
        scenario = cell.load_scenario()
        document, reports, audit = _measure(scenario, cell)
        if audit["valid"] and document is not None:
            metrics = _metrics(scenario, document, reports)
            return {"key": cell.key, "metrics": metrics, "audit": audit, "attempts": attempt,
                    "commit": _core.commit}  # fmt: skip
        problems = audit["problems"] or ["iperf3 failed"]
    return {"key": cell.key, "failed": problems, "attempts": ATTEMPTS}


def _measure(
    scenario: Scenario, cell: Cell
) -> tuple[dict[str, Any] | None, list[RelayReport], dict[str, Any]]:
    seconds = round(scenario.duration_s)
    flows = sum(1 for _ in scenario.single_flows())
    client = f"iperf3 -c $QUICGYM_PEER -R -P {flows} -t {seconds} -J --get-server-output"
    path = Path(f"/tmp/quicgym-{os.getpid()}.json")
    command = ["sh", "-c", f"{ROOM}; {client} > {shlex.quote(str(path))}"]
    reports: list[RelayReport] = []
    parameters = parameters_of(scenario, cell.controller)
    with find_kernel().load(cell.controller, parameters) as loaded:
        result = run_link(
            scenario,
            command,
            peer=SERVER,
            limit_s=seconds + 60,
            seed=cell.run,
            congestion_control=loaded.kernel_name,
            on_report=reports.append,
        )
    reports.append(result.report)
    audit = result.report.audit
    record = {
        "valid": audit.valid,
        "problems": list(audit.problems),
        "lateness_p99_ms": audit.lateness_p99_ms,
        "lateness_max_ms": audit.lateness_max_ms,
        "cpu_steal_percent": audit.cpu_steal_percent,
    }
    document = None
    if result.exit_status == 0:
        document = json.loads(path.read_text(encoding="utf-8"))
    path.unlink(missing_ok=True)
    return document, reports, record


def _metrics(
    scenario: Scenario, document: dict[str, Any], reports: Sequence[RelayReport]
) -> dict[str, Any]:
    """The metrics of the tables, by the names of quicgym's; rates are those of the relay.

    Rates and their variances are over the seconds of the transfer.
    """
    datagram = scenario.max_datagram_bytes
    wire = datagram + LINK_HEADER_BYTES
    # The IP packet has no 2 bytes of PPP, and a full segment has this payload.
    payload = wire - 2 - TCP_HEADER_BYTES
    seconds = scenario.duration_s
    steady = _while_sending(reports, wire, seconds)
    forward = reports[-1].forward
    lost = forward.dropped_packets + forward.lost_packets
    rates: dict[str, list[float]] = {"sent_bytes": [], "delivered_bytes": []}
    means: dict[str, float] = {}
    for name, found in rates.items():
        counts = np.array([getattr(report.forward, name) for report in steady], dtype=float)
        times = np.array([report.elapsed_s for report in steady])
        found += [*(np.diff(counts) / np.diff(times) * 8e-6 * datagram / wire)]
        passed = (counts[-1] - counts[0]) / (times[-1] - times[0])
        means[name] = passed * 8e-6 * datagram / wire
    server = document["server_output_json"]
    windows = [
        stream["snd_cwnd"] / payload
        for interval in server["intervals"]
        for stream in interval["streams"]
        if "snd_cwnd" in stream
    ]
    rtts = [
        stream["rtt"] * 1e-3
        for interval in server["intervals"]
        for stream in interval["streams"]
        if stream.get("rtt")
    ]
    received = [
        stream["receiver"]["bits_per_second"] * 1e-6 * wire / payload
        for stream in document["end"]["streams"]
    ]
    delivered_rate = forward.delivered_bytes / seconds
    delay = forward.mean_queue_delay_ms or 0.0
    limit = scenario.bottleneck.queue.limit if scenario.bottleneck is not None else 0
    waiting_bytes = delivered_rate * delay * 1e-3  # Little's law
    is_in_bytes = scenario.bottleneck is not None and scenario.bottleneck.queue.unit == "bytes"
    shares = np.array(received)
    return {
        "wire_receive_rate_mbps": float(shares.sum()),
        "loss_percent": 100 * lost / max(1, lost + forward.delivered_packets),
        "mean_queue_delay_ms": delay,
        "buffer_use_percent": 100 * waiting_bytes / limit / (1 if is_in_bytes else wire),
        "send_rate_mbps": means["sent_bytes"],
        "receive_rate_mbps": means["delivered_bytes"],
        "send_rate_variance_mbps2": float(np.var(rates["sent_bytes"])),
        "receive_rate_variance_mbps2": float(np.var(rates["delivered_bytes"])),
        "mean_window_packets": float(np.mean(windows)),
        "max_window_packets": float(np.max(windows)),
        "rtt_deviation_ms": float(np.std(rtts)),
        "jain": float(shares.sum() ** 2 / (len(shares) * (shares**2).sum())),
        "flows": [
            {"name": f"connection {number}", "wire_receive_rate_mbps": rate}
            for number, rate in enumerate(received, start=1)
        ],
    }


def _while_sending(
    reports: Sequence[RelayReport], packet_bytes: int, seconds: float
) -> list[RelayReport]:
    """The reports of the transfer itself: iperf3 opens a connection for its own messages before."""
    first = next(
        index
        for index, (before, after) in enumerate(zip(reports, reports[1:], strict=False))
        if after.forward.delivered_bytes - before.forward.delivered_bytes > 5 * packet_bytes
    )
    end = reports[first].elapsed_s + seconds + 0.5
    return [report for report in reports[first:-1] if report.elapsed_s <= end]


class KernelMeasurements(Measurements):
    """Runs in the kernel and in the simulator, for the papers' tables and verdicts."""

    def __init__(self, runs: Mapping[Cell, Run], simulated: Mapping[Cell, Run]) -> None:
        """Takes the metrics of the runs."""
        super().__init__((), {})
        for engine, found in ((ENGINE, runs), ("native", simulated)):
            for cell, run in found.items():
                self._runs[cell.scenario, cell.controller, engine][cell.run] = run


def simulate(chosen: Iterable[Cell]) -> dict[Cell, Run]:
    """Returns the metrics of the same runs in the native engine.

    Args:
        chosen: The runs.
    """
    found: dict[Cell, Run] = {}
    for cell in chosen:
        name = SIMULATED.get(cell.controller, cell.controller)
        run = quicgym.run(cell.scenario, name, seed=cell.run)
        found[cell] = run.to_dict()
    return found


def learned(kernel: Mapping[Cell, Run], runs: int) -> list[str]:
    """Returns the lines on learned policies.

    Args:
        kernel: Metrics of the runs in real time.
        runs: Runs of each cell.
    """
    lines = [
        "## Learned policies",
        "",
        "Networks of the suite `reality` for 20 s. In the first two columns kernel TCP has the "
        "policy: wholly in the kernel, and by the agent. The others are the QUIC stack "
        f"`{STACK}` in real time, and the native engine. Delivered are the bytes of datagrams over "
        "the whole 20 s; a TCP segment counts as a datagram of the same size on the wire.",
        "",
        f"| network | policy | quantity | in the kernel | by the agent | {STACK} | simulator |",
        "|---|---|---|---|---|---|---|",
    ]
    for network, (policy, names) in product(LEARNED_ON, LEARNED.items()):
        by_column = [
            [
                run
                for number in range(runs)
                if (run := kernel.get(Cell(network, name, number, stack))) is not None
            ]
            for name, stack in [(f"kernel:{policy}", None), (policy, None), (policy, STACK)]
        ]
        if not any(by_column):
            continue
        scenario = Cell(network, policy, 0).load_scenario()
        simulated = [play(find_policy(policy), scenario, "native", seed) for seed in range(runs)]
        by_column.append([run.metrics for run in simulated])
        by_column[:2] = [[_in_datagrams(run, scenario) for run in two] for two in by_column[:2]]
        for words, metric in COMPARED.items():
            texts = [_words([run[metric] for run in column]) for column in by_column]
            if f"kernel:{policy}" not in names:
                texts[0] = "–"
            lines.append(f"| {network} | {policy} | {words} | {' | '.join(texts)} |")
    return [*lines, ""] if len(lines) > 6 else []


def _in_datagrams(run: Run, scenario: Scenario) -> Run:
    """Returns a run with what iperf3 has received as its rate, in the mean over the flows.

    The relay's rate leaves a second out.
    """
    datagram = scenario.max_datagram_bytes
    share = datagram / (datagram + LINK_HEADER_BYTES) / len(list(scenario.single_flows()))
    return {**run, "receive_rate_mbps": share * run["wire_receive_rate_mbps"]}


def page(paper: Paper, study: Study, measured: Measurements) -> list[str]:
    """Returns the lines of a paper's tables and claims.

    Args:
        paper: The paper.
        study: The part of it that is measured.
        measured: The runs.
    """
    lines = [f"## {paper.title}", "", f"Source: {paper.reference}.", ""]
    for table in paper.tables:
        if table.number not in study.tables:
            continue
        lines += [
            f"### Table {table.number}: {table.caption}",
            "",
            "| network | controller | quantity | printed | kernel | simulator | ratio |",
            "|---|---|---|---|---|---|---|",
        ]
        for row, controller in product(table.rows, study.algorithms):
            for words, metric in {**table.metrics, **study.more}.items():
                kernel = (
                    measured.values(row.scenario, controller, ENGINE, metric)
                    if (_is_measured(measured, row.scenario, controller, metric))
                    else []
                )
                simulator = measured.values(row.scenario, controller, "native", metric)
                printed = (metric in table.metrics.values()) and table.printed(
                    row, controller, metric
                )
                if not kernel:  # such as loss of one flow: the relay does not tell them apart
                    continue
                ratio = "–"
                if kernel and simulator and np.mean(simulator) > 0:
                    ratio = f"{np.mean(kernel) / np.mean(simulator):.3f}"
                texts = [_words(kernel), _words(simulator), ratio]
                columns = [row.label, controller, words, printed or "–", *texts]
                lines.append(f"| {' | '.join(columns)} |")
        lines.append("")
    lines += ["### Claims, judged on the kernel's runs", "", "| claim | verdict | measured |",
              "|---|---|---|"]  # fmt: skip
    left_out = 0
    for claim in paper.claims:
        try:
            judgement = judge(claim, paper, measured, lambda _: ENGINE)
        except (MissingMeasurement, KeyError):
            left_out += 1
            continue
        words = "; ".join(comparison.in_words() for comparison in judgement.comparisons)
        verdict = VERDICTS[judgement.verdict]
        lines.append(f"| {claim.statement} | {verdict} | {words.replace('|', '/')} |")
    lines += ["", f"{left_out} more claims need runs or quantities that are not measured here.", ""]
    return lines


def _is_measured(measured: Measurements, scenario: str, controller: str, metric: str) -> bool:
    runs = measured.runs(scenario, controller, ENGINE)
    try:
        return bool(runs) and all(quantity_of(run, metric) is not None for run in runs)
    except KeyError:
        return False


def _words(values: Sequence[float]) -> str:
    return in_words(*mean_and_deviation(values)) if values else "not measured"


def linux_kernel(
    runs: Annotated[int, typer.Option(min=1, help="Measure so many valid runs of each cell.")] = 5,
    budget_mbps: Annotated[
        float,
        typer.Option(
            min=1,
            metavar="MBPS",
            help="Run several networks at once, as long as their rates sum up to at most this. A "
            "faster network runs alone.",
        ),
    ] = BUDGET_MBPS,
    scenario: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Run only this scenario. Default: all."),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Keep the runs (runs.jsonl) in this folder.")
    ] = Path("results/linux-kernel"),
    report: Annotated[Path, typer.Option(metavar="FILE", help="Write the page to this file.")] = (
        Path("results/reports/linux-kernel.md")
    ),
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue an interrupted run: skip what DIR already holds."),
    ] = False,
    write_only: Annotated[
        bool,
        typer.Option("--write-only", help="Only write the page, without runs in the kernel."),
    ] = False,
) -> None:
    """Measure the papers' tables and learned policies in the running kernel and write the page."""
    chosen = cells(runs, scenario or ())
    if resume:
        check_resumable(out)
    out.mkdir(parents=True, exist_ok=True)
    file = out / "runs.jsonl"
    if not (resume or write_only):
        file.unlink(missing_ok=True)
    found = _read(file)
    if not write_only:
        left = [cell for cell in chosen if "metrics" not in found.get(cell.key, {})]
        if any(cell.stack for cell in left):
            find_stack(STACK)  # an error now, not after the other runs
        _run_all(left, budget_mbps, file)
        found = _read(file)
    kernel = {
        cell: found[cell.key]["metrics"]
        for cell in cells(runs, ())
        if "metrics" in found.get(cell.key, {})
    }
    if not kernel:
        raise UserError(f"{file} has no valid run; measure without --write-only")
    papers = {cell: run for cell, run in kernel.items() if cell.scenario not in LEARNED_ON}
    measured = KernelMeasurements(papers, simulate(papers))
    lines = [*_document(runs, found, measured), *learned(kernel, runs)]
    text = "\n".join(lines).rstrip() + "\n"
    write_atomically({report: text})
    say(f"wrote {report}")


def _read(file: Path) -> dict[str, dict[str, Any]]:
    if not file.exists():
        return {}
    rows = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return {row["key"]: row for row in rows}


def _run_all(left: Sequence[Cell], budget_mbps: float, file: Path) -> None:
    scenarios = {cell.scenario: cell.load_scenario() for cell in left}
    # Slow ones, of which many run at once, come first: then every table has numbers soon.
    for workers, group in sorted(by_workers([*scenarios.values()], budget_mbps).items())[::-1]:
        names = {scenario.name for scenario in group}
        chosen = [cell for cell in left if cell.scenario in names]
        with ProcessPoolExecutor(workers, max_tasks_per_child=1) as pool:
            for future in as_completed([pool.submit(real_run, cell) for cell in chosen]):
                row = future.result()
                with file.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(row) + "\n")
                text = row.get("failed") or f"lateness p99 {row['audit']['lateness_p99_ms']:.3f} ms"
                say(f"{row['key']}: {text}, attempts {row['attempts']}")


def _document(runs: int, found: Mapping[str, dict[str, Any]], measured: Measurements) -> list[str]:
    valid = [row for row in found.values() if "metrics" in row]
    failed = [row for row in found.values() if "metrics" not in row]
    late = [row["audit"]["lateness_p99_ms"] for row in valid]
    iperf = subprocess.run(["iperf3", "--version"], capture_output=True, text=True, check=True)
    lines = [
        "# Kernel controllers: printed, in the kernel, in the simulator",
        "",
        f"Measured on {time.strftime('%Y-%m-%d')} with quicgym {__version__} at commit "
        f"{', '.join(dict.fromkeys(row['commit'] for row in valid))}, Linux "
        f"{platform.release()}, {iperf.stdout.split(' (')[0]}, on {os.cpu_count()} cores.",
        "",
        "    sudo nice -n -10 make reports ARGS=linux-kernel",
        "",
        "The controllers of `quicgym-linux` carry kernel TCP under iperf3 behind [`quicgym "
        "link`](../how-to/link.md). A cell has the mean and the standard deviation of up to "
        f"{runs} runs, whose seeds are 0 to {runs - 1}.",
        "The simulator's column is the native engine with the same scenario and seeds. The "
        "kernel's CUBIC has HyStart, and the simulator's CUBIC has `slow_start=hystart-linux`.",
        "The programs' namespaces allow buffers of 64 MiB, so that no buffer bounds a window.",
        "",
        f"{len(valid)} runs have a valid [audit](../how-to/link.md#the-audit); "
        f"{sum(row['attempts'] - 1 for row in valid)} invalid ones were repeated. The lateness of "
        f"the relay at the 99th percentile is {np.median(late):.3f} ms in the median, and "
        f"{max(late):.3f} ms at most.",
        "",
    ]
    for row in sorted(failed, key=lambda row: str(row["key"])):
        lines.append(f"- No valid run of `{row['key']}`: {'; '.join(row['failed'])}.")
    lines.append("")
    for study in STUDIES:
        lines += page(load_paper(study.paper), study, measured)
    return lines
