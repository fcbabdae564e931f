"""The figures of the papers: what is drawn stays inside the figure, whatever is in it."""

from __future__ import annotations

from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

from quicgym.benchmarks.papers.drawings import Bars, Drawing, Panel
from quicgym.benchmarks.papers.figures import draw_all
from quicgym.plot_style import look_of


def bars(groups: int, controllers: int) -> Drawing:
    """A panel with printed values and error bars, which make the legend long."""
    names = ["newreno", "cubic", "cubic+", "vegas"][:controllers]
    drawn = [
        Bars(name, look_of(name), [1.0] * groups, [0.1] * groups, [0.9] * groups, seeds=5)
        for name in names
    ]
    labels = [f"{300 * place} KB, SACK" for place in range(groups)]
    return Drawing("bars", "Bars", [[Panel("", "", "loss (%)", groups=labels, bars=drawn)]])


@pytest.mark.parametrize("groups", [1, 4, 5, 12])
@pytest.mark.parametrize("controllers", [1, 2, 4])
def test_no_label_and_no_legend_is_cut_off(groups: int, controllers: int, tmp_path: Path) -> None:
    (file,) = draw_all([bars(groups, controllers)], tmp_path)
    pixels = matplotlib.image.imread(file)[..., :3]
    edges = [pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]]
    assert all(np.all(edge == 1.0) for edge in edges)
    assert pixels.min() < 0.5
