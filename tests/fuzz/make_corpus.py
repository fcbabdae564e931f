"""Writes corpus/, from which fuzzing starts: `python tests/fuzz/make_corpus.py` after a change.

Each file is a real message, or the way there: packets of a connection, a policy, YAML files.
"""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
from gymnasium import spaces

HERE = Path(__file__).parent
CONFIGS = HERE.parents[1] / "configs"
sys.path.insert(0, str(HERE.parent))

from helpers.endpoints import SECOND, Pair, application, make_flow  # noqa: E402

from quicgym import _core, controllers  # noqa: E402
from quicgym.envs.decisions import Decisions  # noqa: E402
from quicgym.envs.ns3gym import messages, zmtp  # noqa: E402
from quicgym.envs.ns3gym.descriptions import (  # noqa: E402
    MAXIMUM_DEPTH,
    MAXIMUM_NUMBERS,
    codec_of_space,
)


def packets() -> dict[str, bytes]:
    """One datagram for each combination of frames on a connection with losses, by these."""

    class Kept(Pair):
        def carry(self, direction: str, now: int, datagram: tuple[bytes, int, int, int]) -> None:
            sent.append(datagram[:2])
            super().carry(direction, now, datagram)

    sent: list[tuple[bytes, int]] = []
    kind = application("transfer", size_bytes=100_000)
    flow = make_flow(application=kind, ecn=True, flow_control_window_bytes=20_000)
    pair = Kept(flow, drop=lambda direction, index, frames: index % 7 == 6)
    pair.run_until(3 * SECOND)
    found: dict[str, bytes] = {}
    for (prefix, size), (*_, read, _dropped) in zip(sent, pair.log, strict=True):
        name = "-".join([read["type"], *(frame[0] for frame in read["frames"])]).lower()
        found.setdefault(name, struct.pack(">HI", size - len(prefix), 0) + prefix)
    return found


# endpoints.cpp: how much time passes, what happens to a datagram, and at which end.
TO_RECEIVER, TO_SENDER = 0, 1
DELIVER, LOSE, MAKE_UP, DAMAGE = 4, 0, 1, 2
TO_NEXT_TIMER = 15


def step(what: int, end: int, time: int = 0) -> int:
    return time << 4 | what << 1 | end


def connections(frames: Mapping[str, bytes]) -> dict[str, bytes]:
    """The handshake and some rounds for each controller; one also with made-up packets."""
    found = {}
    names = controllers.baselines()
    rounds = [step(DELIVER, TO_RECEIVER, 8), step(DELIVER, TO_SENDER, 8)] * 12
    rounds += [step(LOSE, TO_RECEIVER), step(DELIVER, TO_SENDER, TO_NEXT_TIMER)] * 4
    for number, name in enumerate(names):
        flags, kind = (1 | number % 4 << 3), number % 3
        size = b"\1\0\0" if kind == 1 else b""
        found[name] = bytes([flags, number, number % 3, 5, kind]) + size + bytes(rounds)
    made_up = b"".join(
        bytes([step(MAKE_UP, end, 4)]) + data[:2] + b"\2" + bytes([len(data) - 6]) + data[6:]
        for data in frames.values()
        for end in (TO_RECEIVER, TO_SENDER)
    )
    found["made-up"] = found["newreno"][: 5 + 8] + made_up
    return found


# controller.cpp: how much time passes, and which call.
HANDSHAKE, ECN, PERSISTENT, APP_LIMITED, SET, LOSS, ACK, SEND = 0, 1, 2, 3, 5, 6, 8, 13


def calls() -> dict[str, bytes]:
    """Rounds of sent, acknowledged and lost packets for each controller."""
    found = {}
    for number, entry in enumerate(controllers.catalogue()):
        data = bytes([number, 0, HANDSHAKE, 216, 0])
        for turn in range(8):
            data += bytes([8 << 4 | SEND, 9, 7 << 4 | ACK, 0, 10, 8, *[0] * 8])
            data += bytes([LOSS, 2, 1, 0]) if turn % 3 == 1 else bytes([APP_LIMITED])
        data += bytes([ECN, 1, SET, 0, 2, 128, PERSISTENT])
        found[entry.name] = data
    return found


