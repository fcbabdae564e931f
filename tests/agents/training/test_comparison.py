"""What a training was worth: which paths decide, what is paired, and what is said."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from helpers.training import NEEDS_TRAIN, made

from quicgym.envs.scenarios.distributions import load_distribution
from quicgym.envs.scenarios.suites import load_suite

pytestmark = NEEDS_TRAIN


class Played:
    """Instead of episodes: what was played, and rewards that a policy's bias decides."""

    def __init__(self):
        self.cells = {}

    def __call__(self, policy, cells, *, threads, reward):
        bias = float(policy.actor.action.bias[0])
        self.cells.setdefault(bias, []).extend(cells)
        noise = [np.random.default_rng(seed).normal() for _, seed in cells]
        return [SimpleNamespace(metrics={"reward": n + bias}) for n in noise]


@pytest.fixture
def played(monkeypatch):
    from quicgym.agents.training import comparison

    stand_in = Played()
    monkeypatch.setattr(comparison, "play_all", stand_in)
    return stand_in


@pytest.fixture
def policies(here):
    """Start, best and last policy with biases 0, 0.01 and -0.01, as written and loaded."""
    from quicgym.agents.policies.learned import load_policy
    from quicgym.agents.training.policies import policy_of, write_policy

    config, trainer = made(here)
    loaded = {}
    for step, (name, bias) in enumerate((("start", 0.0), ("best", 0.01), ("last", -0.01))):
        policy = policy_of(trainer, config)
        policy.actor.action.bias.data.fill_(bias)
        write_policy(here / f"{name}.json", policy, config, "test", step)
        loaded[name] = (step, load_policy(here / f"{name}.json"))
    return config, loaded


def changed(config, **evaluation):
    return config.model_copy(update={"evaluation": config.evaluation.model_copy(update=evaluation)})


def test_all_policies_meet_the_same_paths_none_of_which_was_evaluated(policies, played):
    from quicgym.agents.training.comparison import compare

    config, loaded = policies
    config = changed(config, suite="training", comparison_paths=200, seeds=1000)
    suite = load_suite("training")
    summary = compare(config, loaded, suite, suite[0], 1)
    first, *others = played.cells.values()
    assert len(played.cells) == 3 and all(cells == first for cells in others)
    assert len({scenario.model_dump_json() for scenario, _ in first}) == 200
    assert min(seed for _, seed in first) >= 1000 and len({seed for _, seed in first}) == 200
    assert (summary.paths, summary.drawn_from) == (200, "training")
    # The noise of the paths is a hundred times the differences, and cancels out.
    gains = {entry.policy: (entry.gain, entry.low, entry.high) for entry in summary.policies}
    assert gains["start"] == (0, 0, 0)
    assert gains["best"] == pytest.approx((0.01, 0.01, 0.01))
    assert gains["last"] == pytest.approx((-0.01, -0.01, -0.01))
    assert summary.learned and not summary["last"].improved


def test_a_suite_of_scenarios_gives_way_to_the_distribution_that_is_trained_on(policies, played):
    from quicgym.agents.training.comparison import compare

    config, loaded = policies
    config = changed(config, suite="validation", comparison_paths=40)
    suite = load_suite("validation")
    environment = config.environment.model_copy(update={"scenario": "training-50"})
    trained = config.model_copy(update={"environment": environment})
    summary = compare(trained, loaded, suite, load_distribution("training-50"), 1)
    assert (summary.paths, summary.drawn_from) == (40, "training-50")
    # Where there is none, each scenario of the suite has other seeds.
    played.cells.clear()
    summary = compare(config, loaded, suite, suite[0], 1)
    (cells, *_) = played.cells.values()
    assert summary.paths == len(cells) == 64 and summary.drawn_from == "validation"
    assert [scenario for scenario, _ in cells[::2]] == list(suite)


def test_equal_policies_are_played_once_and_a_known_summary_is_not_played_again(policies, played):
    from quicgym.agents.training.comparison import compare

    config, loaded = policies
    config = changed(config, suite="training", comparison_paths=20)
    suite = load_suite("training")
    loaded = {**loaded, "best": loaded["start"]}
    summary = compare(config, loaded, suite, suite[0], 1)
    assert sorted(played.cells) == pytest.approx([-0.01, 0])
    assert all(len(cells) == 20 for cells in played.cells.values())
    assert not summary.learned and summary["best"].gain == 0
    played.cells.clear()
    assert compare(config, loaded, suite, suite[0], 1, summary) is summary and not played.cells
    others = {**loaded, "last": (7, loaded["start"][1])}
    for config_now, policies_now in (
        (changed(config, comparison_paths=21), loaded),
        (config, others),
    ):
        assert compare(config_now, policies_now, suite, suite[0], 1, summary) != summary
        assert played.cells
        played.cells.clear()


def test_what_is_said_fits_the_numbers(policies, played):
    from quicgym.agents.evaluation.training_summary import verdict
    from quicgym.agents.training.comparison import compare

    config, loaded = policies
    suite = load_suite("training")
    config = changed(config, suite="training", comparison_paths=1000)
    (learned,) = verdict(compare(config, loaded, suite, suite[0], 1))
    assert learned.startswith("Learned: best − start is +0.0100 [+0.0100, +0.0100]")
    swapped = {**loaded, "best": loaded["last"], "last": loaded["best"]}
    nothing, remedy, better = verdict(compare(config, swapped, suite, suite[0], 1))
    assert nothing.startswith("No gain is shown: best − start is -0.0100")
    assert "more steps" in remedy and "evaluation.comparison_paths" in remedy
    assert "last − start is +0.0100" in better and "evaluation.seeds" in better
    config = changed(config, comparison_paths=30)
    few = verdict(compare(config, {**loaded, "best": loaded["start"]}, suite, suite[0], 1))
    assert "the best policy is the one at step 0" in few[0]
    assert "only 30 paths" in few[-1] and "1,000 or more" in few[-1]


def test_a_summary_is_read_as_it_was_written_and_damage_is_named(policies, played, here):
    from quicgym.agents.evaluation.training_summary import Summary
    from quicgym.agents.training.comparison import compare
    from quicgym.errors import RunError

    config, loaded = policies
    config = changed(config, suite="training", comparison_paths=20)
    suite = load_suite("training")
    path = here / "summary.json"
    assert Summary.read(path) is None
    summary = compare(config, loaded, suite, suite[0], 1)
    summary.write(path)
    assert Summary.read(path) == summary
    for damage in ("{", "{}", path.read_text().replace('"best"', '"good"')):
        path.write_text(damage)
        with pytest.raises(RunError, match=r"summary\.json"):
            Summary.read(path)
