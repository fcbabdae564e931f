"""Holds the network namespaces of `quicgym link`, and runs the programs in them.

A program by itself: `quicgym.real.link` runs this file with the number of a Unix socket. Whoever
makes a user namespace must have one thread only, and NumPy's threads belong to quicgym. So this
file uses the standard library alone.

There is a network namespace for each program, and one for the relay's ends. A virtual Ethernet
leads from each program's into the relay's. Nothing answers there: packet sockets take what comes
in, and go to the relay over the Unix socket.

The programs are in a process namespace, whose first process starts them. With that process
everything in the namespace ends, and it ends with the process that quicgym has started.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import errno
import fcntl
import json
import os
import select
import signal
import socket
import struct
import sys
import time
from pathlib import Path
from typing import Any

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 0x10000000, 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_SLAVE = 0x2, 0x4, 0x8, 0x4000, 0x80000
PR_SET_PDEATHSIG = 1
SIOCSIFFLAGS, SIOCSIFADDR, SIOCSIFNETMASK = 0x8914, 0x8916, 0x891C
SIOCSIFMTU, SIOCGIFHWADDR, SIOCETHTOOL = 0x8922, 0x8927, 0x8946
IFF_UP, IFF_RUNNING, IFF_NOARP = 0x1, 0x40, 0x80
ETHTOOL_OFF = {
    "tx-checksum": 0x17, "scatter-gather": 0x19, "tso": 0x1F, "gso": 0x24, "gro": 0x2C,
}  # fmt: skip
"""Offloads to switch off on the program's side: the relay must see each packet as on a wire."""
RTM_NEWLINK, RTM_NEWROUTE = 16, 24
NLM_F_REQUEST, NLM_F_ACK, NLM_F_EXCL, NLM_F_CREATE = 0x1, 0x4, 0x200, 0x400
IFLA_IFNAME, IFLA_LINKINFO, IFLA_NET_NS_FD = 3, 18, 28
IFLA_INFO_KIND, IFLA_INFO_DATA, VETH_INFO_PEER = 1, 2, 1
RTA_DST, RTA_OIF, RTA_METRICS, RTAX_CC_ALGO = 1, 4, 8, 16
RT_TABLE_MAIN, RTPROT_STATIC, RT_SCOPE_LINK, RTN_UNICAST = 254, 4, 253, 1

FIRST_ADDRESS, LINKS = 0xC6120000, 1 << 15
"""198.18.0.0/15, which RFC 2544 reserves for measurements: four addresses for each link."""
DEVICE = "quicgym"
PEER_WAIT_S = 5.0
"""How long the command waits for a socket of the peer to be there."""
GRACE_S = 2.0
"""Between SIGTERM and SIGKILL."""

libc = ctypes.CDLL(None, use_errno=True)


class StepError(Exception):
    """A step that the system refused: which one, and its errno."""

    def __init__(self, step: str, error: OSError) -> None:
        """Takes both."""
        super().__init__(step, error.errno)
        self.step = step
        self.errno = error.errno or 0


def call(step: str, function: str, *arguments: int | bytes | None) -> None:
    """Calls a function of the C library; StepError where it fails."""
    if getattr(libc, function)(*arguments) != 0:
        raise StepError(step, OSError(ctypes.get_errno(), function))


def enter_user_namespace() -> None:
    """Becomes root of a new user namespace, like `unshare --map-root-user`."""
    user, group = os.geteuid(), os.getegid()
    call("make a user namespace", "unshare", CLONE_NEWUSER)
    try:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    except OSError as error:
        raise StepError("map the user into the user namespace", error) from error


def namespace() -> int:
    """Returns a file descriptor of the network namespace that the process is in."""
    return os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def new_namespace() -> int:
    """Enters a new network namespace and returns its file descriptor."""
    call("make a network namespace", "unshare", CLONE_NEWNET)
    return namespace()


