"""What a sweep may be asked for, and what is answered to mistakes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from helpers.scenarios import suite_text

from quicgym import _core
from quicgym.agents.evaluation.rollouts import play
from quicgym.agents.policies.by_name import find_policy
from quicgym.agents.policies.hand_coded import parse_parameters
from quicgym.agents.training.configuration import ConfigError
from quicgym.agents.tuning.parameter_config import SweptParameter, policy_text
from quicgym.agents.tuning.parameter_trial import ParameterTrial, measure
from quicgym.agents.tuning.space import decode
from quicgym.agents.tuning.sweeps import load_sweep, sweep_names
from quicgym.agents.tuning.training_config import TrainingSweep
from quicgym.benchmarks.leaderboard import SUITES
from quicgym.envs import Reward, ScenarioError, load_scenario, load_suite
from quicgym.envs.scenarios.suites import HELD_OUT_SUITES, load_entry, scenario_of

GRID = """
name: mine
controller: ebcc
parameters:
  gamma: {minimum: 10, maximum: 40, scale: log, count: 3}
  beta: {values: [0.1, 0.5]}
scenarios: [ebcc-single]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(GRID)
    return path


@pytest.mark.parametrize("name", sweep_names())
def test_shipped_sweeps_are_complete_and_never_see_the_held_out_suite(name: str) -> None:
    sweep = load_sweep(name)
    config = sweep.config if isinstance(sweep, TrainingSweep) else sweep
    assert config.name == name and config.description.endswith(("?", "."))
    held_out = {scenario.name for scenario in load_suite("heldout")}
    if isinstance(sweep, TrainingSweep):
        scenarios = load_suite(sweep.training.evaluation.suite)
        for setting in sweep.config.draws():
            assert sweep.trial(setting).environment.threads == 1
    else:
        scenarios = sweep.load_scenarios()
        assert sweep.trials == (
            len(sweep.listed_settings()) if sweep.search != "optuna" else sweep.samples
        )
    assert not held_out & {scenario.name for scenario in scenarios}


def test_a_grid_has_all_combinations(file: Path) -> None:
    config = load_sweep(str(file))
    settings = config.listed_settings()
    assert settings == [{"gamma": g, "beta": b} for g in (10, 20, 40) for b in (0.1, 0.5)]
    assert config.trials == 6
    assert config.published_setting() == {"gamma": 30, "beta": 0.5}  # the catalogue's


def test_random_draws_come_from_the_seed_and_stay_in_range(file: Path) -> None:
    changes = ["search=random", "samples=200", "parameters.beta={minimum: 0, maximum: 1}"]
    changes.append("parameters.decision_interval_rounds={minimum: 1, maximum: 4, scale: whole}")
    settings = load_sweep(str(file), changes).listed_settings()
    assert settings == load_sweep(str(file), changes).listed_settings()
    assert settings != load_sweep(str(file), [*changes, "seed=1"]).listed_settings()
    gammas = [setting["gamma"] for setting in settings]
    assert all(isinstance(gamma, float) and 10 <= gamma <= 40 for gamma in gammas)
    assert 0.4 < sum(gamma < 20 for gamma in gammas) / 200 < 0.6  # the middle of a log scale
    assert {setting["decision_interval_rounds"] for setting in settings} == {1, 2, 3, 4}


