"""The sensitivity table, on objectives whose parts are known."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from quicgym.agents.tuning.parameter_config import ParameterSweep
from quicgym.agents.tuning.parameter_trial import ParameterTrial
from quicgym.agents.tuning.sensitivity import explained_share, sensitivity
from quicgym.agents.tuning.space import Setting

CYCLES = ((1.25, 0.75), (1.0,))


def table(objective: Callable[[Setting], float], **changes: object):
    config = ParameterSweep.model_validate(
        {
            "name": "known",
            "controller": "ebcc",
            "parameters": {
                "gamma": {"minimum": 1, "maximum": 4, "count": 4},
                "beta": {"minimum": 0, "maximum": 1, "count": 3},
                "gain_cycle": {"values": CYCLES},
            },
            "scenarios": ["ebcc-single"],
            **changes,
        }
    )
    trials = [
        ParameterTrial(setting, objective(setting), (), ()) for setting in config.listed_settings()
    ]
    return sensitivity(config, trials).set_index("parameter")


def test_a_grid_gives_exact_shares() -> None:
    # Variances: gamma 1.25 * 4, beta (0, 0.5, 1) / 6 * 6 = 1, cycle 0: shares 5/6 and 1/6.
    found = table(lambda s: 2 * s["gamma"] - 6**0.5 * s["beta"])
    assert found["variance_share"].tolist() == pytest.approx([5 / 6, 1 / 6, 0], abs=1e-12)
    assert found["marginal_range"].tolist() == pytest.approx([6, 6**0.5, 0], abs=1e-12)
    assert found["rank_correlation"]["gamma"] > 0.8 > 0 > found["rank_correlation"]["beta"]
    assert found["rank_correlation"].isna().tolist() == [False, False, True]


def test_what_only_two_parameters_do_together_belongs_to_neither() -> None:
    found = table(lambda s: (s["gamma"] - 2.5) * (s["beta"] - 0.5))
    assert found["variance_share"].tolist() == pytest.approx([0, 0, 0], abs=1e-12)


def test_noise_explains_nothing_in_random_draws() -> None:
    found = table(lambda s: 3 * s["gamma"], search="random", samples=400)
    assert found["variance_share"]["gamma"] > 0.97
    assert found["variance_share"]["beta"] < 0.03
    assert found["variance_share"]["gain_cycle"] < 0.03


def test_a_constant_objective_has_no_shares() -> None:
    found = table(lambda s: 1.0)
    assert found["variance_share"].isna().all() and found["rank_correlation"].isna().all()
    assert (found["marginal_range"] == 0).all()


def test_what_noise_alone_would_explain_is_taken_off() -> None:
    # Two halves of four: (bins - 1) / (trials - 1) of the variance is between them by chance.
    shares = []
    for order in itertools.permutations((0.0, 1.0, 2.0, 4.0)):
        objectives = np.array(order)
        means = np.repeat(objectives.reshape(2, 2).mean(axis=1), 2)
        shares.append(explained_share(objectives, means, 2, exact=False))
        total = np.var(order) * 4
        between = np.sum((means - np.mean(order)) ** 2)
        unbiased = (between - (total - between) / 2) / total
        assert shares[-1] == pytest.approx(max(0.0, unbiased))
    assert min(shares) == 0 < max(shares)