def enter(descriptor: int) -> None:
    """Enters a network namespace."""
    call("enter a network namespace", "setns", descriptor, CLONE_NEWNET)


def attribute(kind: int, content: bytes) -> bytes:
    """Returns a netlink attribute, see netlink(7)."""
    length = 4 + len(content)
    return struct.pack("=HH", length, kind) + content + bytes(-length % 4)


def ask_kernel(step: str, kind: int, flags: int, body: bytes) -> None:
    """Sends a request over rtnetlink(7); StepError where the kernel refuses it."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as link:
        flags |= NLM_F_REQUEST | NLM_F_ACK
        link.send(struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0) + body)
        status = -struct.unpack_from("=i", link.recv(65536), 16)[0]
    if status != 0:
        raise StepError(step, OSError(status, os.strerror(status)))


def make_virtual_ethernet(name: str, far_name: str, far_namespace: int) -> None:
    """Makes a pair of devices, one here and one in another namespace."""
    interface = bytes(16)
    far = interface + attribute(IFLA_IFNAME, far_name.encode() + b"\0")
    far += attribute(IFLA_NET_NS_FD, struct.pack("=I", far_namespace))
    info = attribute(IFLA_INFO_KIND, b"veth")
    info += attribute(IFLA_INFO_DATA, attribute(VETH_INFO_PEER, far))
    body = interface + attribute(IFLA_IFNAME, name.encode() + b"\0")
    body += attribute(IFLA_LINKINFO, info)
    ask_kernel("make a virtual Ethernet", RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, body)


def route(name: str, destination: str | None, congestion_control: str | None) -> None:
    """Sends packets to an address over a device; None: to every address without another route.

    The kernel gives TCP connections over a route the controller that is set for it.
    """
    bits = 0 if destination is None else 32
    header = struct.pack(
        "=BBBBBBBBI", socket.AF_INET, bits, 0, 0, RT_TABLE_MAIN, RTPROT_STATIC, RT_SCOPE_LINK,
        RTN_UNICAST, 0,
    )  # fmt: skip
    body = header + attribute(RTA_OIF, struct.pack("=I", socket.if_nametoindex(name)))
    if destination is not None:
        body += attribute(RTA_DST, socket.inet_aton(destination))
    if congestion_control is not None:
        metric = attribute(RTAX_CC_ALGO, congestion_control.encode() + b"\0")
        body += attribute(RTA_METRICS, metric)
    ask_kernel("set a route", RTM_NEWROUTE, NLM_F_CREATE, body)


def control(name: str, request: int, content: bytes) -> bytes:
    """Does an ioctl on a device, see netdevice(7); returns what follows the name."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        asked = struct.pack("16s24s", name.encode(), content)
        return fcntl.ioctl(any_socket, request, asked)[16:]


def addresses(link: int) -> dict[str, str]:
    """Returns the programs' addresses on the link of this number."""
    first = FIRST_ADDRESS + 4 * link
    return {
        program: socket.inet_ntoa(struct.pack("!I", first + host))
        for host, program in enumerate(("peer", "command"), start=1)
    }


def internet_address(address: str) -> bytes:
    """Returns a sockaddr_in without a port."""
    return struct.pack("=HH4s8x", socket.AF_INET, 0, socket.inet_aton(address))


def set_up(name: str, mtu: int | None = None) -> None:
    """Brings a device up, without ARP: at its other end nobody would answer."""
    if mtu is not None:
        control(name, SIOCSIFMTU, struct.pack("=i", mtu))
    flags = IFF_UP | IFF_RUNNING | (0 if name == "lo" else IFF_NOARP)
    control(name, SIOCSIFFLAGS, struct.pack("=H", flags))


def set_up_program_end(name: str, address: str, mtu: int) -> str:
    """Gives the device of a program its address; returns its hardware address."""
    for command in ETHTOOL_OFF.values():
        value = array.array("I", [command, 0])
        place = struct.pack("P", value.buffer_info()[0])
        try:
            control(name, SIOCETHTOOL, place)
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise
    control(name, SIOCSIFADDR, internet_address(address))
    control(name, SIOCSIFNETMASK, internet_address("255.255.255.252"))
    set_up(name, mtu)
    return control(name, SIOCGIFHWADDR, b"")[2:8].hex()


