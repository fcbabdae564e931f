"""Mixtures of distributions: what is drawn, how often, and what is said of a wrong one."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.scenarios.files import as_yaml, load_scenario
from quicgym.envs.scenarios.mixtures import load_mixture
from quicgym.envs.scenarios.suites import content_of, load_entry, load_suite


def write(folder, text):
    file = folder / "mine.yaml"
    file.write_text(f"name: mine\nmixture: {text}\n")
    return file


def test_distributions_are_drawn_from_by_their_weights(tmp_path):
    mixture = load_entry(write(tmp_path, "{training-50: 3, stress-training: 1}"))
    rng = np.random.default_rng(1)
    names = Counter(mixture.sample(rng).name for _ in range(400))
    assert set(names) == {"training-50", "stress-training"}
    assert 260 < names["training-50"] < 340


def test_a_mixture_is_a_suite_and_says_how_many_agents_there_are():
    (wide,) = load_suite("wide")
    assert wide.most_agents == 16 and wide.draws_agents
    assert load_mixture("wide") == wide


def test_paths_are_those_of_the_file_s_folder(tmp_path):
    (tmp_path / "narrow.yaml").write_text(
        "name: narrow\nduration_s: 1\nrate_mbps: {minimum: 1, maximum: 2}\n"
        "rtt_ms: {minimum: 20, maximum: 30}\nqueue_bdp: {minimum: 1, maximum: 2}\n"
    )
    mixture = load_entry(write(tmp_path, "{./narrow.yaml: 1}"))
    assert mixture.sample(np.random.default_rng(0)).name == "narrow"
    assert mixture.most_agents == 1 and not mixture.draws_agents


def test_a_mixture_in_a_mixture_is_drawn_from_as_often_as_its_weight_says(tmp_path):
    (tmp_path / "inner.yaml").write_text("name: inner\nmixture: {training-50: 3, single: 1}\n")
    mixture = load_entry(write(tmp_path, "{single: 1, ./inner.yaml: 2, stress-training: 1}"))
    assert mixture.mixture == {"training-50": 1.5, "single": 1.5, "stress-training": 1}
    rng = np.random.default_rng(1)
    names = Counter(mixture.sample(rng).name for _ in range(400))
    assert 120 < names["training-50"] < 180 and 70 < names["stress-training"] < 130


def test_a_mixture_that_contains_itself_is_refused(tmp_path):
    (tmp_path / "inner.yaml").write_text("name: inner\nmixture: {single: 1, ./mine.yaml: 1}\n")
    with pytest.raises(ScenarioError, match=r"mine\.yaml: mixture: .*inner\.yaml.*leave out"):
        load_entry(write(tmp_path, "{single: 1, ./inner.yaml: 1}"))


def test_a_mistyped_mixture_is_no_scenario_without_its_fields(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\nmixtures: {single: 1}\n")
    with pytest.raises(ScenarioError, match=r"mixtures = .*did you mean mixture") as error:
        load_entry(path)
    assert "duration_s: is missing" not in str(error.value)


def test_a_folder_of_scenarios_is_a_part(tmp_path):
    networks = tmp_path / "networks"
    networks.mkdir()
    scenarios = [load_scenario(name) for name in ("ebcc-flows-3", "ebcc-single")]
    for scenario in scenarios:
        (networks / f"{scenario.name}.yaml").write_text(as_yaml(scenario, str))
    mixture = load_entry(write(tmp_path, "{single: 1, ./networks: 3}"))
    rng = np.random.default_rng(1)
    drawn = [mixture.sample(rng) for _ in range(200)]
    names = Counter(scenario.name for scenario in drawn)
    assert set(names) == {"single", "ebcc-flows-3", "ebcc-single"} and names["single"] < 80
    assert all(scenario in scenarios for scenario in drawn if scenario.name != "single")
    assert mixture.most_agents == 3 and mixture.draws_agents
    before = content_of([mixture])
    (networks / "ebcc-single.yaml").unlink()
    assert content_of([load_entry(write(tmp_path, "{single: 1, ./networks: 3}"))]) != before


def test_a_folder_is_found_from_a_file_in_the_current_folder(tmp_path, monkeypatch):
    networks = tmp_path / "networks"
    networks.mkdir()
    (networks / "one.yaml").write_text(as_yaml(load_scenario("ebcc-single"), str))
    write(tmp_path, "{./networks: 1}")
    monkeypatch.chdir(tmp_path)
    for name in ("mine.yaml", "./mine.yaml", f"../{tmp_path.name}/mine.yaml"):
        assert load_entry(name).sample(np.random.default_rng(0)).name == "ebcc-single"


def test_a_folder_has_to_have_scenarios_for_agents(tmp_path):
    (tmp_path / "networks").mkdir()
    with pytest.raises(ScenarioError, match=r"networks: the folder has no .yaml"):
        load_entry(write(tmp_path, "{./networks: 1}"))
    own = load_scenario("ebcc-single")
    steered = [flow.model_copy(update={"controller": "cubic"}) for flow in own.flows]
    text = as_yaml(own.model_copy(update={"flows": steered}), str)
    (tmp_path / "networks/own.yaml").write_text(text)
    with pytest.raises(ScenarioError, match="leave out `controller` of one"):
        load_entry(write(tmp_path, "{./networks: 1}"))


def test_weights_and_parts_are_part_of_what_differs(tmp_path):
    contents = [
        content_of([load_entry(write(tmp_path, text))])
        for text in ("{training: 1, single: 1}", "{training: 1, single: 2}", "{training: 1}")
    ]
    assert contents[0] != contents[1] != contents[2]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{trainin: 1}", "mixture.*did you mean training"),
        ("{training: 0}", "mixture.training"),
        ("{}", "mixture"),
        ("[training]", "mixture"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_field(tmp_path, text, words):
    with pytest.raises(ScenarioError, match=f"mine.yaml.*{words}"):
        load_entry(write(tmp_path, text))
