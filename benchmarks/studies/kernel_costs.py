"""What controllers in the kernel's TCP cost for each call, and what the agent costs beside them.

    sudo python benchmarks/studies/kernel_costs.py

Needs quicgym-linux, iperf3 and bpftool. The kernel measures the run time of BPF programs while a
process asks for it (BPF_ENABLE_STATS). Behind a link one flow fills the path.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from quicgym import __version__, _core
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.scenarios.suites import load_suite
from quicgym.real import run_link
from quicgym.real.kernels import find_kernel

CONTROLLERS = ("cubic", "cubic+", "bbr", "agent:bbr", "window", "kernel:window")
SCENARIOS = ("reality-15mbps", "reality-100mbps")
AGENT = "quicgym-agent"
"""Name of the agent's thread."""
SYS_BPF = {"x86_64": 321, "aarch64": 280}
BPF_ENABLE_STATS, BPF_STATS_RUN_TIME = 32, 0


@contextmanager
def measured_programs() -> Iterator[None]:
    """Lets the kernel measure all BPF programs, until the end."""
    request = ctypes.c_uint32(BPF_STATS_RUN_TIME)
    libc = ctypes.CDLL(None, use_errno=True)
    number = SYS_BPF[platform.machine()]
    descriptor = libc.syscall(number, BPF_ENABLE_STATS, ctypes.byref(request), 4)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "BPF_ENABLE_STATS")
    try:
        yield
    finally:
        os.close(descriptor)


def programs() -> dict[int, dict[str, Any]]:
    """Returns the programs of congestion controllers by their numbers in the kernel."""
    shown = subprocess.run(
        ["bpftool", "--json", "prog", "show"], capture_output=True, text=True, check=True
    )
    return {one["id"]: one for one in json.loads(shown.stdout) if one["type"] == "struct_ops"}


def agent_seconds() -> float:
    """Returns the CPU time of this process's agent so far; 0 without one."""
    ticks = 0
    for folder in Path("/proc/self/task").iterdir():
        if (folder / "comm").read_text().strip() == AGENT:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def measure(scenario: Scenario, controller: str, seconds: int) -> str:
    """Runs one flow; returns the lines of its table.

    Args:
        scenario: Network of the flow.
        controller: Name of the controller, as `quicgym link --controller` takes it.
        seconds: Duration of the flow.
    """
    before = programs()
    with measured_programs(), find_kernel().load(controller) as loaded:
        mine = programs().keys() - before.keys()
        client = f"iperf3 -c $QUICGYM_PEER -R -t {seconds} > /dev/null"
        result = run_link(
            scenario,
            ["sh", "-c", client],
            peer=["sh", "-c", "iperf3 -s -1 > /dev/null"],
            limit_s=seconds + 30,
            congestion_control=loaded.kernel_name,
        )
        calls = {one["name"]: one for number, one in programs().items() if number in mine}
        agent = agent_seconds()
    acks = result.report.backward.delivered_packets
    place = f"| {scenario.name} | {controller} |"
    lines = []
    for name, one in calls.items():
        count, spent = one.get("run_cnt", 0), one.get("run_time_ns", 0)
        if count > acks / 10:
            lines.append(f"{place} `{name}` | {count} | {spent / count:.0f} |")
    total = sum(one.get("run_time_ns", 0) for one in calls.values())
    lines.append(f"{place} all in the kernel, per ACK | {acks} | {total / acks:.0f} |")
    if agent > 0:
        share = f"{100 * agent / result.report.elapsed_s:.1f}% of a core"
        lines.append(f"{place} the agent, per ACK: {share} | {acks} | {agent * 1e9 / acks:.0f} |")
    return "\n".join(lines)


def main(
    controller: Annotated[list[str] | None, typer.Option(help="Default: six.")] = None,
    scenario: Annotated[list[str] | None, typer.Option(help="Of the suite reality.")] = None,
    seconds: Annotated[int, typer.Option(min=1, help="Of each flow.")] = 10,
) -> None:
    """Prints a Markdown table."""
    suite = {one.name: one for one in load_suite("reality") if isinstance(one, Scenario)}
    print(f"quicgym {__version__} at {_core.commit}, Linux {platform.release()}")
    print("| network | controller | what | calls | ns each |")
    print("|---|---|---|---|---|")
    chosen: Sequence[str] = scenario or SCENARIOS
    for name in chosen:
        for one in controller or CONTROLLERS:
            print(measure(suite[name], one, seconds), flush=True)


if __name__ == "__main__":
    typer.run(main)
