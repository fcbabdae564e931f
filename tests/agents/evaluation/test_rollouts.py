"""Episodes of an evaluation: many side by side, and what the keys of jobs cost."""

from __future__ import annotations

import sys
from pathlib import Path

from quicgym import load_scenario
from quicgym.agents.evaluation import rollouts
from quicgym.agents.evaluation.jobs import make_jobs
from quicgym.agents.policies.by_name import find_policy
from quicgym.envs.scenarios.links import Link
from quicgym.envs.scenarios.suites import episodes_of, load_suite, parts_of


class Counting:
    def __init__(self):
        self.sizes = []

    def begins(self, batch, cells):
        self.sizes.append(len(cells))

    def stepped(self, batch, actions):
        pass


def test_episodes_beyond_what_is_simulated_at_once_are_the_same(monkeypatch):
    cells = episodes_of(parts_of(load_suite("training-50")), 7)
    bbr = find_policy("bbr")
    together = rollouts.play_all(bbr, cells, threads=1)
    monkeypatch.setattr(rollouts, "_AT_A_TIME", 2)
    watch = Counting()
    apart = rollouts.play_all(bbr, cells, threads=1, watch=watch)
    assert max(watch.sizes) == 2
    assert sum(watch.sizes) == 7
    assert [run.metrics for run in apart] == [run.metrics for run in together]
    assert [run.seed for run in apart] == [seed for _, seed in cells]


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
