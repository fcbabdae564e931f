"""Jobs of an evaluation: what their keys cost."""

from __future__ import annotations

import sys
from pathlib import Path

from quicgym import load_scenario
from quicgym.agents.evaluation.jobs import make_jobs
from quicgym.envs.scenarios.links import Link


def test_a_trace_is_read_once_for_the_keys_of_all_episodes(tmp_path: Path) -> None:
    trace = tmp_path / "rates.trace"
    trace.write_text("".join(f"{time}\n" for time in range(1, 1001)))
    opened: list[str] = []
    # Python's own record of what is opened, by whichever function. A hook cannot be removed.
    sys.addaudithook(lambda event, about: opened.append(str(about[0])) if event == "open" else None)
    links = {
        "bottleneck": Link(trace=trace, delay_ms=10.0),
        "reverse": Link(rate_mbps=10.0, delay_ms=10.0),
    }
    scenario = load_scenario("ebcc-single").model_copy(update=links)
    jobs = make_jobs(["bbr", "cubic"], [scenario], 5)
    assert len({job.key for job in jobs}) == 10
    assert opened.count(str(trace)) == 1
