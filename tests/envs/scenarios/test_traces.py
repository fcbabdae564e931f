"""Traces are parsed once, however many episodes ask for them."""

from __future__ import annotations

from io import BufferedReader
from pathlib import Path

import pytest

from quicgym.envs.scenarios import traces
from quicgym.envs.scenarios.traces import read_mahimahi, trace_digest


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that were read, in order."""
    found: list[Path] = []
    open_input = traces.open_input

    def counted(path: Path, most_bytes: int) -> BufferedReader:
        found.append(path)
        return open_input(path, most_bytes)

    monkeypatch.setattr(traces, "open_input", counted)
    return found


def test_a_trace_is_parsed_once_and_again_when_it_has_changed(
    tmp_path: Path, reads: list[Path]
) -> None:
    path = tmp_path / "rates.trace"
    path.write_text("1\n2\n")
    first = trace_digest(path)
    assert (read_mahimahi(path), trace_digest(path), reads) == ([1, 2], first, [path])
    path.write_text("1\n2\n3\n")
    assert read_mahimahi(path) == [1, 2, 3]
    assert trace_digest(path) != first
    assert reads == [path, path]


def test_what_a_caller_does_to_the_times_does_not_reach_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "rates.trace"
    path.write_text("1\n2\n")
    read_mahimahi(path).clear()
    assert read_mahimahi(path) == [1, 2]


def test_the_digest_is_of_the_times_alone(tmp_path: Path) -> None:
    plain, commented = tmp_path / "plain.trace", tmp_path / "commented.trace"
    plain.write_text("1\n2\n")
    commented.write_text("# Mbps\n1\n2\n")
    assert trace_digest(plain) == trace_digest(commented)
