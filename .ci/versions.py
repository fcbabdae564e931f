"""Runs `make test` with other versions: `python .ci/versions.py oldest`; see COMBINATIONS.

Each has an environment of its own in build/versions, and quicgym is built there anew. Prints a
line with the combination, its versions, and pytest's last line; ends with 1 where a test fails.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from shutil import rmtree, which

from requirements import requirements

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build/versions"
EXTRAS = ["multi", "ns3gym", "real", "reports"]
TOOLS = [
    "hypothesis>=6.100", "pytest>=8.2", "pytest-xdist>=3.5", "safetensors>=0.4",
]  # fmt: skip
"""Packages of the extra `dev` that the tests themselves need; their versions are the newest."""
BUILD_TOOLS = ("cmake", "ninja")
"""Their packages do not have each version; the system's are as good."""
# The Python, the compiler, and whether each requirement has the oldest version that is allowed.
COMBINATIONS = {
    "oldest": ("python3.11", "g++", True),
    "newest": ("python3.11", "g++", False),
    "clang": ("python3.11", "clang++", False),
    "python3.12": ("python3.12", "g++", False),
    "python3.13": ("python3.13", "g++", False),
    "python3.14": ("python3.14", "g++", False),
}


def wanted(oldest: bool) -> list[str]:
    """What is installed: bounds as they are, or each lower bound as the only version."""
    listed = sorted(requirements(EXTRAS))
    if oldest:
        listed = [
            entry if entry.startswith(BUILD_TOOLS) else re.sub(r">=([\d.]+).*", r"==\1", entry)
            for entry in listed
        ]
    return [*listed, *TOOLS]


def run(*command: str | Path, **environment: str) -> None:
    """Runs a command, which is not to fail."""
    subprocess.run([*map(str, command)], cwd=ROOT, env={**os.environ, **environment}, check=True)


def test(name: str, arguments: list[str]) -> int:
    """Builds a combination and runs the tests; returns pytest's status."""
    python, compiler, oldest = COMBINATIONS[name]
    folder = FOLDER / name
    rmtree(folder, ignore_errors=True)
    run(which(python) or python, "-m", "venv", folder)
    binaries = folder / "bin"
    pip = [binaries / "pip", "--quiet", "--disable-pip-version-check", "install"]
    run(*pip, *wanted(oldest))
    run(
        *pip, "--no-build-isolation", "--no-deps",
        "--config-settings", f"build-dir={folder}/objects", ROOT,
        CXX=compiler, PATH=f"{binaries}:{os.environ['PATH']}",
    )  # fmt: skip
    run(*pip, "--no-build-isolation", "--no-deps", ROOT / "real/aioquic")
    frozen = subprocess.run([binaries / "pip", "freeze"], capture_output=True, text=True).stdout
    tests = subprocess.run(
        [
            binaries / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider",
            "-m", "not long and not train and not ns3", *arguments,
        ],
        cwd=ROOT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    print(tests.stdout[-8000:])
    versions = " ".join(line for line in frozen.splitlines() if line.count("==") == 1)
    summary = re.findall(r"^.*\d+ (?:passed|failed|error).*$", tests.stdout, re.MULTILINE)
    print(f"{name}: {compiler}, {versions}: {summary[-1] if summary else 'no tests were run'}")
    return tests.returncode


if __name__ == "__main__":
    names = [name for name in sys.argv[1:] if name in COMBINATIONS] or [*COMBINATIONS]
    others = [argument for argument in sys.argv[1:] if argument not in COMBINATIONS]
    sys.exit(max([test(name, others) for name in names]))
