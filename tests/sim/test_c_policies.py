"""Learned policies behind the C interface: what they decide is what they decide in Python."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
from functools import partial
from hashlib import sha256

import numpy as np
import pytest
from helpers.c_interface import Bottleneck, C, CController, MirroredPair, last_error
from helpers.endpoints import MILLISECOND, SECOND, make_flow

import quicgym
from quicgym import _core
from quicgym.agents.policies.by_name import PRETRAINED, pretrained_names
from quicgym.envs.actions import ACTION_VERSION
from quicgym.envs.observations import OBSERVATION_VERSION
from quicgym.envs.registration import environment_id, environments


class Steered(CController):
    """A controller that a policy steers."""

    def __init__(self, path, seed=1, now=0, policy=None):
        policy = policy or C["policy_load"](str(path).encode())
        assert policy, last_error()
        self.handle = C["policy_controller_new"](policy, 1200, seed, now)
        C["policy_free"](policy)  # the controller keeps it
        assert self.handle, last_error()

    def decide(self, now):
        due = ctypes.c_int64()
        assert C["policy_decide"](self.handle, now, due) == 0, last_error()
        return due.value


def path_of(name):
    return PRETRAINED / f"{name}.json"


def test_the_environments_are_those_of_python():
    own = {
        name: environment.id
        for name, environment in environments().items()
        if environment.__module__.startswith("quicgym.envs.")
    }
    assert own == {name: described["id"] for name, described in _core.ENVIRONMENTS.items()}
    assert own == {name: environment_id(name) for name in own}
    assert (OBSERVATION_VERSION, ACTION_VERSION) == (1, 1)  # kVersion of sim/policy/policy.cpp


def test_a_published_policy_fills_a_link_that_only_it_sees():
    steered = Steered(path_of("window"))
    flow = make_flow(controller="guided")

    def follow(pair):  # the simulator's sender has the window that the C interface asks for
        due = pair.due
        if pair.now >= due:
            pair.due = steered.decide(pair.now)
            pair.windows.append(steered.window_bytes)
            pair.sender.set_parameters(pair.now, {"window_bytes": steered.window_bytes})

    pair = MirroredPair(flow, steered, Bottleneck(8_000_000, 60), follow)
    pair.due, pair.windows = 0, []
    pair.run_until(6 * SECOND)
    delivered = steered.snapshot.delivered_bytes
    assert 8 * delivered / 6 > 0.85 * 8_000_000
    assert steered.snapshot.lost_bytes < 0.02 * delivered
    assert len(set(pair.windows)) > 5


def feed(controller, decide):
    """Packets, losses and decisions, the same for every controller; returns window and rate."""
    generator = np.random.default_rng(5)
    values, in_flight, now, number = [], [], 0, 0
    controller.on_handshake(0, 40 * MILLISECOND)
    due = decide(0)
    step = due // 100  # some 20 decisions
    for _ in range(1500):
        now += int(generator.integers(1, 3)) * step
        controller.on_sent(now, number, 1200)
        in_flight.append(number)
        number += 1
        if len(in_flight) > 20:
            lost = [in_flight.pop(0)] if generator.random() < 0.02 else []
            controller.on_ack(now, 0, [in_flight.pop(0)])
            if lost:
                controller.on_loss(now, lost)
        if now >= due:
            due = decide(now)
            values.append((controller.window_bytes, controller.pacing_rate))
    return values


@pytest.mark.parametrize("name", pretrained_names())
def test_every_published_policy_decides_the_same_each_time(name):
    runs = []
    for _ in range(2):
        controller = Steered(path_of(name))
        runs.append(feed(controller, controller.decide))
    assert len(runs[0]) > 15 and runs[0] == runs[1]
    assert len(set(runs[0])) > 1


CASES = [
    *(("tuning", name) for name in (None, "ibcca")),
    *((name, None) for name in ("rate", "window", "easy")),
]


def write(folder, environment, controller=None, rtts=None, coordinates=None):
    """A policy whose action is always the same: its weights are 0. Returns path and action."""
    from safetensors.numpy import save

    from quicgym.agents.policies.architecture import Architecture
    from quicgym.envs.decisions import Decisions

    decisions = Decisions(
        environment, decision_interval_rtts=rtts, history_length=3, controller=controller,
        coordinates=coordinates,
    )  # fmt: skip
    space = _core.find_action_space(decisions.interface.action_space)
    output = "argmax" if space.choices else "clip"
    architecture = Architecture((4,), (), "tanh", output)
    arguments = architecture.arguments(decisions)
    bias = np.linspace(-0.5, 0.5, arguments["outputs"], dtype=np.float32)
    data = save(
        {
            "features.layers.0.weight": np.zeros((4, arguments["observation_size"]), np.float32),
            "features.layers.0.bias": np.zeros(4, np.float32),
            "action.weight": np.zeros((arguments["outputs"], 4), np.float32),
            "action.bias": bias,
        }
    )
    description = {
        "name": "constant", "environment": environments()[environment].id,
        "observation_version": 1, "action_version": 1,
        "decision_interval_ms": 1.0 if rtts else 100.0,
        "history_length": 3, "sha256": sha256(data).hexdigest(),
        "architecture": {
            "extractor_sizes": [4], "hidden_sizes": [], "activation": "tanh",
            "output": output,
        },
        "decision_interval_rtts": rtts,
    }  # fmt: skip
    if controller:
        description["controller"] = controller
    if coordinates:
        description["coordinates"] = list(coordinates)
    path = folder / "constant.json"
    path.write_text(json.dumps(description))
    path.with_suffix(".safetensors").write_bytes(data)
    return path, bias


@pytest.mark.parametrize(("environment", "controller"), CASES)
def test_a_policy_of_any_environment_is_loaded_and_decides(environment, controller, tmp_path):
    path, _ = write(tmp_path, environment, controller)
    assert quicgym.load_policy(path).decisions.environment == environment
    steered = Steered(path)
    assert len(feed(steered, steered.decide)) > 15


def test_an_action_of_tuning_sets_the_parameters_that_python_says(tmp_path):
    path, bias = write(tmp_path, "tuning")
    steered, plain = Steered(path), CController("bbr")
    for name, values in quicgym.envs.actions.action_parameters(bias).items():
        assert plain.set_parameter(name, *values) == 0
    assert feed(steered, steered.decide) == feed(plain, lambda now: now + 100 * MILLISECOND)


def test_coordinates_that_a_policy_does_not_set_stay_those_of_bbr(tmp_path):
    path, bias = write(tmp_path, "tuning", coordinates=("beta", "gain_cycle"))
    assert quicgym.load_policy(path).decisions.coordinates == ("beta", "gain_cycle")
    steered, plain = Steered(path), CController("bbr")
    action = np.zeros(18, np.float32)
    action[[1, *range(3, 13)]] = bias
    for name, values in quicgym.envs.actions.action_parameters(action, space="tuning[all]").items():
        assert plain.set_parameter(name, *values) == 0
    assert feed(steered, steered.decide) == feed(plain, lambda now: now + 100 * MILLISECOND)


def test_decisions_are_due_by_time_or_by_round_trips(tmp_path):
    assert Steered(write(tmp_path, "rate")[0]).decide(0) == 100 * MILLISECOND
    steered = Steered(write(tmp_path, "rate", rtts=2.0)[0])
    steered.on_handshake(0, 40 * MILLISECOND)
    assert steered.decide(0) == 80 * MILLISECOND


def test_a_decision_out_of_order_or_without_a_policy_is_refused():
    steered, due = Steered(path_of("window")), ctypes.c_int64()
    steered.decide(5)
    for now, word in ((5, "has decided at this time"), (4, "time goes backwards")):
        assert C["policy_decide"](steered.handle, now, due) == 1 and word in last_error()
    assert C["policy_decide"](steered.handle, 9, None) == 1 and "is NULL" in last_error()
    assert C["policy_decide"](None, 9, due) == 1 and "controller is NULL" in last_error()
    plain = CController("cubic")
    assert C["policy_decide"](plain.handle, 9, due) == 1 and "has no policy" in last_error()
    assert C["policy_controller_new"](None, 1200, 1, 0) is None and "policy is NULL" in last_error()
    C["policy_free"](None)


LEFT_OUT = object()


def edited(folder, **changes):
    name = "tuning"
    for suffix in ("json", "safetensors"):
        shutil.copy(PRETRAINED / f"{name}.{suffix}", folder / f"mine.{suffix}")
    path = folder / "mine.json"
    data = json.loads(path.read_text())
    architecture = data["architecture"] | changes.pop("architecture", {})
    fields = data | {"architecture": architecture} | changes
    path.write_text(json.dumps({name: it for name, it in fields.items() if it is not LEFT_OUT}))
    return path


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"colour": "red"}, ("mine.json", "colour = 'red': unknown field")),
        ({"format": "quicgym-policy-9"}, ("format",)),
        ({"environment": "CartPole-v1"}, ("environment = 'CartPole-v1'", "Tuning-v1")),
        ({"environment": "quicgym/Window-v1"}, ("cannot be taken in part",)),
        (
            {"environment": "quicgym/Rate-v1", "coordinates": LEFT_OUT},
            ("mine.safetensors", "has the shape"),
        ),
        ({"observation_version": 2}, ("observation_version = 2", "train it again")),
        ({"action_version": 0}, ("action_version = 0",)),
        ({"history_length": 0}, ("history_length = 0: give a whole number from 1 to 1000",)),
        ({"controller": "cubik"}, ("no controller is named 'cubik'",)),
        ({"coordinates": ["cwnd"]}, ("'cwnd' is no coordinate",)),
        ({"sha256": "0" * 64}, ("mine.safetensors", "SHA-256")),
        ({"architecture": {"activation": "gelu"}}, ("activation = 'gelu'",)),
        ({"architecture": {"output": "argmax"}}, ("does not fit the actions",)),
        ({"architecture": {"hidden_sizes": [0]}}, ("hidden_sizes",)),
        (
            {"architecture": {"hidden_sizes": [64_000, 64_000]}},
            ("'hidden.0.weight' has the shape",),
        ),
        ({"architecture": {"layers": 1}}, ("architecture.layers = 1: unknown field",)),
        ({"guard": 1}, ("guard = 1: give true or false",)),
    ],
)
def test_a_wrong_description_is_refused(changes, words, tmp_path):
    path = edited(tmp_path, **changes)
    assert C["policy_load"](str(path).encode()) is None
    for word in words:
        assert word in last_error()


@pytest.mark.parametrize("guard", [True, False])
def test_a_policy_s_description_says_whether_it_is_guarded(guard, tmp_path):
    policy = quicgym.load_policy(edited(tmp_path, guard=guard))
    assert policy.decisions.guard is guard
    assert json.loads(policy.description.to_json()).get("guard", False) is guard
    plain = quicgym.load_policy("tuning")
    assert "guard" not in json.loads(plain.description.to_json())


def test_a_policy_in_memory_is_that_of_the_files(tmp_path):
    path = edited(tmp_path)
    description, weights = path.read_bytes(), path.with_suffix(".safetensors").read_bytes()
    read = partial(C["policy_read"], description, len(description), weights)
    assert read(len(weights) - 1) is None and last_error().startswith("weights: its SHA-256 is ")
    assert C["policy_read"](b"{", 1, b"", 0) is None
    assert last_error().startswith("description: not valid JSON")
    assert C["policy_read"](None, 1, None, 0) is None and last_error() == "description is NULL"
    policy = read(len(weights))
    assert policy, last_error()
    both = Steered(path), Steered(None, policy=policy)
    for number in range(100):
        now = number * 100 * MILLISECOND
        for steered in both:
            steered.on_sent(now, number, 1200)
            steered.on_ack(now + 50 * MILLISECOND, 0, [number])
            steered.decide(now + 60 * MILLISECOND)
        assert both[0].window_bytes == both[1].window_bytes


def test_files_that_are_damaged_or_missing_are_refused(tmp_path):
    path = edited(tmp_path)
    policy = C["policy_load"](str(path).encode())
    assert policy, last_error()
    C["policy_free"](policy)
    for text, word in (
        ("{", "line 1"),
        ("[" * 1_000_000, "more than 32 levels"),
        ("[]", "no JSON object"),
        ("", "no value"),
    ):
        path.write_text(text)
        assert C["policy_load"](str(path).encode()) is None and word in last_error()
    path.write_text(" " * 2**21)
    for target, word in (
        (None, "Has 2097152 bytes, more than the 1048576 that are read"),
        ("/dev/zero", "Is a pipe or a device, not a regular file"),
        ("fifo", "Is a pipe or a device, not a regular file"),
        (tmp_path, "Is a directory"),
        ("none", "No such file or directory"),
    ):
        if target is not None:
            path.unlink()
            path.symlink_to(target)
        if target == "fifo":
            os.mkfifo(tmp_path / target)
        assert C["policy_load"](str(path).encode()) is None
        assert f"mine.json: cannot be read: {word}" in last_error()
    path.unlink()
    edited(tmp_path).with_suffix(".safetensors").unlink()
    assert C["policy_load"](str(path).encode()) is None and "mine.safetensors" in last_error()
    assert C["policy_load"](b"mine.zip") is None and ".json" in last_error()
    assert C["policy_load"](None) is None and "path is NULL" in last_error()
