"""A metric is declared in one place: the table in docs, and a metric of one's own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from quicgym.envs.simulation.metrics import DECLARED, METRICS, FlowResult, metrics_table

DOCS = Path(__file__).parents[3] / "docs" / "reference" / "scenarios.md"

DECLARATION = """
    delivered_megabytes: float = metric(
        "delivered (MB)",
        "MB",
        "goodput bytes / 10^6",
        lambda flow: flow["goodput_bytes"] / 1e6,
        less_is_better=True,
        evaluated=True,
        of_agents=True,
    )
"""

SCRIPT = """
import json, sys
from importlib.abc import MetaPathFinder
from importlib.machinery import SourceFileLoader

METRICS = "quicgym.envs.simulation.metrics"
DECLARATION, BEFORE = json.loads(sys.argv[1])


class WithOneMore(SourceFileLoader):
    def get_code(self, name):
        source = self.get_data(self.path).decode()
        assert source.count(BEFORE) == 1
        return self.source_to_code(source.replace(BEFORE, DECLARATION + BEFORE), self.path)


class Finder(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != METRICS:
            return None
        for finder in sys.meta_path:
            if finder is not self and (spec := finder.find_spec(name, path, target)):
                spec.loader = WithOneMore(name, spec.origin)
                return spec


sys.meta_path.insert(0, Finder())

import quicgym
from quicgym.agents.evaluation.rollouts import METRICS as EPISODE_METRICS, MINIMISED, play
from quicgym.agents.policies.by_name import find_policy
from quicgym.benchmarks.papers.measurements import TITLES
from quicgym.envs.simulation import metrics

scenario = quicgym.load_scenario("ebcc-single").model_copy(update={"duration_s": 3.0})
result = quicgym.run(scenario, "cubic")
episode = play(find_policy("cubic"), scenario)
print(json.dumps({
    "flow": result.flows[0].delivered_megabytes,
    "goodput": result.flows[0].goodput_mbps,
    "run": result.metrics["delivered_megabytes"],
    "columns": list(result.to_pandas().columns),
    "documentation": metrics.__doc__,
    "label": TITLES["delivered_megabytes"],
    "episode": episode.metrics,
    "episode metrics": EPISODE_METRICS,
    "minimised": MINIMISED,
}))
"""


def test_a_declaration_is_all_that_a_metric_needs() -> None:
    arguments = json.dumps([DECLARATION, "\n    send_rate_mbps: float = metric("])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    # The flow of ebcc-single starts at 1 s, so that it is active for 2 s.
    assert seen["flow"] == seen["run"] > 0
    assert abs(seen["flow"] - seen["goodput"] * 2 / 8) < 1e-9
    assert seen["columns"][3:6] == ["name", "controller", "delivered_megabytes"]
    assert "| delivered_megabytes | goodput bytes / 10^6 | MB |" in seen["documentation"]
    assert seen["label"] == "delivered (MB)"
    assert list(seen["episode"]) == seen["episode metrics"]
    place = seen["episode metrics"].index("delivered_megabytes")
    assert seen["episode metrics"][place + 1] == "agent_delivered_megabytes"
    assert seen["episode"]["delivered_megabytes"] == seen["episode"]["agent_delivered_megabytes"]
    assert {"delivered_megabytes", "agent_delivered_megabytes"} <= set(seen["minimised"])


def test_names_titles_and_formulas_are_each_metrics_own() -> None:
    assert len({entry.name for entry in DECLARED}) == len(DECLARED) == len(METRICS)
    assert len({entry.title for entry in DECLARED}) == len(DECLARED)
    assert all(entry.formula and entry.unit for entry in DECLARED)
    assert set(METRICS[:13]) == set(FlowResult.__dataclass_fields__) - {"name", "controller"}


def test_the_page_on_scenarios_has_the_table_of_metrics() -> None:
    assert metrics_table() in DOCS.read_text(encoding="utf-8")
