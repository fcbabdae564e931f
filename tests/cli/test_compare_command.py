"""quicgym compare: what TensorBoard reads is what the runs' folders say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import Command
from helpers.commands import check_end, run_forked, says, small_files

from quicgym.agents.evaluation.run_folders import series_path
from quicgym.agents.policies.by_name import policy_kind
from quicgym.envs.info import INFO_COLUMNS
from quicgym.envs.simulation.metrics import EVALUATED

pytestmark = pytest.mark.train
SCENARIOS = ("heldout-01", "heldout-02.5")
STEPS = (0, 5_000, 10_000)


def metrics(policy: str, scenario: str, seed: int, step: int = 0) -> dict[str, float | None]:
    """Numbers that no two runs share; Jain's index was not measured in the second scenario."""
    number = len(policy) + 7 * SCENARIOS.index(scenario) ** 2 + seed**2 / 8 + step / 3_000
    values: dict[str, float | None] = {name: number + i / 16 for i, name in enumerate(EVALUATED)}
    return values | ({"jain": None} if scenario == SCENARIOS[1] else {})


def series(decisions: int = 5) -> pd.DataFrame:
    frame = pd.DataFrame({name: np.arange(decisions) + 0.5 for name in ("reward", *INFO_COLUMNS)})
    return frame.assign(time_s=0.1 * np.arange(1, decisions + 1))


def write_evaluation(
    folder: Path,
    policies: Iterable[str],
    seeds: int = 3,
    scenarios: Iterable[str] = SCENARIOS,
    **about: Any,
) -> Path:
    (folder / "series").mkdir(parents=True)
    rows = [
        {"policy": policy, "scenario": scenario, "engine": "native", "seed": seed}
        | metrics(policy, scenario, seed)
        for policy in policies
        for scenario in scenarios
        for seed in range(seeds)
    ]
    pd.DataFrame(rows).to_parquet(folder / "results.parquet")
    written = {
        "policies": [{"policy": policy, "kind": policy_kind(policy)} for policy in policies],
        "suite": "heldout",
        "engine": "native",
        "seeds": seeds,
        "reward": "fair-throughput",
    }
    (folder / "evaluation.json").write_text(json.dumps(written | about))
    for policy in policies:
        for scenario in scenarios:
            series().to_parquet(series_path(folder, policy, scenario))
    return folder


