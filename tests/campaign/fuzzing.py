"""Coverage-guided fuzzing: the targets of tests/fuzz, under AddressSanitizer and UBSan.

They are libFuzzer programs, which clang builds in build/fuzz. The inputs that reach something new
stay in build/fuzz/found, and the next run begins with them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from shutil import which

from fuzz.make_corpus import write_corpus

from campaign.found import Found, one_line

SOURCE = Path("tests/fuzz")
BUILD = Path("build/fuzz")
_LONGEST_S = 25
"""An input that takes longer is a failure; on a busy machine it may well take a second."""
_MOST_MEMORY_MIB = 2048
_ENVIRONMENT = {"ASAN_OPTIONS": "detect_leaks=1"}


def targets() -> list[str]:
    """Returns the names of all, which are those of their files and folders in the corpus."""
    return sorted(path.stem for path in SOURCE.glob("*.cpp") if path.stem != "replay")


def _program(name: str) -> str | None:
    """Where a program is; Python packages bring some of them."""
    return which(name) or which(name, path=str(Path(sys.executable).parent))


def build() -> None:
    """Builds the targets; an error has the end of what the compiler says."""
    cmake = str(_program("cmake"))
    configure = [cmake, "-S", str(SOURCE), "-B", str(BUILD), "-DCMAKE_CXX_COMPILER=clang++"]
    for command in (configure, [cmake, "--build", str(BUILD)]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(
                f"{' '.join(command)}: {one_line((done.stdout + done.stderr)[-300:])}"
            )


def fuzz(target: str, seeds: range, budget_s: float) -> Found:
    """Fuzzes a target in one process for each seed, all with the same growing corpus."""
    write_corpus(BUILD / "corpus")
    found_inputs, failing = BUILD / "found" / target, BUILD / "failures"
    for folder in (found_inputs, failing):
        folder.mkdir(parents=True, exist_ok=True)
    processes = [
        subprocess.Popen(
            [
                str(BUILD / target), f"-seed={seed}", f"-max_total_time={max(1, round(budget_s))}",
                f"-timeout={_LONGEST_S}", f"-rss_limit_mb={_MOST_MEMORY_MIB}", "-max_len=4096",
                "-print_final_stats=1", f"-artifact_prefix={failing}/{target}-",
                str(found_inputs), str(BUILD / "corpus" / target),
            ],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
            env={**os.environ, **_ENVIRONMENT},
        )
        for seed in seeds
    ]  # fmt: skip
    found = Found()
    for seed, process in zip(seeds, processes, strict=True):
        _, said = process.communicate()
        found.add(_read(target, seed, process.returncode, said))
    return found


def _read(name: str, seed: int, status: int, said: str) -> Found:
    executions = re.findall(r"^stat::number_of_executed_units: +(\d+)", said, re.MULTILINE)
    executions = executions or re.findall(r"^#(\d+)\t", said, re.MULTILINE)
    found = Found({f"executions of {name}": int(executions[-1])} if executions else {})
    if status != 0:
        wrong = re.search(
            r"does not hold.*|.*runtime error.*|.*ERROR: \w+Sanitizer.*|.*ERROR: libFuzzer.*",
            said,
        )
        kept = re.search(r"Test unit written to (\S+)", said)
        where = kept.group(1) if kept else "no input was kept"
        text = one_line(wrong.group() if wrong else said[-300:])
        found.failures.append(f"{seed}: {name}: {text} ({where})")
    return found


def run(first: int, until: float, jobs: int) -> Found:
    """Fuzzes all targets, the seeds beginning with `first`; each has an equal part of the time."""
    build()
    # libFuzzer takes 0 for "any seed".
    seeds = range(first + 1, first + 1 + jobs)
    found, those = Found(), targets()
    for left, target in zip(range(len(those), 0, -1), those, strict=True):
        found.add(fuzz(target, seeds, (until - time.monotonic()) / left))
    return found


def missing() -> str | None:
    """Returns what this machine lacks, if anything."""
    programs = [name for name in ("clang++", "cmake") if _program(name) is None]
    if programs:
        return f"{' and '.join(programs)} is not installed; `apt-get install clang libclang-rt-dev`"
    return None
