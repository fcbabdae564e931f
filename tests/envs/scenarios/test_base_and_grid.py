"""`base` and `grid`: what scenarios have in common is written once."""

from __future__ import annotations

from pathlib import Path

import pytest

from quicgym import ScenarioError, load_scenario
from quicgym.envs.scenarios.files import SCENARIOS, scenario_names
from quicgym.envs.scenarios.links import GilbertElliottLoss, Queue
from quicgym.envs.scenarios.suites import load_suite
from quicgym.yaml_files import yaml_names

NETWORK = """
duration_s: 10
bottleneck: {rate_mbps: 15, delay_ms: 10, queue: {limit: 50}}
access: {rate_mbps: 50, delay_ms: 20}
flows: [{start_s: 1}]
"""


def written(folder: Path, text: str, name: str = "mine.yaml") -> Path:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_a_family_s_file_begins_the_names_of_its_scenarios() -> None:
    families = yaml_names(SCENARIOS)
    assert {name for name in scenario_names() if not name.startswith(tuple(families))} == set()
    for family in families:
        names = [scenario.name for scenario in load_suite(Path(str(SCENARIOS / f"{family}.yaml")))]
        assert set(names) <= set(scenario_names())
        assert all(name.startswith(family) for name in names)


def test_a_file_starts_from_a_scenario_of_quicgym(tmp_path: Path) -> None:
    base = load_scenario("ebcc-flows-3")
    text = "base: ebcc-flows-3\nname: deeper\nbottleneck: {queue: {limit: 400}}\n"
    assert load_scenario(written(tmp_path, text)) == base.model_copy(
        update={
            "name": "deeper",
            "description": "",
            "bottleneck": base.bottleneck.model_copy(
                update={"queue": base.bottleneck.queue.model_copy(update={"limit": 400})}
            ),
        }
    )


def test_lists_null_and_another_kind_take_the_base_s_place(tmp_path: Path) -> None:
    written(
        tmp_path,
        f"name: lossy{NETWORK}".replace("}}", "}, loss: {kind: bernoulli, probability: 0.1}}"),
        "base.yaml",
    )
    loss = "{kind: gilbert-elliott, good_to_bad: 0.1, bad_to_good: 0.5}"
    text = f"base: base.yaml\nname: other\nbottleneck: {{loss: {loss}}}\nflows: [{{}}, {{}}]\n"
    other = load_scenario(written(tmp_path, text))
    assert other.bottleneck.loss == GilbertElliottLoss(good_to_bad=0.1, bad_to_good=0.5)
    assert [flow.start_s for flow in other.flows] == [0, 0]
    without = "base: base.yaml\nname: without\nbottleneck: {loss: null, queue: null}\n"
    plain = load_scenario(written(tmp_path, without)).bottleneck
    assert (plain.loss, plain.queue) == (None, Queue())


def test_a_trace_stays_in_the_folder_of_the_base(tmp_path: Path) -> None:
    written(tmp_path, "1\n2\n", "there/rates.trace")
    link = "bottleneck: {trace: rates.trace, delay_ms: 10}\nreverse: {rate_mbps: 1, delay_ms: 1}"
    text = f"name: traced{NETWORK}".replace(NETWORK.split("\n")[2], link)
    written(tmp_path, text, "there/base.yaml")
    based = load_scenario(written(tmp_path, "base: there/base.yaml\nname: mine\n"))
    assert based.bottleneck.trace == tmp_path / "there/rates.trace"


def test_a_scenario_of_a_list_starts_from_an_earlier_one(tmp_path: Path) -> None:
    first = "- name: one" + NETWORK.replace("\n", "\n  ")
    second = "\n- base: one\n  name: two\n  access: {delay_ms: 5}\n"
    one, two = load_suite(written(tmp_path, first + second))
    assert (one.name, two.name) == ("one", "two")
    assert two.access == one.access.model_copy(update={"delay_ms": 5})


def test_a_grid_makes_every_combination(tmp_path: Path) -> None:
    grid = """
grid:
  - {slow: , 30: {bottleneck: {rate_mbps: 30}}}
  - {"": , two: {flows: [{count: 2}]}}
"""
    suite = load_suite(written(tmp_path, f"name: mine{NETWORK}{grid}"))
    assert [scenario.name for scenario in suite] == [
        "mine-slow",
        "mine-slow-two",
        "mine-30",
        "mine-30-two",
    ]
    assert [scenario.bottleneck.rate_mbps for scenario in suite] == [15, 15, 30, 30]
    assert [scenario.flows[0].count for scenario in suite] == [1, 2, 1, 2]
    listed = "- base: ebcc-single\n  name: ebcc\n  grid: [{short: {duration_s: 2}}]\n"
    (short,) = load_suite(written(tmp_path, listed))
    assert (short.name, short.duration_s) == ("ebcc-short", 2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("base: ebcc-singl\nname: a\n",
         r"mine\.yaml: base = 'ebcc-singl': .* did you mean ebcc-single\? .*YAML's path"),
        ("base: 5\nname: a\n", r"mine\.yaml: base = 5: is no text; give the name"),
        ("base: mine.yaml\nname: a\n", r"mine\.yaml: base = 'mine\.yaml': .*on itself"),
        ("base: none.yaml\nname: a\n", r"none\.yaml: No such file"),
        ("base: list.yaml\nname: a\n", r"base = 'list\.yaml': .*no single scenario"),
        ("base: ebcc-single\n", r"mine\.yaml: name: is missing"),
        ("base: ebcc-single\nname: a\naccess: {delay: 1}\n", r"mine\.yaml: access\.delay = 1"),
        ("- {base: ebcc-single, name: a, grid: [{b: {access: {delay_ms: -1}}}]}\n",
         r"mine\.yaml: 0: a-b: access\.delay_ms = -1"),
        ("- {base: ebcc-single, name: a, grid: 5}\n", r"mine\.yaml: 0: grid: .* list"),
    ],
)  # fmt: skip
def test_errors_name_file_field_and_value(tmp_path: Path, text: str, said: str) -> None:
    written(tmp_path, "[]", "list.yaml")
    with pytest.raises(ScenarioError, match=said):
        load_suite(written(tmp_path, text))


def test_a_file_for_one_scenario_has_no_grid(tmp_path: Path) -> None:
    text = "base: ebcc-single\nname: a\ngrid: [{b: }]\n"
    with pytest.raises(ScenarioError, match=r"mine\.yaml: grid: makes several .*a suite"):
        load_scenario(written(tmp_path, text))