def write_training(folder: Path, name: str = "tuning-ppo", seed: int = 1, **config: Any) -> Path:
    write_evaluation(folder / "evaluation", [name])
    about = {
        "format": "quicgym-run-1",
        "kind": "training",
        "name": name,
        "command": "quicgym train tuning-ppo",
        "config": {"algorithm": {"name": "ppo", "learning_rate": 3e-4}, **config},
        "seed": seed,
    }
    (folder / "run.json").write_text(json.dumps(about))
    lines = [
        json.dumps(
            {"step": step, "scenario": scenario, "seed": seed} | metrics(name, scenario, seed, step)
        )
        for step in STEPS
        for scenario in SCENARIOS
        for seed in range(2)
    ]
    (folder / "evaluations.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def read(folder: Path) -> Any:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    return EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()


def points(run: Any, tag: str) -> dict[int, float]:
    return {event.step: event.value for event in run.Scalars(tag)}


def test_a_policy_whose_runs_are_missing_is_left_out_and_said_to_be(
    quicgym: Command, tmp_path: Path
) -> None:
    missing = [{"policy": "bbr", "scenario": SCENARIOS[0], "seed": 1}]
    folder = write_evaluation(tmp_path / "evaluation", ["bbr", "cubic"], missing=missing)
    done = quicgym("compare", folder, "--logdir", "logs")
    assert "runs of bbr are missing" in done.stderr
    assert (tmp_path / "logs/cubic").is_dir() and not (tmp_path / "logs/bbr").exists()


def test_agents_and_baselines_have_the_same_tags_and_steps(
    quicgym: Command, tmp_path: Path
) -> None:
    training = write_training(tmp_path / "training")
    evaluation = write_evaluation(tmp_path / "evaluation", ["bbr", "cubic"])
    done = quicgym("compare", training, evaluation, "--logdir", "logs/here")
    assert done.stderr == ""
    assert "tensorboard --logdir logs/here" in done.stdout
    assert "?smoothing=0&tagFilter=%5Eevaluation%2F#timeseries" in done.stdout
    folder = tmp_path / "logs/here"
    assert {path.name for path in folder.iterdir()} == {
        "bbr",
        "comparison.json",
        "cubic",
        "tuning-ppo",
    }
    assert [path.name for path in folder.parent.iterdir()] == ["here"]
    runs = {name: read(folder / name) for name in ("tuning-ppo", "bbr", "cubic")}

    columns = {"reward", *INFO_COLUMNS} - {"time_s"}
    tags = {f"evaluation/{metric}" for metric in EVALUATED}
    tags |= {f"scenario/{name}/{metric}" for name in SCENARIOS for metric in EVALUATED}
    tags -= {f"scenario/{SCENARIOS[1]}/jain"}
    tags |= {f"scenario-episode/{name}/{column}" for name in SCENARIOS for column in columns}
    # TensorBoard shows them in this order: those of the suite come before those of each scenario.
    first = sorted(tags)[: len(EVALUATED)]
    assert all(tag.startswith("evaluation/") for tag in first)
    for run in runs.values():
        assert set(run.Tags()["scalars"]) == tags
        assert run.Tags()["images"] == [f"picture/{SCENARIOS[0]}"]
        (picture,) = run.Images(f"picture/{SCENARIOS[0]}")
        assert picture.encoded_image_string.startswith(b"\x89PNG")

    # Of six numbers, the interquartile mean leaves out the smallest and the largest.
    for name, run in runs.items():
        seeds = 2 if name == "tuning-ppo" else 3
        for tag in tags:
            if not tag.startswith("scenario-episode/"):
                assert tuple(points(run, tag)) == STEPS
        for step in STEPS:
            at = step if name == "tuning-ppo" else 0
            of = {
                scenario: [metrics(name, scenario, seed, at) for seed in range(seeds)]
                for scenario in SCENARIOS
            }
            rewards = sorted(row["reward"] for rows in of.values() for row in rows)
            assert points(run, "evaluation/reward")[step] == pytest.approx(np.mean(rewards[1:-1]))
            goodput = [np.mean([row["goodput_mbps"] for row in rows]) for rows in of.values()]
            found = [points(run, f"scenario/{s}/goodput_mbps")[step] for s in SCENARIOS]
            assert found == pytest.approx(goodput)
            assert points(run, "evaluation/goodput_mbps")[step] == pytest.approx(np.mean(goodput))
            jain = np.mean([row["jain"] for row in of[SCENARIOS[0]]])
            assert points(run, "evaluation/jain")[step] == pytest.approx(jain)
        rtt = points(run, f"scenario-episode/{SCENARIOS[1]}/rtt_ms")
        assert rtt == {100: 0.5, 200: 1.5, 300: 2.5, 400: 3.5, 500: 4.5}


def write_controllers(training: Path, *controllers: str) -> None:
    """The hand-coded controllers that a training was compared with on its networks."""
    runs = [
        {"controller": name, "scenario": scenario, "seed": seed} | metrics(name, scenario, seed)
        for name in controllers
        for scenario in SCENARIOS
        for seed in range(2)
    ]
    (training / "controllers.json").write_text(json.dumps({"identity": "x", "runs": runs}))


def test_the_controllers_of_trainings_are_level_lines_next_to_them(
    quicgym: Command, tmp_path: Path
) -> None:
    trainings = [write_training(tmp_path / f"training{seed}", seed=seed) for seed in (1, 2)]
    for training in trainings:
        write_controllers(training, "ebcc", "bbr")
    quicgym("compare", *trainings, "--logdir", "logs")
    names = {path.name for path in (tmp_path / "logs").iterdir() if path.is_dir()}
    assert names == {"tuning-ppo,seed=1", "tuning-ppo,seed=2", "ebcc", "bbr"}  # each once
    line = read(tmp_path / "logs/ebcc")
    curve = read(tmp_path / "logs/tuning-ppo,seed=1")
    assert set(line.Tags()["scalars"]) == {
        tag for tag in curve.Tags()["scalars"] if not tag.startswith("scenario-episode/")
    }
    values = [metrics("ebcc", name, seed)["goodput_mbps"] for name in SCENARIOS for seed in (0, 1)]
    expected = pytest.approx(np.mean(np.array(values, dtype=float)))
    assert points(line, "evaluation/goodput_mbps") == dict.fromkeys(STEPS, expected)


def test_a_policy_is_labelled_by_what_it_is(quicgym: Command, tmp_path: Path) -> None:
    training = write_training(tmp_path / "training")
    write_controllers(training, "window", "bbr")
    kinds = {"mine": "baseline", "its": "learned"}  # names that a user gave
    evaluation = write_evaluation(tmp_path / "evaluation", kinds)
    path = evaluation / "evaluation.json"
    about = json.loads(path.read_text())
    about["policies"] = [{"policy": name, "kind": kind} for name, kind in kinds.items()]
    path.write_text(json.dumps(about))
    quicgym("compare", training, evaluation, "--logdir", "logs")
    runs = json.loads((tmp_path / "logs/comparison.json").read_text())["runs"]
    assert {run["name"]: run["kind"] for run in runs} == {
        "tuning-ppo": "training",
        "window": "learned",
        "bbr": "hand-coded",
        "mine": "hand-coded",
        "its": "learned",
    }


def test_an_evaluation_s_controller_keeps_its_episodes_next_to_a_training_s_line_of_it(
    quicgym: Command, tmp_path: Path
) -> None:
    training = write_training(tmp_path / "a-training")
    write_controllers(training, "ebcc")
    evaluations = [
        write_evaluation(tmp_path / name, ["ebcc"], seeds=2) for name in ("evaluation", "other")
    ]
    quicgym("compare", training, *evaluations, "--logdir", "logs")
    names = {path.name for path in (tmp_path / "logs").iterdir() if path.is_dir()}
    assert names == {"tuning-ppo", "ebcc", "ebcc-2"}  # one for each evaluation
    for name in ("ebcc", "ebcc-2"):
        assert read(tmp_path / "logs" / name).Images(f"picture/{SCENARIOS[0]}")


def test_custom_scalars_have_a_chart_for_all_runs(quicgym: Command, tmp_path: Path) -> None:
    from tensorboard.plugins.custom_scalar import layout_pb2

    write_evaluation(tmp_path / "evaluation", ["bbr", "cubic"])
    quicgym("compare", "evaluation")
    run = read(tmp_path / "results/compare/cubic")
    (event,) = run.Tensors("custom_scalars__config__")
    layout = layout_pb2.Layout.FromString(event.tensor_proto.string_val[0])
    assert [category.title for category in layout.category] == [
        "All scenarios",
        *(f"Scenario {name}" for name in SCENARIOS),
        *(f"Episode of {name}, over milliseconds" for name in SCENARIOS),
    ]
    assert [category.closed for category in layout.category] == [False, True, True, True, True]
    tags = run.Tags()["scalars"] + [f"scenario/{SCENARIOS[1]}/jain"]  # not measured, has a chart
    shown = []
    for category in layout.category:
        for chart in category.chart:
            (pattern,) = chart.multiline.tag
            matching = [tag for tag in tags if re.match(pattern, tag)]
            assert len(matching) == 1, pattern
            shown += matching
    assert len(shown) == len(set(shown))
    assert {"evaluation/jain", "scenario/heldout-02.5/mean_queue_delay_ms"} <= set(shown)


def test_a_name_says_that_a_list_is_empty(quicgym: Command, tmp_path: Path) -> None:
    write_training(tmp_path / "a", layers=[])
    write_training(tmp_path / "b", layers=[64])
    quicgym("compare", "a", "b")
    names = {path.name for path in (tmp_path / "results/compare").iterdir() if path.is_dir()}
    assert names == {"tuning-ppo,layers=none", "tuning-ppo,layers=64"}


def test_hparams_have_what_differs(quicgym: Command, tmp_path: Path) -> None:
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    write_training(tmp_path / "a", seed=1, stop=None, steps=9, layers=[64, 64])
    write_training(tmp_path / "b", seed=2, stop=0.5, steps=9, layers=[256], quick=True)
    write_evaluation(tmp_path / "baselines", ["bbr"])
    quicgym("compare", "b", "baselines", "a")
    rows = {}
    first = "tuning-ppo,stop=null,layers=64x64,seed=1"
    second = "tuning-ppo,stop=0.5,layers=256,seed=2"
    for name in (first, second, "bbr"):
        plugin = read(tmp_path / "results/compare" / name).PluginTagToContent("hparams")
        start = HParamsPluginData.FromString(
            plugin["_hparams_/session_start_info"]
        ).session_start_info
        assert start.group_name == name
        rows[name] = {
            key: getattr(value, value.WhichOneof("kind")) for key, value in start.hparams.items()
        }
        experiment = HParamsPluginData.FromString(plugin["_hparams_/experiment"]).experiment
        columns = {info.name for info in experiment.hparam_infos}
        assert columns == {"policy", "kind", "seed", "stop", "layers"}
        assert [metric.name.tag for metric in experiment.metric_infos] == [
            f"evaluation/{metric}" for metric in EVALUATED
        ]
    training = {"policy": "tuning-ppo", "kind": "training"}
    assert rows == {
        first: {**training, "seed": 1, "stop": "null", "layers": "[64, 64]"},
        second: {**training, "seed": 2, "stop": "0.5", "layers": "[256]"},
        "bbr": {"policy": "bbr", "kind": "hand-coded"},
    }


def test_the_best_evaluation_is_beside_the_last(quicgym: Command, tmp_path: Path) -> None:
    folder = write_training(tmp_path / "training")
    write_evaluation(tmp_path / "baselines", ["bbr"])
    lines = [json.loads(line) for line in (folder / "evaluations.jsonl").read_text().splitlines()]
    fallen = {0: 0.25, 5_000: 0.5, 10_000: -0.125}
    text = "".join(json.dumps(line | {"reward": fallen[line["step"]]}) + "\n" for line in lines)
    (folder / "evaluations.jsonl").write_text(text)
    done = quicgym("compare", "training", "baselines")
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line}
    assert rows["tuning-ppo"] == ["training", "0.5000", "5,000", "-0.1250", "training"]
    assert rows["bbr"][0] == "hand-coded" and len(rows["bbr"]) == 3  # it was not trained
    assert "no gain is shown" not in done.stdout

    compared = [
        {"policy": name, "step": 0, "sha256": "", "reward": 0.1, "gain": 0.01, "low": low}
        | {"high": 0.02}
        for name, low in (("start", 0), ("best", -0.001), ("last", 0))
    ]
    summary = {"format": "quicgym-training-summary-1", "paths": 1024, "drawn_from": "training"}
    summary |= {"first_seed": 10**6, "identity": "", "policies": compared, "version": ""}
    (folder / "summary.json").write_text(json.dumps(summary | {"commit": ""}))
    done = quicgym("compare", "training", "baselines")
    assert "+0.0100 [-0.0010, +0.0200]" in done.stdout
    chosen = next(line for line in done.stdout.splitlines() if line.startswith("tuning-ppo"))
    assert chosen.split()[1:5] == ["training", "0.2500", "0", "-0.1250"]  # as in summary.json
    assert "training: no gain is shown" in done.stdout

    compared[1]["step"] = 15_000  # of an earlier end, whose evaluation is gone
    (folder / "summary.json").write_text(json.dumps(summary | {"commit": ""}))
    done = quicgym("compare", "training", "baselines")
    chosen = next(line for line in done.stdout.splitlines() if line.startswith("tuning-ppo"))
    assert chosen.split()[1:5] == ["training", "0.5000", "5,000", "-0.1250"]

    # Of two that differ late in their long names, each is named.
    for name, late in (("one", 1), ("other", 2)):
        write_training(tmp_path / name, **{"a" * 100: 0, "layers": [64] * 40 + [late]})
        (tmp_path / name / "summary.json").write_text(json.dumps(summary | {"commit": ""}))
    done = quicgym("compare", "one", "other", "--logdir", "logs")
    assert "one: no gain is shown" in done.stdout and "other: no gain is shown" in done.stdout


