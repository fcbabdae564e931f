"""Programs behind a scenario's network: what `quicgym link` does."""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quicgym import _core
from quicgym.envs.scenarios.fields import LINK_HEADER_BYTES
from quicgym.envs.scenarios.model import Scenario
from quicgym.errors import UserError
from quicgym.real import namespaces
from quicgym.real.audit import CpuTicks
from quicgym.real.network import as_scenario, to_network
from quicgym.real.relay import RelayReport, make_core_relay, make_report

CAP_NET_ADMIN, CAP_SYS_ADMIN = 12, 21
PPP_BYTES = 2
"""Bytes of a packet on the wire that do not belong to the IP packet."""
ANSWER_S = 30.0
"""How long making the namespaces may take, and ending what runs in them."""
REPORT_S = 1.0
"""Between two calls of `on_report`."""


@dataclass(frozen=True)
class LinkResult:
    """The outcome of a command behind a network.

    Attributes:
        exit_status: The command's; 128 and the signal's number where one ended it, as shells have
            it; 124 where the time limit did, as timeout(1) has it.
        timed_out: Whether the time limit ended it.
        peer_exit_status: The peer's exit status, where the peer ended before the command.
        report: Report of what the relay did.
    """

    exit_status: int
    timed_out: bool
    peer_exit_status: int | None
    report: RelayReport


