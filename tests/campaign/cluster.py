"""A Ray cluster of three nodes on this machine, one of which is killed while a command runs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Set
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from campaign.commands import (
    EVALUATE,
    SEARCH,
    SWEEP,
    Command,
    Uninterrupted,
    difference,
    finish,
    in_turn,
    kill,
    start,
)
from campaign.part import Found, Part, packages_missing

COMMANDS = (EVALUATE, SWEEP, SEARCH)
_NODE: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80 * 2**20}


@contextmanager
def cluster() -> Iterator[Any]:
    """Starts a cluster of a head and two workers, with a core each; ends it afterwards."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # read by Ray when it is imported
    from ray.cluster_utils import Cluster

    head = {**_NODE, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args=head)
    try:
        for _ in range(2):
            made.add_node(**_NODE)
        yield made
    finally:
        made.shutdown()


def kill_a_node(nodes: Any, command: Command, number: int, expected: Any, usual_s: float) -> Found:
    """Kills a worker node while a command runs, and compares the result.

    Args:
        nodes: A cluster of three; it has three again afterwards.
        command: The command that runs.
        number: Number of this kill.
        expected: The result when no node dies.
        usual_s: Time that the command takes then, in s.
    """
    rng = np.random.default_rng([number, *b"cluster"])
    folder = command.prepare()
    process = start(command, folder, "--address", nodes.address)
    try:
        # Before that the command has not joined the cluster yet.
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=usual_s * float(rng.uniform(0.3, 0.8)))
            return Found({"commands that ended before the kill": 1})
        victim = sorted(nodes.worker_nodes, key=lambda node: node.unique_id)[int(rng.integers(2))]
        nodes.remove_node(victim, allow_graceful=False)  # SIGKILL to all of its processes
        problem = finish(process)
        nodes.add_node(**_NODE)
        if not problem:
            problem = difference(expected, command.result(folder / "out"))
        failures = [f"{number}: {command.name}: {problem}"] if problem else []
        return Found({"kills of a node": 1, f"kills of a node in {command.name}": 1}, failures)
    finally:
        kill(process)
        shutil.rmtree(folder, ignore_errors=True)


def _run(first: int, until: float, jobs: int, wanted: Set[str]) -> tuple[Found, int]:
    with cluster() as nodes:
        undisturbed = Uninterrupted("--address", nodes.address)

        def check(command: Command, number: int) -> Found:
            return kill_a_node(nodes, command, number, *undisturbed.of(command))

        return in_turn(COMMANDS, check, first, until)


PART = Part(
    name="cluster",
    title="a node of a Ray cluster of three is killed during evaluate, sweep and search",
    goals={"kills of a node": 20},
    share=2.0,
    run=_run,
    missing=lambda: packages_missing("ray", "stable_baselines3"),
    in_real_time=True,
)
