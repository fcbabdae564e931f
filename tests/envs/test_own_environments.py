"""The recipe of docs/how-to/own-environment.md, followed."""

import shutil
import subprocess
from importlib.metadata import EntryPoint
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from helpers import environments as helper

import quicgym
from quicgym import _core, plugins
from quicgym.agents.evaluation.rollouts import play
from quicgym.agents.policies.policy import ConstantPolicy
from quicgym.agents.training.configuration import EnvironmentConfig
from quicgym.envs import environments, registration
from quicgym.envs.actions import WINDOW_EXPONENTS, action_space
from quicgym.envs.decisions import Decisions
from quicgym.envs.environment import CongestionControlEnv
from quicgym.envs.parallel import ParallelCongestionControlEnv
from quicgym.envs.vector import CongestionControlVectorEnv

ROOT = Path(__file__).parents[2]
ID = "quicgym/PlainWindow-v1"


@pytest.fixture
def own():
    """The environment of helpers.own_environments, for one test."""
    known = set(environments())
    from helpers.own_environments import PlainWindowEnv  # which registers it, once

    if "plain_window" not in known:
        assert set(environments()) == {*known, "plain_window"}
    return PlainWindowEnv


def test_every_way_to_make_an_environment_knows_one_of_your_own(own):
    scenario = helper.scenario(flows=2, duration_s=1)
    check_env(gymnasium.make(ID, scenario=scenario).unwrapped)
    single = gymnasium.make(ID, scenario=scenario).unwrapped
    vector = quicgym.make_vec("plain_window", 1, scenario=scenario)
    assert vector.environment is own
    first, _ = vector.reset(seed=[3])
    observation, _ = single.reset(seed=3)
    chosen = helper.actions(single.action_space, 5)
    for action in chosen:
        expected, *_ = vector.step(np.array([action]))
        assert np.array_equal(single.step(action)[0], expected[0])
    parallel = ParallelCongestionControlEnv("plain_window", scenario)
    assert parallel.action_space("flow-1") == action_space("window")
    decisions = Decisions("plain_window")
    action = np.array(WINDOW_EXPONENTS.index(0.0))
    still = ConstantPolicy("still", action, decisions=decisions)
    assert play(still, scenario).metrics["agent_goodput_mbps"] > 0
    assert EnvironmentConfig(id="plain_window").id == ID


def harsh_step(self, action):
    observation, reward, *rest = CongestionControlEnv.step(self, action)
    return observation, reward - 100, *rest


def own_reset(self, **arguments):
    return CongestionControlEnv.reset(self, **{**arguments, "options": {"controller": "cubic"}})


def own_arguments(self, *arguments, **more):
    CongestionControlEnv.__init__(self, *arguments, **{**more, "reward": "power"})


@pytest.mark.parametrize(
    ("name", "method"),
    [("step", harsh_step), ("reset", own_reset), ("__init__", own_arguments)],
)
def test_a_class_that_does_more_than_declare_is_refused_where_its_methods_are_not_called(
    name, method
):
    fields = {"action_space_name": "window", "controller": "external", name: method}
    fields["environment"] = f"overrides_{name.strip('_')}"
    environment = type("Overriding", (CongestionControlEnv,), fields)
    scenario = helper.scenario()
    still = ConstantPolicy("still", np.array(6), decisions=Decisions(environment.environment))
    for make in (
        lambda: quicgym.make_vec(environment.environment, 2, scenario=scenario),
        lambda: CongestionControlVectorEnv(environment, 2, scenario=scenario),
        lambda: ParallelCongestionControlEnv(environment, scenario),
        lambda: play(still, scenario),
        lambda: EnvironmentConfig(id=environment.environment),
    ):
        with pytest.raises(ValueError, match=f"Overriding overrides {name}, .*SyncVectorEnv"):
            make()
    # The remedy.
    side_by_side = gymnasium.vector.SyncVectorEnv([lambda: environment(scenario)] * 2)
    single = environment(scenario)
    single.reset(seed=1)
    side_by_side.reset(seed=1)
    assert side_by_side.step([6, 6])[1][0] == single.step(6)[1]


def test_its_action_space_acts_on_its_controller(own):
    environment = own(helper.scenario(loss=0))
    before = environment.reset(seed=1)[1]["flow_window_bytes"]
    # Unlike Window, from the first decision on: `external` has no slow start.
    environment.step(WINDOW_EXPONENTS.index(0.0))
    after = environment.step(WINDOW_EXPONENTS.index(1.0))[4]["flow_window_bytes"]
    assert after == 2 * before


@pytest.mark.ns3
def test_it_runs_over_ns3_in_one_process_and_in_many(own):
    scenario = helper.scenario(duration_s=0.5)
    vectors = [
        quicgym.make_vec("plain_window", 2, scenario=scenario, engine=engine)
        for engine in ("native", "ns3")
    ]
    actions = np.array([12, 0])
    rows = []
    for vector in vectors:
        vector.reset(seed=1)
        rows.append(vector.step(actions)[0])
        vector.close()
    assert np.array_equal(*rows)


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"environment": "tuning"}, "'tuning': is the name of quicgym.envs.tuning.TuningEnv"),
        ({"environment": "My env", "action_space_name": "rate"}, "give a lower-case name"),
        ({"environment": "mine"}, "unknown environment 'mine'.*there are: .*rate"),
        (
            {"environment": "mine", "action_space_name": "rate", "observations": "frame"},
            "no observation layout is named 'frame'; there are: cycle, recent, spans",
        ),
    ],
)
def test_a_name_that_cannot_be_is_an_error(fields, message):
    before = dict(environments())
    with pytest.raises(ValueError, match=message):
        type("MineEnv", (CongestionControlEnv,), {"controller": "external", **fields})
    assert environments() == before