def run_link(
    scenario: Scenario | str | Path,
    command: Sequence[str],
    *,
    peer: Sequence[str] | None = None,
    limit_s: float = 3600.0,
    seed: int = 0,
    congestion_control: str | None = None,
    on_start: Callable[[], None] | None = None,
    on_report: Callable[[RelayReport], None] | None = None,
) -> LinkResult:
    """Runs a command in a new network namespace, behind a scenario's network.

    The command is on the receivers' side: what it downloads comes over the bottleneck, with the
    delays of the scenario's first flow in both directions. Both programs find their address in
    `QUICGYM_ADDRESS` and the other's in `QUICGYM_PEER`. See docs/how-to/link.md.

    Args:
        scenario: A name, a path or a scenario.
        command: The program and its arguments; it has this process's standard streams.
        peer: A program on the senders' side, in a second namespace, which is there before
            the command begins. None: this machine is on the senders' side, which needs root.
        limit_s: This long after the command's start everything that still runs is ended.
        seed: Seed of the network's random numbers.
        congestion_control: Name of a controller that the kernel has, for the TCP connections
            over the link. None: the programs choose.
        on_start: Called when the peer is there, before the command starts.
        on_report: Called every second.

    Raises:
        ScenarioError: The scenario has something that only a simulation can do.
        UserError: The system is not Linux or refuses a namespace; the text says why and what to
            do.
    """
    scenario = as_scenario(scenario)
    network = to_network(scenario)
    network.flows = network.flows[:1]
    relay = make_core_relay(network, seed)
    as_root = _has_capabilities(CAP_NET_ADMIN, CAP_SYS_ADMIN)
    if peer is None and not as_root:
        raise UserError(
            "without --peer the other side is this machine, and a device in its network needs "
            "root; give --peer COMMAND, which runs the other side's program, or become root"
        )
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        # Until the holder ignores it, Ctrl-C would end the holder with a traceback.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with theirs:
                holder = subprocess.Popen(
                    [sys.executable, "-I", namespaces.__file__, str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        try:
            mtu = network.flows[0].max_datagram_bytes + LINK_HEADER_BYTES - PPP_BYTES
            asked = {"mtu": mtu, "as_root": as_root, "command": [*command],
                     "peer": None if peer is None else [*peer],
                     "congestion_control": congestion_control}  # fmt: skip
            ours.send(json.dumps(asked).encode())
            _add_ports(relay, ours)
            result = _run(relay, ours, limit_s, on_start, on_report)
        finally:
            ours.close()  # which ends everything that the holder has started
            try:
                holder.wait(ANSWER_S)
            except subprocess.TimeoutExpired:
                holder.kill()
                holder.wait()
    return result


def _add_ports(relay: _core.Relay, ours: socket.socket) -> None:
    """Takes the packet sockets of the namespaces over."""
    message, descriptors = _receive(ours, ANSWER_S, descriptors=2)
    if message is None or "failed" in message:
        step, number = (message or {}).get("failed", "start"), (message or {}).get("errno", 0)
        raise UserError(_explain(step, number))
    for port, descriptor in zip(message["ports"], descriptors, strict=True):
        way = _core.DataDirection
        side = way.forward if port["program"] == "peer" else way.backward
        host = [*bytes.fromhex(port["host"])]
        relay.add_packet_port(0, side, descriptor, port["interface"], host)


def _run(
    relay: _core.Relay,
    ours: socket.socket,
    limit_s: float,
    on_start: Callable[[], None] | None,
    on_report: Callable[[RelayReport], None] | None,
) -> LinkResult:
    ticks = CpuTicks.now()

    def report() -> RelayReport:
        return make_report(relay.report(), CpuTicks.now().stolen_percent_since(ticks))

    ready, _ = _receive(ours, namespaces.PEER_WAIT_S + ANSWER_S)
    if ready is None:
        raise UserError("the process that holds the namespaces does not answer; try again")
    if on_start is not None:
        on_start()
    relay.start()
    try:
        ours.send(json.dumps({"start": True}).encode())
        deadline = time.monotonic() + limit_s
        ended = None
        while ended is None and (left := deadline - time.monotonic()) > 0:
            ended, _ = _receive(ours, min(left, REPORT_S))
            if ended is None and on_report is not None:
                on_report(report())
        timed_out = ended is None
        if ended is None:
            ours.send(json.dumps({"end": True}).encode())
            ended, _ = _receive(ours, ANSWER_S)
    finally:
        relay.stop()
    if ended is None:
        raise UserError("the process that held the namespaces has ended before the command")
    status = ended["status"]
    if timed_out or status is None:
        status = 124
    elif status < 0:
        status = 128 - status
    return LinkResult(status, timed_out, ended["peer_status"], report())


def _receive(
    ours: socket.socket, wait_s: float, descriptors: int = 0
) -> tuple[dict[str, Any] | None, list[int]]:
    """Returns the holder's next message with its descriptors; None where there is none in time.

    Raises:
        UserError: The holder has ended.
    """
    if not select.select([ours], [], [], wait_s)[0]:
        return None, []
    try:
        text, received, _, _ = socket.recv_fds(ours, 1 << 16, descriptors)
    except ConnectionResetError:  # it was killed before it had read everything
        text = b""
    if not text:
        raise UserError("the process that held the namespaces has ended before the command")
    return json.loads(text), received


def _has_capabilities(*numbers: int) -> bool:
    """Whether this process has all of these, see capabilities(7)."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("CapEff:"):
            effective = int(line.split()[1], 16)
            return all(effective >> number & 1 for number in numbers)
    return False


SETTINGS = {
    "/proc/sys/kernel/unprivileged_userns_clone": ("0", "kernel.unprivileged_userns_clone=1"),
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": (
        "1",
        "kernel.apparmor_restrict_unprivileged_userns=0",
    ),
    "/proc/sys/user/max_user_namespaces": ("0", "user.max_user_namespaces=10000"),
    "/proc/sys/user/max_net_namespaces": ("0", "user.max_net_namespaces=10000"),
    "/proc/sys/user/max_pid_namespaces": ("0", "user.max_pid_namespaces=10000"),
    "/proc/sys/user/max_mnt_namespaces": ("0", "user.max_mnt_namespaces=10000"),
}
"""File -> the content with which a system refuses, and what `sysctl` is to be given."""


def _explain(step: str, number: int) -> str:
    """Returns which step the system refused, why as far as it tells, and what to do."""
    what = f"the system refuses to {step} ({os.strerror(number)})"
    for file, (refusing, setting) in SETTINGS.items():
        try:
            if Path(file).read_text(encoding="ascii").strip() == refusing:
                return f"{what}: {file} is {refusing}; run `sudo sysctl -w {setting}`, or use root"
        except OSError:
            continue
    if number == errno.EOPNOTSUPP:
        return f"{what}: the kernel has no virtual Ethernet; run `sudo modprobe veth`"
    if number == errno.EPERM:
        return (
            f"{what}: a container or a security module forbids it; use root, and in a container "
            "give it the capabilities NET_ADMIN and SYS_ADMIN (docker run --cap-add)"
        )
    return f"{what}; use root, or look into the kernel's log"
