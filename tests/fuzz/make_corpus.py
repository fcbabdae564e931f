"""The corpus, from which fuzzing starts: real packets and policies, or the way there."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from helpers.endpoints import SECOND, Pair, application, make_flow

from quicgym import _core, controllers
from quicgym.envs.decisions import Decisions


def packets() -> dict[str, bytes]:
    """One datagram for each combination of frames on two connections, by these.

    One has a small window and losses.
    """

    class Kept(Pair):
        def carry(self, direction: str, now: int, datagram: tuple[bytes, int, int, int]) -> None:
            sent.append(datagram[:2])
            super().carry(direction, now, datagram)

    found: dict[str, bytes] = {}
    kind = application("transfer", size_bytes=100_000)
    for window_bytes, lost in ((20_000, None), (5_000, 6)):
        sent: list[tuple[bytes, int]] = []
        flow = make_flow(application=kind, ecn=True, flow_control_window_bytes=window_bytes)
        pair = Kept(flow, drop=lambda direction, index, frames, lost=lost: index % 7 == lost)
        pair.run_until(3 * SECOND)
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
    """Rounds of sent, acknowledged and lost packets for each controller; and of rising RTTs."""
    found = {}
    for number, entry in enumerate(controllers.catalogue()):
        data = bytes([number, 0, HANDSHAKE, 216, 0])
        for turn in range(8):
            data += bytes([8 << 4 | SEND, 9, 7 << 4 | ACK, 0, 10, 8, *[0] * 8])
            data += bytes([LOSS, 2, 1, 0]) if turn % 3 == 1 else bytes([APP_LIMITED])
        data += bytes([ECN, 1, SET, 0, 2, 128, PERSISTENT])
        found[entry.name] = data
        # Rounds of 16 packets, acknowledged one by one 4, 17 or 67 ms later.
        acks = b"".join(bytes([ACK, 0, back, 1, 0]) for back in range(16, 0, -1))
        times = (7, 7, 8, 7, 8, 8, 9)
        rounds = (bytes([SEND, 15, time << 4 | APP_LIMITED]) + acks for time in times)
        found[f"{entry.name}-rising"] = bytes([number, 0]) + b"".join(rounds)
    return found


def safetensors(tensors: Mapping[str, np.ndarray]) -> bytes:
    header, data = {}, b""
    for name, values in tensors.items():
        end = len(data) + values.nbytes
        header[name] = {"dtype": "F32", "shape": values.shape, "data_offsets": [len(data), end]}
        data += values.astype("<f4").tobytes()
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


# What an environment's policy may choose beside its defaults.
CHOICES: tuple[tuple[str, dict[str, Any]], ...] = (
    *((name, {}) for name in _core.ENVIRONMENTS),
    *(("window", {"observations": layout}) for layout in _core.observation_layouts()),
    ("window", {"guard": True, "history_length": 3, "decision_interval_rtts": 2.5}),
    ("tuning", {"controller": "cubic"}),
    ("tuning", {"coordinates": ("alpha", "gain_cycle")}),
)
# The inputs and outputs of other authors' agents.
AGENTS: dict[str, tuple[int, int, dict[str, Any]]] = {
    "aurora": (30, 1, {"activation": "tanh", "output": "linear"}),
    "orca": (70, 1, {"activation": "leaky-relu", "output": "tanh"}),
    "indigo": (9, 5, {"activation": "tanh", "output": "argmax", "lstm_size": 1}),
    "astraea": (50, 1, {"activation": "leaky-relu", "output": "tanh"}),
}


def policies() -> dict[str, bytes]:
    """One of each environment, choice and agent, each as small as can be."""
    found = {}
    for name, more in CHOICES:
        choices = {"history_length": 1, "decision_interval_ms": 20.0, **more}
        decisions = Decisions(name, **choices)
        space = _core.find_action_space(decisions.interface.action_space)
        outputs = len(space.choices or space.coordinates)
        description = {
            "environment": _core.ENVIRONMENTS[name]["id"], "observation_version": 1,
            "action_version": 1, "action_effect": [0.5], "training": {"steps": 1}, **choices,
        }  # fmt: skip
        output = "argmax" if space.choices else "tanh" if more else "clip"
        inputs = decisions.observation_space.shape[0]
        words = [value if isinstance(value, str) else field for field, value in more.items()]
        found["-".join([name, *words[:1]])] = _policy(
            description, inputs, outputs, {"activation": "relu", "output": output}
        )
    for name, (inputs, outputs, architecture) in AGENTS.items():
        found[f"agent-{name}"] = _policy({"agent": name}, inputs, outputs, architecture)
    return found


def _policy(
    description: Mapping[str, Any], inputs: int, outputs: int, architecture: Mapping[str, Any]
) -> bytes:
    tensors: dict[str, tuple[int, ...]]
    if lstm_size := architecture.get("lstm_size", 0):
        width = lstm_size
        rows = 4 * lstm_size
        tensors = {"lstm.weight_ih_l0": (rows, inputs), "lstm.weight_hh_l0": (rows, lstm_size)}
        tensors |= {"lstm.bias_ih_l0": (rows,), "lstm.bias_hh_l0": (rows,)}
    else:
        width = 2
        tensors = {"features.layers.0.weight": (width, inputs), "features.layers.0.bias": (width,)}
    tensors |= {"action.weight": (outputs, width), "action.bias": (outputs,)}
    document = {
        "format": "quicgym-policy-1", "name": "small", "sha256": "SHA256", **description,
        "architecture": {
            "extractor_sizes": [] if lstm_size else [width], "hidden_sizes": [], **architecture,
        },
    }  # fmt: skip
    weights = {name: np.full(shape, 0.5, np.float32) for name, shape in tensors.items()}
    return json.dumps(document).encode() + b"\0" + safetensors(weights)


def make_corpus() -> dict[str, dict[str, bytes]]:
    """Returns the inputs of each target, by name."""
    frames = packets()
    return {
        "frames": frames,
        "endpoints": connections(frames),
        "controller": calls(),
        "policy": policies(),
    }


def write_corpus(folder: Path) -> None:
    """Writes a file for each input, in a folder for each target."""
    for target, inputs in make_corpus().items():
        (folder / target).mkdir(parents=True, exist_ok=True)
        for name, data in inputs.items():
            (folder / target / name).write_bytes(data)