def test_a_setting_is_found_again_as_a_policy() -> None:
    setting = {"gamma": math.inf, "gain_cycle": (1.25, 0.75, 1.0)}
    text = policy_text("ebcc", setting)
    assert text == "ebcc:gamma=inf,gain_cycle=1.25/0.75/1"
    assert parse_parameters(text.removeprefix("ebcc:")) == {
        "gamma": math.inf,
        "gain_cycle": [1.25, 0.75, 1.0],
    }


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("controller=ebc", ["controller", "'ebc'", "did you mean ebcc?"]),
        ("parameters.gama={values: [1]}", ["parameters.gama", "'ebcc'", "did you mean gamma?"]),
        ("parameters.beta.values=[0.5, 3]", ["parameters.beta = 3", "outside the range [0, 1]"]),
        ("parameters.gamma.minimum=-1", ["parameters.gamma", "log scale", "above 0"]),
        ("parameters.gamma.minimum=50", ["maximum 40 is not above minimum 50"]),
        ("parameters.beta.minimum=0", ["parameters.beta", "values and a range"]),
        ("parameters.beta.values=[0.5, 0.5]", ["parameters.beta", "has 0.5 twice"]),
        ("fixed.beta=0.5", ["fixed.beta", "in parameters too"]),
        ("published.alpha=0.5", ["published.alpha", "is not swept"]),
        (
            "parameters={gamma: {minimum: 5, maximum: 160, count: 10000}, "
            "beta: {minimum: 0.1, maximum: 1, count: 10000}}",
            ["100,000,000 trials; 100,000 are the most", "fewer values"],
        ),
        ("search=random", ["samples: is missing"]),
        ("objective=speed", ["objective = 'speed'", "reward"]),
        ("suite=validation", ["give either scenarios or suite"]),
        ("seeds", ["'seeds'", "write field=value"]),
        ("name.x=1", ["name is 'mine'", "no fields"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_mistakes_name_file_field_value_and_remedy(
    file: Path, change: str, expected: list[str]
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_sweep(str(file), [change])
    for text in expected:
        assert text in str(caught.value)


@pytest.mark.parametrize("suite", HELD_OUT_SUITES)
def test_suites_for_evaluation_alone_are_refused(file: Path, suite: str) -> None:
    for named in (suite, f"{suite}/2"):
        with pytest.raises(ConfigError, match=f"'{named}': it is for evaluation alone"):
            load_sweep(str(file), ["scenarios=[]", f"suite={named}"])


@pytest.mark.parametrize("suite", ["heldout", pytest.param("heldout-lan", marks=pytest.mark.long)])
def test_copies_of_suites_for_evaluation_are_refused(file: Path, suite: str) -> None:
    copy = file.with_name("copy.yaml")
    copy.write_text(suite_text(suite))
    for path in (copy, f"{copy}/2"):
        sweep = load_sweep(str(file), ["scenarios=[]", f"suite={path}", "engine=ns3"])
        with pytest.raises(ScenarioError, match=f"is the suite {suite}: it is for evaluation alo"):
            sweep.load_scenarios()


def test_the_held_out_suites_are_those_of_the_leaderboard() -> None:
    assert [*HELD_OUT_SUITES] == [*SUITES]


def test_scenarios_are_checked(file: Path, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="'ebcc-singel'; did you mean ebcc-single"):
        load_sweep(str(file), ["scenarios=[ebcc-singel]"]).load_scenarios()
    own = yaml.safe_load(GRID)
    own["scenarios"] = ["ibcca-single"]
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(own))
    with pytest.raises(ScenarioError, match="ibcca-single.*native"):
        load_sweep(str(tmp_path / "own.yaml")).load_scenarios()


def test_numbers_may_be_written_as_for_a_training(file: Path) -> None:
    assert load_sweep(str(file), ["seeds=1e1"]).seeds == 10


def test_what_optuna_draws_is_what_the_table_shows() -> None:
    space = {
        "gamma": SweptParameter(minimum=1, maximum=2),
        "beta": SweptParameter(values=(0.1, 0.5)),
    }
    setting = decode(space, {"gamma": 1.0349776682312346, "beta": 1})
    assert policy_text("ebcc", setting) == "ebcc:gamma=1.03498,beta=0.5"
    assert setting == {"gamma": 1.03498, "beta": 0.5}


def short(name: str, duration_s: float = 2.0, **flow: float) -> dict[str, Any]:
    scenario = load_scenario("ebcc-flows-3").model_dump(exclude_none=True, mode="json")
    scenario |= {"name": name, "duration_s": duration_s}
    return scenario | ({"flows": [flow]} if flow else {})


def test_a_trial_has_the_fixed_parameters_the_reward_and_the_seeds(
    file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "short.yaml"
    path.write_text(yaml.safe_dump(short("short", 6.0)))
    changes = [f"scenarios=[{path}]", "fixed.gain_cycle=[1.5, 0.5]", "reward=delay"]
    config = load_sweep(str(file), changes)
    (scenario,) = config.load_scenarios()
    found = measure(config, [scenario], {"gamma": 10.0, "beta": 0.1}, (0, 2))
    policy = find_policy("ebcc:gain_cycle=1.5/0.5,gamma=10,beta=0.1")
    rewards = [
        play(policy, scenario, seed=seed, reward=Reward("delay")).metrics["reward"]
        for seed in (0, 2)
    ]
    assert list(found.per_seed) == rewards and found.objective == pytest.approx(np.mean(rewards))
    assert [(run["scenario"], run["seed"]) for run in found.episodes] == [
        ("short", 0),
        ("short", 2),
    ]


def test_over_a_suite_the_objective_is_the_interquartile_mean(file: Path, tmp_path: Path) -> None:
    path = tmp_path / "suite.yaml"
    path.write_text(yaml.safe_dump([short("a"), short("b", 1.5), short("c", 2.5), short("d", 3)]))
    config = load_sweep(str(file), ["scenarios=[]", f"suite={path}"])
    found = measure(config, config.load_scenarios(), {"gamma": 10.0, "beta": 0.1}, [0])
    rewards = sorted(run["reward"] for run in found.episodes)
    assert found.objective == found.per_seed[0] == pytest.approx(np.mean(rewards[1:3]))
    assert found.objective != pytest.approx(np.mean(rewards))


def test_of_a_distribution_each_seed_draws_a_path_the_same_for_every_trial(
    file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "drawn.yaml"
    ranges = {name: {"minimum": 2, "maximum": 20} for name in ("rate_mbps", "queue_bdp")}
    fields = {"name": "drawn", "duration_s": 1, "rtt_ms": {"minimum": 20, "maximum": 60}, **ranges}
    path.write_text(yaml.safe_dump(fields))
    config = load_sweep(str(file), ["scenarios=[]", f"suite={path}"])
    (drawn,) = config.load_scenarios()
    paths = [scenario_of(drawn, seed) for seed in (0, 1)]
    for gamma in (10.0, 90.0):
        found = measure(config, [drawn], {"gamma": gamma, "beta": 0.1}, (0, 1))
        policy = find_policy(f"ebcc:gamma={gamma:g},beta=0.1")
        alone = [play(policy, path, seed=seed) for seed, path in enumerate(paths)]
        assert [run["reward"] for run in found.episodes] == [
            episode.metrics["reward"] for episode in alone
        ]


def test_a_run_without_a_value_of_the_objective_is_named(file: Path, tmp_path: Path) -> None:
    path = tmp_path / "brief.yaml"
    path.write_text(yaml.safe_dump(short("brief", 1.0, start_s=0.999)))
    config = load_sweep(str(file), [f"scenarios=[{path}]", "objective=mean_rtt_ms"])
    with pytest.raises(ValueError, match="brief, seed 4: nothing to measure mean_rtt_ms by"):
        measure(config, config.load_scenarios(), {"gamma": 10.0, "beta": 0.1}, [4])


def test_the_deviation_is_that_of_a_sample() -> None:
    assert ParameterTrial({}, 2.0, (1.0, 3.0), ()).deviation == pytest.approx(2**0.5)
    assert ParameterTrial({}, 1.0, (1.0,), ()).deviation is None


@pytest.mark.train
def test_another_sweep_is_one_of_other_packets_or_another_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = tmp_path / "link.trace"
    link = {"delay_ms": 10, "trace": "link.trace"}
    traced = short("traced") | {"bottleneck": link, "reverse": {"delay_ms": 10, "rate_mbps": 10}}
    distribution = {
        "name": "drawn",
        "duration_s": 2,
        "rate_mbps": {"minimum": 2, "maximum": 4},
        "rtt_ms": {"minimum": 20, "maximum": 30},
        "queue_bdp": {"minimum": 1, "maximum": 1},
        "traces": {"chance": 1, "paths": ["link.trace"]},
    }
    for name, data in (("traced", traced), ("drawn", distribution)):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(data))

    from quicgym.agents.tuning.parameter_sweep import ParameterStudy

    study = ParameterStudy(load_sweep("ebcc-gamma-beta"))

    def identities() -> list[str]:
        entries = [load_entry(tmp_path / f"{name}.yaml") for name in ("traced", "drawn")]
        return [study.identity({}, [entry]).fingerprint for entry in entries]

    found = []
    for packets in ("1\n2\n", "1\n3\n"):
        trace.write_text(packets)
        found += identities()
    assert identities() == found[2:]
    monkeypatch.setattr(_core, "commit", "0123abcd")
    assert len({*found, *identities()}) == 6
