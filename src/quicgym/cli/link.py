"""`quicgym link`."""

from __future__ import annotations

import shlex
import signal
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from quicgym.real.relay import RelayReport, WayReport

EXAMPLES = (
    "quicgym link ebcc-single --peer 'iperf3 -s' -- sh -c 'iperf3 -c $QUICGYM_PEER -R'",
    "quicgym link my-network.yaml --peer 'python3 -m http.server' -- "
    "sh -c 'curl -O $QUICGYM_PEER:8000/file'",
    "sudo quicgym link ebcc-single --quiet -- bash",
    "sudo quicgym link ebcc-single --controller cubic+ --peer 'iperf3 -s -1' -- "
    "sh -c 'iperf3 -c $QUICGYM_PEER -R'",
)


def link(
    scenario: Annotated[
        str,
        typer.Argument(
            metavar="SCENARIO",
            help="The network: a name from `quicgym show scenarios` or the path of a YAML file.",
        ),
    ],
    command: Annotated[
        list[str],
        typer.Argument(metavar="-- COMMAND", help="The program and its arguments."),
    ],
    peer: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Run this program on the other side, in a second namespace. Default: this machine "
            "is the other side, which needs root.",
        ),
    ] = None,
    controller: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Use this controller in the kernel for all TCP connections over the link: names "
            "from `quicgym linux list` and `quicgym show controllers`, or your own (file.py:Class, "
            "library.so:name). Default: the programs choose.",
        ),
    ] = None,
    limit_s: Annotated[
        float,
        typer.Option(
            min=0.001, metavar="T", help="End everything that still runs after T seconds."
        ),
    ] = 3600.0,
    seed: Annotated[
        int, typer.Option(min=0, metavar="S", help="Random seed of the network's losses.")
    ] = 0,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Do not print a line every second.")
    ] = False,
) -> None:
    """Run any program behind a scenario's network, in real time.

    COMMAND runs in its own network namespace. Its downloads come over the scenario's bottleneck and
    its uploads go over the reverse link, both with the delays of the scenario's first flow. Its
    address is in QUICGYM_ADDRESS, and the other side's in QUICGYM_PEER.

    You need Linux. You do not need root if the system allows user namespaces; only --controller
    needs it, and quicgym-linux.

    The exit status is COMMAND's, or 124 after the time limit. At the end a summary on standard
    error says how many packets passed and whether the run is valid; docs/how-to/link.md explains
    it.
    """
    from quicgym.real.kernels import find_kernel
    from quicgym.real.link import run_link

    last: list[RelayReport] = []

    def show(report: RelayReport) -> None:
        say(_line(last[-1] if last else None, report))
        last[:] = [report]

    shown = sys.stderr.isatty() and not quiet
    before = signal.getsignal(signal.SIGINT)

    def leave_ctrl_c_to_the_command() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    try:
        with ExitStack() as stack:
            congestion_control = None
            if controller is not None:
                loaded = stack.enter_context(find_kernel().load(controller))
                congestion_control = loaded.kernel_name
                say(f"controller {controller} is {congestion_control}: {loaded.description}")
            result = run_link(
                scenario,
                command,
                peer=None if peer is None else shlex.split(peer),
                limit_s=limit_s,
                seed=seed,
                congestion_control=congestion_control,
                on_start=leave_ctrl_c_to_the_command,
                on_report=show if shown else None,
            )
    finally:
        signal.signal(signal.SIGINT, before)
    if result.timed_out:
        say(f"the time limit of {limit_s:g} s has ended {command[0]}")
    if result.peer_exit_status is not None:
        say(f"the peer had ended before, with status {result.peer_exit_status}")
    for line in _summary(result.report):
        say(line)
    raise typer.Exit(result.exit_status)


def say(text: str) -> None:
    """Prints to standard error."""
    from quicgym.console import say as print_line

    print_line(f"quicgym link: {text}")


def _line(before: RelayReport | None, now: RelayReport) -> str:
    """Returns a line with what has happened since the previous report."""
    seconds = now.elapsed_s - (before.elapsed_s if before else 0.0)
    texts = [f"{now.elapsed_s:5.1f} s"]
    for name in ("forward", "backward"):
        way: WayReport = getattr(now, name)
        earlier: WayReport | None = getattr(before, name) if before else None
        passed = way.delivered_bytes - (earlier.delivered_bytes if earlier else 0)
        texts.append(
            f"{name} {passed * 8 / seconds / 1e6:.2f} Mbps, {way.queue_packets} packets wait, "
            f"{way.dropped_packets + way.lost_packets} lost"
        )
    texts.append(f"lateness p99 {now.audit.lateness_p99_ms:.3f} ms")
    return " | ".join(texts)


def _summary(report: RelayReport) -> list[str]:
    lines = [f"{report.elapsed_s:.1f} s"]
    for name, way in (("forward", report.forward), ("backward", report.backward)):
        delay = way.mean_queue_delay_ms
        lines.append(
            f"{name}: {way.delivered_packets} of {way.sent_packets} packets delivered, "
            f"{way.delivered_bytes * 8 / report.elapsed_s / 1e6:.3f} Mbps, "
            f"{way.dropped_packets} dropped, {way.lost_packets} lost at random"
            + ("" if delay is None else f", queueing delay {delay:.2f} ms")
        )
    audit = report.audit
    lines.append(
        f"lateness: p50 {audit.lateness_p50_ms:.3f} ms, p99 {audit.lateness_p99_ms:.3f} ms, "
        f"max {audit.lateness_max_ms:.3f} ms; CPU stolen {audit.cpu_steal_percent:.1f}%, relay "
        f"{audit.relay_cpu_percent:.1f}% of a core"
        + ("" if audit.realtime_priority else ", without real-time priority")
    )
    verdict = "valid" if audit.valid else "INVALID: " + "; ".join(audit.problems)
    return [*lines, f"audit: {verdict}"]