def test_runs_of_one_name_are_told_apart_by_what_differs(quicgym: Command, tmp_path: Path) -> None:
    hyperparameters = {"clip_range": "linear_0.2", "n_epochs": 5}
    environment = {"scenario": "training-50", "threads": 1}
    same = {"environment": environment, "hyperparameters": hyperparameters}
    write_training(tmp_path / "run1", **same)
    other = {**hyperparameters, "clip_range": 0.1}
    write_training(tmp_path / "run2", **{**same, "hyperparameters": other})
    # Threads change nothing, so a number tells it from the first.
    write_training(tmp_path / "run3", **{**same, "environment": {**environment, "threads": 2}})
    write_training(tmp_path / "run4", name="rate-ppo", **same)
    for run, gamma in (("run5", 0.9), ("run6", 0.99)):
        of_start = {"hyperparameters": {"gamma": gamma}, "start": {"parameters": {"gamma": 60}}}
        write_training(tmp_path / run, name="other", **of_start)
    quicgym("compare", *(f"run{i}" for i in range(1, 7)), "--logdir", "logs")
    runs = json.loads((tmp_path / "logs/comparison.json").read_text())["runs"]
    assert [run["name"] for run in runs] == [
        "tuning-ppo,clip_range=linear_0.2",
        "tuning-ppo,clip_range=0.1",
        "tuning-ppo,clip_range=linear_0.2-2",
        "rate-ppo",
        "other,hyperparameters.gamma=0.9",
        "other,hyperparameters.gamma=0.99",
    ]


