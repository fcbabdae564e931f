"""Model cards of the published policies: YAML that the hub reads, and numbers of the reports."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from quicgym import load_policy
from quicgym.agents.policies.by_name import PRETRAINED, pretrained_names
from quicgym.agents.policies.card import model_card
from quicgym.benchmarks.cards import cards
from quicgym.errors import UserError

ROOT = Path(__file__).parents[2]


def test_the_cards_of_the_checkout_are_those_of_descriptions_and_leaderboard() -> None:
    written = cards(ROOT)
    assert sorted(path.stem for path in written) == sorted(pretrained_names())
    for path, text in written.items():
        assert path.read_text() == text, "run `python -m quicgym.benchmarks.cards`"


def leaderboard() -> dict[str, Any]:
    """Two suites; the policy is behind the baseline in the second."""

    def section(suite: str, own: float, best: float) -> dict[str, Any]:
        def row(policy: str, iqm: float) -> dict[str, Any]:
            return {
                "policy": policy,
                "iqm_reward": iqm,
                "iqm_low": iqm - 0.01,
                "iqm_high": iqm + 0.01,
                "beside_cubic_and_bbr": {"collapses": 3},
                "furthest_behind": [{"scenario": "narrow", "difference": -0.25}],
            }

        rows = [row("window", own), row("cubic", best)]
        about = {"suite": suite, "engine": "native", "scenarios": 40}
        return {**about, "best_baseline": "cubic", "rows": rows}

    return {
        "version": "9.9",
        "commit": "abc",
        "command": "make leaderboard",
        "policies": [{"policy": "window", "worst_found": -0.83}],
        "sections": [section("first", 0.5, 0.4), section("second", 0.2, 0.3)],
    }


def test_a_card_says_on_which_suites_hand_coded_controllers_are_ahead() -> None:
    description = load_policy("window").description
    card = model_card("window", description, leaderboard=leaderboard(), license="mit")
    _, front, text = card.split("---\n", 2)
    fields = yaml.safe_load(front)
    assert (fields["library_name"], fields["license"]) == ("quicgym", "mit")
    assert fields["pipeline_tag"] == "reinforcement-learning"
    assert "quicgym/Window-v1" in fields["tags"]
    results = {
        result["dataset"]["type"]: result["metrics"][0]["value"]
        for result in fields["model-index"][0]["results"]
    }
    assert results == {"first": 0.5, "second": 0.2}
    assert "| `first` | native | 0.5000 | [0.4900, 0.5100] | 0.4000 (`cubic`) |" in text
    failures = text.partition("## Where it fails")[2]
    assert "| `first` | native | +0.1000 | 3 of 40 | `narrow` (-0.250) |" in failures
    assert "| `second` | native | -0.1000 | 3 of 40 | `narrow` (-0.250) |" in failures
    assert "is -0.83." in failures
    assert "quicgym 9.9 at commit abc" in text and description.sha256 in text


def test_without_measurements_a_card_says_so(tmp_path: Path) -> None:
    for ending in (".json", ".safetensors"):
        shutil.copy(PRETRAINED / f"window{ending}", tmp_path)
    description = replace(load_policy(tmp_path / "window.json").description, evaluation=None)
    card = model_card("mine", replace(description, training={}))
    assert "The description has no evaluation." in card and "Not measured." in card
    assert "does not say how the policy was trained" in card
    assert "model-index" not in card


def test_elsewhere_than_in_a_checkout_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no agents/policies/pretrained; go to a checkout"):
        cards(tmp_path)
