"""An evaluation's figures: what they leave out, and in which order they show the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from quicgym.agents.evaluation import figures
from quicgym.agents.evaluation.figures import MOST_SCENARIOS, draw_evaluation


def drawn(monkeypatch: pytest.MonkeyPatch, rewards: np.ndarray, names: list[str]) -> list[Figure]:
    """The figures of two policies, of which `rewards` has a row each, with a column a scenario."""
    kept: list[Figure] = []
    monkeypatch.setattr(figures, "save", lambda figure, file, format: kept.append(figure) or file)
    monkeypatch.setattr(figures, "write_captions", lambda folder, captions: None)
    monkeypatch.setattr(figures, "_captions", lambda document: dict.fromkeys(names, ""))
    scenarios = [f"s{place}" for place in range(rewards.shape[1])]
    policies = [
        {"policy": policy, "kind": "baseline", "iqm_reward": 0.123456 - 0.1 * place,
         "iqm_low": 0.1 - 0.1 * place, "iqm_high": 0.2 - 0.1 * place,
         "scenarios": [{"scenario": scenario, "reward": reward}
                       for scenario, reward in zip(scenarios, row, strict=True)]}
        for place, (policy, row) in enumerate(zip(("cubic", "bbr"), rewards, strict=True))
    ]  # fmt: skip
    pair = {"a": "cubic", "b": "bbr", "iqm_difference": 0.1, "low": 0.05, "high": 0.15}
    document: dict[str, Any] = {
        "policies": policies, "differences": [pair], "seeds": [0, 1], "suite": "s",
        "engine": "native", "reward": {"name": "fair-throughput"},
    }  # fmt: skip
    draw_evaluation(document, rewards[:, :, None], (), figures.Path("."), "png", names)
    return kept


def test_the_scenarios_that_differ_most_are_shown_and_the_worst_of_the_best_policy_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    count = MOST_SCENARIOS + 30
    rewards = np.stack([np.linspace(0, 1, count), np.full(count, 0.6)])
    (figure,) = drawn(monkeypatch, rewards, ["scenarios"])
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert len(labels) == MOST_SCENARIOS
    assert labels[:2] == ["s0", "s1"]
    gaps = rewards[0] - rewards[1]
    shown = np.array([int(label[1:]) for label in labels])
    left_out = np.setdiff1d(np.arange(count), shown)
    assert np.abs(gaps[shown]).min() >= np.abs(gaps[left_out]).max()
    assert figure.get_size_inches()[1] < 8


def test_the_numbers_of_an_axis_do_not_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    (figure,) = drawn(monkeypatch, np.array([[0.5, 0.6], [0.3, 0.4]]), ["iqm"])
    figure.draw_without_rendering()
    for axes in figure.axes:
        boxes = [label.get_window_extent() for label in axes.get_xticklabels()]
        assert all(a.x1 < b.x0 for a, b in zip(boxes, boxes[1:], strict=False))


def test_names_and_the_title_of_the_colour_bar_fit_one_network(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(figures, "_names", lambda entries: ["x" * figures.LONGEST_NAME] * 2)
    (figure,) = drawn(monkeypatch, np.array([[0.5], [0.3]]), ["scenarios"])
    figure.draw_without_rendering()
    for text in (*figure.axes[0].get_xticklabels(), figure.axes[1].yaxis.label):
        box = text.get_window_extent()
        assert box.y0 >= 0 and box.y1 <= figure.bbox.height
