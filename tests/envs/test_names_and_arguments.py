"""One name for an environment everywhere, and what wrong names and arguments are answered."""

import inspect
import re
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from helpers import environments as helper

import quicgym
from quicgym.agents.training.configuration import EnvironmentConfig
from quicgym.envs import ENVIRONMENTS, environment_ids, environments, find_environment
from quicgym.envs.actions import action_space, choices
from quicgym.envs.decisions import Decisions
from quicgym.envs.observations import observation_names, observation_space
from quicgym.envs.parallel import ParallelCongestionControlEnv
from quicgym.envs.vector import CongestionControlVectorEnv

IDS = {
    "rate": "quicgym/Rate-v1",
    "tuning": "quicgym/Tuning-v1",
    "window": "quicgym/Window-v1",
    "easy": "quicgym/Easy-v1",
}
NAMES = tuple(IDS)


def test_the_environments_by_name_and_by_id():
    assert set(environments()) >= set(NAMES)
    assert set(ENVIRONMENTS) == set(IDS.values())
    assert set(environment_ids()) >= set(ENVIRONMENTS)
    for name in NAMES:
        environment = find_environment(name)
        assert environment.id == IDS[name]
        assert environment is find_environment(environment.id) is environments()[name]
        assert gymnasium.make(environment.id).unwrapped.__class__ is environment
        assert environment.__module__ == f"quicgym.envs.{name}"


SCENARIO = helper.scenario(flows=2, duration_s=0.5)
BY_NAME = {
    "make_vec": lambda name: quicgym.make_vec(name, 2, scenario=SCENARIO).single_action_space,
    "vector": lambda name: CongestionControlVectorEnv(name, scenario=SCENARIO).single_action_space,
    "parallel": lambda name: ParallelCongestionControlEnv(name, SCENARIO).action_space("flow-1"),
    "action_space": action_space,
    "EnvironmentConfig": lambda name: action_space(EnvironmentConfig(id=name).id),
    "Decisions": lambda name: action_space(Decisions(name).environment),
}


@pytest.mark.parametrize("constructor", BY_NAME)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("error", "ignore:.*v0 is out of date")
def test_a_name_and_an_id_work_everywhere(constructor, name):
    expected = gymnasium.make(find_environment(name).id).action_space
    assert BY_NAME[constructor](name) == expected
    assert BY_NAME[constructor](find_environment(name).id) == expected


@pytest.mark.parametrize("name", NAMES)
def test_spaces_and_choices_take_both(name):
    full = find_environment(name).id
    assert observation_names(2, name) == observation_names(2, full)
    assert observation_space(2, name) == observation_space(2, full)
    assert choices(name) == choices(full)


@pytest.mark.train
def test_sb3_takes_names_and_suggests_arguments():
    from quicgym.envs.sb3 import make_sb3

    assert make_sb3("window", 1, scenario=SCENARIO).action_space == action_space("window")
    for misspelt, meant in (("privilegd", "privileged"), ("history_lenght", "history_length")):
        with pytest.raises(TypeError, match=f"'{misspelt}'; did you mean {meant}"):
            make_sb3("window", 1, **{misspelt: True})


def test_a_published_policy_loads_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert quicgym.load_policy("window").decisions.environment == "window"


@pytest.mark.parametrize("constructor", BY_NAME)
def test_an_unknown_name_is_answered_with_the_known_ones(constructor):
    with pytest.raises(ValueError, match="unknown environment 'wndow'; did you mean window"):
        BY_NAME[constructor]("wndow")
    if constructor != "make_vec":  # Gymnasium answers for ids, which may be of other packages
        with pytest.raises(ValueError, match="'quicgym/Rat-v1'; did you mean quicgym/Rate-v1"):
            BY_NAME[constructor]("quicgym/Rat-v1")


MAKERS = {
    "gymnasium.make": lambda **fields: gymnasium.make("quicgym/Rate-v1", **fields),
    "class": lambda **fields: find_environment("rate")(**fields),
    "make_vec": lambda **fields: quicgym.make_vec("rate", **fields),
    "gymnasium.make_vec": lambda **fields: gymnasium.make_vec("quicgym/Rate-v1", **fields),
    "parallel": lambda **fields: ParallelCongestionControlEnv("rate", **fields),
}


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize(
    "misspelt, meant", [("scenaro", "scenario"), ("decision_intervall_ms", "decision_interval_ms")]
)
def test_a_misspelt_argument_has_a_suggestion(maker, misspelt, meant):
    with pytest.raises(
        TypeError, match=f"unexpected keyword argument '{misspelt}'; did you mean {meant}"
    ) as caught:
        MAKERS[maker](**{misspelt: 1})
    assert " self," not in str(caught.value)


