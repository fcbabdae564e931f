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
            metavar="SCENARIO", help="A name from `quicgym scenarios` or a YAML's path."
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
            help="The program on the other side, in a namespace of its own. Default: this machine "
            "is the other side, which needs root.",
        ),
    ] = None,
    controller: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Controller for the TCP connections over the link, in the kernel; see `quicgym "
            "linux list`. Default: the programs choose.",
        ),
    ] = None,
    limit_s: Annotated[
        float,
        typer.Option(
            min=0.001, metavar="T", help="After this time everything that still runs is ended."
        ),
    ] = 3600.0,
    seed: Annotated[
        int, typer.Option(min=0, metavar="S", help="Of the network's random losses.")
    ] = 0,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="No line every second on a terminal.")
    ] = False,
) -> None:
    """Run any program behind a scenario's network, in real time.

    COMMAND runs in a network namespace of its own. What it downloads comes over the scenario's
    bottleneck, what it sends goes over the reverse link, both with the delays of the scenario's
    first flow. Its own address is in QUICGYM_ADDRESS, the other side's in QUICGYM_PEER. No root
    is needed where the system allows user namespaces. Linux only. --controller needs root and
    quicgym-linux.

    The exit status is COMMAND's, or 124 when the time is up. At the end a summary says on standard
    error what passed, and whether the run is valid: see docs/how-to/link.md.
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
    """Returns what happened since the report before."""
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
