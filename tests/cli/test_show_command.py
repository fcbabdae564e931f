"""`quicgym show`: every name that other commands take, with what it stands for."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from conftest import Command
from helpers.commands import says

from quicgym import controllers
from quicgym.agents.policies.by_name import pretrained_names
from quicgym.envs import scenario_names
from quicgym.envs.registration import environment_ids, find_environment
from quicgym.envs.scenarios.distributions import distribution_names
from quicgym.envs.scenarios.suites import suite_names

KINDS: dict[str, Callable[[], Iterable[str]]] = {
    "controllers": controllers.names,
    "policies": pretrained_names,
    "environments": environment_ids,
    "scenarios": scenario_names,
    "suites": suite_names,
    "distributions": distribution_names,
}


def shown(text: str) -> dict[str, str]:
    """The first line of each entry of a table, by its name."""
    table = text.split("\n\n")[0].splitlines()[1:]
    lines = [line.split(maxsplit=1) for line in table if line[0] != " "]
    return {name: rest[0] if rest else "" for name, *rest in lines}


@pytest.mark.parametrize("kind", KINDS)
def test_every_name_is_there_with_what_it_stands_for(kind: str, quicgym: Command) -> None:
    found = shown(quicgym("show", kind).stdout)
    assert list(found) == list(KINDS[kind]())
    without = [name for name, text in found.items() if not text]
    if kind == "environments":  # those of other tests have no docstring
        without = [
            name for name in without if find_environment(name).__module__.startswith("quicgym.")
        ]
    assert without == []


def test_controllers_have_their_parameters(quicgym: Command) -> None:
    listed = quicgym("show", "controllers").stdout
    assert "gamma" in listed and "hystart-linux" in listed


def test_patterns_choose(quicgym: Command) -> None:
    assert list(shown(quicgym("show", "controllers", "bbr3", "copa*").stdout)) == ["bbr3", "copa"]
    assert set(shown(quicgym("show", "suites", "*wireless").stdout)) == {
        "heldout-wireless", "ibcca-wireless",
    }  # fmt: skip


def test_a_drawn_suite_says_what_it_is_drawn_from(quicgym: Command) -> None:
    text = shown(quicgym("show", "suites", "heldout-lan").stdout)["heldout-lan"]
    assert text.startswith("128 networks of the distribution `lan`, in cells")


def test_an_unknown_name_or_kind_is_refused(quicgym: Command) -> None:
    wrong = quicgym("show", "controllers", "bbr5", status=2)
    says(wrong, "'bbr5' is none of the controllers", "did you mean bbr?")
    says(quicgym("show", "polices", status=2), "'polices'", "did you mean policies?")
