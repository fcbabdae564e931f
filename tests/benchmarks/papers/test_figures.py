"""The figures of the papers: what is drawn stays inside the figure, whatever is in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest

from quicgym.benchmarks.papers.drawings import Bars, Drawing, Panel, scenario_drawing
from quicgym.benchmarks.papers.paper_figures import draw_all
from quicgym.benchmarks.simulations import make_jobs
from quicgym.envs import load_scenario
from quicgym.envs.scenarios.flows import Flow
from quicgym.plot_style import look_of


def bars(groups: int, controllers: int, printed: float = 0.9) -> Drawing:
    """A panel with printed values and error bars, which make the legend long."""
    names = ["newreno", "cubic", "cubic+", "vegas", "bbr", "bbr-smooth", "bbr-extended"]
    drawn = [
        Bars(name, look_of(name), [1.0] * groups, [0.1] * groups, [printed] * groups, seeds=5)
        for name in names[:controllers]
    ]
    labels = [f"{300 * place} KB, SACK" for place in range(groups)]
    return Drawing("bars", "Bars", [[Panel("", "", "loss (%)", groups=labels, bars=drawn)]])


@pytest.mark.parametrize("groups", [1, 4, 5, 12])
@pytest.mark.parametrize("controllers", [1, 2, 4, 7])
def test_no_label_and_no_legend_is_cut_off(groups: int, controllers: int, tmp_path: Path) -> None:
    (file,) = draw_all([bars(groups, controllers)], tmp_path)
    pixels = matplotlib.image.imread(file)[..., :3]
    edges = [pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]]
    assert all(np.all(edge == 1.0) for edge in edges)
    assert pixels.min() < 0.5


def test_the_legend_names_printed_values_only_where_there_are_some(tmp_path: Path) -> None:
    words = "printed in the paper"
    (with_some,) = draw_all([bars(2, 2)], tmp_path / "some", "svg")
    (without,) = draw_all([bars(2, 2, printed=np.nan)], tmp_path / "none", "svg")
    assert words in with_some.read_text()
    assert words not in without.read_text()


def test_a_flow_has_one_colour_in_all_panels_and_ends_where_it_stops(tmp_path: Path) -> None:
    flows: list[dict[str, Any]] = [
        {"name": "own"},
        {"name": "other", "controller": "cubic"},
        {"name": "brief", "controller": "cubic", "stop_s": 1.0},
    ]
    scenario = load_scenario("ebcc-single").model_copy(
        update={"name": "mixed", "duration_s": 2.0, "flows": tuple(Flow(**flow) for flow in flows)}
    )
    jobs = make_jobs([scenario], ["bbr", "cubic"], "native", 1, tmp_path)
    for job in jobs:
        job.run()
    colours: dict[str | None, set[str]] = {}
    for panel in (panel for row in scenario_drawing(jobs).panels for panel in row):
        for line in panel.lines:
            colours.setdefault(line.label, set()).add(line.look.colour)
            if line.label == "brief: CUBIC" and panel.y_label != "receiving rate (Mbps)":
                assert 0.5 < line.time_s[-1] <= 1.0
    assert colours.keys() == {"own: BBR", "own: CUBIC", "other: CUBIC", "brief: CUBIC"}
    assert all(len(of_one) == 1 for of_one in colours.values())
    assert len(set.union(*colours.values())) == 4