@pytest.mark.parametrize("maker", MAKERS)
def test_every_field_of_decisions_is_an_argument(maker):
    decisions = Decisions("rate", 50, 2.0, 3, "recent", None, None, 25, False, True, "error")
    made = MAKERS[maker](scenario=SCENARIO, **decisions.arguments)
    assert made.unwrapped._batch.source.decisions == decisions


@pytest.mark.parametrize(
    "constructor",
    [find_environment("rate"), CongestionControlVectorEnv, ParallelCongestionControlEnv],
)
def test_signatures_show_the_fields_of_decisions(constructor):
    shown = inspect.signature(constructor).parameters
    for name in Decisions().arguments:
        assert shown[name].default == getattr(Decisions, name)


@pytest.mark.parametrize("maker", MAKERS)
def test_a_scenario_that_is_none_is_an_error_at_once(maker):
    with pytest.raises(ValueError, match="scenario = None: give a Scenario, a distribution"):
        MAKERS[maker](scenario=None)


@pytest.mark.parametrize(
    "mode, expected",
    [
        ("next_step", AutoresetMode.NEXT_STEP),
        ("NEXT_STEP", AutoresetMode.NEXT_STEP),
        ("NextStep", AutoresetMode.NEXT_STEP),
        ("same_step", AutoresetMode.SAME_STEP),
        (AutoresetMode.SAME_STEP, AutoresetMode.SAME_STEP),
    ],
)
def test_autoreset_modes_by_name(mode, expected):
    vector = quicgym.make_vec("rate", autoreset_mode=mode)
    assert vector.metadata["autoreset_mode"] is expected


@pytest.mark.parametrize(
    "mode, message",
    [
        ("next_stop", "'next_stop'; did you mean next_step.*there are: next_step, same_step"),
        (None, "None; there are: next_step, same_step"),
        ("disabled", "give NEXT_STEP or SAME_STEP; without autoreset, step single environments"),
    ],
)
def test_an_unknown_autoreset_mode_is_answered_with_the_known_ones(mode, message):
    with pytest.raises(ValueError, match=message):
        quicgym.make_vec("rate", autoreset_mode=mode)


@pytest.mark.parametrize("name", NAMES)
def test_actions_and_observations_have_names(name):
    single = find_environment(name)(SCENARIO)
    rows = CongestionControlVectorEnv(name, 2, scenario=SCENARIO)
    agents = ParallelCongestionControlEnv(name, SCENARIO)
    for environment in (single, rows, agents):
        assert environment.get_action_meanings() == list(environment.action_names)
        assert environment.action_names == single.action_names
        assert environment.observation_names == single.observation_names
    space = single.action_space
    size = space.shape[0] if space.shape else space.n
    assert len(single.action_names) == len(set(single.action_names)) == size
    length = single.default_history_length
    assert single.observation_names == observation_names(length, name)
    assert len(single.observation_names) == single.observation_space.shape[0]


SHORT = {"scenario": helper.scenario()}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            {"scenario": "trainning"},
            "'trainning'; did you mean training.*`quicgym show scenarios` has all",
        ),
        ({"scenario": "heldout"}, "'heldout' is a suite.*a distribution, such as 'training'"),
        ({"decision_interval_ms": "100"}, "decision_interval_ms = '100': give a number from 1 to"),
        ({"decision_interval_rtts": True}, "decision_interval_rtts = True: give a number from 0.1"),
        ({"guard": 3}, "guard = 3: give True or False"),
        ({"safe_envelope": "no"}, "safe_envelope = 'no': give True or False"),
        ({"episode_s": "1"}, "episode_s = '1': give a number .*in seconds, or None"),
        ({"other_controllers": "xx"}, "other_controllers: unknown controller 'xx'"),
        ({"engine": None}, "unknown engine None; there are: native, ns3"),
        ({"reward": "speed"}, "unknown reward 'speed'.*fair-throughput"),
        ({"reward": ["power"]}, r"reward = \['power'\]: give the name of a reward"),
        ({"reward": None}, r"reward = None: give the name of a reward \(fair-throughput, "),
        ({"scenario": "ebcc-single", "episode_s": 30}, "episode_s = 30: ebcc-single lasts 20 s"),
        ({"history_length": 1.5}, "history_length = 1.5: give a whole number from 1 to 1000"),
    ],
)
def test_a_wrong_argument_of_an_environment(arguments, words):
    with pytest.raises(ValueError, match=words):
        gymnasium.make("quicgym/Window-v1", **arguments)


@pytest.mark.parametrize(
    ("name", "value"),
    [("num_envs", 1.5), ("num_envs", 0), ("num_envs", 10**10), ("num_threads", "2")],
)
def test_a_wrong_number_of_a_vector_environment(name, value):
    with pytest.raises(ValueError, match=f"{name} = {value!r}: give a whole number from 1 to"):
        quicgym.make_vec("window", **{"num_envs": 2, name: value, **SHORT})


