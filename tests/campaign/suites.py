"""Tests of the repository as parts of the campaign, for their figures: only by name."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Set
from importlib.util import find_spec
from pathlib import Path

from campaign.part import Found, Part, one_line
from quicgym.yaml_loader import parse_yaml

TESTS = Path("tests")
REQUIREMENTS = TESTS / "rfc_requirements.yaml"
FILES = (
    "cli/test_damaged_files.py", "cli/test_output_folder_in_use.py",
    "test_output_folders.py", "test_untrusted_files.py",
)  # fmt: skip
"""Of full disks, read-only folders, torn and damaged files."""
VERSIONS = (".ci/versions.py", ("oldest", "newest", "clang", "python3.12", "python3.13"))
_SUMMARY = re.compile(r"^.*\d+ (?:passed|failed|error).*$", re.MULTILINE)


def run_tests(what: str, names: list[str]) -> Found:
    """Runs tests; counts a run where all pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *names]
    return _result(what, subprocess.run(command, capture_output=True, text=True), what)


def _result(count: str, done: subprocess.CompletedProcess[str], what: str) -> Found:
    summary = _SUMMARY.findall(done.stdout)
    text = summary[-1] if summary else one_line((done.stdout + done.stderr)[-300:])
    passed = re.search(r"(\d+) passed", text)
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    found = Found(measured={f"{what}: tests passed": int(passed[1]) if passed else 0})
    if done.returncode == 0:
        found.counts[count] = 1
    else:
        found.failures.append(f"{what}: {text.strip(' =')} {' '.join(failed)}".strip())
    return found


def _requirements() -> Found:
    rows = parse_yaml(REQUIREMENTS.read_text(encoding="utf-8"))["requirements"]
    names = sorted({f"{TESTS}/{name}" for row in rows for name in row.get("tests", ())})
    found = run_tests("run of the tests of RFC requirements", names)
    found.measured["RFC requirements"] = len(rows)
    found.measured["RFC requirements with tests"] = sum("tests" in row for row in rows)
    found.measured["RFC requirements with a reason instead"] = sum("reason" in row for row in rows)
    return found


def _run_tests(first: int, until: float, jobs: int, wanted: Set[str]) -> tuple[Found, int]:
    found = _requirements()
    files = [f"{TESTS}/{name}" for name in FILES]
    found.add(run_tests("run of the tests of full disks and damaged files", files))
    return found, first + 1


def _run_versions(first: int, until: float, jobs: int, wanted: Set[str]) -> tuple[Found, int]:
    script, names = VERSIONS
    name = names[first % len(names)]
    done = subprocess.run([sys.executable, script, name], capture_output=True, text=True)
    return _result("combinations", done, name), first + 1


def _missing() -> str | None:
    if not REQUIREMENTS.is_file():
        return f"{REQUIREMENTS} is not here; run it in a checkout"
    return None if find_spec("pytest") else "pytest is not installed"


TESTS_PART = Part(
    name="tests",
    title="tests of RFC requirements, and of full disks, read-only folders and damaged files",
    goals={
        "run of the tests of RFC requirements": 1,
        "run of the tests of full disks and damaged files": 1,
    },
    share=0.0,
    run=_run_tests,
    missing=_missing,
)
VERSIONS_PART = Part(
    name="versions",
    title="core tests with oldest and newest packages, Python 3.12 and 3.13, and clang",
    goals={"combinations": len(VERSIONS[1])},
    share=0.0,
    run=_run_versions,
    missing=_missing,
)
