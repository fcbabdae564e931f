"""`quicgym link` under signals at random moments: it ends, and nothing of it is left."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Set
from contextlib import suppress

import numpy as np
from helpers.commands import command
from helpers.processes import left_after, only_child

from campaign.part import Found, Part, numbered, one_line
from quicgym.errors import UserError
from quicgym.real import run_link

PROGRAMS = (
    "exec sleep 1000",
    "sleep 1000 & setsid sleep 1000 & wait",
    "trap '' TERM INT HUP; while :; do sleep 1; done",
    "setsid sh -c 'trap \"\" TERM INT HUP; sleep 1000' & exec sleep 1000",
)
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
MOST_S = 60.0


def check(number: int) -> Found:
    """Sends one signal to one process of a link, or to its group as a terminal does."""
    rng = np.random.default_rng([number, *b"signals"])
    peer, program = (str(rng.choice(PROGRAMS)) for _ in "ab")
    # Neither a signal that a program outlives nor one to a program alone has to end the link.
    limit_s = float(rng.uniform(1, 10))
    mark = f"QUICGYM_CAMPAIGN={os.getpid()}-{number}"
    arguments = ("--limit-s", limit_s, "--peer", shlex.join(["sh", "-c", peer]))
    process = subprocess.Popen(
        command("link", "ebcc-single", *arguments, "--", "sh", "-c", program),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, **dict([mark.split("=")])},
    )
    found = Found({"signals to a link": 1})
    try:
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=float(rng.uniform(0, 8)))
        sent = SIGNALS[int(rng.integers(len(SIGNALS)))]
        generation = int(rng.integers(4))  # 3: the whole group
        with suppress(OSError):
            if generation == 3:
                os.killpg(process.pid, sent)
            else:
                target: int | None = process.pid
                for _ in range(generation):
                    target = target and only_child(target)
                if target:
                    os.kill(target, sent)
        what = f"{number}: {sent.name} to {('quicgym', 'its child', 'init', 'all')[generation]}"
        try:
            _, errors = process.communicate(timeout=limit_s + MOST_S)
        except subprocess.TimeoutExpired:
            found.failures.append(f"{what}: the link does not end")
        else:
            if "Traceback" in errors:
                found.failures.append(f"{what}: {one_line(errors[-400:])}")
        if left := left_after(mark, MOST_S):
            found.failures.append(f"{what}: {len(left)} processes are left")
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return found


def _run(first: int, until: float, jobs: int, wanted: Set[str]) -> tuple[Found, int]:
    return numbered(check, first, until, jobs)


def _missing() -> str | None:
    try:
        run_link("ebcc-single", ["true"], peer=["true"])
    except UserError as error:
        return str(error)
    return None


PART = Part(
    name="signals",
    title="`quicgym link` under signals at random moments: it ends, and nothing is left",
    goals={"signals to a link": 10**3},
    share=0.5,
    run=_run,
    missing=_missing,
    in_real_time=True,
)
