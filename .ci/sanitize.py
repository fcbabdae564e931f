"""Tests under sanitizers: `make sanitize`, or `make sanitize ARGS="threads -k reset"`; see PARTS.

quicgym is compiled for them and installed into build/, beside the real installation, so that a
sanitizer never slows that one down.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Part(NamedTuple):
    """What is compiled with which sanitizers, and pytest's arguments."""

    sanitizers: str
    arguments: list[str]
    ns3: bool = False


# Packets of real programs: the relay and `link`.
REAL = [
    "tests/real/test_relay.py", "tests/real/test_link.py", "tests/real/test_emulated_network.py",
    "tests/real/test_network_capsule.py",
]  # fmt: skip
# ThreadSanitizer is for the pool of threads behind a batch of episodes.
THREADS = [
    "tests/envs/test_vector_environment.py", "tests/envs/test_states.py",
    "-m", "not ns3 and not long and not train",
]  # fmt: skip
PARTS = {
    "core": Part(
        "address,undefined",
        [
            "tests/sim", "-m", "not ns3 and not long", "--ignore=tests/sim/test_ns3_host.py",
            "--ignore=tests/sim/test_wifi.py",
        ],
    ),
    # Bindings, environments, controllers and the ns-3 host.
    "all": Part(
        "address,undefined",
        [
            "-n", "auto", "tests/sim", "tests/controllers", "tests/envs",
            "-m", "not long and not train",
        ],
        ns3=(platform.system(), platform.machine()) == ("Linux", "x86_64"),
    ),
    "threads": Part("thread", THREADS),
    "real": Part("address,undefined", REAL),
    "real-threads": Part("thread", REAL),
}  # fmt: skip
# A sanitizer's own memory, and what it keeps of freed memory, are beyond the limits of these tests.
# In a forked process AddressSanitizer of gcc 12 waits for ever for the lock of its allocator if
# another thread had it, before any of our code runs.
LEFT_OUT = (
    "tests/sim/test_short_flows.py::test_thousands_of_flows_leave_no_more_behind_than_tens",
    "tests/real/test_relay.py::test_a_relay_takes_little_more_than_64_mib",
    "tests/real/test_relay.py::test_threads_and_forked_processes_do_not_hang[fork]",
)


def install(part: Part, target: Path) -> None:
    """Compiles and installs quicgym, and with it quicgym-ns3 where the part needs that."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    pip += ["--no-build-isolation", "--no-deps", "--upgrade", "--target", str(target)]
    pip += ["--config-settings", f"cmake.define.QUICGYM_SANITIZE={part.sanitizers}"]
    for project in (".", "./sim/ns3")[: 1 + part.ns3]:
        objects = target.with_name(target.name + ("-objects" if project == "." else "-objects-ns3"))
        subprocess.run([*pip, "--config-settings", f"build-dir={objects}", project], check=True)


def library(name: str) -> str:
    """Returns where the compiler has a library."""
    command = [os.environ.get("CXX", "g++"), f"-print-file-name={name}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def main(arguments: list[str]) -> int:
    """Runs a part's tests; returns pytest's exit status."""
    name = arguments.pop(0) if arguments and arguments[0] in PARTS else "core"
    part = PARTS[name]
    threads = part.sanitizers == "thread"
    target = ROOT / "build" / ("thread-sanitized" if threads else "sanitized")
    install(part, target)
    variables = {"PYTHONPATH": str(target)}
    if threads:
        variables |= {"LD_PRELOAD": library("libtsan.so"), "TSAN_OPTIONS": "exitcode=66"}
    else:  # leaks are Python's own
        libraries = f"{library('libasan.so')} {library('libubsan.so')}"
        variables |= {"LD_PRELOAD": libraries, "ASAN_OPTIONS": "detect_leaks=0"}
    # The installed host looks for ns-3 beside itself.
    if part.ns3 and (ns3 := find_spec("ns3")) and ns3.submodule_search_locations:
        variables["LD_LIBRARY_PATH"] = f"{ns3.submodule_search_locations[0]}/lib64"
    # -P: the folders envs/, real/ and so on are no packages of that name.
    pytest = [sys.executable, "-P", "-m", "pytest", "-p", "no:cacheprovider", *part.arguments]
    pytest += [word for test in LEFT_OUT for word in ("--deselect", test)]
    # ThreadSanitizer needs the usual places of memory.
    prefix = ["setarch", "-R"] if threads else []
    command = [*prefix, *pytest, *arguments]
    return subprocess.run(command, env=os.environ | variables).returncode


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main(sys.argv[1:]))
