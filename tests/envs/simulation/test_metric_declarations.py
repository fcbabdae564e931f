"""A metric is declared in one place: the text of its module, and a metric of one's own."""

from __future__ import annotations

import json
import subprocess
import sys

from quicgym.envs.simulation import metrics
from quicgym.envs.simulation.metrics import METRICS

DECLARATION = """
    delivered_megabytes: float = metric(
        "delivered (MB)",
        "MB",
        "goodput bytes / 10^6",
        lambda flow: flow["goodput_bytes"] / 1e6,
        less_is_better=True,
        evaluated=True,
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
from quicgym.agents.evaluation.rollouts import play
from quicgym.agents.policies.by_name import find_policy
from quicgym.benchmarks.papers.measurements import quantity_in_words
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
    "label": quantity_in_words("delivered_megabytes"),
    "episode": episode.evaluation,
    "evaluated": metrics.EVALUATED,
    "less is better": metrics.METRICS["delivered_megabytes"].less_is_better,
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
    assert "| delivered_megabytes | flow | goodput bytes / 10^6 | MB |" in seen["documentation"]
    assert seen["label"] == "delivered (MB)"
    assert list(seen["episode"]) == seen["evaluated"]
    assert seen["episode"]["delivered_megabytes"] == seen["run"]
    assert seen["less is better"]


def test_titles_and_formulas_are_each_metric_s_own() -> None:
    entries = METRICS.values()
    assert len({entry.title for entry in entries}) == len(entries)
    assert all(entry.formula and entry.unit for entry in entries)


def test_the_text_of_the_module_which_is_the_page_on_metrics_has_every_formula() -> None:
    page = metrics.__doc__ or ""
    for entry in METRICS.values():
        assert f"| {entry.name} | {entry.scope} | {entry.formula} | {entry.unit} |" in page
