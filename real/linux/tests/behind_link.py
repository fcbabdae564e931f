"""What several tests do with `quicgym link` and the kernel's list of controllers."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

TRANSFER = Path(__file__).parent / "transfer.py"
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
NETWORK = {
    "name": "network",
    "bottleneck": {"rate_mbps": 8.0, "delay_ms": 10.0, "queue": {"limit": 50}},
    "access": {"rate_mbps": 100.0, "delay_ms": 1.0},
    "duration_s": 5.0,
    "flows": [{"controller": "newreno"}],
}


def ours() -> list[str]:
    """The controllers of quicgym that the kernel has."""
    return [name for name in AVAILABLE.read_text().split() if name.startswith("qg")]


def link_command(folder: Path, controller: str, command: list[str], seconds: float) -> list[str]:
    """`quicgym link` with the sender of a transfer as its peer."""
    scenario = folder / "network.yaml"
    scenario.write_text(yaml.safe_dump(NETWORK), encoding="utf-8")
    peer = shlex.join([sys.executable, str(TRANSFER), "send", str(seconds)])
    return [
        sys.executable, "-m", "quicgym_start", "link", str(scenario), "--controller", controller,
        "--quiet", "--peer", peer, "--", *command,
    ]  # fmt: skip


def transfer(folder: Path, controller: str, seconds: float = 1.5) -> tuple[dict[str, Any], str]:
    """Carries a transfer; returns what the receiver and what the command has said."""
    command = link_command(folder, controller, [sys.executable, str(TRANSFER), "receive"], seconds)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr
