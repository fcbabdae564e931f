"""Controllers by file, module or library, and with parameters: in commands, in YAML, in Python."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

import quicgym
from quicgym import ScenarioError, controllers
from quicgym.agents.evaluation.evaluate import run_evaluate
from quicgym.agents.policies.by_name import split_alias
from quicgym.benchmarks.networks import run_networks
from quicgym.benchmarks.simulations import make_jobs

pytestmark = pytest.mark.usefixtures("jobs_here", "plain_figures")

AIMD = '''
import quicgym
from quicgym.controllers import Parameter


class Aimd(quicgym.Controller):
    """One packet more per round, half on loss."""

    name = "aimd"
    parameters = (Parameter("decrease", 0.5, 0.1, 0.9),)

    def on_ack(self, event):
        self.window_bytes += self.max_datagram_bytes * event.round_start

    def on_loss(self, event):
        smallest = 2 * self.max_datagram_bytes
        self.window_bytes = max(int(self.window_bytes * self.decrease), smallest)


number = 3
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mine.py").write_text(AIMD)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def short(folder: Path, **flow: object) -> Path:
    scenario = {"base": "ebcc-single", "name": "short", "duration_s": 4.0, "flows": [flow]}
    scenario["bottleneck"] = {"loss": {"kind": "bernoulli", "probability": 0.02}}
    path = folder / "short.yaml"
    path.write_text(yaml.safe_dump(scenario))
    return path


def test_baselines_runs_classes_of_files_and_parameters_beside_names(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = ["mine.py:Aimd", "mine.py:Aimd:decrease=0.9", "cubic", "cubic:beta=0.3"]
    status = run_networks(
        directory=folder / "out",
        scenarios=[str(short(folder))],
        controllers=places,
        seeds=1,
        format="json",
    )
    assert status == 0
    runs = json.loads(capsys.readouterr().out)["runs"]
    assert [run["controller"] for run in runs] == places
    assert len({run["goodput_mbps"] for run in runs}) == 4
    traces = {path.name for path in (folder / "out/traces").iterdir()}
    assert "short--mine.py-Aimd-decrease-0.9--native--0.parquet" in traces


def test_resume_runs_again_what_an_edited_class_changes(folder: Path) -> None:
    def keys() -> tuple[str, str]:
        scenario = quicgym.load_scenario(short(folder))
        (job,) = make_jobs([scenario], [f"{folder}/mine.py:Aimd"], "native", 1)
        own = quicgym.load_scenario(short(folder, controller="mine.py:Aimd"))
        return job.key, make_jobs([own], ["bbr"], "native", 1)[0].key

    first = keys()
    assert keys() == first
    (folder / "mine.py").write_text(AIMD.replace("self.decrease)", "0.2)"))
    assert not set(keys()) & set(first)


@pytest.mark.parametrize("controller", ["mine.py:Aimd", "mine.py:Aimd:decrease=0.8"])
def test_a_path_in_a_scenario_starts_at_its_folder(
    folder: Path, controller: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = short(folder, controller=controller)
    monkeypatch.chdir("/")
    scenario = quicgym.load_scenario(path)
    decrease = 0.8 if "=" in controller else 0.5
    with quicgym.Simulation(scenario) as simulation:
        assert simulation.flows[0].parameters == {"decrease": decrease}
        assert simulation.flows[0].controller == controller


def test_parameters_of_a_flow_are_above_those_in_the_name(folder: Path) -> None:
    path = short(folder, controller="ebcc:gamma=3,beta=0.7", parameters={"gamma": 5.0})
    with quicgym.Simulation(path) as simulation:
        parameters = simulation.flows[0].parameters
    assert (parameters["gamma"], parameters["beta"]) == (5.0, 0.7)


def test_an_episode_takes_a_controller_by_its_place(folder: Path) -> None:
    gymnasium = pytest.importorskip("gymnasium")
    environment = gymnasium.make("quicgym/Tuning-v1", scenario="ebcc-single")
    place = f"{folder}/mine.py:Aimd:decrease=0.9"
    environment.reset(seed=1, options={"controller": place})
    rewards = environment.step(environment.action_space.sample())[1]
    assert rewards == rewards  # not NaN


def test_evaluate_takes_a_controller_beside_policies(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(folder)
    kinds = {
        "mine.py:Aimd": "baseline",
        "mine.py:Aimd:decrease=0.9": "static",
        "mine:Aimd": "baseline",
        "cubic": "baseline",
    }
    suite = str(short(folder))
    assert run_evaluate(directory=folder / "out", policies=[*kinds], suite=suite, seeds=1) == 0
    document = json.loads((folder / "out/evaluation.json").read_text())
    entries = {entry["policy"]: entry for entry in document["policies"]}
    assert {name: entry["kind"] for name, entry in entries.items()} == kinds
    rewards = {name: entry["mean"]["reward"] for name, entry in entries.items()}
    assert rewards["mine.py:Aimd"] == rewards["mine:Aimd"] != rewards["mine.py:Aimd:decrease=0.9"]


@pytest.mark.parametrize(
    ("controller", "texts"),
    [
        ("gone.py:Aimd", ["gone.py: No such file", "the path of a Python file"]),
        ("mine.py", ["name the class as well"]),
        ("mine.py:Aimed", ["has no object 'Aimed'", "did you mean Aimd?"]),
        ("mine.py:number", ["is int 3", "a subclass of quicgym.Controller"]),
        ("no_such_module:Aimd", ["No module named 'no_such_module'", "no_such_module.py:Aimd"]),
        ("math:pi", ["a subclass of quicgym.Controller"]),
        ("math:tau2", ["module math has no 'tau2'"]),
        ("gone.so:aimd", ["gone.so:aimd: No such file", "QUICGYM_CONTROLLER_MODULE"]),
        ("mine.so:aimd", ["mine.so:aimd: ", "compile it with"]),
        ("ebcc:gama=3", ["has no parameter 'gama'", "gamma"]),
        ("ebcc:gamma=-1", ["outside the range"]),
        ("ebcc:gamma=1,gamma=2", ["gamma is there twice"]),
        ("mine.py:Aimd:decrease=3", ["outside the range [0.1, 0.9]"]),
    ],
)
def test_what_cannot_be_loaded_says_why(folder: Path, controller: str, texts: list[str]) -> None:
    (folder / "mine.so").write_text("no library")
    with pytest.raises(ScenarioError) as caught:
        quicgym.run("ebcc-single", controller)
    assert all(text in str(caught.value) for text in texts), caught.value
    with pytest.raises(ScenarioError) as caught:
        quicgym.run(short(folder, controller=controller))
    assert texts[-1] in str(caught.value)


def test_reading_files_runs_no_code(folder: Path) -> None:
    (folder / "mine.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\n" + AIMD)
    place = f"{folder}/mine.py:Aimd"
    scenario = quicgym.load_scenario(short(folder, controller=place, parameters={"decrease": 3.0}))
    assert not (folder / "ran").exists()
    text = "short: flow flow-1: parameter 'decrease'.* is 3, outside"
    with pytest.raises(ScenarioError, match=text):
        quicgym.Simulation(scenario)
    assert (folder / "ran").exists()


@pytest.mark.train
def test_a_sweep_varies_the_parameters_of_a_users_controller(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from quicgym.agents.tuning.parameter_trial import measure
    from quicgym.agents.tuning.sweeps import load_sweep

    monkeypatch.chdir(folder)
    sweep = {
        "name": "mine",
        "controller": "mine.py:Aimd",
        "parameters": {"decrease": {"values": [0.2, 0.8]}},
        "scenarios": [str(short(folder))],
        "seeds": 1,
    }
    (folder / "sweep.yaml").write_text(yaml.safe_dump(sweep))
    config = load_sweep("./sweep.yaml")
    monkeypatch.chdir("/")  # where trials run does not matter
    trials = [
        measure(config, config.load_scenarios(), {"decrease": share}, [0]) for share in (0.2, 0.8)
    ]
    rates = [trial.episodes[0]["goodput_mbps"] for trial in trials]
    assert rates[0] < rates[1]


@pytest.mark.train
def test_policies_and_trainings_name_no_programs(folder: Path) -> None:
    from quicgym.agents.policies.by_name import PRETRAINED
    from quicgym.agents.training.configuration import load_training

    place = f"{folder}/mine.py:Aimd"
    with pytest.raises(ValueError, match="is a program, and reading a training configuration"):
        load_training("tuning-ppo", [f"environment.controller={place}"])
    description = json.loads((PRETRAINED / "tuning.json").read_text())
    (folder / "policy.json").write_text(json.dumps({**description, "controller": place}))
    with pytest.raises(
        quicgym.errors.PolicyError, match="reading a policy's description runs none"
    ):
        quicgym.load_policy(folder / "policy.json")


def test_results_show_code_by_its_file_without_the_folder(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = f"{folder}/mine.py:Aimd"
    chosen = {"scenarios": [str(short(folder))], "seeds": 1, "format": "json"}
    assert run_networks(directory=folder / "out", controllers=[place], **chosen) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    names = {run["controller"], run["flows"][0]["controller"], split_alias(place)[0]}
    assert names == {"mine.py:Aimd"}
    assert quicgym.baseline(place, decrease=0.7).name == "mine.py:Aimd:decrease=0.7"
    (folder / "other").mkdir()
    shutil.copy(folder / "mine.py", folder / "other")
    text = "results show both as 'mine.py:Aimd'; rename one of the files"
    with pytest.raises(ScenarioError, match=re.escape(text)):
        run_networks(directory=folder, controllers=[place, "other/mine.py:Aimd"], **chosen)


def test_a_compiled_library_is_loaded_without_a_package(folder: Path, compiled_aimd: Path) -> None:
    shutil.copy(compiled_aimd, folder / "libmine.so")
    half, most = (
        quicgym.run(short(folder), f"libmine.so:aimd{parameters}")
        for parameters in ("", ":decrease=0.9")
    )
    assert [half.flows[0].controller, most.flows[0].controller] == [
        "libmine.so:aimd",
        "libmine.so:aimd:decrease=0.9",
    ]
    assert half.metrics != most.metrics
    assert quicgym.run(short(folder, controller="libmine.so:aimd")).flows == half.flows
    info = controllers.find(f"{folder}/libmine.so:aimd")
    assert info.description == "One packet more per round, half on loss"
    with pytest.raises(ImportError, match="compile it with QUICGYM_CONTROLLER_MODULE"):
        controllers.find(f"{folder}/libmine.so:cubic")