@pytest.mark.parametrize(
    ("name", "value"),
    [("on_worker_death", "x"), ("per_flow", 1), ("reward_per_flow", "no")],
)
def test_a_wrong_choice_of_a_vector_environment(name, value):
    with pytest.raises(ValueError, match=f"{name} = {value!r}: give "):
        quicgym.make_vec("window", 2, **{name: value}, **SHORT)


@pytest.mark.train
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"infos": "x"}, "infos = 'x': give 'all' or 'ends'"),
        ({"privileged": 3}, "privileged = 3: give True or False"),
    ],
)
def test_a_wrong_choice_of_the_environments_of_sb3(arguments, says):
    from quicgym.envs.sb3 import make_sb3

    with pytest.raises(ValueError, match=says):
        make_sb3("window", 2, **arguments, **SHORT)
    with pytest.raises(TypeError, match="unexpected keyword argument 'autoreset_mode'"):
        make_sb3("window", 2, autoreset_mode="SameStep", **SHORT)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (3, "options = 3: give a mapping"),
        ({"controller": "ebcc", "parameters": 3}, "give a mapping"),
    ],
)
def test_wrong_options_of_a_reset(options, says):
    environment = gymnasium.make("quicgym/Window-v1", **SHORT)
    with pytest.raises(ValueError, match=says):
        environment.reset(seed=1, options=options)


def test_a_reward_function_whose_rewards_are_no_numbers():
    environment = gymnasium.make("quicgym/Window-v1", reward=lambda info: ["much"], **SHORT)
    environment.reset(seed=1)
    with pytest.raises(ValueError, match=r"<lambda> returned \['much'\]; give finite numbers"):
        environment.step(0)


def test_rows_of_each_flow_have_no_flow_of_their_own():
    with pytest.raises(ValueError, match="flow = 0: with per_flow"):
        quicgym.make_vec("tuning", per_flow=True, flow=0)


def test_a_reward_function_that_reads_a_column_that_info_does_not_have():
    environment = gymnasium.make("quicgym/Window-v1", reward=lambda info: info["thruput"], **SHORT)
    environment.reset(seed=1)
    with pytest.raises(KeyError, match="no column 'thruput'; did you mean throughput_mbps"):
        environment.step(0)


@pytest.mark.parametrize("seed", [1.0, "11"])
def test_a_wrong_seed_of_a_simulation_or_a_vector_environment(seed):
    environments = quicgym.make_vec("window", 2, **SHORT)
    for begin in (environments.reset, lambda seed: quicgym.run("ebcc-single", seed=seed)):
        with pytest.raises(ValueError, match=re.escape(f"seed = {seed!r}: give a whole number")):
            begin(seed=seed)


def test_seeds_of_a_vector_environment_are_whole_numbers_of_any_kind():
    environments = quicgym.make_vec("window", 2, **SHORT)
    observations, _ = environments.reset(seed=[3, 4])
    assert np.array_equal(environments.reset(seed=np.array([3, 4]))[0], observations)
    for seed, named in (
        (-1, "seed = -1"),
        (True, "seed = True"),
        ([1, -2], "seed of simulation 1"),
    ):
        with pytest.raises(ValueError, match=f"{named}.*give a whole number from 0"):
            environments.reset(seed=seed)


@pytest.mark.parametrize("action", ["6", True, 6 + 2j])
def test_text_truth_values_and_complex_numbers_are_no_actions(action):
    environment = gymnasium.make("quicgym/Window-v1", **SHORT)
    environments = quicgym.make_vec("window", 2, **SHORT)
    for each, given in ((environment, action), (environments, [action, action])):
        each.reset(seed=1)
        with pytest.raises(ValueError, match="give an array of numbers"):
            each.step(given)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_an_action_that_is_not_finite_is_refused_and_not_clipped(value):
    environment = gymnasium.make("quicgym/Tuning-v1", **SHORT)
    environment.reset(seed=1)
    action = np.zeros(environment.action_space.shape, np.float32)
    environment.step(action + 2)  # which is clipped
    action[1] = value
    with pytest.raises(ValueError, match=rf"beta = {value}; give a number from -1 to 1"):
        environment.step(action)


def test_a_step_after_close_says_that_the_environment_is_closed():
    environment = gymnasium.make("quicgym/Window-v1", **SHORT)
    environment.reset(seed=1)
    environment.close()
    with pytest.raises(RuntimeError, match="is closed; make another one, or begin an episode"):
        environment.step(0)
    environment.reset(seed=1)
    environment.step(0)
