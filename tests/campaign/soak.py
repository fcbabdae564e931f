"""Long runs: memory and descriptors stay level."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Set
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

from campaign.part import Found, Part, checked, packages_missing
from quicgym.envs import Scenario, Simulation
from quicgym.envs.vector import make_vec

_DAY_S = 24 * 3600.0
_MOST_GROWTH_KIB = 20 * 1024
"""Of the resident memory, after the first tenth of a run."""


class _Level:
    """Watches the memory and descriptors of a process from the end of a warm-up on."""

    def __init__(self, process: int | None = None) -> None:
        self._folder = Path("/proc") / (str(process) if process else "self")
        self._memory, self._files = self._resident_kib(), self._descriptors()

    def _resident_kib(self) -> int:
        pages = int((self._folder / "statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") // 1024

    def _descriptors(self) -> int:
        return len(os.listdir(self._folder / "fd"))

    def settle(self, seconds: float = 5.0) -> None:
        """Waits until the connection of an agent that has just left is closed here, too."""
        until = time.monotonic() + seconds
        while self._descriptors() > self._files and time.monotonic() < until:
            time.sleep(0.1)

    def growth(self, what: str) -> Found:
        """Returns how much they have grown, a failure where that is too much."""
        memory_kib, files = self._resident_kib() - self._memory, self._descriptors() - self._files
        found = Found(
            measured={f"{what}: memory grown (KiB)": memory_kib, f"{what}: descriptors": files}
        )
        if memory_kib > _MOST_GROWTH_KIB or files > 0:
            found.failures.append(f"{what}: {memory_kib} KiB and {files} descriptors more")
        return found


def connection(number: int, until: float) -> Found:
    """Runs one connection, for a simulated day at most; steps of a minute."""
    scenario = Scenario.model_validate(
        {
            "name": "soak",
            "duration_s": _DAY_S,
            "bottleneck": {
                "rate_mbps": 2,
                "delay_ms": 20,
                "queue": {"limit": 50},
                "loss": {"kind": "bernoulli", "probability": 0.001},
            },
            "access": {"rate_mbps": 100, "delay_ms": 1},
            "flows": [{"controller": ["cubic", "bbr", "newreno", "ebcc"][number % 4]}],
        }
    )
    simulation = Simulation(scenario, seed=number, trace_interval_ms=None)
    level, end_s = None, 0.0
    while end_s < _DAY_S and time.monotonic() < until:
        end_s += 60.0
        simulation.run_until(end_s)
        if level is None and end_s >= 1800.0:
            level = _Level()
    found = level.growth("connection") if level else Found()
    total = simulation.flows[0].statistics
    found.add(
        Found({"simulated hours": round(end_s / 3600), "packets": int(total["sent_packets"])})
    )
    if total["goodput_bytes"] * 8 < 0.5e6 * end_s:
        found.failures.append(f"{number}: {total['goodput_bytes']} bytes in {end_s:g} s")
    return found


def resets(number: int, until: float) -> Found:
    """Resets vector environments of 64 again and again, with a few steps in between."""
    environment = make_vec("quicgym/Tuning-v1", num_envs=64, episode_s=2.0, num_threads=1)
    rng = np.random.default_rng([number, *b"resets"])
    environment.action_space.seed(number)
    done, level = 0, None
    while done == 0 or time.monotonic() < until:
        environment.reset(seed=int(rng.integers(2**31)))
        for _ in range(int(rng.integers(0, 3))):
            environment.step(environment.action_space.sample())
        done += 64
        if level is None and done >= 6400:
            level = _Level()
    environment.close()
    found = level.growth("resets") if level else Found()
    found.add(Found({"resets": done}))
    return found


def served(number: int, until: float) -> Found:
    """Serves CartPole to agents of ns3-gym's protocol that come, play a little, and go."""
    rng = np.random.default_rng([number, *b"serve"])
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = int(probe.getsockname()[1])
    command = [sys.executable, "-m", "quicgym_start", "serve", "CartPole-v1", "--port", str(port)]
    began, agents, level, found = time.monotonic(), 0, None, Found()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            while agents == 0 or time.monotonic() < until:
                _play(port, rng)
                agents += 1
                if level is None and agents >= 50:
                    level = _Level(process.pid)
            if level is not None:
                level.settle()
                found.add(level.growth("serve"))
            if process.poll() is not None:
                found.failures.append(f"{number}: serve has ended with {process.returncode}")
        finally:
            process.kill()
    found.add(Found({"agents served": agents, "seconds of serve": round(time.monotonic() - began)}))
    return found


def _play(port: int, rng: np.random.Generator) -> None:
    from quicgym.envs.ns3gym import Ns3GymEnv

    with Ns3GymEnv(port, timeout_s=120) as env:
        env.action_space.seed(int(rng.integers(2**31)))
        for _ in range(int(rng.integers(1, 4))):  # one that goes before would end the server
            env.reset()
            for _ in range(int(rng.integers(0, 30))):  # or leave in mid-episode
                *_, terminated, truncated, _ = env.step(env.action_space.sample())
                if terminated or truncated:
                    break


def _run(first: int, until: float, jobs: int, wanted: Set[str]) -> tuple[Found, int]:
    found = Found()
    those = [(thing, work) for thing, work in _WORKS.items() if thing in wanted]
    with ProcessPoolExecutor(jobs) as pool:
        for left, (thing, work) in zip(range(len(those), 0, -1), those, strict=True):
            began = time.monotonic()
            check = partial(work, until=began + (until - began) / left)
            for one in pool.map(partial(checked, check), range(first, first + jobs)):
                found.add(one)
            found.spent_s[thing] = (time.monotonic() - began) * jobs
    return found, first + jobs


_WORKS = {"simulated hours": connection, "resets": resets, "seconds of serve": served}


PART = Part(
    name="soak",
    title="one connection for a day, resets, agents that come and go: level memory",
    goals={"simulated hours": 24, "resets": 10**6, "seconds of serve": 8 * 3600},
    share=1.0,
    run=_run,
    missing=lambda: packages_missing("google.protobuf"),
    in_real_time=True,
)
