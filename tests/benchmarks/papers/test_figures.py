"""The figures of the papers: what is drawn stays inside the figure, whatever is in it."""

from __future__ import annotations

from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

from quicgym.benchmarks.papers.drawings import Bars, Drawing, Panel
from quicgym.benchmarks.papers.paper_figures import draw_all
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