def test_an_environment_of_a_package_is_imported_when_it_is_named(tmp_path, monkeypatch):
    (tmp_path / "package_of_it.py").write_text(
        "from quicgym.envs import WindowEnv\n"
        "class SlowWindowEnv(WindowEnv):\n"
        "    environment, action_space_name = 'slow_window', 'window'\n"
    )
    entry = EntryPoint("slow_window", "package_of_it:SlowWindowEnv", "quicgym.environments")
    found = {"environment": {"slow_window": (entry,)}}
    monkeypatch.setattr(plugins, "installed", lambda kind: found.get(kind, {}))
    monkeypatch.setattr(registration, "_registered", dict(environments()))
    monkeypatch.syspath_prepend(tmp_path)
    assert "slow_window" not in environments()
    assert registration.find_environment("quicgym/SlowWindow-v1").id == "quicgym/SlowWindow-v1"
    vector = quicgym.make_vec("slow_window", 1, scenario="ebcc-single")
    assert vector.environment.__name__ == "SlowWindowEnv"
    vector.close()


def test_a_subclass_without_a_name_of_its_own_is_not_registered():
    before = dict(environments())
    inherits = type("Inherits", (environments()["rate"],), {})
    assert environments() == before and inherits.action_space_name == "rate"


MAIN_OF_ACTIONS = """
#include <iostream>
#include <stdexcept>

#include "sim/environment/action_space.hpp"

int main() {
    using namespace quicgym::environment;
    for (const ActionSpace& space : action_spaces()) {
        std::cout << space.name << ' ' << space.size() << ' ' << space.shown_size() << '\\n';
    }
    const ActionSpace& space = find_action_space("halving");
    const auto actuator = space.make_actuator(space, 0);
    std::cout << actuator->shown().size() << '\\n';
    const float bad[] = {7.0F};
    try {
        space.check(3, bad);
    } catch (const std::invalid_argument& error) {
        std::cout << error.what() << '\\n';
    }
}
"""
MAIN_OF_OBSERVATIONS = """
#include <iostream>
#include <stdexcept>

#include "sim/environment/observation.hpp"

int main() {
    using namespace quicgym;
    const environment::ObservationLayout& layout = environment::find_observation_layout("queueing");
    for (const environment::Element& element : layout.elements(2)) {
        std::cout << element.name << ' ' << element.minimum << ' ' << element.maximum << '\\n';
    }
    const auto observer = layout.make_observer(2, 1200);
    FlowState state{};
    observer->start(state);
    state.sample.rtt = 3 * kMillisecond;
    state.min_rtt = 2 * kMillisecond;
    observer->update(state);
    float observation[2];
    std::cout << observer->write(observation) - observation << ' ';
    std::cout << observation[0] << ' ' << observation[1] << '\\n';
    try {
        environment::find_observation_layout("queuing");
    } catch (const std::invalid_argument& error) {
        std::cout << error.what() << '\\n';
    }
}
"""
RECIPES = {
    "action_space": (
        MAIN_OF_ACTIONS,
        ["halving 1 2", "2", "action of row 3: [0], change = 7; give a whole number from 0 to 1"],
    ),
    "observation": (
        MAIN_OF_OBSERVATIONS,
        [
            "queueing[1] 0 9",
            "queueing[0] 0 9",
            "2 0 0.5",
            "no observation layout is named 'queuing'; there are: queueing",
        ],
    ),
}


@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler")
@pytest.mark.parametrize("place", range(len(RECIPES)), ids=RECIPES)
def test_the_cpp_file_of_a_recipe_registers_itself(tmp_path, place):
    registry, (main, expected) = list(RECIPES.items())[place]
    # The part and its registry alone, and in one file: to build all of quicgym takes minutes.
    sources = [registry, *(["parameter_mapping"] if registry == "action_space" else [])]
    included = "\n".join(f'#include "sim/environment/{name}.cpp"' for name in sources)
    page = (ROOT / "docs" / "how-to" / "own-environment.md").read_text(encoding="utf-8")
    part = page.split("```cpp\n")[place + 1].split("```")[0]
    (tmp_path / "main.cpp").write_text(part + included + main)
    program = tmp_path / "program"
    compiled = subprocess.run(
        ["c++", "-std=c++20", "-O0", "-Wall", "-Wextra", "-I", ROOT, "-o", program]
        + [tmp_path / "main.cpp"],
        capture_output=True,
        text=True,
    )
    assert compiled.returncode == 0 and not compiled.stderr, compiled.stderr
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == expected


def test_cmake_takes_every_file_of_the_folder():
    names = {space.name for space in _core.action_spaces()}
    files = {path.name for path in (ROOT / "sim" / "environment").glob("*_action.cpp")}
    # One file has a space for each controller.
    alone = {name for name in names if not name.startswith("tuning:")}
    assert files == {f"{name}_action.cpp" for name in alone} | {"parameters_action.cpp"}
    layouts = {path.name for path in (ROOT / "sim" / "environment").glob("*_observation.cpp")}
    # `recent` and `cycle` are in the file of `spans`.
    alone = set(_core.observation_layouts()) - {"recent", "cycle"}
    assert layouts == {f"{name}_observation.cpp" for name in alone}
