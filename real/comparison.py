"""The command `quicgym real`: runs over a stack and in the simulator, and the gaps between them.

The implementation gap is the stack in virtual time against the simulator, over the same network.
The wall-clock gap is the stack in real time against virtual time. Gaps of goodput and mean RTT are
in percent of what they are taken against; those of the reward and of the loss are differences.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from rich.table import Table

from quicgym.agents.evaluation.jobs import policy_row
from quicgym.agents.evaluation.rollouts import play
from quicgym.agents.policies.by_name import find_policy, policy_kind
from quicgym.console import say, wide_console
from quicgym.controllers import without_folder
from quicgym.envs.rewards import Reward
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.simulation.packet_logs import PacketLogs
from quicgym.envs.simulation.window import WHOLE, Window
from quicgym.errors import UserError
from quicgym.jobs import RUNS_FILE
from quicgym.output_folders import file_name, naming, output_folder
from quicgym.real.audit import Audit
from quicgym.real.network import as_scenario
from quicgym.real.runs import Moment, check_clock, check_marks, make_plans, run_stack
from quicgym.real.stacks import Clock, Stack, find_stack

SIMULATOR = "simulator"
COMPARED = {
    "goodput_mbps": ("goodput\n(Mbps)", ".3f", True),
    "mean_rtt_ms": ("mean RTT\n(ms)", ".1f", True),
    "loss_percent": ("loss\n(%)", ".2f", False),
    "reward": ("reward", ".4f", False),
}
"""Metric -> head of its column, format, and whether its gap is in percent of the value."""


def gap(metric: str, value: float | None, against: float | None) -> float | None:
    """Returns a gap: in percent, or as a difference, see COMPARED."""
    if value is None or against is None:
        return None
    if not COMPARED[metric][2]:
        return value - against
    return 100 * (value / against - 1) if against else None


def mean_of_seeds(rows: Sequence[dict[str, Any]], metric: str) -> float | None:
    """Returns the mean of those that have the metric."""
    values = [row[metric] for row in rows if row[metric] is not None]
    return sum(values) / len(values) if values else None


def run_real(
    *,
    scenarios: Sequence[str],
    controllers: Sequence[str],
    stack: str | None = None,
    clock: str | None = None,
    seeds: int = 1,
    window: Window = WHOLE,
    compare: bool = False,
    directory: Path | None = None,
    qlog: Path | None = None,
    command: str = "",
) -> int:
    """Runs, prints and stores everything; returns the exit status.

    The arguments are the options of `quicgym real`. Without a stack it is the first that is
    installed, and without a clock the stack's first.
    `compare` also runs the simulator, and for the real clock the stack in virtual time.
    ScenarioError, PolicyError or UserError says what does not exist or does not fit.
    """
    known = find_stack(stack)
    chosen = check_clock(known, clock)
    loaded = [as_scenario(name) for name in dict.fromkeys(scenarios)]
    names = list(dict.fromkeys(controllers))
    for scenario, controller in product(loaded, names):
        check_marks(scenario, window)
        make_plans(scenario, controller, known, 0)
    sources = _sources(known, chosen, compare)
    runs: list[dict[str, Any]] = []
    failures: list[str] = []

    def carry_out(file: Any = None) -> None:
        for scenario, controller, seed, source in product(loaded, names, range(seeds), sources):
            row = _try(scenario, controller, known, source, seed, failures, qlog, window)
            if row is None:
                continue
            runs.append(row)
            if file is not None:
                file.write(json.dumps(row) + "\n")
                file.flush()

    if directory is None:
        carry_out()
    else:
        folders = [_folder(known, source) for source in sources]
        with output_folder(directory, (RUNS_FILE, *folders), resume=False):
            path = directory / RUNS_FILE
            with naming(path), path.open("a", encoding="utf-8") as file:
                carry_out(file)
            kinds = {without_folder(name): policy_kind(name) for name in names}
            _store(directory, runs, loaded, seeds, command, window, kinds)
    if runs:
        print_runs(runs, known, sources)
    for failure in failures:
        say(f"quicgym real: {failure}")
    return 1 if failures else 0


def _sources(stack: Stack, clock: Clock, compare: bool) -> list[str]:
    """Returns where rows come from, the simulator first."""
    if not compare:
        return [clock]
    virtual = ["virtual"] if "virtual" in stack.clocks else []
    return list(dict.fromkeys([SIMULATOR, *virtual, clock]))


def _folder(stack: Stack, source: str) -> str:
    return "native" if source == SIMULATOR else f"{file_name(stack.name)}-{source}"


def _try(
    scenario: Scenario,
    controller: str,
    stack: Stack,
    source: str,
    seed: int,
    failures: list[str],
    qlog: Path | None,
    window: Window,
) -> dict[str, Any] | None:
    shown = without_folder(controller)
    title = f"{scenario.name}, {shown}, seed {seed}, {source}"
    if qlog is not None:
        run_name = f"{scenario.name}-{shown}-seed-{seed}-{_folder(stack, source)}"
        qlog = qlog / file_name(run_name)
    if source == SIMULATOR:
        if controller in stack.own_controllers:
            return None  # nobody simulates it
        logs = None if qlog is None else PacketLogs(qlog)
        played = play(
            find_policy(controller),
            scenario,
            "native",
            seed,
            **window._asdict(),
            packet_logs=logs,
        )
        return policy_row(played, shown)

    def on_invalid(attempt: int, audit: Audit) -> None:
        say(
            f"quicgym real: {title}: run {attempt} is invalid ({'; '.join(audit.problems)}); "
            "it is repeated"
        )

    try:
        done = run_stack(
            scenario,
            controller,
            stack.name,
            source,
            seed,
            keep_traces=False,
            qlog=qlog,
            window=window,
            on_moment=_Shown(title) if sys.stderr.isatty() else None,
            on_invalid=on_invalid,
        )
    except ScenarioError:
        raise
    except UserError as error:
        failures.append(f"{title}: {error}")
        return None
    return policy_row(done, shown)


class _Shown:
    """Prints a line every second."""

    def __init__(self, title: str) -> None:
        self._title = title

    def __call__(self, moment: Moment) -> None:
        lateness = moment.lateness_p99_ms
        rates = ", ".join(f"{rate:.2f}" for rate in moment.goodput_mbps)
        times = ", ".join(f"{rtt:.1f}" for rtt in moment.smoothed_rtt_ms)
        say(
            f"quicgym real: {self._title}: {moment.time_s:5.1f} s | {rates} Mbps | RTT {times} ms"
            + ("" if lateness is None else f" | lateness p99 {lateness:.3f} ms")
        )


def print_runs(runs: Sequence[dict[str, Any]], stack: Stack, sources: Sequence[str]) -> None:
    """Prints a table for each scenario and controller: its sources, the gaps and the audit."""
    console = wide_console()
    seeds = len({row["seed"] for row in runs})
    over = f"mean over {seeds} seeds" if seeds > 1 else "seed 0"
    cells = dict.fromkeys((row["scenario"], row["policy"]) for row in runs)
    for scenario, controller in cells:
        table = Table(title=f"{scenario}, {controller} ({over})", title_justify="left")
        table.add_column("")
        for head, _, _ in COMPARED.values():
            table.add_column(head, justify="right")
        table.add_column("audit")
        means: dict[str, dict[str, float | None]] = {}
        for source in sources:
            engine = _folder(stack, source)
            rows = [
                row
                for row in runs
                if (row["scenario"], row["policy"], row["engine"]) == (scenario, controller, engine)
            ]
            if not rows:
                continue
            means[source] = {metric: mean_of_seeds(rows, metric) for metric in COMPARED}
            name = SIMULATOR if source == SIMULATOR else f"{stack.name}, {source}"
            texts = [
                "–" if value is None else format(value, COMPARED[metric][1])
                for metric, value in means[source].items()
            ]
            table.add_row(name, *texts, audit_text(rows))
        for name, of, against in (
            ("implementation gap", "virtual", SIMULATOR),
            ("wall-clock gap", "real", "virtual" if "virtual" in stack.clocks else SIMULATOR),
        ):
            if of in means and against in means:
                table.add_row(name, *(_gap_text(metric, means[of], means[against])
                                      for metric in COMPARED), "")  # fmt: skip
        console.print(table, "")


def _gap_text(
    metric: str, values: dict[str, float | None], against: dict[str, float | None]
) -> str:
    difference = gap(metric, values[metric], against[metric])
    if difference is None:
        return "–"
    return f"{difference:+.2f}%" if COMPARED[metric][2] else f"{difference:+{COMPARED[metric][1]}}"


def audit_text(rows: Sequence[dict[str, Any]]) -> str:
    """Returns what the audits of runs have in common: the worst of each."""
    audits = [row["audit"] for row in rows if row.get("audit") is not None]
    if not audits:
        return ""
    parts = [
        "valid",
        f"late p99 {max(audit['lateness_p99_ms'] for audit in audits):.3f} ms",
        f"CPU stolen {max(audit['cpu_steal_percent'] for audit in audits):.1f}%",
    ]
    if any(audit["decisions"] for audit in audits):
        late_ms = max(audit["decision_late_p99_ms"] for audit in audits)
        parts.append(f"decisions late p99 {late_ms:.3f} ms")
    if not all(audit["realtime_priority"] for audit in audits):
        parts.append("no real-time priority")
    repeated = sum(row.get("attempts", 1) - 1 for row in rows)
    if repeated:
        parts.append(f"{repeated} invalid runs repeated")
    return ", ".join(parts)


def _store(
    directory: Path,
    runs: Sequence[dict[str, Any]],
    scenarios: Sequence[Scenario],
    seeds: int,
    command: str,
    window: Window,
    kinds: Mapping[str, str],
) -> None:
    """Writes for each engine a folder as `quicgym evaluate` leaves it, for `quicgym compare`."""
    from quicgym.agents.evaluation.summary import Asked, write_evaluation  # pandas

    suite = ", ".join(scenario.name for scenario in scenarios)
    for engine in dict.fromkeys(row["engine"] for row in runs):
        folder = directory / engine
        folder.mkdir(exist_ok=True)
        rows = [row for row in runs if row["engine"] == engine]
        asked = Asked(suite, scenarios, range(seeds), engine, Reward(), command, window)
        write_evaluation(folder, asked, check_audited(rows), kinds)


def check_audited(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the rows; UserError where one in real time has no audit, or an invalid one."""
    for row in rows:
        if not row["engine"].endswith("-real"):
            continue
        name = f"{row['scenario']}, {row['policy']}, seed {row['seed']}, {row['engine']}"
        if row.get("audit") is None:
            raise UserError(f"{name}: has no audit, so it is not stored; run it again")
        problems = Audit(**row["audit"]).problems
        if problems:
            raise UserError(f"{name}: is invalid, so it is not stored: {'; '.join(problems)}")
    return list(rows)