class Namespaces:
    """The namespaces, and the sockets on the relay's ends."""

    def __init__(self, mtu: int, *, with_peer: bool, congestion_control: str | None) -> None:
        """Makes all of it; StepError where the system refuses."""
        here = namespace()
        self.of_relay = new_namespace()
        self.of_program: dict[str, int] = {}
        link, hosts = 0, {}
        for program in ("peer", "command"):
            try:
                if program == "peer" and not with_peer:
                    enter(here)
                    self.of_program[program] = here
                    link = self._take_link()
                    name = f"{DEVICE}{link}"
                else:
                    self.of_program[program] = new_namespace()
                    name = DEVICE
                    make_virtual_ethernet(name, program, self.of_relay)
                hosts[program] = set_up_program_end(name, addresses(link)[program], mtu)
                if self.of_program[program] != here:
                    set_up("lo")
                    route(name, None, congestion_control)
                if congestion_control is not None:
                    far = "peer" if program == "command" else "command"
                    route(name, addresses(link)[far], congestion_control)
            except OSError as error:
                raise StepError("set up a virtual Ethernet", error) from error
        enter(self.of_relay)
        self.addresses = addresses(link)
        self.ports = []
        self.sockets = []
        for program, host in hosts.items():
            try:
                set_up(program, mtu)
                self.sockets.append(socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0))
            except OSError as error:
                raise StepError("make a packet socket", error) from error
            interface = socket.if_nametoindex(program)
            self.ports.append({"program": program, "interface": interface, "host": host})

    def _take_link(self) -> int:
        """Makes the device of the first link that this machine has none of; returns its number."""
        for link in range(LINKS - 1):
            try:
                make_virtual_ethernet(f"{DEVICE}{link}", "peer", self.of_relay)
                return link
            except StepError as error:
                if error.errno != errno.EEXIST:
                    raise
        make_virtual_ethernet(f"{DEVICE}{LINKS - 1}", "peer", self.of_relay)
        return LINKS - 1


def enter_process_namespace() -> None:
    """Becomes the first process of a new process namespace; the process that was waits for it."""
    call("make a process namespace", "unshare", CLONE_NEWPID | CLONE_NEWNS)
    process = os.fork()
    if process != 0:
        os.waitpid(process, 0)
        os._exit(0)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    step = "mount /proc"
    try:
        call(step, "mount", None, b"/", None, MS_REC | MS_SLAVE, None)
        call(step, "mount", b"proc", b"/proc", b"proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, None)
    except StepError as error:
        reason = os.strerror(error.errno)
        say(f"the system refuses to {step} ({reason}); /proc has the processes' numbers outside")


def say(text: str) -> None:
    """Prints to standard error."""
    print(f"quicgym link: {text}", file=sys.stderr, flush=True)


def start(program: str, arguments: list[str], namespaces: Namespaces) -> int:
    """Starts a program in its namespace; returns its process."""
    process = os.fork()
    if process != 0:
        return process
    try:
        enter(namespaces.of_program[program])
        other = "peer" if program == "command" else "command"
        os.environ["QUICGYM_ADDRESS"] = namespaces.addresses[program]
        os.environ["QUICGYM_PEER"] = namespaces.addresses[other]
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        os.execvp(arguments[0], arguments)
    except FileNotFoundError:
        say(f"{arguments[0]}: no such program")
        os._exit(127)
    except BaseException as error:
        say(f"{arguments[0]}: {error}")
        os._exit(126)


def has_open_socket() -> bool:
    """Whether a TCP socket listens, or a UDP socket is bound, in this process's namespace."""
    for table in ("tcp", "tcp6", "udp", "udp6"):
        try:
            lines = Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]
        except OSError:
            continue
        if any(table.startswith("udp") or line.split()[3] == "0A" for line in lines):
            return True
    return False


