"""`quicgym link`: kernel TCP behind a scenario's network, as a user runs it."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helpers.processes import left_after, marked, only_child

from quicgym import _core
from quicgym.cli import spread
from quicgym.envs.scenarios.files import load_scenario
from quicgym.errors import UserError
from quicgym.real import RelayReport, namespaces, run_link

SERVER = """
import os, socket
with socket.create_server((os.environ["QUICGYM_ADDRESS"], 7000)) as listening:
    connection, _ = listening.accept()
    with connection:
        size = int(connection.recv(16))
        connection.sendall(bytes(i % 251 for i in range(size)))
"""
CLIENT = """
import os, socket, sys, time
size = int(sys.argv[1])
began = time.monotonic()
with socket.create_connection((os.environ["QUICGYM_PEER"], 7000), timeout=20) as connection:
    round_trip_ms = 1e3 * (time.monotonic() - began)
    connection.sendall(b"%016d" % size)
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
content = b"".join(parts)
assert content == bytes(i % 251 for i in range(size)), len(content)
print("whole" if round_trip_ms > 100 else round_trip_ms, flush=True)
sys.exit(17)
"""
SIZE = 300_000
SHELL = ("env", "-u", "LD_PRELOAD", "sh", "-c")
"""A sanitizer's library, which quicgym needs, ends a shell."""
CAP_NET_ADMIN, CAP_SYS_ADMIN = 12, 21
PR_CAPBSET_DROP = 24


@functools.cache
def refusal() -> str:
    """Why this system gives us no namespaces; empty: it does."""
    if not hasattr(_core, "Relay"):
        return "needs Linux"
    try:
        run_link("ebcc-single", ["true"], peer=["true"])
    except UserError as error:
        return str(error)
    return ""


@pytest.fixture
def _namespaces() -> None:
    if reason := refusal():
        pytest.skip(reason)


