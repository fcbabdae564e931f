"""Jobs of an evaluation: what their keys cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from quicgym import load_scenario
from quicgym.agents.evaluation.jobs import make_jobs
from quicgym.envs.scenarios.links import Link


def test_a_trace_is_read_once_for_the_keys_of_all_episodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = tmp_path / "rates.trace"
    trace.write_text("".join(f"{time}\n" for time in range(1, 1001)))
    read: list[Path] = []
    read_bytes = Path.read_bytes

    def counted(path: Path) -> bytes:
        read.append(path)
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", counted)
    links = {
        "bottleneck": Link(trace=trace, delay_ms=10.0),
        "reverse": Link(rate_mbps=10.0, delay_ms=10.0),
    }
    scenario = load_scenario("ebcc-single").model_copy(update=links)
    jobs = make_jobs(["bbr", "cubic"], [scenario], 5)
    assert len({job.key for job in jobs}) == 10
    assert read.count(trace) == 1
