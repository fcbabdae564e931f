"""Traces are found by path or by name, and parsed once, however many episodes ask for them."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import TextIO

import numpy as np
import pytest

from quicgym import ScenarioError, load_scenario, run
from quicgym.envs import load_distribution
from quicgym.envs.scenarios import traces
from quicgym.envs.scenarios.traces import read_mahimahi, trace_digest


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that were read, in order."""
    found: list[Path] = []
    times_of = traces._times_of

    def counted(path: Path, file: TextIO) -> array[int]:
        found.append(path)
        return times_of(path, file)

    monkeypatch.setattr(traces, "_times_of", counted)
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


# ---- drawn traces --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trace", "digest"),
    [
        ("lte:mean_mbps=6,duration_s=60,seed=0", "4357de036a297301"),
        ("lte:mean_mbps=24,duration_s=20,seed=1007", "db551ab8c29df7d9"),
        ("3g:mean_mbps=0.5,duration_s=20,seed=2000", "99cef90a0f0bc471"),
    ],
)
def test_a_drawn_trace_is_the_same_everywhere(trace: str, digest: str) -> None:
    """The suites' networks hang on it: NumPy has to draw what it drew when they were published."""
    assert trace_digest(Path(trace)).startswith(digest)


def test_a_drawn_trace_needs_no_file_and_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QUICGYM_TRACES", str(tmp_path))
    cellular = load_scenario("beyond-ebcc-cellular")
    assert cellular.bottleneck.trace == Path("lte:mean_mbps=6,duration_s=60,seed=0")
    assert cellular.files == []
    assert read_mahimahi(cellular.bottleneck.trace)[-1] == 60_000


@pytest.mark.parametrize(
    ("trace", "words"),
    [
        ("lte:mean_mbps=6", "is no drawn trace; write it as lte:mean_mbps=6,duration_s=60,seed=0"),
        ("3g:mean_mbps=0,duration_s=60,seed=0", "lets nothing through"),
        ("lte:mean_mbps=999999,duration_s=9999,seed=0", "choose a lower rate"),
    ],
)
def test_a_drawn_trace_that_cannot_be_is_an_error(tmp_path: Path, trace: str, words: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        f"{{name: mine, duration_s: 1, bottleneck: {{trace: '{trace}', delay_ms: 1}}, "
        "reverse: {rate_mbps: 1, delay_ms: 1}, access: {rate_mbps: 9, delay_ms: 1}, flows: [{}]}"
    )
    with pytest.raises(ScenarioError, match=words):
        load_scenario(path)


# ---- traces by name ------------------------------------------------------------------------

NAME = "mahimahi/Verizon-LTE-short.down"


def write_traces(folder: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def scenario_with(folder: Path, trace: str) -> Path:
    path = folder / "cell.yaml"
    path.write_text(
        f"name: cell\nduration_s: 2\nbottleneck: {{trace: {trace}, delay_ms: 10}}\n"
        "reverse: {rate_mbps: 10, delay_ms: 10}\naccess: {rate_mbps: 100, delay_ms: 1}\n"
        "flows: [{controller: cubic}]\n"
    )
    return path


def test_a_trace_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"README": b"of others", NAME: b"1\n2\n2\n", "mahimahi/other": b"7\n"}
    monkeypatch.setenv("QUICGYM_TRACES", str(write_traces(tmp_path / "traces", files)))
    scenario = load_scenario(scenario_with(tmp_path, NAME))
    assert scenario.bottleneck is not None and scenario.bottleneck.trace is not None
    assert read_mahimahi(scenario.bottleneck.trace) == [1, 2, 2]
    # The scenario keeps the place: the variable is not needed any more, nor by another process.
    monkeypatch.delenv("QUICGYM_TRACES")
    assert load_scenario(scenario_with(tmp_path, str(scenario.bottleneck.trace))) == scenario
    goodput = run(scenario).metrics["goodput_mbps"]
    assert goodput is not None and goodput > 5
    assert scenario.files == [tmp_path / "traces" / NAME]


def test_a_trace_beside_the_yaml_comes_before_one_of_the_same_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_traces(tmp_path / "traces", {"a.trace": b"1\n"})
    (tmp_path / "a.trace").write_text("2\n")
    monkeypatch.setenv("QUICGYM_TRACES", str(tmp_path / "traces"))
    scenario = load_scenario(scenario_with(tmp_path, "a.trace"))
    assert scenario.bottleneck is not None and scenario.bottleneck.trace == tmp_path / "a.trace"


def test_distributions_know_traces_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUICGYM_TRACES", str(write_traces(tmp_path / "t", {NAME: b"1\n"})))
    path = tmp_path / "cells.yaml"
    path.write_text(
        "name: cells\nduration_s: 2\nrate_mbps: {minimum: 1, maximum: 2}\n"
        "rtt_ms: {minimum: 20, maximum: 30}\nqueue_bdp: {minimum: 1, maximum: 2}\n"
        f"traces: {{chance: 1, paths: [{NAME}]}}\n"
    )
    scenario = load_distribution(path).sample(np.random.default_rng(1))
    assert scenario.bottleneck is not None
    assert scenario.bottleneck.trace == tmp_path / "t" / NAME


@pytest.mark.parametrize(
    ("trace", "expected"),
    [
        ("mahimahi/Verizon-LTE-shirt.down", "cannot read the trace: No such file or directory"),
        ("mahimahi", "cannot read the trace: "),
    ],
)
def test_a_name_that_is_no_trace_of_the_users_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trace: str, expected: str
) -> None:
    folder = tmp_path / "scenarios"
    folder.mkdir()
    files = {NAME: b"1\n", "../secret": b"1\n"}
    monkeypatch.setenv("QUICGYM_TRACES", str(write_traces(tmp_path / "in" / "traces", files)))
    message = error_of(scenario_with(folder, trace))
    for text in ("cell.yaml", "bottleneck.trace", trace, expected, "QUICGYM_TRACES"):
        assert text in message


def test_a_folder_of_traces_that_does_not_exist_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUICGYM_TRACES", str(tmp_path / "traces"))
    message = error_of(scenario_with(tmp_path, NAME))
    for text in ("cell.yaml", "bottleneck.trace", NAME, "is no folder; set it to a folder"):
        assert text in message


def error_of(path: Path) -> str:
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path)
    return str(caught.value)
