"""Peers of ns3-gym's protocol that flood or stall, around an agent and its simulation."""

from __future__ import annotations

import socket
import warnings
from collections.abc import Set
from contextlib import suppress
from functools import partial
from threading import Event

import numpy as np
from helpers.ns3gym_peers import GREETING, PINGS, Background, free_port, ready

from campaign.part import Found, Part, numbered, packages_missing

PATIENCE_S = 30.0
COUNTS = (1, 20)
"""The range of the number of hostile peers, without its end."""
_INTRODUCED = GREETING + ready("REQ")
PEERS = {
    "silent": b"",
    "half a greeting": GREETING[:20],
    "no message": _INTRODUCED,
    "half a message": _INTRODUCED + b"\1\0\0\x20half",
    "large message that does not come": _INTRODUCED + b"\1\0\2" + (2**20 - 1).to_bytes(8, "big"),
    "flood of commands": _INTRODUCED + PINGS,
    "flood of zeros": bytes(2**16),
}
"""What each kind of peer sends; a flood is sent again and again."""


def check(number: int) -> Found:
    """Plays an episode while hostile peers connect to the agent again and again."""
    import gymnasium

    from quicgym.envs.ns3gym import Ns3GymError, serve

    rng = np.random.default_rng([number, *b"peers"])
    kinds = [str(kind) for kind in rng.choice(list(PEERS), rng.integers(*COUNTS))]
    port, over, found = free_port(), Event(), Found({"hostile peers": len(kinds)})
    hostile = [Background(partial(_attack, port, kind, over)) for kind in kinds]

    def play() -> int:
        over.wait(float(rng.uniform(0, 0.3)))
        cart_pole = gymnasium.make("CartPole-v1")
        return serve(cart_pole, port, episodes=1, timeout_s=PATIENCE_S, seed=number)

    playing = Background(play)
    try:
        _play_agent(port)
        if playing.join() != 1:
            found.failures.append(f"{number} ({', '.join(kinds)}): the simulation has no episode")
    except Ns3GymError as error:
        found.failures.append(f"{number} ({', '.join(kinds)}): {error}")
    finally:
        over.set()
        for peer in hostile:
            peer.join()
    return found


def _play_agent(port: int) -> None:
    from quicgym.envs.ns3gym import Ns3GymEnv

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of peers that are refused
        with Ns3GymEnv(port, timeout_s=PATIENCE_S) as env:
            env.reset()
            is_over = False
            while not is_over:
                *_, terminated, truncated, _ = env.step(0)
                is_over = terminated or truncated


def _attack(port: int, kind: str, over: Event) -> None:
    """Connects and sends until the agent closes the connection, again and again."""
    while not over.wait(0.01):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=0.2) as end:
            end.sendall(PEERS[kind])
            while not over.is_set():
                if kind.startswith("flood"):
                    end.sendall(PEERS[kind][-(2**14) :])
                else:
                    with suppress(TimeoutError):
                        if not end.recv(4096):
                            break


def _run(first: int, until: float, jobs: int, wanted: Set[str]) -> tuple[Found, int]:
    return numbered(check, first, until, jobs)


PART = Part(
    name="peers",
    title="an episode over ns3-gym's protocol among peers that flood or stall",
    goals={"hostile peers": 10**5},
    share=0.5,
    run=_run,
    missing=lambda: packages_missing("google.protobuf"),
    in_real_time=True,
)
