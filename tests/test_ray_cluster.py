"""`--address` of evaluate, papers and the leaderboard: the results are those of this machine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from conftest import IN_CLUSTER, Command
from helpers.commands import says
from helpers.papers import SMALL

from quicgym import load_scenario
from quicgym.agents.evaluation.jobs import make_jobs
from quicgym.benchmarks import reports
from quicgym.errors import ClusterError
from quicgym.jobs import RUNS_FILE, LocalProcesses, run_jobs, workers_of

CONTROLLERS = '''
import os
import quicgym

class Fixed(quicgym.Controller):
    """A window that fails in one run of two, and ends its process if told so."""

    name = "fixed"
    parameters = (quicgym.controllers.Parameter("ends", 0.0, 0.0, 1.0, description="it"),)

    def on_start(self, max_datagram_bytes):
        self.window_bytes = 20 * max_datagram_bytes
        self.drawn = None

    def on_ack(self, event):
        if self.drawn is None:
            self.drawn = event.random.below(2)
        if self.ends and self.drawn:
            os._exit(3)
        if self.drawn:
            raise ValueError("nothing is left")

    def on_loss(self, event):
        pass
'''


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """What is the user's: a controller, and a suite of which one scenario has a trace."""
    (tmp_path / "mine.py").write_text(CONTROLLERS)
    (tmp_path / "link.trace").write_text("3\n5\n9\n")
    (tmp_path / "suite.yaml").write_text(yaml.safe_dump([short("one"), short("traced", True)]))
    return tmp_path


def short(name: str, traced: bool = False) -> dict[str, Any]:
    link: dict[str, Any] = {"rate_mbps": 3} if not traced else {"trace": "./link.trace"}
    bottleneck = {**link, "delay_ms": 5, "queue": {"limit": 20}}
    path = {"bottleneck": bottleneck, "access": {"rate_mbps": 50, "delay_ms": 1}}
    if traced:
        path["reverse"] = {"rate_mbps": 3, "delay_ms": 5, "queue": {"limit": 20}}
    return {"name": name, "duration_s": 2.0, **path, "flows": [{"name": "flow"}]}


def without_command(file: Path) -> Any:
    return {key: value for key, value in json.loads(file.read_text()).items() if key != "command"}


def lines(folder: Path) -> list[str]:
    return sorted((folder / RUNS_FILE).read_text().splitlines())


def failed(errors: str) -> list[str]:
    return sorted(line for line in errors.splitlines() if line.startswith("failed: "))


@pytest.mark.train
@IN_CLUSTER
def test_an_evaluation_in_a_cluster_is_that_of_this_machine(
    ray_cluster: str, quicgym: Command, files: Path
) -> None:
    arguments = "evaluate --policy cubic random mine.py:Fixed --suite suite.yaml --seeds 4".split()
    done = quicgym(*arguments, "--out", "local", status=1)
    assert failed(done.stderr)  # some runs of `fixed` do not hold
    in_cluster = (*arguments, "--out", "cluster", "--address", ray_cluster)
    assert failed(quicgym(*in_cluster, status=1).stderr) == failed(done.stderr)
    local, cluster = files / "local", files / "cluster"
    check_equal(local, cluster)

    kept = (cluster / RUNS_FILE).read_bytes()
    quicgym(*in_cluster, "--resume", status=1)
    assert (cluster / RUNS_FILE).read_bytes() == kept  # none was run again
    (cluster / RUNS_FILE).write_bytes(b"".join(kept.splitlines(keepends=True)[::2])[:-9])
    quicgym(*in_cluster, "--resume", status=1)
    check_equal(local, cluster)


def check_equal(local: Path, cluster: Path) -> None:
    """Every byte is the same but for the command line."""
    assert set(lines(local)) <= set(lines(cluster))  # a torn line may be left
    assert without_command(cluster / "evaluation.json") == without_command(
        local / "evaluation.json"
    )
    pd.testing.assert_frame_equal(
        pd.read_parquet(cluster / "results.parquet"), pd.read_parquet(local / "results.parquet")
    )
    series = {path.name: path.read_bytes() for path in (local / "series").iterdir()}
    assert series == {path.name: path.read_bytes() for path in (cluster / "series").iterdir()}
    assert not list(cluster.glob(".cluster-*"))


