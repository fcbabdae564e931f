"""`quicgym sweep`, as a user runs it. Ray's start takes seconds: one run serves many tests."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from subprocess import CompletedProcess
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
import yaml
from conftest import IN_CLUSTER, Command
from helpers.commands import run_process, says, start_process
from helpers.training import hparams_of

from quicgym import load_scenario
from quicgym.agents.evaluation.rollouts import play
from quicgym.agents.evaluation.statistics import Estimate
from quicgym.agents.policies.by_name import find_policy
from quicgym.envs.scenarios.suites import SELECTION_SEED
from quicgym.envs.simulation.metrics import EVALUATED

pytestmark = pytest.mark.train
NEW_SEEDS = (SELECTION_SEED + 3, SELECTION_SEED + 4, SELECTION_SEED + 5)
"""Those after the ones of a sweep with three seeds."""
CONTROLLERS = '''
import os
import quicgym
from quicgym.controllers import Parameter

def attempt(number):
    """Writes down that a run begins; returns how many began before."""
    with open(os.environ["SWEEP_LOG"], "a+") as file:
        file.seek(0)
        before = file.read().split().count(f"{number:g}")
        file.write(f"{number:g}\\n")
    return before

class Fragile(quicgym.Controller):
    """Fails always at level 3, and the first time at level 2."""

    parameters = (Parameter("level", 1.0, 1.0, 100.0, description="Window in packets"),)

    def on_start(self, max_datagram_bytes):
        before = attempt(self.level)
        if self.level == 3 or self.level == 2 and before == 0:
            raise ValueError(f"level {self.level:g} does not hold")
        self.window_bytes = int(4 * self.level * max_datagram_bytes)

    def on_ack(self, event):
        pass

    def on_loss(self, event):
        pass
'''


def end_group(leader: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def write_sweep(folder: Path, **changes: Any) -> Path:
    """A sweep over two seconds of two flows."""
    (folder / "short.yaml").write_text("{base: ebcc-flows-3, name: short, duration_s: 2.5}")
    sweep = {
        "name": "mine",
        "controller": "ebcc",
        "parameters": {"gamma": {"values": [5, 40]}, "beta": {"values": [0.1, 0.9]}},
        "scenarios": [str(folder / "short.yaml")],
        "seeds": 2,
    }
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump(sweep | changes, sort_keys=False))
    return path


def environment(folder: Path) -> dict[str, str]:
    """One in which a package registers the controller `fragile`."""
    site = folder / "site"
    information = site / "fragile-1.0.dist-info"
    information.mkdir(parents=True, exist_ok=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: fragile\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(
        "[quicgym.controllers]\nfragile = fragile_package:Fragile\n"
    )
    (site / "fragile_package.py").write_text(CONTROLLERS)
    return {**os.environ, "PYTHONPATH": str(site), "SWEEP_LOG": str(folder / "log.txt")}


def run(folder: Path, *arguments: str | Path, status: int = 0) -> CompletedProcess[str]:
    return run_process(folder, "sweep", *arguments, status=status, env=environment(folder))


@IN_CLUSTER
def test_a_grid_gives_the_table_and_all_files(
    quicgym: Command, ray_cluster: str, tmp_path: Path
) -> None:
    done = quicgym("sweep", write_sweep(tmp_path), "--out", "out", "--address", ray_cluster)
    check_table(tmp_path, done.stdout)
    check_document(tmp_path)
    check_pictures_and_hparams(tmp_path)


def check_table(folder: Path, output: str) -> None:
    """Every trial is there, and the objective is what one would measure oneself."""
    assert "mine: reward (fair-throughput), mean over 1 scenario, seeds 3,000,000 to " in output
    assert output.count("published") >= 1 and "share of variance" in output
    frame = pd.read_parquet(folder / "out/trials.parquet")
    assert set(zip(frame["gamma"], frame["beta"], strict=True)) == {
        *((gamma, beta) for gamma in (5, 40) for beta in (0.1, 0.9)),
        (30, 0.5),
    }
    assert frame["objective"].is_monotonic_decreasing
    assert frame.loc[frame["published"], ["gamma", "beta"]].values.tolist() == [[30, 0.5]]
    assert {"objective_std", "reward@short", "error", *EVALUATED} <= set(frame)
    assert frame["error"].isna().all()
    for row in frame.itertuples():
        runs = [
            play(
                find_policy(f"ebcc:gamma={row.gamma},beta={row.beta}"),
                load_scenario(folder / "short.yaml"),
                seed=seed,
            ).metrics["reward"]
            for seed in (SELECTION_SEED, SELECTION_SEED + 1)
        ]
        assert row.objective == pytest.approx(sum(runs) / 2, rel=1e-12)
    sensitivity = pd.read_parquet(folder / "out/sensitivity.parquet")
    assert sensitivity["parameter"].tolist() == ["gamma", "beta"]


def check_document(folder: Path) -> None:
    """sweep.json has the best, the published, and what made them."""
    document = json.loads((folder / "out/sweep.json").read_text())
    frame = pd.read_parquet(folder / "out/trials.parquet")
    best = frame.iloc[0]
    assert document["best"]["parameters"] == {"gamma": best["gamma"], "beta": best["beta"]}
    assert document["best"]["rank"] == 1
    find_policy(document["best"]["policy"])
    assert document["published"]["parameters"] == {"gamma": 30, "beta": 0.5}
    assert document["published"]["objective"] == frame.loc[frame["published"], "objective"].item()
    difference = document["difference"]
    assert difference["seeds"] == [SELECTION_SEED + 2, SELECTION_SEED + 3]  # chosen by neither
    assert difference["low"] <= difference["mean"] <= difference["high"]
    assert document["config"]["seeds"] == 2 and document["failed"] == []
    assert {"version", "commit", "command"} <= set(document)


def check_pictures_and_hparams(folder: Path) -> None:
    """They can be read back."""
    captions, picture = sorted((folder / "out/figures").iterdir())
    assert (captions.name, picture.name) == ("captions.md", "gamma-beta.png")
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    best = pd.read_parquet(folder / "out/trials.parquet").iloc[0]
    places = sorted((folder / "out/tensorboard").iterdir())
    assert places[0].name == f"1,gamma={best['gamma']:g},beta={best['beta']:g}"
    found = set()
    for place in places:
        events, values = hparams_of(place)
        (objective,) = events.Scalars("sweep/objective")
        found.add((values["gamma"], values["beta"], objective.value))
        assert {f"evaluation/{metric}" for metric in EVALUATED} <= set(events.Tags()["scalars"])
    frame = pd.read_parquet(folder / "out/trials.parquet")
    assert sorted(found) == [
        (row.gamma, row.beta, pytest.approx(row.objective, rel=1e-6))
        for row in frame.sort_values(["gamma", "beta"]).itertuples()
    ]


@IN_CLUSTER
def test_optuna_proposes_settings_in_the_ranges(
    quicgym: Command, ray_cluster: str, tmp_path: Path
) -> None:
    path = write_sweep(
        tmp_path,
        parameters={
            "gamma": {"minimum": 5, "maximum": 80, "scale": "log"},
            "decision_interval_rounds": {"minimum": 1, "maximum": 3, "scale": "whole"},
            "gain_cycle": {"values": [[1.25, 0.75, 1], [1.1, 0.9]]},
        },
        search="optuna",
        samples=5,
        objective="mean_rtt_ms",
    )
    arguments = ("seeds=1", "--out", "out", "--figures", "svg", "--address", ray_cluster)
    quicgym("sweep", path, *arguments)
    frame = pd.read_parquet(tmp_path / "out/trials.parquet")
    searched = frame[~frame["published"]]
    assert len(searched) == 5 and len(frame) == 6
    assert searched["gamma"].between(5, 80).all() and searched["gamma"].nunique() == 5
    assert set(searched["decision_interval_rounds"]) <= {1, 2, 3}
    assert set(searched["gain_cycle"]) <= {"1.25/0.75/1", "1.1/0.9"}
    assert frame["objective"].is_monotonic_increasing  # a low RTT is better
    assert (frame["objective"] == frame["mean_rtt_ms"]).all()
    check_vector_pictures(tmp_path / "out/figures")


def check_vector_pictures(folder: Path) -> None:
    """They are as wide as a column, and their titles stand beside them."""
    pictures = {
        "gamma-decision_interval_rounds.svg",
        "gamma-gain_cycle.svg",
        "decision_interval_rounds-gain_cycle.svg",
    }
    assert {path.name for path in folder.iterdir()} == {*pictures, "captions.md"}
    captions = (folder / "captions.md").read_text()
    for name in pictures:
        text = (folder / name).read_text()
        assert 'width="252pt"' in text  # 3.5 inches
        assert "mine:" not in text and f"- `{name}`: mine: mean rtt ms of ebcc" in captions


FRAGILE = {
    "controller": "fragile",
    "parameters": {"level": {"values": [20, 40, 2, 3, 60, 80]}},
    "seeds": 1,
}


def write_fragile(folder: Path) -> Path:
    """Trials of a controller in Python that are slow enough to be killed in their middle."""
    path = write_sweep(folder, **FRAGILE)
    scenario = yaml.safe_load((folder / "short.yaml").read_text())
    (folder / "short.yaml").write_text(yaml.safe_dump(scenario | {"duration_s": 30.0}))
    return path


def runs_of(folder: Path) -> list[float]:
    """The level of each run that has begun; three flows tell of it."""
    return [float(level) for level in (folder / "log.txt").read_text().split()]


@pytest.fixture(scope="module")
def fragile(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CompletedProcess[str]]:
    """A sweep in which a trial fails once, and another always."""
    folder = tmp_path_factory.mktemp("fragile")
    arguments = (write_fragile(folder), "--jobs", "2", "--out", "out")
    return folder, run(folder, *arguments, status=1)


def test_failing_trials_are_tried_again_and_reported_while_others_finish(fragile: Any) -> None:
    folder, done = fragile
    (failure,) = [line for line in done.stderr.splitlines() if line.startswith("failed: ")]
    assert "fragile:level=3: " in failure and "level 3 does not hold" in failure
    assert "tried 3 times" in failure
    levels = runs_of(folder)
    assert levels.count(3) == 3  # fails at the first of three flows, each time
    assert levels.count(2) == 1 + 3  # failed once, then all three flows
    frame = pd.read_parquet(folder / "out/trials.parquet").set_index("level")
    assert set(frame.index) == {1, 2, 3, 20, 40, 60, 80}
    assert frame["objective"].isna().to_dict() == {level: level == 3 for level in frame.index}
    assert "does not hold" in frame.loc[3, "error"]
    document = json.loads((folder / "out/sweep.json").read_text())
    assert [entry["parameters"] for entry in document["failed"]] == [{"level": 3}]


def test_a_killed_sweep_goes_on_beside_what_ray_leaves_and_gives_the_same_table(
    tmp_path: Path, fragile: Any, request: pytest.FixtureRequest
) -> None:
    path = write_fragile(tmp_path)
    arguments = ("--jobs", "1", "--out", "out")
    process = start_process(tmp_path, "sweep", path, *arguments, env=environment(tmp_path))
    request.addfinalizer(lambda: end_group(process.pid))
    deadline = time.monotonic() + 120
    while True:
        if len(list((tmp_path / "out/trials").glob("0*.json"))) >= 2:
            break
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    # As the kernel does where memory runs out: this process alone. Ray's workers go with it, two of
    # its agents stay for a minute, and what follows runs beside them.
    process.kill()
    process.wait()
    before = runs_of(tmp_path)
    assert not {60, 80} <= set(before), "it was killed too late to show anything"
    assert not (tmp_path / "out/trials.parquet").exists()

    changed = run(tmp_path, path, "seeds=2", "--out", "out", "--resume", status=2)
    assert "another configuration" in changed.stderr

    run(tmp_path, path, *arguments, "--resume", status=1)  # for level 3
    uninterrupted = pd.read_parquet(fragile[0] / "out/trials.parquet")
    resumed = pd.read_parquet(tmp_path / "out/trials.parquet")
    pd.testing.assert_frame_equal(resumed, uninterrupted)
    # What had finished was not run again, but for the best one on its fresh seed.
    finished = [level for level in (20.0, 40.0) if before.count(level) == 3]
    assert finished
    best = resumed["level"][0]
    for level in finished:
        assert runs_of(tmp_path).count(level) == (6 if level == best else 3)


def test_a_cluster_that_is_not_there_is_said_at_once(quicgym: Command, tmp_path: Path) -> None:
    path = write_sweep(tmp_path)
    begin = time.monotonic()
    done = quicgym("sweep", path, "--address", "127.0.0.1:1", status=2)
    assert time.monotonic() - begin < 20
    assert "--address 127.0.0.1:1: no Ray cluster is there" in done.stderr
    assert "ray start --head" in done.stderr
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("ebcc-gama", ["'ebcc-gama'", "did you mean ebcc-gamma-beta?"]),
        ("ebcc-gamma-beta sampels=2", ["sampels = 2", "did you mean samples?"]),
        ("ebcc-gamma-beta --address nowhere", ["--address nowhere", "HOST:PORT"]),
        ("ebcc-gamma-beta --jobs 0", ["--jobs"]),
    ],
)
def test_bad_input(quicgym: Command, tmp_path: Path, arguments: str, expected: list[str]) -> None:
    says(quicgym("sweep", *arguments.split(), status=2), *expected)
    assert not (tmp_path / "results").exists()


@pytest.fixture
def ctrl_c_interrupts() -> Iterator[None]:
    """As in a terminal: a shell's background job starts with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c_interrupts")