def test_names_with_slashes_and_kinds(quicgym: Command, tmp_path: Path) -> None:
    write_evaluation(tmp_path / "a", ["ebcc:gain_cycle=1.25/0.75", "../mine"])
    quicgym("compare", "a", "a", "--logdir", "logs")
    runs = json.loads((tmp_path / "logs/comparison.json").read_text())["runs"]
    assert [(run["name"], run["kind"]) for run in runs] == [
        ("ebcc:gain_cycle=1.25-0.75", "hand-coded"),
        ("-mine", "learned"),
    ]
    tags = read(tmp_path / "logs/ebcc:gain_cycle=1.25-0.75").Tags()["scalars"]
    assert f"scenario-episode/{SCENARIOS[0]}/reward" in tags
    assert points(read(tmp_path / "logs/-mine"), "evaluation/reward").keys() == {0}


def test_of_a_training_that_is_not_finished_there_is_the_curve(
    quicgym: Command, tmp_path: Path
) -> None:
    folder = write_training(tmp_path / "training")
    (folder / "evaluation").rename(tmp_path / "elsewhere")
    done = quicgym("compare", "training", "--logdir", "logs")
    assert "training is not finished" in done.stderr
    run = read(tmp_path / "logs/tuning-ppo")
    assert [event.step for event in run.Scalars("evaluation/reward")] == list(STEPS)
    assert not any(tag.startswith("scenario-episode/") for tag in run.Tags()["scalars"])


