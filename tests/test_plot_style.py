"""The looks of controllers: all different, the same everywhere, and for every reader."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from quicgym import controllers
from quicgym.agents.policies.by_name import pretrained_names
from quicgym.plot_style import (
    DASHES,
    LOOKS,
    NAMES,
    Look,
    display_name,
    look_of,
    looks_of,
    looks_of_flows,
    save,
)

# Viénot, Brettel and Mollon 1999: what dichromats see, of linear RGB.
DEFICIENCIES = {
    "none": np.eye(3),
    "protanopia": [[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]],
    "deuteranopia": [[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]],
}


def seen(colour: str, deficiency: str) -> np.ndarray:
    linear = np.array(to_rgb(colour)) ** 2.2
    return np.clip(np.array(DEFICIENCIES[deficiency]) @ linear, 0, 1) ** (1 / 2.2)


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_readers_of_any_colour_vision_tell_the_controllers_apart(deficiency: str) -> None:
    for (first, a), (second, b) in combinations(LOOKS.items(), 2):
        apart = np.abs(seen(a.colour, deficiency) - seen(b.colour, deficiency)).max()
        assert a.style != b.style or apart > 0.1, f"{first} and {second}: {apart:.2f}"


def test_every_controller_of_quicgym_and_every_published_policy_has_a_look_of_its_own() -> None:
    assert set(controllers.baselines()) <= set(LOOKS) <= set(NAMES)
    names = [*controllers.baselines(), *pretrained_names()]
    looks = looks_of(names)
    assert len(set(looks.values())) == len(names)
    assert {name: look_of(name) for name in names} == looks


def test_names_are_shown_with_their_parameters_and_others_as_they_are() -> None:
    shown = [display_name(name) for name in ("ebcc:gamma=3", "bbr-smooth", "mine", "runs/a:b=1")]
    assert shown == ["eBCC:gamma=3", "BBR smooth", "mine", "runs/a:b=1"]
    assert display_name("scal.cpython-311-x86_64-linux-gnu.so:scal") == "scal.so:scal"
    assert len(set(NAMES.values())) == len(NAMES)


def test_parameters_change_the_style_and_leave_the_colour() -> None:
    for name in ("ebcc", "cubic+", "window-seed1"):
        plain, changed = look_of(name), look_of(f"{name}:gamma=3")
        assert changed.colour == plain.colour and changed.style != plain.style


@given(st.sampled_from(sorted(LOOKS)), st.integers(min_value=1, max_value=20))
def test_flows_of_one_controller_have_shades_of_its_colour_from_dark_to_light(
    name: str, count: int
) -> None:
    looks = looks_of_flows({str(flow): name for flow in range(count)})
    assert len(set(looks.values())) == count
    light = [sum(to_rgb(look.colour)) for look in looks.values()]
    assert light == sorted(light)
    assert all(look.style == LOOKS[name].style for look in looks.values())
    assert count > 1 or looks["0"] == LOOKS[name]


@given(st.lists(st.text(min_size=1, max_size=20), max_size=20, unique=True))
def test_what_one_figure_shows_looks_different_whatever_its_names(names: list[str]) -> None:
    looks = looks_of([*names, "cubic"])
    assert len(set(looks.values())) == len(looks)
    assert looks["cubic"] == LOOKS["cubic"]
    assert all(isinstance(look, Look) and look.style < len(DASHES) for look in looks.values())


@pytest.mark.parametrize(
    ("format", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")]
)
def test_equal_figures_are_equal_files_in_each_format(
    format: str, start: bytes, tmp_path: Path
) -> None:
    contents = []
    for name in ("a", "b"):
        figure = Figure()
        figure.subplots().plot([1, 2])
        contents.append(save(figure, tmp_path / name, format).read_bytes())
    assert contents[0] == contents[1]
    assert contents[0].startswith(start)