def test_a_ray_that_does_not_start_is_one_sentence(
    quicgym: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(*_: Any, **__: Any) -> None:
        raise Exception("The current node timed out during startup.\nDetails")

    monkeypatch.setattr("ray.init", late)
    done = quicgym("sweep", "tuning", "--out", "s", status=2)
    assert "Ray has not started on this machine (The current node timed out" in done.stderr
    assert "Details" not in done.stderr and "Traceback" not in done.stderr


def test_ctrl_c_while_ray_starts_comes_afterwards() -> None:
    from quicgym.ray_cluster import interrupted_afterwards

    begun = []
    with pytest.raises(KeyboardInterrupt), interrupted_afterwards():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
        begun.append("Ray")
    assert begun == ["Ray"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("ctrl_c_interrupts")
def test_ray_tune_does_not_keep_ctrl_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from quicgym.agents.tuning import trials

    def fit(tuner: Any) -> list[Any]:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return []

    monkeypatch.setattr(trials.tune.Tuner, "fit", fit)
    plan = trials.Plan("mine", "objective", "max", {0: {}})
    with pytest.raises(KeyboardInterrupt):
        trials.run_trials(print, plan, tmp_path / "ray", 1, given={})
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def finished(config: Any, objectives: list[float]) -> list[Any]:
    """Trials of a grid with these objectives, in its order, and then the published one."""
    from quicgym.agents.tuning.parameter_trial import ParameterTrial

    settings = [*config.listed_settings(), config.published_setting()]
    return [
        ParameterTrial(setting, objective, (objective,), ())
        for setting, objective in zip(settings, objectives, strict=True)
    ]


@pytest.mark.parametrize(
    ("objective", "sign"), [("reward", 1), ("mean_rtt_ms", -1)], ids=["highest", "lowest"]
)
def test_the_best_is_compared_with_the_published_seed_by_seed(
    objective: str, sign: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from quicgym.agents.tuning.parameter_sweep import ParameterStudy
    from quicgym.agents.tuning.parameter_trial import ParameterTrial
    from quicgym.agents.tuning.sweeps import load_sweep

    config = load_sweep(str(write_sweep(tmp_path)), [f"objective={objective}", "seeds=3"])
    trials = finished(config, [sign * number for number in (1.0, 4.0, 3.0, 4.0, 4.0)])
    study = ParameterStudy(config)
    study.trials = trials
    assert study.published is trials[-1]
    assert study.ranked == [trials[4], trials[1], trials[3], trials[2], trials[0]]
    assert [study.rank(trial) for trial in trials] == [5, 1, 4, 1, 1]

    def measure(settings: Any, seeds: Any) -> Any:
        assert settings == [trials[4].setting, trials[4].setting]
        assert tuple(seeds) == NEW_SEEDS
        return [
            ParameterTrial(setting, 0.0, [sign * number for number in values])
            for setting, values in zip(settings, ((3, 5, 7), (2, 3, 4)), strict=True)
        ]

    monkeypatch.setattr(study, "measure", measure)
    study.confirm()
    difference = study.difference
    assert difference is not None
    assert difference.value == pytest.approx(2)  # of 1, 2 and 3
    half = 4.302653 / 3**0.5  # Student's t with two degrees of freedom, two-sided 95%
    assert (difference.low, difference.high) == pytest.approx((2 - half, 2 + half))


@pytest.mark.parametrize(
    ("mean", "low", "high", "words"),
    [
        (0.1, 0.05, 0.15, "better than the published setting, rank 5 of 5: +0.1000 (95% interval"),
        (0.1, -0.05, 0.25, "not shown to be better than the published setting, rank 5 of 5: +0.10"),
        (-0.1, -0.25, 0.05, "not shown to be better than the published setting"),
        (-0.1, -0.15, -0.05, "behind the published setting"),
        (0.1, None, None, "one seed has no interval, so it is open which is better"),
    ],
)
def test_better_is_said_only_where_the_interval_excludes_0(
    mean: float,
    low: float | None,
    high: float | None,
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from quicgym.agents.tuning.parameter_sweep import ParameterStudy
    from quicgym.agents.tuning.sweeps import load_sweep

    config = load_sweep(str(write_sweep(tmp_path)), [f"seeds={3 if low else 1}"])
    study = ParameterStudy(config)
    study.trials = finished(config, [1.0, 4.0, 3.0, 2.0, 0.0])
    study.difference = Estimate(mean, low, high)
    study.print()
    lines = capsys.readouterr().out.splitlines()
    (line,) = (line for line in lines if "the published setting, rank" in line)
    assert words in " ".join(lines)
    assert line.startswith("better than ") is words.startswith("better than")


def test_what_chose_the_best_does_not_confirm_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from quicgym.agents.tuning import parameter_sweep
    from quicgym.agents.tuning.sweeps import load_sweep

    config = load_sweep(str(write_sweep(tmp_path)), ["seeds=3"])
    ran: list[Any] = []

    def measure(config: Any, scenarios: Any, setting: Any, seeds: Any) -> Any:
        ran.append((setting, seeds))
        return parameter_sweep.ParameterTrial(setting, 0.0, [float(seed) for seed in seeds])

    fake = SimpleNamespace(
        remote=lambda **options: lambda task: SimpleNamespace(remote=task), get=list
    )
    monkeypatch.setattr(parameter_sweep, "ray", fake)
    monkeypatch.setattr(parameter_sweep, "measure", measure)
    study = parameter_sweep.ParameterStudy(config)
    study.trials = finished(config, [1.0, 4.0, 3.0, 2.0, 0.0])
    study.confirm()
    expected = [study.ranked[0].setting, config.published_setting()]
    assert [(setting, tuple(seeds)) for setting, seeds in ran] == [
        (setting, NEW_SEEDS) for setting in expected
    ]
    assert study.difference is not None and study.difference.value == 0


def test_json_has_infinity_as_the_command_line_takes_it() -> None:
    from quicgym.agents.tuning.study import as_json

    document = {"gamma": float("inf"), "cycle": (1.25, 0.75), "objective": 0.5, "error": None}
    text = json.dumps(as_json({"best": document}), allow_nan=False)
    assert json.loads(text) == {
        "best": {"gamma": "inf", "cycle": [1.25, 0.75], "objective": 0.5, "error": None}
    }