def test_a_resumed_run_forgets_what_came_after_its_checkpoint(tmp_path: Path) -> None:
    from quicgym.agents.evaluation.tensorboard import EvaluationWriter

    for purge_step, values in ((None, {0: 1.0, 5: 2.0, 9: 3.0}), (5, {5: 4.0, 7: 5.0})):
        writer = EvaluationWriter(tmp_path, purge_step)
        for step, value in values.items():
            writer.scalars(step, {"evaluation/reward": value, "evaluation/jain": float("nan")})
        writer.close()
    run = read(tmp_path)
    assert points(run, "evaluation/reward") == {0: 1.0, 5: 4.0, 7: 5.0}
    assert run.Tags()["scalars"] == ["evaluation/reward"]


def test_an_evaluation_can_be_read_before_the_file_is_closed(tmp_path: Path) -> None:
    from quicgym.agents.evaluation.tensorboard import EvaluationWriter

    writer = EvaluationWriter(tmp_path)
    records = [{"scenario": name} | metrics("bbr", name, 0) for name in SCENARIOS]
    writer.evaluation(7, records)
    assert set(points(read(tmp_path), "evaluation/reward")) == {7}
    writer.close()


def test_hparams_have_ranges_of_numbers_and_truth_values(tmp_path: Path) -> None:
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    from quicgym.agents.evaluation.tensorboard import EvaluationWriter

    rows = [{"seed": 3, "quick": True}, {"seed": 1, "quick": False}]
    writer = EvaluationWriter(tmp_path)
    writer.hparams(rows[0], rows)
    writer.close()
    plugin = read(tmp_path).PluginTagToContent("hparams")
    experiment = HParamsPluginData.FromString(plugin["_hparams_/experiment"]).experiment
    seed, quick = experiment.hparam_infos
    assert (seed.domain_interval.min_value, seed.domain_interval.max_value) == (1, 3)
    assert [value.bool_value for value in quick.domain_discrete.values] == [False, True]
    start = HParamsPluginData.FromString(plugin["_hparams_/session_start_info"]).session_start_info
    assert start.hparams["quick"].bool_value is True and start.hparams["seed"].number_value == 3


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_the_log_directory_of_others_is_refused_or_moved_aside(
    quicgym: Command, tmp_path: Path
) -> None:
    write_evaluation(tmp_path / "a", ["bbr"])
    write_evaluation(tmp_path / "b", ["cubic"])
    (tmp_path / "logs").mkdir()  # an empty one is nobody's
    quicgym("compare", "a", "--logdir", "logs")
    first = contents(tmp_path / "logs")

    quicgym("compare", "a", "--logdir", "logs")
    assert set(contents(tmp_path / "logs")) != set(first)
    assert len(list((tmp_path / "logs/bbr").iterdir())) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b", "logs"}

    before = contents(tmp_path)
    done = quicgym("compare", "b", "--logdir", "logs", status=2)
    assert done.stdout == ""
    assert "holds another comparison, of bbr" in done.stderr and "--force" in done.stderr
    (tmp_path / "logs/bbr/notes.txt").write_text("mine")
    done = quicgym("compare", "a", "--logdir", "logs", status=2)
    assert "bbr/notes.txt" in done.stderr and "did not write" in done.stderr
    assert contents(tmp_path).items() >= before.items()

    before = contents(tmp_path / "logs")
    done = quicgym("compare", "b", "--logdir", "logs", "--force")
    (previous,) = tmp_path.glob("logs-previous-*")
    assert previous.name in done.stderr
    assert contents(previous) == before
    assert {path.name for path in (tmp_path / "logs").iterdir()} == {"cubic", "comparison.json"}

    for folder, logs in (("a", "a"), (tmp_path / "a", ".")):
        done = quicgym("compare", folder, "--logdir", logs, "--force", status=2)
        assert f"holds the run {tmp_path / 'a'}" in done.stderr


