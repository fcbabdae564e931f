"""Training algorithms by name, those of other packages included."""

from __future__ import annotations

import inspect
import sys

import pytest
from helpers.training import NEEDS_TRAIN
from helpers.training import install_algorithm as install

from quicgym import plugins
from quicgym.agents.algorithms import registry
from quicgym.agents.training.configuration import ConfigError, load_training


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder on Python's path, whose entry points are looked up anew."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    plugins.installed.cache_clear()
    yield folder
    sys.modules.pop("my_package", None)
    plugins.installed.cache_clear()


ENTRY = """
from quicgym.agents.algorithms.registry import Algorithm
ALGORITHM = Algorithm(name="mine", implementation="nowhere:Mine", environments=("quicgym/Rate-v1",))
"""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=NEEDS_TRAIN) for name in registry.BUILT_IN]
)
def test_what_an_entry_says_of_hyperparameters_is_true(name):
    entry = registry.find(name)
    found = entry.implementation_class
    settings = getattr(found, "Settings", None)
    arguments = settings.model_fields if settings else inspect.signature(found).parameters
    assert set(entry.mutable) <= set(arguments)


def test_a_package_s_algorithm_is_found_by_name(site, tmp_path):
    install(site, "my_package", ENTRY, "mine")
    assert registry.names()[-1] == "mine"
    assert registry.find("mine").environments == ("quicgym/Rate-v1",)
    config = load_training("rate-ppo", ["algorithm=mine", "start.std=null", "hyperparameters={}"])
    assert config.entry.name == "mine"
    with pytest.raises(ConfigError, match="algorithm = 'mine' is for quicgym/Rate-v1"):
        load_training("window", ["algorithm=mine", "start={}"])


WRONG = r"my_package\) cannot be loaded: TypeError: has to be an Algorithm with the name"


@pytest.mark.parametrize(
    ("code", "name", "words"),
    [
        (ENTRY, "yours", f"{WRONG} 'yours'"),
        ("ALGORITHM = 3", "mine", f"{WRONG} 'mine'"),
        ("import no_module", "mine", r"of my_package\) cannot be loaded: ModuleNotFoundError"),
    ],
)
def test_an_entry_that_cannot_be_used_is_named(code, name, words, site):
    install(site, "my_package", code, name)
    with pytest.raises(ConfigError, match=f"algorithm = '{name}': .*{words}"):
        load_training("tuning-ppo", [f"algorithm={name}"])
    assert load_training("tuning-ppo").algorithm == "ppo"


def test_a_name_that_two_packages_register_is_refused(site):
    install(site, "my_package", ENTRY, "mine")
    install(site, "your_package", ENTRY, "mine")
    with pytest.raises(ConfigError, match="is registered by my_package and your_package; keep one"):
        load_training("tuning-ppo", ["algorithm=mine"])


def test_a_name_of_quicgym_s_own_is_not_taken(site):
    install(site, "my_package", ENTRY, "ppo")
    with pytest.warns(RuntimeWarning, match="my_package.* is refused"):
        assert registry.names() == list(registry.BUILT_IN)
    assert registry.find("ppo").implementation == "stable_baselines3:PPO"


def test_an_unknown_algorithm_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match="algorithm = 'agrevate'.* did you mean aggrevate"):
        load_training("window-start", ["algorithm=agrevate"])
