"""What a choice is worth that is told its path: the facts, what is learned of them, the command."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import environments as helper
from helpers.training import NEEDS_TRAIN

from quicgym.envs.scenarios.flows import Flow
from quicgym.envs.scenarios.suites import episodes_of, load_suite

pytestmark = NEEDS_TRAIN


@pytest.fixture
def study(monkeypatch):
    import oracle_known_path as study

    monkeypatch.setattr(study, "NETWORKS", 1)
    monkeypatch.setattr(study, "UPDATES", 150)
    return study


def test_facts_are_those_of_the_path(study):
    others = [
        Flow(name="one", controller="bbr", start_s=1.0),
        Flow(name="two", controller="bbr", start_s=4.0, extra_delay_ms=10),
    ]
    flows = (Flow(name="agent"), *others)
    scenario = helper.scenario(duration_s=5.0, loss=0.01, flow_list=flows)
    known = study.facts(scenario)
    rate_mbps, rtt_ms, bdp, queue_bdp = 2.0 ** np.array(known[:4])
    assert (rate_mbps, rtt_ms) == pytest.approx((8, 40))
    assert (bdp, queue_bdp) == pytest.approx((8e6 * 0.04 / 8 / 1200, 35 / bdp))
    assert known[4:8] == pytest.approx([0.1, 3, 0, 0])  # root of the loss, flows, alone, steps
    assert known[11:17] == pytest.approx([1, 2.5, 4, 0, 0.25, 0.5])
    counts = dict(zip(study.other_controllers(), known[17:], strict=True))
    assert counts.pop("bbr") == 2 and set(counts.values()) == {0}


def test_facts_are_finite_and_as_many_for_every_path(study):
    table = np.array(
        [study.facts(scenario) for scenario, _ in episodes_of(load_suite("training-50"), 200)]
    )
    assert table.shape[0] == 200 and np.isfinite(table).all()


def test_what_follows_from_the_facts_is_learned_and_luck_is_not(study):
    rng = np.random.default_rng(1)
    known = rng.normal(size=(400, 3))
    better = known[:, 0] > 0
    earned = np.stack([np.where(better, 0.3, 0.1), np.where(better, 0.1, 0.3)])
    choice = study.choices_on_others(known, earned)
    assert (choice == np.where(better, 0, 1)).mean() > 0.9
    luck = rng.normal(0, 0.1, size=(2, 400)) + [[0.02], [0.0]]
    chosen = luck[study.choices_on_others(known, luck), np.arange(400)]
    assert chosen.mean() < luck.max(axis=0).mean() - 0.03


def test_a_path_has_no_part_in_its_own_choice(study):
    rng = np.random.default_rng(2)
    known, earned = rng.normal(size=(40, 2)), rng.normal(size=(2, 40))
    before = study.choices_on_others(known, earned)
    earned[:, ::4] = earned[::-1, ::4]  # of one fold
    assert (study.choices_on_others(known, earned)[::4] == before[::4]).all()


def test_the_command_prints_a_row_for_each_choice(study, monkeypatch, capsys):
    monkeypatch.setattr(study, "POLICIES", ("newreno", "ibcca", study.LEARNED))
    monkeypatch.setattr(study, "BASELINES", ("newreno", "ibcca"))
    study.oracle_known_path(paths=8)
    rows = [line for line in capsys.readouterr().out.splitlines() if "│" in line]
    assert len(rows) == 10
    assert "+0.0000 ± 0.0000" in rows[1]
    gains = {row.split("│")[1].strip(): float(row.split("│")[4].split()[0]) for row in rows}
    hindsight = {name: gain for name, gain in gains.items() if name.startswith("hindsight")}
    assert (
        max(gains.values()) == max(hindsight.values()) == hindsight["hindsight, among all of these"]
    )
    assert "100" in rows[6]  # a choice of the best baseline is within 1% of it