def test_the_current_folder_is_never_moved_aside(
    quicgym: Command, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    runs = write_evaluation(tmp_path_factory.mktemp("elsewhere") / "a", ["bbr"])
    (tmp_path / "notes.txt").write_text("mine")
    done = quicgym("compare", runs, "--logdir", ".", "--force", status=2)
    assert "holds the current folder" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_paths_that_seeds_draw_have_to_be_the_same_ones(quicgym: Command, tmp_path: Path) -> None:
    drawn = {"distributions": [SCENARIOS[0]]}
    write_evaluation(tmp_path / "a", ["bbr"], seeds=2, **drawn)
    write_evaluation(tmp_path / "b", ["cubic"], seeds=3, **drawn)
    write_evaluation(tmp_path / "c", ["vegas"], seeds=2, **drawn)
    done = quicgym("compare", "a", "b", "--logdir", "logs", status=2)
    assert f"a has 2 paths of the distribution {SCENARIOS[0]}, b 3" in done.stderr
    assert "evaluate the policies again with" in done.stderr and not (tmp_path / "logs").exists()
    write_training(tmp_path / "trained")  # on two paths; it comes first wherever its folder is
    done = quicgym("compare", "b", "trained", "--logdir", "logs", status=2)
    assert "evaluate the policies again with --first-seed 0 --seeds 2" in done.stderr
    quicgym("compare", "a", "c", "--logdir", "logs")
    write_evaluation(tmp_path / "d", ["bbr"], seeds=2)  # of scenarios, more seeds are more of them
    write_evaluation(tmp_path / "e", ["cubic"], seeds=3)
    quicgym("compare", "d", "e", "--logdir", "other")


def test_a_training_on_a_mixture_is_compared_by_its_controllers(
    quicgym: Command, tmp_path: Path
) -> None:
    write_training(tmp_path / "trained", evaluation={"suite": "worlds"})
    write_evaluation(tmp_path / "other", ["bbr"], suite="papers")
    write_evaluation(tmp_path / "mixture", ["bbr"], scenarios=SCENARIOS[:1])
    write_evaluation(tmp_path / "drawn", ["bbr"], distributions=[SCENARIOS[0]])
    for folder in ("other", "mixture", "drawn"):
        done = quicgym("compare", "trained", folder, status=2)
        says(done, "mixture worlds", "evaluation.controllers", "--policy trained")
        assert "again" not in done.stderr and "one suite" not in done.stderr


def test_the_first_commands_of_the_guide_run(quicgym: Command, tmp_path: Path) -> None:
    from quicgym.agents.training.configuration import load_training
    from quicgym.cli.compare import EXAMPLES

    page = (Path(__file__).parents[2] / "docs/how-to/comparison.md").read_text()
    commands = re.findall(r"^    quicgym (.*)$", page, re.MULTILINE)[:3]
    train, evaluate, compare = map(str.split, commands)
    assert " ".join(["quicgym", *compare]).startswith(EXAMPLES[0])
    of_config = load_training(train[1]).evaluation
    assert evaluate[-1] == str(of_config.seeds) and of_config.suite in evaluate
    small = ("steps=8", "environment.simulations=2", "environment.threads=1")
    small += ("hyperparameters.n_steps=4", "hyperparameters.batch_size=8")
    quicgym(*train, *small, "evaluation.seeds=2", "evaluation.comparison_paths=16")
    quicgym(*evaluate[:-1], "2")
    quicgym(*compare)
    names = {path.name for path in (tmp_path / "results/compare").iterdir()}
    assert names == {"rate-ppo", "bbr", "cubic", "comparison.json"}


@pytest.mark.parametrize("force", [False, True])
def test_where_the_new_comparison_cannot_be_put_the_earlier_one_stays(
    force: bool, quicgym: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_evaluation(tmp_path / "a", ["bbr"])
    quicgym("compare", "a", "--logdir", "logs")
    if force:
        (tmp_path / "logs/notes.txt").write_text("mine")
    before = contents(tmp_path / "logs")
    rename = Path.rename

    def fails(self: Path, target: Path) -> Path:
        if self.name == "new":
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fails)
    done = quicgym("compare", "a", "--logdir", "logs", *(["--force"] if force else []), status=2)
    assert "nothing has changed there" in done.stderr
    assert contents(tmp_path / "logs") == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "logs"]