def link(
    *arguments: str, before: Callable[[], object] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs `quicgym link ebcc-single`."""
    return subprocess.run(
        [sys.executable, "-m", "quicgym_start", "link", "ebcc-single", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=before,
    )


def drop_privileges() -> None:
    """What root can do beyond a user, for namespaces, is gone after the next program begins."""
    libc = ctypes.CDLL(None)
    for capability in (CAP_NET_ADMIN, CAP_SYS_ADMIN):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


def download(before: Callable[[], object] | None = None) -> subprocess.CompletedProcess[str]:
    server = f"{sys.executable} -c '{SERVER}'"
    return link("--peer", server, "--", sys.executable, "-c", CLIENT, str(SIZE), before=before)


def check_download(done: subprocess.CompletedProcess[str]) -> None:
    """Whole, with the command's exit status, and a summary that says what passed."""
    assert (done.returncode, done.stdout) == (17, "whole\n"), done.stderr
    delivered = re.search(r"forward: (\d+) of \d+ packets delivered", done.stderr)
    assert delivered and int(delivered[1]) > SIZE / 1428
    assert re.search(r"backward: \d+ of \d+ packets delivered", done.stderr)
    assert re.search(r"lateness: p50 [\d.]+ ms, p99 [\d.]+ ms", done.stderr)
    # A busy machine makes packets late and takes CPU time; nothing else is wrong with this link.
    verdict = re.search(r"audit: (valid$|INVALID: .*)", done.stderr, re.M)
    assert verdict, done.stderr
    assert not re.search(r"no packet|dropped|socket errors|above|was set", verdict[1]), verdict[1]


@pytest.mark.usefixtures("_namespaces")
def test_a_download_is_whole_and_takes_the_links_delay() -> None:
    check_download(download())


def test_a_user_without_privileges_can_do_it() -> None:
    done = download(drop_privileges)
    if "the system refuses to" in done.stderr:
        pytest.skip(done.stderr.strip())
    check_download(done)


@pytest.mark.usefixtures("_namespaces")
def test_the_time_limit_ends_all_that_was_started() -> None:
    shell = "sleep 1000 & echo $!; setsid sleep 1000 & echo $!"
    command = [*SHELL, f"{shell}; sleep 1000"]
    done = link("--limit-s", "2", "--peer", shlex.join([*SHELL, shell]), "--", *command)
    assert done.returncode == 124, done.stderr
    assert "time limit of 2 s" in done.stderr
    processes = done.stdout.split()
    assert len(processes) == 4
    assert marked(mark()) == []


def mark() -> str:
    """What the environment of all processes has that the current test starts."""
    return f"PYTEST_CURRENT_TEST={os.environ['PYTEST_CURRENT_TEST']}"


@contextlib.contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A `quicgym link ebcc-single` in a session of its own, of which nothing is left."""
    with subprocess.Popen(
        [sys.executable, "-m", "quicgym_start", "link", "ebcc-single", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell lets what it runs in the background ignore Ctrl-C, this test too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


GOES_ON = ("--peer", "true", "--", *SHELL, "sleep 1000 & echo begun; exec sleep 1000")


@pytest.mark.usefixtures("_namespaces")
def test_ctrl_c_is_the_commands_and_quicgym_ends_with_it() -> None:
    with started(*GOES_ON) as process:
        assert process.stdout is not None
        process.stdout.readline()
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGINT
    assert "quicgym link: audit:" in errors


@pytest.mark.usefixtures("_namespaces")
def test_ctrl_c_before_the_peer_is_there_ends_the_link() -> None:
    peer = shlex.join([*SHELL, "echo waiting; exec sleep 1000"])
    with started("--peer", peer, "--", "echo", "the command has run") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=20)
    assert (process.returncode, output) == (128 + signal.SIGINT, "")
    assert marked(mark()) == []


@pytest.mark.usefixtures("_namespaces")
@pytest.mark.parametrize("generations", [0, 1, 2])
def test_nothing_is_left_when_a_process_is_killed(generations: int) -> None:
    # quicgym, its child, or that one's child, which is the first process of the namespace.
    with started(*GOES_ON) as process:
        assert process.stdout is not None
        process.stdout.readline()
        number: int | None = process.pid
        for _ in range(generations):
            assert number is not None
            number = only_child(number)
        assert number is not None
        os.kill(number, signal.SIGKILL)
        _, errors = process.communicate(timeout=20)
    if generations > 0:
        assert process.returncode == 2
        assert "has ended before the command" in errors
    assert left_after(mark(), 20) == []


def test_the_holder_ends_quietly_when_quicgym_was_killed_with_messages_unread() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    messages = namespaces.Messages(theirs.detach())
    messages.send({"ports": []})
    ours.close()
    messages.send({"status": 0})  # ECONNRESET, where nothing was unread EPIPE
    assert messages.receive() == {"end": True}


@pytest.mark.usefixtures("_namespaces")
def test_programs_have_standard_streams_and_process_numbers_of_their_own() -> None:
    files = "ls -l /proc/self/fd; echo $PPID"
    done = link("--peer", shlex.join([*SHELL, files]), "--", *SHELL, f"sleep 1; {files}")
    assert done.returncode == 0, done.stderr
    assert "socket:" not in done.stdout
    assert re.findall(r"^\d+$", done.stdout, re.M) == ["1", "1"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.usefixtures("_namespaces")
def test_two_links_to_this_machine_have_networks_of_their_own() -> None:
    ask = """if True:
        import os, socket
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as host:
            host.settimeout(20)
            host.sendto(b"ask", (os.environ["QUICGYM_PEER"], int(input())))
            print(os.environ["QUICGYM_PEER"], host.recv(100).decode(), flush=True)
            input()
    """
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server,
        started("--", sys.executable, "-c", ask) as first,
        started("--", sys.executable, "-c", ask) as second,
    ):
        server.bind(("", 0))
        server.settimeout(20)
        peers = set()
        for process in (first, second):
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(f"{server.getsockname()[1]}\n")
            process.stdin.flush()
            question, asking = server.recvfrom(100)
            server.sendto(b"answer", asking)
            peer, answer = process.stdout.readline().split()
            peers.add(peer)
            assert (question, answer) == (b"ask", "answer")
        assert len(peers) == 2
        for process in (first, second):
            _, errors = process.communicate("end\n", timeout=20)
            assert process.returncode == 0, errors


MARKED = """
import os, socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as host:
    host.bind((os.environ["QUICGYM_ADDRESS"], 7000))
    _, other = host.recvfrom(100)
    host.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 1)
    for _ in range(40):
        host.sendto(bytes(1400), other)
    host.recv(100)