def end_all() -> None:
    """Ends all processes of the namespace but its first, this one, where orphans go."""
    number, deadline = signal.SIGTERM, time.monotonic() + GRACE_S
    while True:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, number)
        until = time.monotonic() + 0.1
        while time.monotonic() < until:
            try:
                if os.waitpid(-1, os.WNOHANG) == (0, 0):
                    time.sleep(0.005)
            except ChildProcessError:
                return
        if time.monotonic() >= deadline:
            number = signal.SIGKILL


class Messages:
    """The Unix socket to quicgym: JSON, one text for each message."""

    def __init__(self, descriptor: int) -> None:
        """Takes the socket over; no program that this one starts gets it."""
        self.socket = socket.socket(fileno=descriptor)
        self.socket.set_inheritable(False)

    def receive(self) -> dict[str, Any]:
        """Returns the next message; {"end": True} where quicgym has ended."""
        try:
            text = self.socket.recv(1 << 20)
        except ConnectionResetError:  # quicgym was killed before it had read everything
            text = b""
        message: dict[str, Any] = json.loads(text) if text else {"end": True}
        return message

    def send(self, message: dict[str, Any], sockets: list[socket.socket] | None = None) -> None:
        """Sends a message, with sockets."""
        descriptors = [each.fileno() for each in sockets or []]
        try:
            socket.send_fds(self.socket, [json.dumps(message).encode()], descriptors)
        except (BrokenPipeError, ConnectionResetError):
            pass


def run(messages: Messages) -> None:
    """Makes the namespaces, runs the programs, and ends all of them."""
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)  # a terminal's; they are the command's
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    asked = messages.receive()
    try:
        if not asked["as_root"]:
            enter_user_namespace()
        enter_process_namespace()
        namespaces = Namespaces(
            asked["mtu"],
            with_peer=asked["peer"] is not None,
            congestion_control=asked["congestion_control"],
        )
    except StepError as error:
        messages.send({"failed": error.step, "errno": error.errno})
        return
    messages.send({"ports": namespaces.ports}, namespaces.sockets)
    try:
        status = run_programs(messages, namespaces, asked["command"], asked["peer"])
        messages.send(status)
    finally:
        end_all()
    # The relay stops before its ends go away.
    while "end" not in messages.receive():
        continue


def run_programs(
    messages: Messages, namespaces: Namespaces, command: list[str], peer: list[str] | None
) -> dict[str, Any]:
    """Runs the programs until the command ends; returns what to tell quicgym."""
    waits: list[Any] = [messages.socket]
    peer_process = peer_exit = None
    if peer is not None:
        peer_process = start("peer", peer, namespaces)
        enter(namespaces.of_program["peer"])
        peer_exit = os.pidfd_open(peer_process)
        waits.append(peer_exit)
        deadline = time.monotonic() + PEER_WAIT_S
        while time.monotonic() < deadline and not has_open_socket():
            ready = select.select(waits, [], [], 0.02)[0]
            if messages.socket in ready:
                return {"status": None, "peer_status": None}
            if ready:
                break
    messages.send({"ready": True})
    if "end" in messages.receive():
        return {"status": None, "peer_status": None}
    process = start("command", command, namespaces)
    exited = os.pidfd_open(process)
    waits.append(exited)
    peer_status = None
    while True:
        ready = select.select(waits, [], [])[0]
        if exited in ready:
            status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
            return {"status": status, "peer_status": peer_status}
        if messages.socket in ready:
            return {"status": None, "peer_status": peer_status}
        if peer_exit in ready:
            assert peer_process is not None
            peer_status = os.waitstatus_to_exitcode(os.waitpid(peer_process, 0)[1])
            waits.remove(peer_exit)


if __name__ == "__main__":
    run(Messages(int(sys.argv[1])))