def test_a_full_disk_leaves_nothing_half(tmp_path: Path) -> None:
    write_evaluation(tmp_path / "a", ["bbr"])
    done = run_forked(tmp_path, "compare", "a", "--logdir", "logs", before=small_files(2_000))
    check_end(done, 2)
    assert "logs: cannot be written (File too large)" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def broken_line(folder: Path) -> None:
    path = folder / "training/evaluations.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], lines[1][:40], *lines[2:]]) + "\n")


def change_json(name: str, **changes: Any) -> Any:
    def change(folder: Path) -> None:
        data = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(data | changes))

    return change


def change_results(name: str, **changes: Any) -> Any:
    def change(folder: Path) -> None:
        path = folder / name / "results.parquet"
        pd.read_parquet(path).assign(**changes).to_parquet(path)

    return change


BOTH = ("training", "baselines")
CASES: list[tuple[Any, tuple[str, ...], list[str]]] = [
    (None, ("nowhere",), ["nowhere: is no folder", "quicgym train", "quicgym evaluate"]),
    (None, (".",), ["has neither run.json nor evaluation.json"]),
    (None, ("training", "--logdir", "file.txt"), ["file.txt is a file"]),
    (broken_line, BOTH, ["training/evaluations.jsonl:2:", "damaged"]),
    (
        change_json("baselines/evaluation.json", suite="papers"),
        BOTH,
        ["baselines has the suite papers, training has heldout"],
    ),
    (
        change_json("baselines/evaluation.json", reward={"name": "power"}),
        BOTH,
        ["training has fair-throughput", '{"name": "power"}', "different rewards"],
    ),
    (
        change_results("baselines", scenario="other"),
        BOTH,
        ["'other' is only in the", "on one suite"],
    ),
    (change_results("baselines", engine=["native", "ns3"] * 3), BOTH, ["values native, ns3"]),
]


@pytest.mark.parametrize(("damage", "arguments", "expected"), CASES)
def test_bad_input(
    tmp_path: Path, quicgym: Command, damage: Any, arguments: tuple[str, ...], expected: list[str]
) -> None:
    write_training(tmp_path / "training")
    write_evaluation(tmp_path / "baselines", ["bbr"])
    (tmp_path / "file.txt").write_text("")
    if damage:
        damage(tmp_path)
    before = contents(tmp_path)
    says(quicgym("compare", *arguments, status=2), *expected)
    assert contents(tmp_path) == before