def safetensors(tensors: Mapping[str, np.ndarray]) -> bytes:
    header, data = {}, b""
    for name, values in tensors.items():
        end = len(data) + values.nbytes
        header[name] = {"dtype": "F32", "shape": values.shape, "data_offsets": [len(data), end]}
        data += values.astype("<f4").tobytes()
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def policies() -> dict[str, bytes]:
    """One with each kind of action, each as small as can be."""
    found = {}
    preference = {"throughput": 1, "loss": 5, "fairness": 0, "delay": 2}
    for environment, output, more in (
        ("quicgym/Window-v1", "argmax", {}),
        ("quicgym/Tuning-v1", "clip", {"decision_interval_rtts": 2.5}),
        ("quicgym/Rate-v1", "tanh", {"preference": preference}),
    ):
        decisions = Decisions(environment, history_length=1, preference=more.get("preference"))
        inputs = decisions.observation_space.shape[0]
        space = _core.find_action_space(decisions.interface.action_space)
        outputs = len(space.choices or space.coordinates)
        sizes = {"features.layers.0": (2, inputs), "action": (outputs, 2)}
        weights = safetensors(
            {
                f"{layer}.{part}": np.full(shape, 0.5, np.float32)
                for layer, (rows, columns) in sizes.items()
                for part, shape in (("weight", (rows, columns)), ("bias", (rows,)))
            }
        )
        description = {
            "format": "quicgym-policy-1", "name": environment, "environment": environment,
            "observation_version": 1, "action_version": 1, "decision_interval_ms": 20.0,
            "history_length": 1, "sha256": "SHA256",
            "architecture": {
                "extractor_sizes": [2], "hidden_sizes": [],
                "activation": "relu", "output": output,
            },
            **more,
        }  # fmt: skip
        name = environment.partition("/")[2].lower()
        found[name] = json.dumps(description).encode() + b"\0" + weights
    return found


# By what reads it, as in python/yaml_files.py; below configs/.
YAML_FILES = {
    "scenario": (0, "scenarios/ebcc-single.yaml"),
    "suite": (1, "suites/papers.yaml"),
    "held-out": (1, "suites/heldout-lan.yaml"),
    "drawn": (1, "suites/leo.yaml"),
    "distribution": (2, "distributions/stress-training.yaml"),
    "reconfigured": (2, "distributions/satellite.yaml"),
    "mixture": (3, "distributions/worlds.yaml"),
    "sweep": (5, "sweeps/ibcca-tin.yaml"),
    "training": (4, "training/td3.yaml"),
    "window": (4, "training/window.yaml"),
    "search": (6, "searches/ppo-pbt.yaml"),
    "paper": (7, "papers/vivace.yaml"),
}
ALIASES = b"\0a: &a [1, 0x1f, .inf]\nb: {<<: {c: *a}}\nduration_s: 2001-01-01\n"
TRACES = {"plain": b"1\n2\n2\n9\n", "comment": b"\xef\xbb\xbf# times\r\n\r\n5\r\n70\r\n"}


def conversation(kind: str, *sent: Any) -> bytes:
    """What a socket of ZeroMQ sends: the greeting, READY, and messages."""
    parts = [zmtp._DELIMITER + zmtp._frame(0, message.SerializeToString()) for message in sent]
    return zmtp._GREETING + zmtp._ready(kind) + b"".join(parts)


def ns3gym() -> dict[str, bytes]:
    """A simulation's messages for several spaces, an agent's, and what both refuse."""
    nested = {"a": spaces.Tuple([spaces.Box(0, 9, (1,), np.uint32)]), "b": spaces.Discrete(2)}
    found = {}
    for name, space in {
        "box": spaces.Box(-1, 1, (2,), np.float32),
        "discrete": spaces.Discrete(3),
        "nested": spaces.Dict(nested),
    }.items():
        codec = codec_of_space(space, name, False)
        space.seed(1)
        value = codec.encode(space.sample(), name)
        init = messages.SimInitMsg(obsSpace=codec.description(), actSpace=codec.description())
        state = messages.EnvStateMsg(obsData=value, reward=0.5, info="info")
        found[f"simulation-{name}"] = b"\0" + conversation("REQ", init, state)
        ack, act = messages.SimInitAck(done=True), messages.EnvActMsg(actData=value)
        found[f"agent-{name}"] = b"\1" + conversation("REP", ack, act)
    deep: spaces.Space[Any] = spaces.Discrete(2)
    for _ in range(MAXIMUM_DEPTH):
        deep = spaces.Tuple([deep])
    for name, space in {"deep": deep, "large": spaces.Box(0, 1, (MAXIMUM_NUMBERS,))}.items():
        described = codec_of_space(space, name, False).description()
        found[f"simulation-{name}"] = b"\0" + conversation(
            "REQ", messages.SimInitMsg(obsSpace=described, actSpace=described)
        )
    found["refused"] = b"\0" + zmtp._GREETING + zmtp._error("another agent is there")
    return found


def main() -> None:
    frames = packets()
    yaml_files = {
        name: bytes([kind]) + (CONFIGS / path).read_bytes()
        for name, (kind, path) in YAML_FILES.items()
    }
    rmtree(HERE / "corpus", ignore_errors=True)
    for target, files in {
        "frames": frames,
        "endpoints": connections(frames),
        "controller": calls(),
        "policy": policies(),
        "yaml_files": {"aliases": ALIASES, **yaml_files},
        "traces": TRACES,
        "ns3gym_peers": ns3gym(),
    }.items():
        folder = HERE / "corpus" / target
        folder.mkdir(parents=True)
        for name, data in files.items():
            (folder / name).write_bytes(data)
        print(f"{target}: {len(files)} files, {sum(map(len, files.values()))} bytes")


if __name__ == "__main__":
    main()
