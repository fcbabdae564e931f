"""Checks what a system needs so that the kernel's TCP takes controllers, and names remedies."""

from __future__ import annotations

import errno
import platform
import re
from pathlib import Path

from quicgym.errors import UserError

OLDEST_KERNEL = (6, 10)
"""`cong_control` of struct tcp_congestion_ops has four arguments since then."""
BTF = Path("/sys/kernel/btf/vmlinux")
STATUS = Path("/proc/self/status")
CAP_NET_ADMIN, CAP_SYS_ADMIN, CAP_PERFMON, CAP_BPF = 12, 21, 38, 39
CAPABILITIES = {"CAP_BPF": CAP_BPF, "CAP_NET_ADMIN": CAP_NET_ADMIN, "CAP_PERFMON": CAP_PERFMON}
MEANT_BY_SYS_ADMIN = ("CAP_BPF", "CAP_PERFMON")
"""CAP_SYS_ADMIN stands for these, see capabilities(7)."""


def check_system(release: str | None = None, btf: Path = BTF, status: Path = STATUS) -> None:
    """Returns where the kernel's TCP takes controllers from this process.

    Args:
        release: Kernel's release, such as "6.12.4-arch1". None: that of the running kernel.
        btf: File with the types of the running kernel.
        status: File with the capabilities of this process.

    Raises:
        UserError: Something is missing; the text names it and the remedy.
    """
    release = platform.release() if release is None else release
    numbers = re.match(r"(\d+)\.(\d+)", release)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < OLDEST_KERNEL:
        raise UserError(
            f"the kernel is {release}, and controllers in its TCP need Linux "
            f"{OLDEST_KERNEL[0]}.{OLDEST_KERNEL[1]} or newer; without one, `quicgym run` and "
            "`quicgym real` have the same controllers over QUIC"
        )
    if not btf.exists():
        raise UserError(
            f"{btf} is not there, which says where the kernel's structures have their members; "
            "take a kernel with CONFIG_DEBUG_INFO_BTF=y, as those of the distributions have, and "
            "in a container mount /sys"
        )
    missing = missing_capabilities(status)
    if missing:
        raise UserError(
            f"this process lacks {', '.join(missing)}; run the command with sudo, and a container "
            f"with {' '.join(f'--cap-add {name[4:]}' for name in CAPABILITIES)}"
        )


def missing_capabilities(status: Path = STATUS) -> list[str]:
    """Returns the names of the capabilities that the process needs and does not have.

    Args:
        status: File with the capabilities of this process.
    """
    found = re.search(r"^CapEff:\s*([0-9a-f]+)$", status.read_text(encoding="ascii"), re.MULTILINE)
    effective = int(found[1], 16) if found else 0
    is_admin = bool(effective >> CAP_SYS_ADMIN & 1)
    return [
        name
        for name, number in CAPABILITIES.items()
        if not effective >> number & 1 and not (is_admin and name in MEANT_BY_SYS_ADMIN)
    ]


def explain(error: OSError, controller: str) -> UserError:
    """Returns what to tell of a program that the kernel has refused.

    Args:
        error: Error of the loader, whose text has the messages of libbpf and of the verifier.
        controller: Name of the controller.
    """
    text = str(error.strerror or error).strip()
    if error.errno in (errno.EPERM, errno.EACCES) and "verifier" not in text.lower():
        remedy = "a security module or a container forbids it; look into the kernel's log"
    elif error.errno == errno.ENOENT or "not found" in text:
        remedy = "the kernel lacks a function or a type; take one with CONFIG_TCP_CONG_CUBIC=y"
    else:
        remedy = "report it with the kernel's version"
    return UserError(f"controller {controller!r} does not load into the kernel: {text}; {remedy}")