"""
MARKS = """
import os, socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as host:
    host.settimeout(20)
    host.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
    host.sendto(b"go", (os.environ["QUICGYM_PEER"], 7000))
    codepoints = [host.recvmsg(2048, 64)[1][0][2][0] & 3 for _ in range(40)]
raise SystemExit(0 if (codepoints[0], codepoints[20]) == (1, 3) else f"{codepoints}")
"""


@pytest.mark.usefixtures("_namespaces")
def test_a_queues_marks_are_in_the_ip_headers() -> None:
    # DualPI2's L4S queue marks what has waited for more than 1.2 ms (RFC 9332, appendix A). The
    # kernel drops a packet whose header's checksum is wrong.
    scenario = load_scenario("ebcc-single")
    bottleneck = scenario.bottleneck
    assert bottleneck is not None
    queue = bottleneck.queue.model_copy(update={"discipline": "dualpi2"})
    scenario = scenario.model_copy(
        update={"bottleneck": bottleneck.model_copy(update={"queue": queue})}
    )
    python = [sys.executable, "-c"]
    result = run_link(scenario, [*python, MARKS], peer=[*python, MARKED], limit_s=30)
    assert result.exit_status == 0
    assert result.report.forward.delivered_packets == 40


@pytest.mark.usefixtures("_namespaces")
@pytest.mark.parametrize(
    ("command", "status"),
    [("sleep 0.5; exit 3", 3), ("sleep 0.5; kill -9 $$", 137), ("sleep 0.5; no-such-program", 127)],
)
def test_the_exit_status_is_the_commands(command: str, status: int) -> None:
    # The peer's status is known only where the peer ends first.
    result = run_link("ebcc-single", [*SHELL, command], peer=[*SHELL, "exit 5"])
    assert (result.exit_status, result.timed_out, result.peer_exit_status) == (status, False, 5)
    assert result.report.audit.problems[0] == "no packet left the relay"


@pytest.mark.usefixtures("_namespaces")
def test_a_program_that_is_not_there_has_the_status_of_shells() -> None:
    result = run_link("ebcc-single", ["no-such-program"], peer=[*SHELL, "exit 5"])
    assert (result.exit_status, result.timed_out) == (127, False)


@pytest.mark.usefixtures("_namespaces")
def test_reports_come_while_it_runs() -> None:
    reports: list[RelayReport] = []
    run_link("ebcc-single", ["sleep", "1.3"], peer=["true"], on_report=reports.append)
    assert reports
    assert reports[0].elapsed_s >= 1


def test_the_other_side_is_this_machine_for_root_only() -> None:
    done = link("--", "true", before=drop_privileges)
    assert done.returncode == 2
    assert "needs root; give --peer COMMAND" in done.stderr


def test_a_system_that_refuses_is_named_with_the_remedy() -> None:
    # In a user namespace that may have no network namespaces. A process that makes one has one
    # thread, so quicgym begins afterwards.
    prepare = """if True:
        import os, sys
        from pathlib import Path
        sys.path.insert(0, sys.argv[1])
        import namespaces
        try:
            namespaces.enter_user_namespace()
            Path("/proc/sys/user/max_net_namespaces").write_text("0")
        except (namespaces.StepError, OSError) as error:
            sys.exit(f"cannot prepare: {error}")
        os.execv(sys.executable, [sys.executable, "-m", "quicgym_start", *sys.argv[2:]])
    """
    folder = str(Path(namespaces.__file__).parent)
    command = ["link", "ebcc-single", "--peer", "true", "--", "true"]
    done = subprocess.run(
        [sys.executable, "-c", prepare, folder, *command], capture_output=True, text=True
    )
    if "cannot prepare" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert "refuses to make a network namespace (No space left on device)" in done.stderr
    assert "sudo sysctl -w user.max_net_namespaces=10000" in done.stderr


def test_the_commands_arguments_are_left_alone() -> None:
    arguments = ["link", "x", "--", "other", "--scenario", "a", "b"]
    assert spread(arguments) == arguments
