"""Training algorithms by name, and how a package adds one, as docs/training.md says."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
import yaml
from helpers.training import NEEDS_TRAIN, train, write_config

from quicgym.agents.algorithms import registry
from quicgym.agents.training.configuration import ConfigError, load_training

DOCUMENTATION = Path(__file__).parents[3] / "docs/training.md"


def install(site: Path, package: str, code: str, *names: str) -> None:
    """Puts a package with entry points into a folder, as pip does."""
    (site / f"{package}.py").write_text(code)
    information = site / f"{package}-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    entries = "".join(f"{name} = {package}:ALGORITHM\n" for name in names)
    (information / "entry_points.txt").write_text(f"[quicgym.algorithms]\n{entries}")


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder on Python's path, whose entry points are looked up anew."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    for cached in (registry.registered, registry.find):
        cached.cache_clear()
    yield folder
    sys.modules.pop("my_package", None)
    for cached in (registry.registered, registry.find):
        cached.cache_clear()


ENTRY = """
from quicgym.agents.algorithms.registry import Algorithm
ALGORITHM = Algorithm(name="mine", implementation="nowhere:Mine", environments=("quicgym/Rate-v0",))
"""


@pytest.mark.parametrize("name", registry.BUILT_IN)
def test_what_an_entry_says_of_hyperparameters_is_true(name):
    entry = registry.find(name)
    if NEEDS_TRAIN[1].args[0]:
        pytest.skip("its class needs the extra `train`")
    import inspect

    arguments = inspect.signature(entry.model_class).parameters
    assert set(entry.mutable) | set(entry.renamed.values()) <= set(arguments)
    assert not set(entry.renamed) & set(arguments)


def test_a_package_s_algorithm_is_found_by_name(site, tmp_path):
    install(site, "my_package", ENTRY, "mine")
    assert registry.names()[-1] == "mine"
    assert registry.find("mine").environments == ("quicgym/Rate-v0",)
    config = load_training("rate-ppo", ["algorithm=mine", "start.std=null", "hyperparameters={}"])
    assert config.entry.name == "mine"
    with pytest.raises(ConfigError, match="algorithm = 'mine' is for quicgym/Rate-v0"):
        load_training("window-grpo", ["algorithm=mine", "start={}"])


@pytest.mark.parametrize(
    ("code", "name", "words"),
    [
        (ENTRY, "yours", "my_package has to be an Algorithm with the name 'yours'"),
        ("ALGORITHM = 3", "mine", "my_package has to be an Algorithm with the name 'mine'"),
        ("import no_module", "mine", r"cannot be loaded \(.* of my_package\): ModuleNotFoundError"),
    ],
)
def test_an_entry_that_cannot_be_used_is_named(code, name, words, site):
    install(site, "my_package", code, name)
    with pytest.raises(ConfigError, match=f"algorithm = '{name}': .*{words}"):
        load_training("ppo", [f"algorithm={name}"])
    assert load_training("ppo").algorithm == "ppo"


def test_a_name_that_two_packages_register_is_refused(site):
    install(site, "my_package", ENTRY, "mine")
    install(site, "your_package", ENTRY, "mine")
    with pytest.raises(ConfigError, match="more than once, by .*my_package.* and .*your_package"):
        load_training("ppo", ["algorithm=mine"])


def test_a_name_of_quicgym_s_own_is_not_taken(site):
    install(site, "my_package", ENTRY, "ppo")
    with pytest.warns(RuntimeWarning, match="my_package.* is refused"):
        assert registry.names() == list(registry.BUILT_IN)
    assert registry.find("ppo").implementation == "stable_baselines3:PPO"


def test_an_unknown_algorithm_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match="algorithm = 'agrevate'.* did you mean aggrevate"):
        load_training("window-aggrevate", ["algorithm=agrevate"])


class TestTheDocumentedWay:
    pytestmark = NEEDS_TRAIN

    def documented(self, language: str) -> str:
        section = DOCUMENTATION.read_text().split("\n## An algorithm of your own\n")[1]
        (block,) = re.findall(rf"```{language}\n(.*?)```", section.split("\n## ")[0], re.DOTALL)
        return block

    def test_an_algorithm_is_added_trained_and_resumed(self, tmp_path):
        code, project = self.documented("python"), self.documented("toml")
        assert '[project.entry-points."quicgym.algorithms"]' in project
        ((name, package),) = re.findall(r'(\w+) = "(\w+):ALGORITHM"', project)
        install(tmp_path, package, code, name)
        config = write_config(tmp_path, "ppo", steps=160)
        fields = yaml.safe_load(config.read_text())
        fields |= {"algorithm": name, "hyperparameters": {"n_steps": 10}}
        config.write_text(yaml.safe_dump(fields))
        environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
        for out, arguments in (
            ("whole", ("steps=320",)),
            ("parts", ()),
            ("parts", ("steps=320", "--resume")),
        ):
            done = train(tmp_path, config, *arguments, "--out", out, env=environment)
            assert done.returncode == 0, done.stderr
        ours, theirs = (
            (tmp_path / out / "policy/policy.safetensors").read_bytes()
            for out in ("whole", "parts")
        )
        assert ours == theirs