@pytest.mark.train
@IN_CLUSTER
def test_papers_and_the_leaderboard_in_a_cluster_are_those_of_this_machine(
    ray_cluster: str, quicgym: Command, files: Path
) -> None:
    (files / "small.yaml").write_text(yaml.safe_dump(SMALL))
    (files / "list.yaml").write_text("- {name: C, policy: cubic, kind: baseline}\n")
    for folder, more in (("local", ()), ("cluster", ("--address", ray_cluster))):
        done = quicgym(*("papers", "--paper", "small.yaml", "--seeds", "2", "--out", folder), *more)
        assert "8 runs, papers.json" in done.stderr
        quicgym(
            *(
                "leaderboard",
                "--suite",
                "suite.yaml",
                "--policies",
                "list.yaml",
                "--engine",
                "native",
            ),
            *("--seeds", "2", "--out", f"{folder}/page.md", "--results", f"{folder}-pages", *more),
            main=reports.main,
        )
    assert without_command(files / "cluster/papers.json") == without_command(
        files / "local/papers.json"
    )
    traces = {path.name: path.read_bytes() for path in (files / "local/traces").iterdir()}
    assert traces == {path.name: path.read_bytes() for path in (files / "cluster/traces").iterdir()}
    assert lines(files / "cluster") == lines(files / "local")
    for file in ("evaluation.json", "results.parquet"):
        first, second = (files / f"{of}-pages/suite-native/{file}" for of in ("local", "cluster"))
        assert first.read_bytes() == second.read_bytes()
    for page in ("page.md", "page.json"):
        first, second = (files / of / page for of in ("local", "cluster"))
        assert first.read_text() == second.read_text()


@pytest.mark.train
@IN_CLUSTER
def test_a_job_whose_process_dies_takes_no_other_with_it(
    ray_cluster: str, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    scenario = load_scenario("ebcc-single").model_copy(update={"duration_s": 3.0})
    jobs = make_jobs(["cubic", "mine.py:Fixed:ends=1"], [scenario], 3)
    local = run_jobs(jobs, files / "local", LocalProcesses(1))
    cluster = run_jobs(jobs, files / "cluster", workers_of(None, ray_cluster))
    assert len(local.finished) >= 3 and "its process died" in local.failures[0]
    assert cluster.finished == local.finished
    assert sorted(cluster.failures) == sorted(local.failures)


@pytest.mark.train
@IN_CLUSTER
@pytest.mark.parametrize("content", [None, "7\n"])
def test_a_file_that_a_node_lacks_is_named(
    ray_cluster: str,
    files: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    content: str | None,
) -> None:
    from quicgym.envs.scenarios.suites import load_suite

    monkeypatch.chdir(files)
    jobs = make_jobs(["cubic"], load_suite("suite.yaml"), 1)
    assert len({job.key for job in jobs}) == 2  # by the files as they are for the command
    trace = files / "link.trace"
    if content is None:
        trace.unlink()
    else:
        trace.write_text(content)
    outcome = run_jobs(jobs, files / "out", workers_of(1, ray_cluster))
    assert outcome.interrupted and outcome.failures == []
    errors = " ".join(capfd.readouterr().err.split())
    assert f"has no {trace}" in errors or f"has other content in {trace}" in errors
    assert (
        "policy cubic, scenario traced" in errors and "file system that all nodes share" in errors
    )


@pytest.mark.train
@IN_CLUSTER
@pytest.mark.parametrize(
    ("wrong", "expected"),
    [("127.0.0.1:1", "no Ray cluster is there"), ("nowhere", "write HOST:PORT")],
)
@pytest.mark.parametrize("command", ["evaluate", "papers"])
def test_a_cluster_that_is_not_there_is_said_before_anything_is_written(
    quicgym: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    wrong: str,
    expected: str,
) -> None:
    import ray

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    says(quicgym(command, "--address", wrong, status=2), f"--address {wrong}: {expected}")
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("command", ["evaluate", "papers"])
def test_without_ray_the_error_names_the_extra(
    quicgym: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.delitem(sys.modules, "quicgym.ray_cluster", raising=False)
    monkeypatch.setitem(sys.modules, "ray", None)
    done = quicgym(command, "--address", "127.0.0.1:6379", status=2)
    says(done, "--address needs Ray", "pip install '.[sweep]'")
    assert not (tmp_path / "results").exists()


@pytest.mark.train
def test_ray_on_this_machine_always_asks_for_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    from quicgym.agents.tuning.trials import running_ray

    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with (
        pytest.raises(ClusterError, match="RAY_AUTH_MODE = disabled: .*unset"),
        running_ray(None, 1),
    ):
        pass


@pytest.mark.train
@IN_CLUSTER
@pytest.mark.parametrize("joins", [False, True])
def test_ray_imports_nothing_from_the_current_folder(
    joins: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    (tmp_path / "colorsys.py").write_text("")
    address = request.getfixturevalue("ray_cluster") if joins else None
    # A process of its own, because this one may have joined a cluster. -P: as a command does.
    program = (
        "import ray; from quicgym.agents.tuning.trials import running_ray\n"
        f"with running_ray({address!r}, 1):\n"
        "    print(ray.get(ray.remote(lambda: __import__('colorsys').__file__).remote()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        cwd=tmp_path, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert Path(done.stdout.split()[-1]).parent not in (tmp_path, Path())
